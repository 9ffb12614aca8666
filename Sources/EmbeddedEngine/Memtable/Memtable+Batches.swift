// Sorted batches: index entries of large commit groups, which no list and no search tree has.
//
// An insertion into the list costs several cache misses. A bulk load inserts thousands of index entries at once, and
// nobody looks for one of them before the group is durable. So the writer collects them (`CollectedEntries`), sorts
// them at the end of the group, and adds an array of their numbers:
//
//      newest batch ──► next batch ──► … oldest
//
//      batch     0  number of the next older batch, or 0     4 bytes
//                4  count                                    4 bytes
//                8  numbers of entries, ordered by key, and for one key the newest version first; 4 bytes each
//
// A batch never changes. It is complete before its number is stored (release) in the header. Cursors merge batches with
// the list (`BatchCursor`), checkpoints do (`MemtableWalk`), and a lookup of one key in such a space searches each
// batch. A version of a key is in the list or in one batch.

internal import Basics
internal import Synchronization

/// A sorted batch, in place.
@safe
struct EntryBatch {
    let entries: UnsafePointer<UInt32>
    let count: Int

    @inline(__always)
    subscript(index: Int) -> UInt32 { unsafe entries[index] }
}

extension Memtable {
    private static let batchHeaderBytes = 8

    /// Whether entries of this key may be in batches.
    @inline(__always)
    func isScanned(_ key: UnsafeRawBufferPointer) -> Bool {
        guard let space = unsafe key.first else { return false }
        return unsafe space >= base.load(fromByteOffset: Field.lowestScanned, as: UInt8.self)
            && space <= base.load(fromByteOffset: Field.highestScanned, as: UInt8.self)
    }

    /// Whether entries of the range `lower..<upper` may be in batches.
    func mayScan(from lower: RawSpan?, to upper: RawSpan?) -> Bool {
        let lowest = unsafe base.load(fromByteOffset: Field.lowestScanned, as: UInt8.self)
        let highest = unsafe base.load(fromByteOffset: Field.highestScanned, as: UInt8.self)
        if let lower, lower.byteCount > 0, lower[byteAt: 0] > highest { return false }
        if let upper, upper.byteCount > 0, upper[byteAt: 0] < lowest { return false }
        return true
    }

    private var newestBatch: UnsafeMutablePointer<Atomic<UInt32>> {
        unsafe (base + Field.newestBatch).assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    @inline(__always)
    var hasBatches: Bool { unsafe newestBatch.pointee.load(ordering: .acquiring) != 0 }

    /// Any thread.
    var batchCount: Int { unsafe atomicInt(at: Field.batchCount).pointee.load(ordering: .relaxed) }

    /// The batches, the newest first. Any thread.
    var batches: [EntryBatch] {
        var all: [EntryBatch] = []
        all.reserveCapacity(batchCount)
        var number = unsafe newestBatch.pointee.load(ordering: .acquiring)
        while number != 0 {
            all.append(batch(number))
            number = unsafe (base + Int(number) * 8).load(as: UInt32.self)
        }
        return all
    }

    private func batch(_ number: UInt32) -> EntryBatch {
        let start = unsafe base + Int(number) * 8
        let count = unsafe Int(start.load(fromByteOffset: 4, as: UInt32.self))
        let entries = unsafe (start + Self.batchHeaderBytes).assumingMemoryBound(to: UInt32.self)
        return unsafe EntryBatch(entries: entries, count: count)
    }

    /// Adds a batch. Writer's thread; `bytesNeeded` must be free.
    /// - Parameter write: fills in the numbers of the entries, in their order.
    func addBatch(count: Int, _ write: (UnsafeMutablePointer<UInt32>) -> Void) {
        let number = allocate(Self.batchHeaderBytes + 4 * count)
        let start = unsafe base + Int(number) * 8
        unsafe start.storeBytes(of: newestBatch.pointee.load(ordering: .relaxed), as: UInt32.self)
        unsafe start.storeBytes(of: UInt32(count), toByteOffset: 4, as: UInt32.self)
        unsafe write((start + Self.batchHeaderBytes).assumingMemoryBound(to: UInt32.self))
        unsafe atomicInt(at: Field.batchCount).pointee.add(1, ordering: .relaxed)
        unsafe newestBatch.pointee.store(number, ordering: .releasing)
    }

    /// The number of the first entry of a batch that is not before `key` at `version`; the count if there is none.
    func place(of key: UnsafeRawBufferPointer, _ version: UInt64, in batch: EntryBatch) -> Int {
        var low = 0
        var high = batch.count
        while low < high {
            let middle = (low + high) / 2
            if unsafe isBefore(batch[middle], key, version) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The newest entry of a key that is at most `version`, of the list and of all batches; 0 if there is none.
    /// - Parameter listed: that of the list, or 0.
    func newest(_ key: UnsafeRawBufferPointer, atMost version: UInt64, listed: UInt32) -> UInt32 {
        var newest = listed
        for batch in batches {
            let place = unsafe place(of: key, version, in: batch)
            guard place < batch.count, unsafe compareBytes(self.key(batch[place]), key) == 0 else { continue }
            if newest == 0 || self.version(batch[place]) > self.version(newest) { newest = batch[place] }
        }
        return newest
    }
}
