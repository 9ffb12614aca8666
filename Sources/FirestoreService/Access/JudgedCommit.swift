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
///
/// If rules read what is not in memory, the commit waits beside the loop, before the later commits of its connection.
final class JudgedCommit {
    private static let attemptsMax = 3

    private let service: FirestoreService
    private let call: Call
    private var request: CommitRequest
    private let access: any CallAccess
    private let completion: @Sendable (Result<CommitResult, RequestError>) -> Void
    private var attempts = 0

    /// - Parameter completion: called once, on any thread.
    init(
        _ service: FirestoreService, _ call: Call, _ request: CommitRequest, _ access: any CallAccess,
        _ completion: @escaping @Sendable (Result<CommitResult, RequestError>) -> Void
    ) {
        self.service = service
        self.call = call
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
            step(try access.judge(request.writes, JudgedState(service.reader, point, .pends)))
        } catch {
            refuse(error)
        }
    }

    private func step(_ judgement: any WriteJudgement) {
        do throws(RequestError) {
            guard let basis = try judgement.step() else {
                let next = LoopBound((self, judgement))
                return call.loop.execute { next.value.0.step(next.value.1) }
            }
            request.basis = basis
            submit()
        } catch {
            if error.isPending { wait(judgement) } else { refuse(error) }
        }
    }

    /// Continues the judgement when what it lacked is in memory.
    private func wait(_ judgement: any WriteJudgement) {
        service.waitingCommits.add(call, service.reader) { [self] ready in
            switch ready {
            case .success: step(judgement)
            case .failure(let error): refuse(error)
            }
        }
    }

    private func refuse(_ error: RequestError) {
        guard request.identifier != nil else { return completion(.failure(error)) }
        request.refusal = error
        service.store.commit(request, completion: completion)
    }

    private func submit() {
        let commit = LoopBound(self)
        let (loop, completion, isLast) = (call.loop, completion, attempts == Self.attemptsMax)
        service.store.commit(request) { outcome in
            if case .failure(let error) = outcome, error.isJudgementOutdated, !isLast {
                return loop.execute { commit.value.begin() }
            }
            completion(outcome)
        }
    }
}
