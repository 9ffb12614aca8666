internal import Synchronization

/// What verified tokens led to, by the hash of the token: a client sends the same token for an hour. Thread-safe.
///
/// There are two generations. A token that is used moves to the young one; when this is full, it becomes the old one,
/// and the old one is forgotten. So the cache is bounded, and needs no order of all entries.
final class RecentTokens<Value: Sendable>: Sendable {
    private struct Generations {
        var young: [SHA256Hash: Value] = [:]
        var old: [SHA256Hash: Value] = [:]
    }

    private let youngMax: Int
    private let state = Mutex(Generations())

    init(entriesMax: Int) { youngMax = max(entriesMax / 2, 1) }

    /// Entries in the cache.
    var count: Int { state.withLock { $0.young.count + $0.old.count } }

    func value(of hash: SHA256Hash) -> Value? {
        state.withLock { state -> Value? in
            if let value = state.young[hash] { return value }
            guard let value = state.old.removeValue(forKey: hash) else { return nil }
            insert(&state, hash, value)
            return value
        }
    }

    func remember(_ hash: SHA256Hash, _ value: Value) {
        state.withLock { insert(&$0, hash, value) }
    }

    private func insert(_ state: inout Generations, _ hash: SHA256Hash, _ value: Value) {
        if state.young.count >= youngMax, state.young[hash] == nil {
            state.old = state.young
            state.young = [:]
        }
        state.young[hash] = value
    }
}
