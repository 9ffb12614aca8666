// Transactions of the SDK.

import DocumentCoding
import Foundation
import HearthClient
import Synchronization

extension Firestore {
    /// Runs a transaction, again if it conflicts with another one, up to five times in all.
    ///
    /// - Parameters:
    ///   - updateBlock: reads, then writes; it may run several times, on a private queue. To give up it stores an error
    ///     through the pointer. What it returns is delivered after the commit.
    ///   - completion: called on the queue of the settings.
    public func runTransaction(
        _ updateBlock: @escaping (Transaction, NSErrorPointer) -> Any?,
        completion: @escaping (Any?, (any Error)?) -> Void
    ) {
        runTransaction(with: nil, block: updateBlock, completion: completion)
    }

    /// Runs a transaction with options.
    public func runTransaction(
        with options: TransactionOptions?, block updateBlock: @escaping (Transaction, NSErrorPointer) -> Any?,
        completion: @escaping (Any?, (any Error)?) -> Void
    ) {
        let userCompletion = UncheckedBox(completion)
        transact(attempts: options?.maxAttempts, Cancellation(), updateBlock) { result, error in
            let result = UncheckedBox(result)
            self.callBack { userCompletion.value(result.value, error) }
        }
    }

    /// Runs a transaction, again if it conflicts with another one, up to five times in all. The SDK's form: see also
    /// the form whose block throws.
    ///
    /// - Parameter updateBlock: runs on a private queue, maybe several times. If it uses what belongs to an actor, this
    ///   is an error in the Swift 6 language mode and a warning in the Swift 5 mode.
    /// - Returns: what the block returned in the attempt that was committed.
    /// - Throws: an `NSError`, or the very error that the block stored; `.cancelled` when the task is cancelled. A
    ///   commit that was on its way then may have been applied.
    @discardableResult
    @preconcurrency
    nonisolated(nonsending) public func runTransaction(
        _ updateBlock: @escaping @Sendable (Transaction, NSErrorPointer) -> sending Any?
    ) async throws -> sending Any? {
        let outcome = try await transact(attempts: nil, updateBlock)
        if let error = outcome.value.1 { throw error }
        return takeSending(outcome)
    }

    /// Runs a transaction whose block throws, again if it conflicts with another one, up to five times in all.
    ///
    ///     let next = try await db.runTransaction { transaction in
    ///         let next = (try transaction.getDocument(counter).get("n") as? Int ?? 0) + 1
    ///         transaction.setData(["n": next], forDocument: counter)
    ///         return next
    ///     }
    ///
    /// - Parameters:
    ///   - options: how often it tries; nil is five times.
    ///   - body: reads, then writes; it may run several times, on a private queue, so it may not change what belongs to
    ///     an actor or to the caller. To give up it throws. A block of a single write does not return the transaction:
    ///     `{ _ = $0.deleteDocument(document) }`.
    /// - Returns: what the block returned in the attempt that was committed.
    /// - Throws: an `NSError`, or the very error that the block threw, if another attempt cannot avoid it; `.cancelled`
    ///   when the task is cancelled. A commit that was on its way then may have been applied.
    @discardableResult
    nonisolated(nonsending) public func runTransaction<Result>(
        with options: TransactionOptions? = nil, _ body: @escaping @Sendable (Transaction) throws -> sending Result
    ) async throws -> sending Result {
        let thrown = Mutex<(original: any Error, delivered: NSError)?>(nil)
        let outcome = try await transact(attempts: options?.maxAttempts) { transaction, errorPointer in
            do {
                return try body(transaction)
            } catch {
                // An error of this library decides about another attempt; others end the transaction.
                let delivered = error as NSError
                thrown.withLock { $0 = (error, delivered) }
                errorPointer?.pointee = delivered
                return nil
            }
        }
        if let error = outcome.value.1 {
            if let thrown = thrown.withLock({ $0 }), thrown.delivered === error { throw thrown.original }
            throw error
        }
        guard let result = takeSending(outcome) as? Result else {
            throw NSError.firestore(.internal, "The transaction ended without a result.")
        }
        return result
    }

    nonisolated(nonsending) private func transact(
        attempts: Int?, _ block: @escaping TransactionRunner.Block
    ) async throws -> UncheckedBox<(Any?, NSError?)> {
        if Task.isCancelled { throw NSError.taskWasCancelled }
        return await waiting { cancellation, completion in
            transact(attempts: attempts, cancellation, block) { result, error in
                completion(UncheckedBox((result, error)))
            }
        }
    }

    private func transact(
        attempts: Int?, _ cancellation: Cancellation, _ block: @escaping TransactionRunner.Block,
        _ completion: @escaping TransactionRunner.Completion
    ) {
        checkUsable()
        TransactionRunner(
            firestore: self, attemptsMax: attempts ?? TransactionRetry.standardAttempts, cancellation: cancellation,
            block: block, completion: completion
        ).start()
    }
}

/// The result of a block, which the block gave away (`sending`) and nobody else holds.
private func takeSending(_ box: UncheckedBox<(Any?, NSError?)>) -> sending Any? {
    nonisolated(unsafe) let result = box.value.0
    return result
}
