// The answers that wait for one sync.

internal import Basics
internal import DocumentModel
internal import KeyValueStore

/// An answer that is ready but for the durability of what it tells of.
enum PendingAnswer: Sendable {
    case commit(Result<CommitResult, RequestError>, @Sendable (Result<CommitResult, RequestError>) -> Void)
    case batch(Result<BatchWriteResult, RequestError>, @Sendable (Result<BatchWriteResult, RequestError>) -> Void)
    /// A transaction whose turn has come: it begins when everything staged before is visible.
    case begin(BeginRequest)
    /// Locks were granted: what was decided before them is visible now.
    case locked(LockRequest)

    /// Declared indexes are what somebody wanted.
    case declaration(Result<Void, RequestError>, @Sendable (Result<Void, RequestError>) -> Void)

    /// Gives the answer, or the failure of the sync in its place.
    func give(_ failure: RequestError?, begin: (BeginRequest) -> Void) {
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
