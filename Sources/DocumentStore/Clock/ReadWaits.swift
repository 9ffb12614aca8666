internal import Basics
internal import Synchronization

/// Reads at a time whose commits are not all visible yet: each waits for a version to be published.
///
/// Bounded in number and time. Thread-safe; completions are called without the lock held, on the thread that ends the
/// wait, and must not block.
final class ReadWaits: Sendable {
    typealias Completion = @Sendable (Result<Void, RequestError>) -> Void

    private struct Wait: Sendable {
        /// The read is possible when this version is published.
        var version: UInt64
        /// In elapsed milliseconds.
        var deadline: UInt64
        var completion: Completion
    }

    private struct State {
        var waits: [Wait] = []
        /// Why nothing can be waited for any more; nil while it can.
        var end: RequestError?
    }

    private let state = Mutex(State())
    /// The number of waits, so that a publication need not take the lock while there is none.
    private let waiting = Atomic(0)
    private let countMax: Int
    private let timeLimitMilliseconds: UInt64

    /// - Parameters:
    ///   - countMax: waits at the same time; the next is refused with `RESOURCE_EXHAUSTED`.
    ///   - timeLimitMilliseconds: time after which a wait fails with `UNAVAILABLE`.
    init(countMax: Int = 10_000, timeLimitMilliseconds: UInt64 = 5_000) {
        self.countMax = countMax
        self.timeLimitMilliseconds = timeLimitMilliseconds
    }

    var isEmpty: Bool { waiting.load(ordering: .sequentiallyConsistent) == 0 }
    var count: Int { waiting.load(ordering: .sequentiallyConsistent) }

    /// Adds a wait for a version.
    /// - Returns: the refusal if there are too many; the completion is not kept then.
    func add(_ version: UInt64, nowMilliseconds: UInt64, _ completion: @escaping Completion) -> RequestError? {
        state.withLock { state in
            if let end = state.end { return end }
            guard state.waits.count < countMax else {
                return RequestError(.resourceExhausted, "Too many reads wait for commits; try again later.")
            }
            state.waits.append(
                Wait(version: version, deadline: nowMilliseconds + timeLimitMilliseconds, completion: completion))
            waiting.store(state.waits.count, ordering: .sequentiallyConsistent)
            return nil
        }
    }

    /// Completes the waits for versions up to this one.
    func complete(upTo version: UInt64) {
        end(.success(())) { $0.version <= version }
    }

    /// Fails the waits whose deadline has passed.
    func failExpired(nowMilliseconds: UInt64) {
        let error = RequestError(.unavailable, "Commits up to the read time are not on disk yet.")
        end(.failure(error)) { $0.deadline <= nowMilliseconds }
    }

    /// Fails all waits.
    func fail(_ error: RequestError) {
        if !isEmpty { end(.failure(error)) { _ in true } }
    }

    /// Fails all waits, and those to come.
    func close(_ error: RequestError) {
        state.withLock { $0.end = error }
        fail(error)
    }

    private func end(_ result: Result<Void, RequestError>, where isOver: (Wait) -> Bool) {
        let ended = state.withLock { state in
            let ended = state.waits.filter(isOver)
            if !ended.isEmpty { state.waits.removeAll(where: isOver) }
            waiting.store(state.waits.count, ordering: .sequentiallyConsistent)
            return ended
        }
        for wait in ended { wait.completion(result) }
    }
}
