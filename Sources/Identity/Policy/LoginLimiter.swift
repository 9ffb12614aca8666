internal import Synchronization

/// Slows failed logins, by the caller's network and by the name that the credential claims. Thread-safe.
///
/// The first failures cost nothing; then each doubles the wait, up to a minute for a network and up to eight seconds
/// for a name: a guesser with many addresses must not keep the owner out for long. Networks from which the name has
/// logged in do not wait for the name at all. A failure is forgotten in a minute. Memory is bounded: what nobody
/// touches is forgotten first.
package final class LoginLimiter: Sendable {
    /// Failures without a wait.
    static let freeFailures = 5
    /// The longest wait of a network, in milliseconds.
    static let waitMillisecondsMax: UInt64 = 60_000
    /// The longest wait of a name, in milliseconds.
    static let nameWaitMillisecondsMax: UInt64 = 8_000
    /// A failure is forgotten after so many milliseconds.
    static let forgetsMilliseconds: UInt64 = 60_000

    private enum Key: Hashable {
        case network(CallerNetwork)
        case name([UInt8])

        var waitMillisecondsMax: UInt64 {
            switch self {
            case .network: LoginLimiter.waitMillisecondsMax
            case .name: LoginLimiter.nameWaitMillisecondsMax
            }
        }
    }

    private struct Entry {
        var failures = 0
        /// When `failures` was last brought up to date.
        var countedAt: UInt64
        /// No attempt before this moment.
        var waitsUntil: UInt64
    }

    /// A name, and a network from which it has logged in; nil stands for all that have no network.
    private struct Login: Hashable {
        let network: CallerNetwork?
        let name: [UInt8]
    }

    private struct State {
        var entries: RecentTable<Key, Entry>
        var logins: RecentTable<Login, Void>
    }

    private let state: Mutex<State>
    /// The end of the last wait of a name.
    private let namesWaitUntil = Atomic<UInt64>(0)
    private let now: @Sendable () -> UInt64

    /// - Parameters:
    ///   - entriesMax: networks and names that are remembered; as many successful logins are remembered besides.
    ///   - now: milliseconds of a clock that never steps back.
    package init(entriesMax: Int = 20_000, now: @escaping @Sendable () -> UInt64) {
        state = Mutex(State(entries: RecentTable(entriesMax: entriesMax), logins: RecentTable(entriesMax: entriesMax)))
        self.now = now
    }

    /// Networks and names in memory.
    package var count: Int { state.withLock { $0.entries.count } }

    /// Successful logins in memory.
    package var loginCount: Int { state.withLock { $0.logins.count } }

    /// Whether some name has to wait, so that names matter to ``waitMilliseconds(_:name:)``. Cheap.
    package var slowsNames: Bool { namesWaitUntil.load(ordering: .relaxed) > now() }

    /// How long an attempt has to wait, in milliseconds; 0 if it may be made now.
    ///
    /// - Parameters:
    ///   - network: nil if it is not known, or shared by many callers.
    ///   - name: what the credential claims to be, for example an API key's identifier; nil if it claims nothing.
    package func waitMilliseconds(_ network: CallerNetwork?, name: String? = nil) -> UInt64 {
        let now = now()
        return state.withLock { state in
            Self.keys(network, name).map { key in
                if case .name(let name) = key, state.logins.touch(Login(network: network, name: name)) != nil {
                    return 0
                }
                let entry = state.entries.value(at: key)
                return entry.map { $0.waitsUntil > now ? $0.waitsUntil - now : 0 } ?? 0
            }.max() ?? 0
        }
    }

    /// Counts a failed attempt.
    package func failed(_ network: CallerNetwork?, name: String? = nil) {
        let now = now()
        state.withLock { state in
            for key in Self.keys(network, name) {
                var entry = state.entries.touch(key) ?? Entry(countedAt: now, waitsUntil: 0)
                Self.fail(&entry, now, waitMax: key.waitMillisecondsMax)
                state.entries.insert(entry, at: key)
                if case .name = key { namesWaitUntil.max(entry.waitsUntil, ordering: .relaxed) }
            }
        }
    }

    /// Notes that a name has logged in: from this network it does not wait for what others fail at.
    package func succeeded(_ network: CallerNetwork?, name: String) {
        state.withLock { state in
            let login = Login(network: network, name: Self.bounded(name))
            if state.logins.touch(login) == nil { state.logins.insert((), at: login) }
        }
    }

    private static func fail(_ entry: inout Entry, _ now: UInt64, waitMax: UInt64) {
        let forgotten = (now - min(now, entry.countedAt)) / forgetsMilliseconds
        entry.failures = max(0, entry.failures - Int(clamping: forgotten)) + 1
        entry.countedAt = now
        let beyond = entry.failures - freeFailures
        guard beyond > 0 else { return }
        // From the sixth doubling on the wait is the longest one.
        let wait = min(waitMax, 1000 << UInt64(min(beyond - 1, 6)))
        entry.waitsUntil = now + wait
        entry.failures = min(entry.failures, freeFailures + 7)
    }

    private static func keys(_ network: CallerNetwork?, _ name: String?) -> [Key] {
        (network.map { [.network($0)] } ?? []) + (name.map { [.name(bounded($0))] } ?? [])
    }

    /// A long name is cut: what counts is that memory is bounded.
    private static func bounded(_ name: String) -> [UInt8] { Array(name.utf8.prefix(128)) }
}
