// Entries that tests sort and compare, here because test targets are not optimized.

/// A key with the version that wrote it. In order of keys, the newest version first.
package struct VersionedKey: Hashable, Comparable {
    package let key: Bytes
    package let version: UInt64

    package init(key: Bytes, version: UInt64) {
        self.key = key
        self.version = version
    }

    package static func < (left: Self, right: Self) -> Bool {
        left.key == right.key ? left.version > right.version : left.key.lexicographicallyPrecedes(right.key)
    }
}

/// An entry of a run. In order of keys, the newest version first.
package struct RunEntry: Equatable, CustomStringConvertible {
    package var key: Bytes
    package var version: UInt64
    /// Nil for a key that the version deletes.
    package var value: Bytes?

    package init(key: Bytes, version: UInt64, value: Bytes?) {
        self.key = key
        self.version = version
        self.value = value
    }

    package var description: String { "\(String(decoding: key, as: UTF8.self))@\(version)=\(value?.count ?? -1)" }

    package static func isBefore(_ left: RunEntry, _ right: RunEntry) -> Bool {
        VersionedKey(key: left.key, version: left.version) < VersionedKey(key: right.key, version: right.version)
    }
}

/// Bytes that differ from their neighbours, other ones for each start.
package func steppedBytes(from start: Int, count: Int) -> Bytes {
    (0..<count).map { UInt8(truncatingIfNeeded: start + $0 * 31 >> 3) }
}
