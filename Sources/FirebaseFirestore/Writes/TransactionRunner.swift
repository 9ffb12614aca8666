// Runs the block of a transaction as often as it takes: attempt, commit, and on a conflict once more.

import Basics
import Dispatch
import DocumentModel
import Foundation
import HearthClient
import Synchronization

/// One transaction from its first attempt to its result. Runs on the transaction queue; one step at a time.
final class TransactionRunner: @unchecked Sendable {
    // Unchecked: the block and the result are plain values of the user, touched by one step at a time, and each step
    // is handed to the next through a queue.

    typealias Block = (Transaction, NSErrorPointer) -> Any?
    typealias Completion = (Any?, NSError?) -> Void

    /// Where blocks run: concurrently, because they block while they read.
    private static let queue = DispatchQueue(label: "hearth.transactions", attributes: .concurrent)

    private let firestore: Firestore
    private let block: Block
    private let completion: Completion
    private let cancellation: Cancellation
    private var retry: TransactionRetry
    /// The id of the last attempt that the server knows of; the next attempt names it to get its turn.
    private var lastTransaction: [UInt8] = []

    /// - Parameter cancellation: ends the attempt that runs, and prevents further ones.
    init(
        firestore: Firestore, attemptsMax: Int, cancellation: Cancellation, block: @escaping Block,
        completion: @escaping Completion
    ) {
        self.firestore = firestore
        self.cancellation = cancellation
        self.block = block
        self.completion = completion
        retry = TransactionRetry(attemptsMax: attemptsMax, jitterSeed: .random(in: 0 ... .max))
    }

    func start() { Self.queue.async { self.beginAttempt() } }

    private func beginAttempt() {
        if cancellation.isCancelled { return completion(nil, .taskWasCancelled) }
        let client: HearthClient
        do throws(RequestError) {
            client = try firestore.client()
        } catch {
            return completion(nil, error.asNSError)
        }
        guard !lastTransaction.isEmpty else { return runBlock(client, transaction: []) }
        // A retried attempt asks for its transaction first: the answer comes when it is its turn.
        client.beginTransaction(
            database: firestore.databaseName, retrying: lastTransaction,
            options: .failFast.cancelled(by: cancellation)
        ) { result in
            Self.queue.async {
                switch result {
                case .success(let transaction): self.runBlock(client, transaction: transaction)
                case .failure(let error): self.attemptFailed(error.asNSError)
                }
            }
        }
    }

    private func runBlock(_ client: HearthClient, transaction id: [UInt8]) {
        let attempt = TransactionAttempt(
            client: client, database: firestore.databaseName, transaction: id, cancellation: cancellation)
        let transaction = Transaction(firestore: firestore, attempt: attempt)
        var abandonment: NSError?
        let result = UncheckedBox(block(transaction, &abandonment))
        let recorder = transaction.finish()
        if !attempt.transactionID.isEmpty { lastTransaction = attempt.transactionID }
        if let abandonment {
            attempt.abandon()
            return attemptFailed(abandonment)
        }
        attempt.commit(recorder) { error in
            guard let error else { return self.completion(result.value, nil) }
            Self.queue.async { self.attemptFailed(error.asNSError, isOfCommit: true) }
        }
    }

    /// Tries again, or delivers the very error.
    private func attemptFailed(_ error: NSError, isOfCommit: Bool = false) {
        if cancellation.isCancelled { return completion(nil, .taskWasCancelled) }
        guard let code = error.firestoreStatus,
            case .retry(let wait) = retry.failed(
                code, error.localizedDescription, isOfCommit: isOfCommit, hasReachedServer: !lastTransaction.isEmpty)
        else { return completion(nil, error) }
        guard wait > 0 else { return beginAttempt() }
        // After the wait, or when the task is cancelled, whichever comes first.
        let next = RunOnce { Self.queue.async { self.beginAttempt() } }
        Self.queue.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: wait))) { next.run() }
        cancellation.onCancel { next.run() }
    }
}

/// Work that two events may start, and that runs at the first of them only.
private final class RunOnce: Sendable {
    private struct Work {
        let body: @Sendable () -> Void
    }

    /// Nil when it has begun: what the work refers to may refer to this object.
    private let work: Mutex<Work?>

    init(_ body: @escaping @Sendable () -> Void) { work = Mutex(Work(body: body)) }

    func run() { work.withLock { $0.take() }?.body() }
}
