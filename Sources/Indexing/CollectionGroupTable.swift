// Values by collection group.

internal import Basics

/// Values by collection group.
///
/// A look takes the bytes of the group's id, and copies nothing. A change copies a part of the table if there is
/// another copy of it.
struct CollectionGroupTable<Value: Sendable>: Sendable {
    private struct Entry {
        let database: UInt32
        let id: [UInt8]
        var value: Value

        func isOf(_ id: RawSpan, in database: UInt32) -> Bool {
            self.database == database && self.id.byteSpan.equalsBytes(id)
        }
    }

    private static var partCount: Int { 128 }

    /// By the hash of id and database, those of each remainder of it apart. Empty before the first value.
    private var parts: [[UInt64: [Entry]]] = []

    /// - Parameters:
    ///   - id: of the group's collections, without a path.
    ///   - database: the number that stands for the database in keys.
    func value(of id: RawSpan, in database: UInt32) -> Value? {
        if parts.isEmpty { return nil }
        let hash = Self.hash(id, in: database)
        return parts[Self.part(of: hash)][hash]?.first { $0.isOf(id, in: database) }?.value
    }

    /// Sets the value of a group; nil removes it.
    mutating func set(_ value: Value?, of id: [UInt8], in database: UInt32) {
        let hash = Self.hash(id.byteSpan, in: database)
        let part = Self.part(of: hash)
        if parts.isEmpty { parts = Array(repeating: [:], count: Self.partCount) }
        var others = (parts[part][hash] ?? []).filter { !$0.isOf(id.byteSpan, in: database) }
        if let value { others.append(Entry(database: database, id: id, value: value)) }
        parts[part][hash] = others.isEmpty ? nil : others
    }

    private static func part(of hash: UInt64) -> Int { Int(hash % UInt64(partCount)) }

    private static func hash(_ id: RawSpan, in database: UInt32) -> UInt64 {
        ByteTable.hash(id) &+ UInt64(database) &* 0x9E37_79B9_7F4A_7C15
    }
}
