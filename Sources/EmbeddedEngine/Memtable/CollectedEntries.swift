internal import Basics

/// Entries of the memtable that are in no order yet: those of the scanned spaces, of the group that is being staged.
/// Belongs to the writer's thread.
///
/// `settle` sorts them as a batch if there are many, and enters them into the list if there are few.
final class CollectedEntries {
    private let confined = Confined<[UInt32]>([])
    private var sort = BatchSort()
    private let batchEntriesMin: Int

    /// So many are sorted before the end of a group: their keys fit into the second cache.
    private static let batchEntriesMax = 32 << 10
    /// More batches would make cursors slow; further entries go to the list.
    private static let batchesMax = 128

    /// - Parameter batchEntriesMin: so many entries are sorted as a batch.
    init(batchEntriesMin: Int) { self.batchEntriesMin = batchEntriesMin }

    private var entries: [UInt32] {
        _read { yield confined.state }
        _modify { yield &confined.state }
    }

    var isEmpty: Bool { entries.isEmpty }

    /// Whether there are so many that they should be settled after this commit.
    var isFull: Bool { entries.count >= Self.batchEntriesMax }

    /// An upper bound of what `settle` takes of the memtable.
    var bytesNeeded: Int {
        entries.isEmpty ? 0 : Memtable.bytesNeeded(count: entries.count, bytes: 0)
    }

    func append(_ entry: UInt32) { entries.append(entry) }

    /// Makes all entries readable for those who may see their versions. Not in the middle of a commit: of entries with
    /// the same key and version the last one counts, and must find the others.
    func settle(into memtable: Memtable) {
        if entries.isEmpty { return }
        if entries.count >= batchEntriesMin && memtable.batchCount < Self.batchesMax {
            let count = sort.sort(entries.span, of: memtable)
            memtable.forget(entries.count - count)
            unsafe memtable.addBatch(count: count) { unsafe sort.copy(count, to: $0) }
        } else {
            insert(into: memtable)
        }
        entries.removeAll(keepingCapacity: entries.capacity <= 4 * Self.batchEntriesMax)
        if entries.capacity == 0 { sort = BatchSort() }
    }

    private func insert(into memtable: Memtable) {
        for first in stride(from: 0, to: entries.count, by: Memtable.insertionsMax) {
            let count = min(entries.count - first, Memtable.insertionsMax)
            unsafe memtable.insert(count) { number in
                let entry = entries[first + number]
                return unsafe (memtable.key(entry), memtable.version(entry))
            } insert: {
                memtable.insert(entries[first + $0], near: $1)
            }
        }
    }
}
