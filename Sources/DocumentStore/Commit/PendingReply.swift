// Replies that wait for the sync of their group.

internal import Basics
internal import DocumentModel
internal import KeyValueStore

/// A reply held back until its commit group is durable.
enum PendingReply: Sendable {
    case commit(Result<CommitResult, RequestError>, @Sendable (Result<CommitResult, RequestError>) -> Void)
    case batch(Result<BatchWriteResult, RequestError>, @Sendable (Result<BatchWriteResult, RequestError>) -> Void)
    /// A transaction that was waiting for its leases: it begins when everything staged before is visible.
    case begin(BeginRequest)
    /// Locks were granted: what was decided before them is visible now.
    case locked(LockRequest)
    /// The indexes of a database are those of a declaration.
    case declaration(Result<Void, RequestError>, @Sendable (Result<Void, RequestError>) -> Void)

    /// Sends the reply, or the failure of the sync in its place.
    func send(_ failure: RequestError?, begin: (BeginRequest) -> Void) {
        switch self {
        case .commit(let result, let completion): completion(failure.map { .failure($0) } ?? result)
        case .batch(let result, let completion): completion(failure.map { .failure($0) } ?? result)
        case .declaration(let result, let completion): completion(failure.map { .failure($0) } ?? result)
        case .locked(let request): request.completion(failure.map { .failure($0) } ?? .success(()))
        case .begin(let request):
            if let failure { request.completion(.failure(failure)) } else { begin(request) }
        }
    }
}

/// Sends the replies of a group when its sync has ended, and completes the reads that waited for its versions. Runs on
/// the commit thread or on the log thread.
struct ReplySender: Sendable {
    let transactions: TransactionTable
    let queue: CommitQueue
    let versions: VersionClock
    let changes: ChangeFeed

    func send(_ replies: [PendingReply], after result: Result<CommitVersion, StorageError>) {
        var failure: RequestError?
        if case .failure(let error) = result { failure = RequestError(error) }
        for reply in replies { reply.send(failure, begin: begin) }
        switch result {
        case .success(let version):
            versions.endWaits()
            changes.announce(through: version.microseconds)
        case .failure(let error): versions.failWaits(RequestError(error))
        }
    }

    private func begin(_ request: BeginRequest) {
        do throws(RequestError) {
            try transactions.begin(
                request.identifier, in: request.database, kind: request.kind, retried: request.retried,
                account: request.account)
            request.completion(.success(request.identifier))
        } catch {
            queue.submitRelease(request.identifier.number)
            request.completion(.failure(error))
        }
    }
}
