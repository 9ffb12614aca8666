// Transactions of the SDK.

import DocumentCoding
import Foundation

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

    /// Runs a transaction, again if it conflicts with another one, up to five times in all.
    ///
    /// - Returns: what the block returned in the attempt that was committed.
    /// - Throws: an `NSError`, or the very error that the block stored; `.cancelled` when the task is cancelled. A
    ///   commit that was on its way then may have been applied.
    @discardableResult
    nonisolated(nonsending) public func runTransaction(
        _ updateBlock: @escaping (Transaction, NSErrorPointer) -> sending Any?
    ) async throws -> sending Any? {
        if Task.isCancelled { throw NSError.taskWasCancelled }
        let outcome: UncheckedBox<(Any?, NSError?)> = await waiting { cancellation, completion in
            transact(attempts: nil, cancellation, updateBlock) { result, error in
                completion(UncheckedBox((result, error)))
            }
        }
        if let error = outcome.value.1 { throw error }
        return takeSending(outcome)
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
