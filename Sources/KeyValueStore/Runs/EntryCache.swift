// Where the entries that were read lately are in the runs, so that reading them again skips filters and searches.
//
// A lookup asks the filter of each run and searches some blocks, with a cache miss or two each. An entry found here
// costs one for its slot, one for the first key of its block, and those of its bytes. The idea is that of adaptive
// hash indexes over B-trees. It is exact, because runs never change: as long as a view has the same set of runs, an
// entry is where it was. With another set everything known is forgotten at once.
//
//      slot   0  tag      8 bytes: 28 bits of the key's hash; length of the prefix that the key shares with the first
//                         key of its block, 8; number of the file in the set, 16; the epoch, 12
//             8  place    8 bytes: address of the block in the map, 48 bits; offset of the entry in it, 16
//
// Only the newest entry of a key is kept, and its key is compared there. One slot a hash, the last one stays. The
// table doubles as it fills, up to a bound.

internal import Glibc

/// The places of entries of the runs, for one reader. One thread at a time, as its reader.
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
        /// The set of runs that `epoch` stands for.
        var generation = 0
        /// 1...0xFFF; a slot of another epoch is empty.
        var epoch: UInt64 = 1
    }

    private struct Slot {
        var tag: UInt64
        var place: UInt64

        var shared: Int { Int(tag >> 28 & 0xFF) }
        var file: Int { Int(tag >> 12 & 0xFFFF) }
    }

    private static let sizeBitsMin = 10
    private static let epochMask: UInt64 = 0xFFF
    /// The bits of a tag that a lookup knows: hash and epoch.
    private static let knownMask: UInt64 = ~0xF_FFFF_F000
    private static let hashMask: UInt64 = ~0xF_FFFF_FFFF

    /// A cache that takes at most `bytesMax`, rounded down to a power of two of slots; none at all below 16 KiB.
    init(bytesMax: Int) {
        let slotsMax = bytesMax / MemoryLayout<Slot>.stride
        let bits = slotsMax > 0 ? Int.bitWidth - 1 - slotsMax.leadingZeroBitCount : 0
        unsafe state = .allocate(capacity: 1)
        unsafe state.initialize(to: State(sizeBitsMax: min(bits, 28)))
    }

    /// Frees the table; nothing may use it any more.
    func release() {
        unsafe free(state.pointee.slots)
        unsafe state.deallocate()
    }

    /// What a lookup begins with; false if entries of this set cannot be known: the cache already knows a newer one.
    @inline(__always)
    func admits(_ generation: Int) -> Bool {
        if unsafe generation == state.pointee.generation { return true }
        guard unsafe generation > state.pointee.generation else { return false }
        forget(generation)
        return true
    }

    /// The newest entry of a key, if its place is known.
    /// - Parameters:
    ///   - hash: `Memtable.hash` of the key.
    ///   - runs: the set that the cache admits.
    @inline(__always)
    func find(_ key: UnsafeRawBufferPointer, hash: UInt64, in runs: RunSetView) -> FoundEntry? {
        guard let slots = unsafe state.pointee.slots else { return nil }
        let slot = unsafe slots[index(hash)]
        guard slot.tag & Self.knownMask == tag(hash) else { return nil }
        let block = unsafe UnsafeRawPointer(bitPattern: UInt(slot.place >> 16)).unsafelyUnwrapped
        let entry = unsafe Block.entry(of: key, in: block, at: Int(slot.place & 0xFFFF), shared: slot.shared)
        guard let entry = unsafe entry else { return nil }
        return unsafe FoundEntry(bytes: entry.value, version: entry.version &+ runs.versionMins[slot.file])
    }

    /// Keeps in mind where the newest entry of a key is.
    func keep(_ found: FoundInRun, hash: UInt64, _ generation: Int) {
        guard unsafe generation == state.pointee.generation else { return }
        if unsafe state.pointee.filled * 2 >= 1 << state.pointee.sizeBits || state.pointee.slots == nil { grow() }
        guard let slots = unsafe state.pointee.slots else { return }
        let address = unsafe UInt64(UInt(bitPattern: found.block.base))
        let (offset, shared) = found.block.place(found.index)
        // Longer prefixes, and files beyond the first 65,536, are not known to the slot.
        guard let shared, found.file <= 0xFFFF else { return }
        let place = index(hash)
        if unsafe slots[place].tag & Self.epochMask != state.pointee.epoch { unsafe state.pointee.filled += 1 }
        unsafe slots[place] = Slot(
            tag: tag(hash) | UInt64(shared) << 28 | UInt64(found.file) << 12, place: address << 16 | UInt64(offset))
    }

    @inline(__always)
    private func index(_ hash: UInt64) -> Int {
        unsafe Int(hash >> (64 - UInt64(state.pointee.sizeBits)))
    }

    @inline(__always)
    private func tag(_ hash: UInt64) -> UInt64 {
        unsafe hash & Self.hashMask | state.pointee.epoch
    }

    private func forget(_ generation: Int) {
        unsafe state.pointee.generation = generation
        unsafe state.pointee.filled = 0
        unsafe state.pointee.epoch += 1
        if unsafe state.pointee.epoch > Self.epochMask {
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
                if slot.tag & Self.epochMask == epoch { unsafe slots[Int(slot.tag >> (64 - UInt64(bits)))] = slot }
            }
            unsafe free(old)
        }
        unsafe state.pointee.slots = slots
        unsafe state.pointee.sizeBits = bits
    }
}
