internal import Basics

/// Waits of one hub for versions to be visible. However many there are, the store is asked for the lowest version
/// alone.
struct VersionWaits {
    private struct Wait {
        let version: UInt64
        /// In elapsed milliseconds of the store's clock.
        let endsAt: UInt64
        let completion: (Result<Void, RequestError>) -> Void
    }

    private var waits: [Wait] = []
    /// The versions that the store was asked for and has not answered.
    private var asked: Set<UInt64> = []

    /// How long a version is waited for, in milliseconds.
    static let patienceMilliseconds: UInt64 = 5_000

    /// - Parameter now: elapsed milliseconds of the store's clock.
    /// - Returns: whether the store must be asked for the version.
    mutating func add(
        _ version: UInt64, at now: UInt64, _ completion: @escaping (Result<Void, RequestError>) -> Void
    ) -> Bool {
        waits.append(Wait(version: version, endsAt: now + Self.patienceMilliseconds, completion: completion))
        return ask(for: version)
    }

    private mutating func ask(for version: UInt64) -> Bool {
        guard asked.allSatisfy({ $0 > version }) else { return false }
        asked.insert(version)
        return true
    }

    /// The store has answered.
    ///
    /// - Parameters:
    ///   - version: what it was asked for.
    ///   - visible: everything up to this version is visible.
    /// - Returns: what ends the waits that are over, and the version that the store must be asked for next.
    mutating func end(
        _ outcome: Result<Void, RequestError>, of version: UInt64, visible: UInt64, now: UInt64
    ) -> (ended: [() -> Void], next: UInt64?) {
        asked.remove(version)
        var reached = visible
        var isRefused = false
        switch outcome {
        case .success: reached = max(visible, version)
        // Those that came later have time left.
        case .failure(let error): isRefused = error.code != .unavailable
        }
        let isOver = { (wait: Wait) in isRefused || wait.version <= reached || wait.endsAt <= now }
        let ended = waits.filter(isOver).map { wait in
            { wait.completion(wait.version <= reached ? .success(()) : outcome) }
        }
        waits.removeAll(where: isOver)
        guard let lowest = waits.lazy.map(\.version).min(), ask(for: lowest) else { return (ended, nil) }
        return (ended, lowest)
    }
}
