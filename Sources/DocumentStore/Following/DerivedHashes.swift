// What a leader and a follower have derived from the same records, compared.

internal import Basics
internal import Synchronization

/// The hashes of what was derived from the newest records, while they are wanted. Thread-safe.
package final class DerivedHashes: Sendable {
    /// Changes when other entries, or the same in another order, follow from the same records. Servers with different
    /// derivations compare nothing.
    package static let derivation: UInt64 = 4

    /// What was derived from a record.
    package struct Entry: Equatable, Sendable {
        /// Of the record, in microseconds.
        package var version: UInt64
        /// Of the keys, values and versions that followed from it.
        package var hash: UInt64

        package init(version: UInt64, hash: UInt64) {
            self.version = version
            self.hash = hash
        }
    }

    private struct State {
        /// Ascending versions; those before `first` have been dropped.
        var entries: [Entry] = []
        var first = 0
    }

    private let state = Mutex(State())
    private let wanted = Atomic<Int>(0)

    /// Records whose hashes are kept.
    private static let countMax = 65_536

    /// One more, or one fewer, wants the hashes of what comes.
    package func want(_ change: Int) { wanted.add(change, ordering: .relaxed) }

    var isWanted: Bool { wanted.load(ordering: .relaxed) > 0 }

    func note(_ version: UInt64, _ hash: UInt64) {
        state.withLock { state in
            state.entries.append(Entry(version: version, hash: hash))
            guard state.entries.count - state.first > Self.countMax else { return }
            state.first += 1
            if state.first >= Self.countMax {
                state.entries.removeFirst(state.first)
                state.first = 0
            }
        }
    }

    /// The hashes of the records after a version, up to another.
    package func entries(after version: UInt64, through last: UInt64) -> [Entry] {
        state.withLock { state in
            let all = state.entries[state.first...]
            let start = all.partitioningIndex { $0.version > version }
            return all[start...].prefix { $0.version <= last }
        }.map(\.self)
    }

    /// The first record from which something else was derived here, by its version; nil if there is none among those
    /// that both know.
    package func difference(from others: [Entry]) -> UInt64? {
        state.withLock { state in
            let all = state.entries[state.first...]
            for other in others {
                let index = all.partitioningIndex { $0.version >= other.version }
                guard index < all.endIndex, all[index].version == other.version else { continue }
                if all[index].hash != other.hash { return other.version }
            }
            return nil
        }
    }
}
