// What was derived from groups of a shared log, by key space, so that a difference can be named.
//
//     derivation, 1 | for each key space with entries, ascending: first byte of its keys, 1 | hash of its entries, 8
//
// The hash of a group is over the entries of its records in their order. Empty bytes stand for a group whose hashes are
// not known.

internal import Storage
internal import StoreFormat
internal import Synchronization

/// The hashes of the newest records by key space. Thread-safe.
package final class DerivedSpaces: Sendable {
    private struct Entry {
        let version: UInt64
        let space: UInt8
        let hash: UInt64
    }

    private struct State {
        /// Ascending versions.
        var entries: [Entry] = []
        /// Hashes of records up to here are not known.
        var unknownThrough: UInt64?
    }

    private let state = Mutex(State())
    private let wanted = Atomic(false)

    private static let countMax = 262_144
    private static let format = UInt8(DerivedHashes.derivation)

    /// From now on hashes are kept.
    package func want() { wanted.store(true, ordering: .relaxed) }

    var isWanted: Bool { wanted.load(ordering: .relaxed) }

    /// Notes what was derived from a record.
    func note(_ version: UInt64, _ mutations: borrowing MutationBatch) {
        state.withLock { state in
            if state.unknownThrough == nil { state.unknownThrough = version - 1 }
            let start = state.entries.count
            mutations.forEachHash { space, hash in
                // Entries of a space often follow each other.
                if let last = state.entries.last, state.entries.count > start, last.space == space {
                    state.entries[state.entries.count - 1] = Entry(
                        version: version, space: space, hash: Self.mix(last.hash, hash))
                } else {
                    state.entries.append(Entry(version: version, space: space, hash: hash))
                }
            }
            guard state.entries.count > Self.countMax else { return }
            let dropped = state.entries.count - Self.countMax / 2
            state.unknownThrough = state.entries[dropped - 1].version
            state.entries.removeFirst(dropped)
        }
    }

    /// What was derived from a record is not comparable.
    func skip(_ version: UInt64) {
        state.withLock { $0 = State(unknownThrough: version) }
    }

    /// The hashes of a group: of the records from one version through another.
    /// - Returns: empty if they are not known.
    package func group(from start: UInt64, through end: UInt64) -> [UInt8] {
        state.withLock { state in
            guard let unknown = state.unknownThrough, start > unknown else { return [] }
            var hashes: [UInt8: UInt64] = [:]
            for entry in state.entries[state.entries.partitioningIndex { $0.version >= start }...] {
                if entry.version > end { break }
                hashes[entry.space] = Self.mix(hashes[entry.space] ?? 0, entry.hash)
            }
            var bytes = [Self.format]
            for (space, hash) in hashes.sorted(by: { $0.key < $1.key }) {
                bytes.append(space)
                for shift: UInt64 in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: hash >> (8 * shift))) }
            }
            return bytes
        }
    }

    /// The first key space in which two servers have derived something else from a group; nil if they have not, or one
    /// of them does not know.
    package static func difference(_ one: [UInt8], _ other: [UInt8]) -> String? {
        guard one.first == format, other.first == format, one != other else { return nil }
        let (left, right) = (hashes(one), hashes(other))
        let spaces = Set(left.keys).union(right.keys).filter { left[$0] != right[$0] }
        guard let space = spaces.min() else { return "unknown" }
        return KeySpace(rawValue: space).map { "\($0)" } ?? "\(space)"
    }

    private static func hashes(_ bytes: [UInt8]) -> [UInt8: [UInt8]] {
        var hashes: [UInt8: [UInt8]] = [:]
        var offset = 1
        while bytes.count - offset >= 9 {
            hashes[bytes[offset]] = Array(bytes[offset + 1..<offset + 9])
            offset += 9
        }
        return hashes
    }

    private static func mix(_ hash: UInt64, _ next: UInt64) -> UInt64 {
        let mixed = (hash ^ next) &* 0xBF58_476D_1CE4_E5B9
        return mixed ^ (mixed >> 32)
    }
}
