internal import Basics
internal import Storage

/// Walks what one version sees of all batches of a memtable: one entry a key, deletions included. Valid while the
/// memtable is. One thread.
@safe
final class BatchCursor {
    private struct Source {
        let batch: EntryBatch
        /// The next place to look at, in the direction of the cursor.
        var next = 0
        /// The entry that the source is at; 0 at its end.
        var entry: UInt32 = 0
    }

    private let memtable: Memtable
    private let version: UInt64
    private let end: [UInt8]?
    private let sources: UnsafeMutablePointer<Source>
    private let count: Int
    private var tree: LoserTree
    private var direction = ScanDirection.forward

    /// There must be a batch.
    ///
    /// - Parameter end: see `MemtableCursor`.
    init(_ memtable: Memtable, version: UInt64, end: [UInt8]?) {
        self.memtable = memtable
        self.version = version
        self.end = end
        let batches = memtable.batches
        count = batches.count
        tree = LoserTree(count: count)
        unsafe sources = .allocate(capacity: count)
        for index in 0..<count { unsafe (sources + index).initialize(to: Source(batch: batches[index])) }
    }

    deinit { unsafe sources.deallocate() }

    /// The nearest entry of all batches, and for one key the newest; 0 at the end.
    @inline(__always)
    var entry: UInt32 { unsafe sources[tree.winner].entry }

    /// Goes to the first entry whose key is at or after `key`, or to the first of all.
    func seekForward(_ key: UnsafeRawBufferPointer?) {
        direction = .forward
        for index in 0..<count {
            let batch = unsafe sources[index].batch
            unsafe sources[index].next = key.map { unsafe memtable.place(of: $0, .max, in: batch) } ?? 0
            moveForward(index)
        }
        build()
    }

    /// Goes to the last entry whose key is before `key` (or at it, if `inclusive`), or to the last of all.
    func seekBackward(_ key: UnsafeRawBufferPointer?, inclusive: Bool) {
        direction = .backward
        for index in 0..<count {
            let batch = unsafe sources[index].batch
            // Entries of version 0 cannot exist: all of the key are before its place.
            let end = unsafe key.map { unsafe memtable.place(of: $0, inclusive ? 0 : .max, in: batch) }
            unsafe sources[index].next = (end ?? batch.count) - 1
            moveBackward(index)
        }
        build()
    }

    /// Moves all batches that are at `key` to their next keys.
    func step(beyond key: UnsafeRawBufferPointer) {
        while entry != 0, unsafe compareBytes(memtable.key(entry), key) == 0 {
            let index = tree.winner
            if direction == .forward { moveForward(index) } else { moveBackward(index) }
            tree.replay { isBefore($0, $1) }
        }
    }

    private func build() { tree.build { isBefore($0, $1) } }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        let (leftEntry, rightEntry) = unsafe (sources[left].entry, sources[right].entry)
        if leftEntry == 0 { return false }
        if rightEntry == 0 { return true }
        let order = unsafe compareBytes(memtable.key(leftEntry), memtable.key(rightEntry))
        if order != 0 { return direction == .forward ? order < 0 : order > 0 }
        return memtable.version(leftEntry) > memtable.version(rightEntry)
    }

    /// Takes the next key that the version sees, and goes to the place after its entries.
    private func moveForward(_ index: Int) {
        let batch = unsafe sources[index].batch
        var next = unsafe sources[index].next
        while next < batch.count, memtable.version(batch[next]) > version {
            next = unsafe memtable.key(batch[next]).isBeyond(end, .forward) ? batch.count : next + 1
        }
        guard next < batch.count else {
            unsafe sources[index].entry = 0
            return
        }
        let entry = batch[next]
        let key = unsafe memtable.key(entry)
        next += 1
        while next < batch.count, unsafe compareBytes(memtable.key(batch[next]), key) == 0 { next += 1 }
        unsafe sources[index].entry = entry
        unsafe sources[index].next = next
    }

    /// The same backwards: the oldest version of a key comes first.
    private func moveBackward(_ index: Int) {
        let batch = unsafe sources[index].batch
        var next = unsafe sources[index].next
        var entry: UInt32 = 0
        while next >= 0, entry == 0 {
            let key = unsafe memtable.key(batch[next])
            repeat {
                if memtable.version(batch[next]) <= version { entry = batch[next] }
                next -= 1
            } while unsafe next >= 0 && compareBytes(memtable.key(batch[next]), key) == 0
            if entry == 0, unsafe key.isBeyond(end, .backward) { break }
        }
        unsafe sources[index].entry = entry
        unsafe sources[index].next = next
    }
}
