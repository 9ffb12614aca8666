/// Builds one block of a run after another, in memory that it keeps.
///
///     entry     [length of the shared prefix, 2 bytes, if its slot says 255]
///               suffix length (1 or 2 bytes), value length + 1 or 0 for a tombstone (1 to 5 bytes),
///               version less the lowest of the file (`versionBytes`), suffix of the key, value
///     slot      offset of the entry (2 bytes), length of the shared prefix (1), first byte of the suffix (1)
///
/// Every key shares a prefix with the *first* key of the block, not with the one before. So each entry can be read by
/// itself, and a search compares slots, which are adjacent, before it touches an entry.
@safe
struct BlockBuilder: ~Copyable {
    private var memory: UnsafeMutableRawPointer
    private var capacity: Int
    /// Slots are copied to the end of the block when it is complete.
    private let slots: UnsafeMutablePointer<UInt32>
    private(set) var count = 0
    /// Where the next entry goes.
    private(set) var end = BlockField.entries
    private var firstKeyOffset = 0
    private var firstKeyBytes = 0
    let level: UInt8
    let versionBytes: Int

    init(level: UInt8, versionBytes: Int) {
        self.level = level
        self.versionBytes = versionBytes
        capacity = RunFormat.blockBytes * 2
        unsafe memory = .allocate(byteCount: capacity, alignment: 16)
        unsafe slots = .allocate(capacity: RunFormat.blockEntriesMax)
    }

    deinit {
        unsafe memory.deallocate()
        unsafe slots.deallocate()
    }

    var isEmpty: Bool { count == 0 }

    /// Bytes that the block has at present.
    var byteCount: Int { end + count * BlockField.slotBytes }

    /// The slot of the last entry; there must be one.
    var lastSlot: UInt32 { unsafe slots[count - 1] }

    /// Whether the block should be written before another entry is added.
    var isFull: Bool { end >= RunFormat.blockBytes || count == RunFormat.blockEntriesMax }

    /// The key with which the block begins; valid until the next change.
    var firstKey: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: memory + firstKeyOffset, count: firstKeyBytes)
    }

    /// Adds an entry, which comes after all before it.
    /// - Parameters:
    ///   - version: less the lowest version of the file.
    ///   - value: nil for a tombstone.
    mutating func add(_ key: UnsafeRawBufferPointer, version: UInt64, _ value: UnsafeRawBufferPointer?) {
        let valueBytes = unsafe value?.count ?? 0
        let needed = end + 32 + key.count + valueBytes + (count + 1) * BlockField.slotBytes
        if needed > capacity { grow(needed) }
        let shared = count == 0 ? 0 : unsafe commonPrefix(firstKey, key)
        let suffixBytes = key.count - shared
        let head = suffixBytes > 0 ? unsafe UInt32(key[shared]) : 0
        unsafe slots[count] = UInt32(end) | UInt32(min(shared, 255)) << 16 | head << 24
        var place = unsafe memory + end
        if shared >= 255 {
            unsafe place.storeBytes(of: UInt16(shared), as: UInt16.self)
            unsafe place += 2
        }
        unsafe Self.write(UInt64(suffixBytes), to: &place)
        unsafe Self.write(value == nil ? 0 : UInt64(valueBytes) + 1, to: &place)
        // Up to eight bytes are written; those beyond the width are overwritten by what follows.
        unsafe place.storeBytes(of: version.littleEndian, as: UInt64.self)
        unsafe place += versionBytes
        if count == 0 {
            firstKeyOffset = unsafe place - memory
            firstKeyBytes = key.count
        }
        if suffixBytes > 0 {
            unsafe place.copyMemory(from: key.baseAddress! + shared, byteCount: suffixBytes)
            unsafe place += suffixBytes
        }
        if let value = unsafe value, let bytes = value.baseAddress, value.count > 0 {
            unsafe place.copyMemory(from: bytes, byteCount: value.count)
            unsafe place += value.count
        }
        end = unsafe place - memory
        count += 1
    }

    /// Completes the block for a place in the file, and returns its bytes, valid until the next change.
    mutating func finish(identity: UInt64, offset: Int) -> UnsafeRawBufferPointer {
        let byteCount = byteCount
        unsafe (memory + end).copyMemory(from: slots, byteCount: count * BlockField.slotBytes)
        unsafe memory.storeBytes(of: UInt32(byteCount), toByteOffset: BlockField.byteCount, as: UInt32.self)
        unsafe memory.storeBytes(of: UInt16(count), toByteOffset: BlockField.count, as: UInt16.self)
        unsafe memory.storeBytes(of: UInt8(versionBytes), toByteOffset: BlockField.versionBytes, as: UInt8.self)
        unsafe memory.storeBytes(of: level, toByteOffset: BlockField.level, as: UInt8.self)
        let sum = unsafe RunFormat.sum(memory + 8, byteCount - 8, identity: identity, offset: offset)
        unsafe memory.storeBytes(of: sum, as: UInt64.self)
        return unsafe UnsafeRawBufferPointer(start: memory, count: byteCount)
    }

    /// Begins the next block.
    mutating func removeAll() {
        count = 0
        end = BlockField.entries
        if capacity > 1 << 20 {
            unsafe memory.deallocate()
            capacity = RunFormat.blockBytes * 2
            unsafe memory = .allocate(byteCount: capacity, alignment: 16)
        }
    }

    private mutating func grow(_ needed: Int) {
        let larger = max(needed, capacity * 2)
        let replacement = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        unsafe replacement.copyMemory(from: memory, byteCount: end)
        unsafe memory.deallocate()
        unsafe memory = replacement
        capacity = larger
    }

    /// Writes a number in groups of seven bits, the lowest first.
    @inline(__always)
    private static func write(_ number: UInt64, to place: inout UnsafeMutableRawPointer) {
        var left = number
        while left >= 0x80 {
            unsafe place.storeBytes(of: UInt8(truncatingIfNeeded: left) | 0x80, as: UInt8.self)
            unsafe place += 1
            left >>= 7
        }
        unsafe place.storeBytes(of: UInt8(left), as: UInt8.self)
        unsafe place += 1
    }
}

/// How many bytes two keys begin with in common.
@inline(__always)
func commonPrefix(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    let count = min(left.count, right.count)
    var common = 0
    while common &+ 8 <= count {
        let difference =
            unsafe left.loadUnaligned(fromByteOffset: common, as: UInt64.self)
            ^ right.loadUnaligned(fromByteOffset: common, as: UInt64.self)
        if difference != 0 { return common &+ difference.trailingZeroBitCount / 8 }
        common &+= 8
    }
    while common < count, unsafe left[common] == right[common] { common &+= 1 }
    return common
}
