internal import Basics
internal import CPrefetch

/// All entries of a frozen memtable in order, those of its list and of its batches: by key, and for one key the newest
/// first. Valid while the memtable is.
@safe
struct MemtableWalk: ~Copyable {
    private struct Source {
        /// Nil for the list.
        let batch: EntryBatch?
        var place = 0
        /// 0 at the end.
        var entry: UInt32
    }

    // First for the reason that `RunSetCursor` gives.
    private let sources: UnsafeMutablePointer<Source>
    private let memtable: Memtable
    private var tree: LoserTree

    /// The entry at the position; 0 at the end.
    private(set) var entry: UInt32

    /// Entries of a batch are anywhere in the memtable; they are prefetched so many steps ahead.
    private static let prefetchSteps = 4

    /// Begins at the first entry.
    init(_ memtable: Memtable) {
        self.memtable = memtable
        let batches = memtable.batches
        unsafe sources = .allocate(capacity: batches.count + 1)
        unsafe sources.initialize(to: Source(batch: nil, entry: memtable.firstEntry))
        for index in batches.indices {
            let batch = batches[index]
            unsafe (sources + index + 1).initialize(to: Source(batch: batch, entry: batch[0]))
        }
        tree = LoserTree(count: batches.count + 1)
        entry = 0
        let all = unsafe sources
        tree.build { unsafe Self.isBefore(all, memtable, $0, $1) }
        entry = unsafe sources[tree.winner].entry
    }

    deinit { unsafe sources.deallocate() }

    /// Goes to the next entry.
    @inline(__always)
    mutating func next() {
        let winner = tree.winner
        if let batch = unsafe sources[winner].batch {
            let place = unsafe sources[winner].place &+ 1
            unsafe sources[winner].place = place
            unsafe sources[winner].entry = place < batch.count ? batch[place] : 0
            if place &+ Self.prefetchSteps < batch.count { memtable.prefetch(batch[place &+ Self.prefetchSteps]) }
        } else {
            unsafe sources[winner].entry = memtable.next(entry)
        }
        if tree.count > 1 {
            let (all, memtable) = unsafe (sources, memtable)
            tree.replay { unsafe Self.isBefore(all, memtable, $0, $1) }
        }
        entry = unsafe sources[tree.winner].entry
    }

    @inline(__always)
    private static func isBefore(
        _ sources: UnsafeMutablePointer<Source>, _ memtable: Memtable, _ left: Int, _ right: Int
    ) -> Bool {
        let (leftEntry, rightEntry) = unsafe (sources[left].entry, sources[right].entry)
        if leftEntry == 0 { return false }
        if rightEntry == 0 { return true }
        let order = unsafe compareBytes(memtable.key(leftEntry), memtable.key(rightEntry))
        return order != 0 ? order < 0 : memtable.version(leftEntry) > memtable.version(rightEntry)
    }
}
