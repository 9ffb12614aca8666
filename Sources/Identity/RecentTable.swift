/// A table of a bounded number of entries, of which those that nobody touches are forgotten first.
///
/// There are two generations. An entry that is touched moves to the young one; when this is full, it becomes the old
/// one, and the old one is forgotten. So the table needs no order of all entries.
package struct RecentTable<Key: Hashable, Value> {
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]
    private let youngMax: Int

    package init(entriesMax: Int) { youngMax = max(entriesMax / 2, 1) }

    /// Entries in memory.
    package var count: Int { young.count + old.count }

    /// The value of a key, which is not touched.
    package func value(at key: Key) -> Value? { young[key] ?? old[key] }

    /// Touches a key.
    ///
    /// - Returns: its value; nil without one.
    package mutating func touch(_ key: Key) -> Value? {
        if let value = young[key] { return value }
        guard let value = old.removeValue(forKey: key) else { return nil }
        insert(value, at: key)
        return value
    }

    /// Sets and touches a key.
    package mutating func insert(_ value: Value, at key: Key) {
        if young.count >= youngMax, young[key] == nil {
            old = young
            young = [:]
        }
        young[key] = value
    }
}

extension RecentTable: Sendable where Key: Sendable, Value: Sendable {}
