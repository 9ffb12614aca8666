internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore

/// A commit whose writes are judged before its turn. Confined to the loop.
///
///     judge (loop) ──► allowed, with what that rests on ──► turn (commit thread): unchanged? ──► committed
///          ▲                                                          │ no
///          └──────────────────────────────────────────────────────────┘ at most three times, then ABORTED
///
/// A request that may be a repetition goes to the commit thread though it is denied: if it was committed before, its
/// answer is the first one.
final class JudgedCommit {
    private static let attemptsMax = 3

    private let service: FirestoreService
    private let loop: any LoopThread
    private var request: CommitRequest
    private let access: any CallAccess
    private let completion: @Sendable (Result<CommitResult, RequestError>) -> Void
    private var attempts = 0

    /// - Parameter completion: called once, on any thread.
    init(
        _ service: FirestoreService, _ loop: any LoopThread, _ request: CommitRequest, _ access: any CallAccess,
        _ completion: @escaping @Sendable (Result<CommitResult, RequestError>) -> Void
    ) {
        self.service = service
        self.loop = loop
        self.request = request
        self.access = access
        self.completion = completion
    }

    /// Judges the writes in the present state.
    func begin() {
        attempts += 1
        request.basis = nil
        do throws(RequestError) {
            let point = try service.reader.readPoint(.latest, in: request.writes.database)
            step(try access.judge(request.writes, JudgedState(service.reader, point)))
        } catch {
            refuse(error)
        }
    }

    private func step(_ judgement: any WriteJudgement) {
        do throws(RequestError) {
            guard let basis = try judgement.step() else {
                let next = LoopBound((self, judgement))
                return loop.execute { next.value.0.step(next.value.1) }
            }
            request.basis = basis
            submit()
        } catch {
            refuse(error)
        }
    }

    private func refuse(_ error: RequestError) {
        guard request.identifier != nil else { return completion(.failure(error)) }
        request.refusal = error
        service.store.commit(request, completion: completion)
    }

    private func submit() {
        let commit = LoopBound(self)
        let (loop, completion, isLast) = (loop, completion, attempts == Self.attemptsMax)
        service.store.commit(request) { outcome in
            if case .failure(let error) = outcome, error.isJudgementOutdated, !isLast {
                return loop.execute { commit.value.begin() }
            }
            completion(outcome)
        }
    }
}
