// Replies that wait for the sync of their group.

internal import Basics
internal import DocumentModel
internal import Storage

/// What has become of a request, while its commit group is not durable.
struct PendingResult<Success: Sendable>: Sendable {
    let result: Result<Success, RequestError>
    /// The request was committed before, maybe in a group whose sync has failed since; this is its result.
    var isRepeat = false

    init(_ result: Result<Success, RequestError>, isRepeat: Bool = false) {
        self.result = result
        self.isRepeat = isRepeat
    }

    /// The reply when the sync of the group has ended.
    func reply(_ failure: StorageError?) -> Result<Success, RequestError> {
        guard let failure else { return result }
        switch result {
        // It has no effect. Its own error may rest on what was staged before it and is lost now.
        case .failure: return .failure(RequestError(failure.asFinalRefusal))
        case .success: return .failure(RequestError(isRepeat ? failure.asUnknownOutcome : failure))
        }
    }
}

/// A reply held back until its commit group is durable.
enum PendingReply: Sendable {
    case commit(PendingResult<CommitResult>, @Sendable (Result<CommitResult, RequestError>) -> Void)
    case batch(PendingResult<BatchWriteResult>, @Sendable (Result<BatchWriteResult, RequestError>) -> Void)
    /// A transaction that waited for its turn: it begins when everything staged before is visible.
    case begin(BeginRequest)
    /// Locks were granted: what was decided before them is visible now.
    case locked(LockRequest)
    /// The indexes of a database are those of a declaration, or the database itself was changed.
    case declaration(PendingResult<Void>, @Sendable (Result<Void, RequestError>) -> Void)
    /// Records of the leader are applied.
    case followed(PendingResult<Void>, @Sendable (Result<Void, RequestError>) -> Void)

    /// Sends the reply, or what the failure of the sync makes of it.
    fileprivate func send(_ failure: StorageError?, by sender: borrowing ReplySender) {
        switch self {
        case .commit(let result, let completion): completion(result.reply(failure))
        case .batch(let result, let completion): completion(result.reply(failure))
        case .declaration(let result, let completion), .followed(let result, let completion):
            completion(result.reply(failure))
        case .locked(let request): request.completion(PendingResult(.success(())).reply(failure))
        case .begin(let request):
            if let failure { request.completion(.failure(RequestError(failure))) } else { sender.begin(request) }
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
    let databases: DatabaseDirectory
    let replication: ReplicationState

    func send(_ replies: [PendingReply], after result: Result<CommitVersion, StorageError>) {
        var failure: StorageError?
        if case .failure(let error) = result { failure = error }
        for reply in replies { reply.send(failure, by: self) }
        switch result {
        case .success(let version):
            versions.endWaits()
            changes.announce(through: version.microseconds, lastEnd: databases.lastEnd)
            replication.published()
        case .failure(let error): versions.failWaits(RequestError(error))
        }
    }

    /// Has replies fail whose requests have staged nothing. Reads and listeners wait on.
    func refuse(_ replies: [PendingReply], _ error: StorageError) {
        for reply in replies { reply.send(error, by: self) }
    }

    fileprivate func begin(_ request: BeginRequest) {
        do throws(RequestError) {
            try transactions.begin(
                request.identifier, in: request.database, kind: request.kind, retried: request.retried,
                account: request.account, claim: request.claim)
            request.completion(.success(request.identifier))
        } catch {
            queue.submitRelease(request.identifier.number)
            request.completion(.failure(error))
        }
    }
}
