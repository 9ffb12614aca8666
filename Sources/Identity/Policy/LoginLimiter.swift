internal import Synchronization

/// Slows failed logins, by the caller's network and by the name that the credential claims. Thread-safe.
///
/// The first failures cost nothing; then each doubles the wait, up to a minute. A failure is forgotten in a minute.
/// Memory is bounded as in a cache of two generations: entries that nobody touches are forgotten first.
package final class LoginLimiter: Sendable {
    /// Failures without a wait.
    static let freeFailures = 5
    /// The longest wait, in milliseconds.
    static let waitMillisecondsMax: UInt64 = 60_000
    /// A failure is forgotten after so many milliseconds.
    static let forgetsMilliseconds: UInt64 = 60_000

    private enum Key: Hashable {
        case network(CallerNetwork)
        case name([UInt8])
    }

    private struct Entry {
        var failures = 0
        /// When `failures` was last brought up to date.
        var countedAt: UInt64
        /// No attempt before this moment.
        var waitsUntil: UInt64
    }

    private struct Generations {
        var young: [Key: Entry] = [:]
        var old: [Key: Entry] = [:]
    }

    private let youngMax: Int
    private let state = Mutex(Generations())
    private let now: @Sendable () -> UInt64

    /// - Parameters:
    ///   - entriesMax: networks and names that are remembered.
    ///   - now: milliseconds of a clock that never steps back.
    package init(entriesMax: Int = 20_000, now: @escaping @Sendable () -> UInt64) {
        youngMax = max(entriesMax / 2, 1)
        self.now = now
    }

    /// Entries in memory.
    package var count: Int { state.withLock { $0.young.count + $0.old.count } }

    /// How long an attempt has to wait, in milliseconds; 0 if it may be made now.
    ///
    /// - Parameter name: what the credential claims to be, for example an API key's identifier; nil if it claims
    ///   nothing.
    package func waitMilliseconds(_ network: CallerNetwork, name: String? = nil) -> UInt64 {
        let now = now()
        return state.withLock { state in
            Self.keys(network, name).map { key in
                let entry = state.young[key] ?? state.old[key]
                return entry.map { $0.waitsUntil > now ? $0.waitsUntil - now : 0 } ?? 0
            }.max() ?? 0
        }
    }

    /// Counts a failed attempt.
    package func failed(_ network: CallerNetwork, name: String? = nil) {
        let now = now()
        state.withLock { state in
            for key in Self.keys(network, name) {
                var entry =
                    state.young[key] ?? state.old.removeValue(forKey: key) ?? Entry(countedAt: now, waitsUntil: 0)
                Self.fail(&entry, now)
                if state.young.count >= youngMax, state.young[key] == nil {
                    state.old = state.young
                    state.young = [:]
                }
                state.young[key] = entry
            }
        }
    }

    private static func fail(_ entry: inout Entry, _ now: UInt64) {
        let forgotten = (now - min(now, entry.countedAt)) / forgetsMilliseconds
        entry.failures = max(0, entry.failures - Int(clamping: forgotten)) + 1
        entry.countedAt = now
        let beyond = entry.failures - freeFailures
        guard beyond > 0 else { return }
        // From the sixth doubling on the wait is the longest one.
        let wait = min(waitMillisecondsMax, 1000 << UInt64(min(beyond - 1, 6)))
        entry.waitsUntil = now + wait
        entry.failures = min(entry.failures, freeFailures + 7)
    }

    private static func keys(_ network: CallerNetwork, _ name: String?) -> [Key] {
        // A long name is cut: what counts is that memory is bounded.
        [.network(network)] + (name.map { [.name(Array($0.utf8.prefix(128)))] } ?? [])
    }
}
