import Basics
import Dispatch
import DocumentModel
import FirestoreMessages
import HearthClient
import Synchronization

/// One attempt of a transaction on the server: begin, reads, end.
///
///     attempt 1:   the first read begins the transaction (BatchGetDocuments, new_transaction) -- reads -- Commit
///                                                                                                       | ABORTED
///     attempt 2:   BeginTransaction(retry_transaction = the first id), which waits for its turn -- reads -- Commit
///
/// Reads block their caller and may come from any thread, one at a time.
final class TransactionAttempt: Sendable {
    private let client: HearthClient
    private let database: DatabaseName
    private let cancellation: Cancellation
    private let transaction: Mutex<[UInt8]>

    /// - Parameters:
    ///   - transaction: the id of a transaction that was begun already, or empty.
    ///   - cancellation: what ends reads and the commit early.
    init(client: HearthClient, database: DatabaseName, transaction: [UInt8], cancellation: Cancellation) {
        self.cancellation = cancellation
        self.client = client
        self.database = database
        self.transaction = Mutex(transaction)
    }

    /// The id of the transaction; empty if nothing was read.
    var transactionID: [UInt8] { transaction.withLock { $0 } }

    /// Reads a document in the transaction, which begins now if this is the first read.
    func readBlocking(_ name: String) -> Result<StoredDocument?, RequestError> {
        let answer = Mutex<Result<StoredDocument?, RequestError>?>(nil)
        let done = DispatchSemaphore(value: 0)
        read(name) { result in
            answer.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        return answer.withLock { $0 } ?? .failure(RequestError(.internal, "A read ended without a result."))
    }

    private func read(_ name: String, completion: @escaping @Sendable (Result<StoredDocument?, RequestError>) -> Void) {
        let id = transactionID
        if !id.isEmpty {
            return client.getDocument(
                name, consistency: .transaction(id), options: .failFast.cancelled(by: cancellation),
                completion: completion)
        }
        let request = BatchGetDocumentsRequest(
            database: database.description, documents: [name], consistency: .newTransaction(.readWrite))
        client.collectBatchGet(request, options: .failFast.cancelled(by: cancellation)) { [self] result in
            switch result {
            case .success(let answer):
                transaction.withLock { $0 = answer.transaction }
                completion(.success(answer.results.first?.content))
            case .failure(let error):
                completion(.failure(error))
            }
        }
    }

    /// Commits the writes, in the transaction if there was a read.
    func commit(_ recorder: WriteRecorder, completion: @escaping @Sendable (RequestError?) -> Void) {
        if let failure = recorder.failure {
            abandon()
            return completion(failure)
        }
        if cancellation.isCancelled {
            abandon()
            return completion(RequestError(.cancelled, "The task was cancelled."))
        }
        let request = recorder.writes.request(transaction: transactionID)
        client.commitTransaction(request, options: .failFast.cancelled(by: cancellation)) { result in
            switch result {
            case .success: completion(nil)
            case .failure(let error): completion(error)
            }
        }
    }

    /// Gives the transaction up: sends a rollback and does not wait for its reply.
    func abandon() {
        let id = transactionID
        guard !id.isEmpty else { return }
        client.rollback(database: database, transaction: id, options: .standard) { _ in }
    }
}
