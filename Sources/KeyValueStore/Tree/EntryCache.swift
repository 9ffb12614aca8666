// Where in the map the entries that were read lately lie, so that reading them again skips the descent from the root.
//
// A descent touches four or five pages, each a cache miss or two; an entry found here costs one for its slot and those of its
// own bytes. The idea is that of adaptive hash indexes over B-trees. It is exact, because LMDB never changes a page of the last
// committed tree: as long as a renewed read transaction still shows the same tree (the same transaction id), an entry lies
// where it lay. When a checkpoint commits, the id is another, and everything known is forgotten at once.
//
//      slot   0  tag      8 bytes: 39 bits of the key's hash, 9 of its length, 16 of the epoch
//             8  place    8 bytes: address of the entry in the map, 48 bits; its length, 16
//
// Only entries inside a leaf are kept, where the key stands right before its entry and is compared there. One slot a hash,
// the last come stays. The table doubles as it fills, up to a bound.

internal import CLMDB
internal import Glibc

/// The places of entries of `main`, for one reader. One thread at a time, as its reader.
@safe
struct EntryCache {
    private let state: UnsafeMutablePointer<State>

    @safe
    private struct State {
        var slots: UnsafeMutablePointer<Slot>?
        /// log2 of the number of slots.
        var sizeBits = 0
        let sizeBitsMax: Int
        /// Slots filled since the table had its size or its epoch began.
        var filled = 0
        /// The tree that `epoch` stands for: LMDB's transaction id.
        var tree = 0
        /// 1...0xFFFF; a slot of another epoch is empty.
        var epoch: UInt64 = 1
        /// The longest key and entry together that LMDB keeps inside a leaf.
        let inlineBytesMax: Int
    }

    private struct Slot {
        var tag: UInt64
        var place: UInt64
    }

    private static let sizeBitsMin = 10
    private static let lengthMask: UInt64 = 0xFFFF
    /// LMDB's node: data sizes and flags, then the key's length, then the key, then the data (`mdb.c`, MDB_node).
    private static let nodeHeaderBytes = 8

    /// A cache that takes at most `bytesMax`, rounded down to a power of two; none at all below 16 KiB.
    init(bytesMax: Int, pageBytes: Int) {
        let slotsMax = bytesMax / MemoryLayout<Slot>.stride
        let bits = slotsMax > 0 ? Int.bitWidth - 1 - slotsMax.leadingZeroBitCount : 0
        unsafe state = .allocate(capacity: 1)
        // As mdb_env_open computes it for at least two keys a page, less room for doubt.
        let nodeBytesMax = pageBytes / 2 - 64
        unsafe state.initialize(
            to: State(sizeBitsMax: min(bits, 32), inlineBytesMax: nodeBytesMax - Self.nodeHeaderBytes))
    }

    /// Frees the table; nothing may use it any more.
    func release() {
        unsafe free(state.pointee.slots)
        unsafe state.deallocate()
    }

    /// What a lookup begins with; nil if this tree's entries cannot be known: the cache already knows a newer tree.
    @inline(__always)
    func admits(tree: Int) -> Bool {
        if unsafe tree == state.pointee.tree { return true }
        guard unsafe tree > state.pointee.tree else { return false }
        forget(newTree: tree)
        return true
    }

    /// The entry of a key, if its place is known.
    /// - Parameter hash: `Overlay.hash` of the key.
    @inline(__always)
    func find(_ key: UnsafeRawBufferPointer, hash: UInt64) -> UnsafeRawBufferPointer? {
        guard let slots = unsafe state.pointee.slots else { return nil }
        let slot = unsafe slots[index(hash)]
        guard slot.tag == tag(hash, key.count) else { return nil }
        let entry = unsafe UnsafeRawPointer(bitPattern: UInt(slot.place >> 16))!
        guard unsafe memcmp(entry - key.count, key.baseAddress!, key.count) == 0 else { return nil }
        return unsafe UnsafeRawBufferPointer(start: entry, count: Int(slot.place & Self.lengthMask))
    }

    /// Keeps in mind where the entry of a key lies, if it lies inside a leaf.
    func keep(_ entry: UnsafeRawBufferPointer, of key: UnsafeRawBufferPointer, hash: UInt64) {
        guard unsafe key.count + entry.count <= state.pointee.inlineBytesMax else { return }
        if unsafe state.pointee.filled * 2 >= 1 << state.pointee.sizeBits || state.pointee.slots == nil { grow() }
        guard let slots = unsafe state.pointee.slots else { return }
        let address = UInt64(UInt(bitPattern: entry.baseAddress!))
        let place = index(hash)
        if unsafe slots[place].tag & Self.lengthMask != state.pointee.epoch { unsafe state.pointee.filled += 1 }
        let length = UInt64(entry.count)
        unsafe slots[place] = Slot(tag: tag(hash, key.count), place: address << 16 | length)
    }

    @inline(__always)
    private func index(_ hash: UInt64) -> Int {
        unsafe Int(hash >> (64 - UInt64(state.pointee.sizeBits)))
    }

    @inline(__always)
    private func tag(_ hash: UInt64, _ keyBytes: Int) -> UInt64 {
        unsafe hash & ~0x1FF_FFFF | UInt64(keyBytes) << 16 | state.pointee.epoch
    }

    private func forget(newTree: Int) {
        unsafe state.pointee.tree = newTree
        unsafe state.pointee.filled = 0
        unsafe state.pointee.epoch += 1
        if unsafe state.pointee.epoch > Self.lengthMask {
            unsafe state.pointee.epoch = 1
            unsafe free(state.pointee.slots)
            unsafe state.pointee.slots = nil
            unsafe state.pointee.sizeBits = 0
        }
    }

    /// Doubles the table, or makes the first one. What was known moves along: the index is the front of the tag.
    private func grow() {
        let bits = unsafe state.pointee.slots == nil ? Self.sizeBitsMin : state.pointee.sizeBits + 1
        guard unsafe bits <= state.pointee.sizeBitsMax, let memory = unsafe calloc(1 << bits, MemoryLayout<Slot>.stride)
        else { return }
        let slots = unsafe memory.bindMemory(to: Slot.self, capacity: 1 << bits)
        if let old = unsafe state.pointee.slots {
            let epoch = unsafe state.pointee.epoch
            for index in unsafe 0..<(1 << state.pointee.sizeBits) {
                let slot = unsafe old[index]
                if slot.tag & Self.lengthMask == epoch { unsafe slots[Int(slot.tag >> (64 - UInt64(bits)))] = slot }
            }
            unsafe free(old)
        }
        unsafe state.pointee.slots = slots
        unsafe state.pointee.sizeBits = bits
    }
}
