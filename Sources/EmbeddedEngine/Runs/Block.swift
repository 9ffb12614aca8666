internal import Basics
internal import Glibc
internal import Storage

/// A block of a run, verified and in place. Valid as long as its file is mapped.
///
/// A page that cannot be read any more has become zeros (``MapFaults``). What is read is then wrong, and the caller
/// finds that out afterwards; here nothing may be read or copied outside of the map, and no loop may be endless.
@safe
struct Block {
    let base: UnsafeRawPointer
    let count: Int
    private let slots: UnsafeRawPointer
    private let versionBytes: Int
    let firstKey: UnsafeRawBufferPointer

    /// - Parameter base: the start of a block that has the right checksum.
    @inline(__always)
    init(_ base: UnsafeRawPointer) {
        unsafe self.base = unsafe base
        count = unsafe Int(base.load(fromByteOffset: BlockField.count, as: UInt16.self))
        versionBytes = unsafe Int(base.load(fromByteOffset: BlockField.versionBytes, as: UInt8.self))
        let byteCount = unsafe Int(base.load(fromByteOffset: BlockField.byteCount, as: UInt32.self))
        unsafe slots = base + (byteCount - count * BlockField.slotBytes)
        var place = unsafe base + BlockField.entries
        let bytes = unsafe Int(Block.readNumber(&place))
        _ = unsafe Block.readNumber(&place)
        unsafe firstKey = UnsafeRawBufferPointer(
            start: place + versionBytes, count: min(bytes, EngineLimits.keyBytesMax))
    }

    /// One entry, in place.
    @unsafe
    struct Entry {
        /// Bytes of the key that are those of the block's first key.
        let shared: Int
        let suffix: UnsafeRawBufferPointer
        /// Less the lowest version of the file.
        let version: UInt64
        /// Nil for a tombstone.
        let value: UnsafeRawBufferPointer?
    }

    @inline(__always)
    private func slot(_ index: Int) -> UInt32 {
        unsafe slots.loadUnaligned(fromByteOffset: index &* BlockField.slotBytes, as: UInt32.self)
    }

    @inline(__always)
    func entry(_ index: Int) -> Entry {
        let slot = slot(index)
        return unsafe Self.entry(
            base + Int(slot & 0xFFFF), slotShared: Int(slot >> 16 & 0xFF), versionBytes, limit: slots)
    }

    /// - Parameters:
    ///   - slotShared: the length of the shared prefix as a slot has it: 255 if the entry begins with it.
    ///   - limit: the end of what an entry may have.
    @inline(__always)
    private static func entry(
        _ start: UnsafeRawPointer, slotShared: Int, _ versionBytes: Int, limit: UnsafeRawPointer
    ) -> Entry {
        var place = unsafe start
        var shared = slotShared
        if shared == 255 {
            shared = unsafe min(Int(place.loadUnaligned(as: UInt16.self)), EngineLimits.keyBytesMax)
            unsafe place += 2
        }
        let suffixMax = UInt64(truncatingIfNeeded: EngineLimits.keyBytesMax &- shared)
        let suffixBytes = unsafe Int(truncatingIfNeeded: min(Block.readNumber(&place), suffixMax))
        let valueBytes = unsafe Block.readNumber(&place)
        let version = unsafe readVersion(place, versionBytes)
        unsafe place += versionBytes
        let suffix = unsafe UnsafeRawBufferPointer(start: place, count: suffixBytes)
        if valueBytes == 0 { return unsafe Entry(shared: shared, suffix: suffix, version: version, value: nil) }
        let room = unsafe max(0, limit - place &- suffixBytes)
        let count = Int(truncatingIfNeeded: min(valueBytes &- 1, UInt64(truncatingIfNeeded: room)))
        let value = unsafe UnsafeRawBufferPointer(start: place + suffixBytes, count: count)
        return unsafe Entry(shared: shared, suffix: suffix, version: version, value: value)
    }

    /// Reads eight bytes, which may reach into the block's next bytes: at least the slot of the entry follows.
    @inline(__always)
    private static func readVersion(_ place: UnsafeRawPointer, _ versionBytes: Int) -> UInt64 {
        if versionBytes == 0 { return 0 }
        if versionBytes == 4 { return unsafe UInt64(place.loadUnaligned(as: UInt32.self)) }
        var version: UInt64 = 0
        for index in 0..<versionBytes {
            version |= unsafe UInt64(place.load(fromByteOffset: index, as: UInt8.self)) &<< UInt64(8 &* index)
        }
        return version
    }

    @inline(__always)
    private static func readNumber(_ place: inout UnsafeRawPointer) -> UInt64 {
        var byte = unsafe place.load(as: UInt8.self)
        unsafe place += 1
        if byte < 0x80 { return UInt64(byte) }
        var number = UInt64(byte & 0x7F)
        var shift: UInt64 = 7
        repeat {
            byte = unsafe place.load(as: UInt8.self)
            unsafe place += 1
            number |= UInt64(byte & 0x7F) &<< shift
            shift &+= 7
        } while byte >= 0x80 && shift < 64
        return number
    }
}

// MARK: - Searching

extension Block {
    /// The first entry that is not before (key, version): a higher key, or the same at this version or an older one.
    /// `count` if there is none.
    /// - Parameter version: less the lowest version of the file; the maximum finds the first entry of a key.
    func search(_ key: UnsafeRawBufferPointer, version: UInt64) -> Int {
        let first = unsafe firstKey
        let common = unsafe commonPrefix(first, key)
        if common == key.count {
            // The key is a prefix of the first one.
            if key.count < first.count { return 0 }
        } else if common < first.count, unsafe key[common] < first[common] {
            return 0
        }
        let rest = unsafe UnsafeRawBufferPointer(rebasing: key[common...])
        let head = rest.count > 0 ? unsafe UInt32(rest[0]) : 0
        let target = UInt32(min(common, 255))
        // The first entry shares nothing by definition; it is compared apart.
        let isFirstKey = common == first.count && common == key.count
        if isFirstKey, unsafe entry(0).version <= version { return 0 }
        var low = 1
        var high = count
        while low < high {
            let middle = (low &+ high) &>> 1
            let slot = slot(middle)
            let shared = slot &>> 16 & 0xFF
            let isBefore: Bool
            if shared != target {
                isBefore = shared > target
            } else if slot &>> 24 != head, target < 255 {
                // An empty suffix has the head 0, as a suffix may that begins with a zero: these are compared below.
                isBefore = slot &>> 24 < head
            } else {
                isBefore = unsafe isEntry(middle, before: rest, common: common, version: version)
            }
            if isBefore { low = middle &+ 1 } else { high = middle }
        }
        return low
    }

    private func isEntry(
        _ index: Int, before rest: UnsafeRawBufferPointer, common: Int, version: UInt64
    ) -> Bool {
        let entry = unsafe entry(index)
        if unsafe entry.shared != common { return unsafe entry.shared > common }
        let order = unsafe compareBytes(entry.suffix, rest)
        return order != 0 ? order < 0 : unsafe entry.version > version
    }

    /// The entry at an offset of a block if it has this key. Touches no slots, and no other entry except the first one.
    /// - Parameters:
    ///   - shared: the length of the shared prefix, or 255 if the entry has it.
    ///   - limit: the end of all blocks.
    @inline(__always)
    static func entry(
        of key: UnsafeRawBufferPointer, in base: UnsafeRawPointer, at offset: Int, shared: Int, limit: UnsafeRawPointer
    ) -> Entry? {
        let versionBytes = unsafe Int(base.load(fromByteOffset: BlockField.versionBytes, as: UInt8.self))
        let entry = unsafe entry(base + offset, slotShared: shared, versionBytes, limit: limit)
        let shared = unsafe entry.shared
        guard unsafe shared &+ entry.suffix.count == key.count else { return nil }
        if unsafe memcmp(entry.suffix.baseAddress!, key.baseAddress! + shared, entry.suffix.count) != 0 { return nil }
        var first = unsafe base + BlockField.entries
        _ = unsafe readNumber(&first)
        _ = unsafe readNumber(&first)
        return unsafe memcmp(first + versionBytes, key.baseAddress!, shared) == 0 ? entry : nil
    }

    /// Whether the entry has this key.
    func hasKey(_ key: UnsafeRawBufferPointer, at index: Int) -> Bool {
        let entry = unsafe entry(index)
        guard unsafe entry.shared + entry.suffix.count == key.count else { return false }
        let shared = unsafe entry.shared
        if shared > 0, unsafe memcmp(firstKey.baseAddress!, key.baseAddress!, shared) != 0 { return false }
        guard let suffix = unsafe entry.suffix.baseAddress, key.count > shared else { return true }
        return unsafe memcmp(suffix, key.baseAddress! + shared, key.count - shared) == 0
    }
}
