internal import Synchronization

/// What verified tokens led to, by the hash of the token: a client sends the same token for an hour. Bounded;
/// thread-safe.
final class RecentTokens<Value: Sendable>: Sendable {
    private let table: Mutex<RecentTable<SHA256Hash, Value>>

    init(entriesMax: Int) { table = Mutex(RecentTable(entriesMax: entriesMax)) }

    /// Entries in the cache.
    var count: Int { table.withLock { $0.count } }

    func value(of hash: SHA256Hash) -> Value? { table.withLock { $0.touch(hash) } }

    func remember(_ hash: SHA256Hash, _ value: Value) { table.withLock { $0.insert(value, at: hash) } }
}
