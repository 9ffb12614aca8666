// Entries of maps and elements of arrays; and the sorting of entries.

import Glibc

extension EncodingSession {
    /// Opens an entry of the innermost frame with a ready-made head.
    @inline(__always)
    func openEntry(_ head: KeyHead, table: UnsafeMutablePointer<KeyTable>, index: Int) -> OpenEntry {
        let frame = unsafe state.pointee.frames + state.pointee.top
        let start = unsafe state.pointee.count
        unsafe frame.pointee.partStart = start
        unsafe frame.pointee.keyTable = unsafe table
        unsafe frame.pointee.keyIndex = index
        unsafe state.pointee.expectsLong = head.isLong
        if head.isLong { return unsafe openLongEntry(head, entryTag: frame.pointee.entryTag) }
        reserve(head.length)
        let target = unsafe state.pointee.base + start
        let source = unsafe head.bytes.unsafelyUnwrapped
        // The head's room is a multiple of 16, and the buffer has that much slack.
        var copied = 0
        repeat {
            let block = unsafe source.load(fromByteOffset: copied, as: SIMD16<UInt8>.self)
            unsafe target.storeBytes(of: block, toByteOffset: copied, as: SIMD16<UInt8>.self)
            copied &+= 16
        } while copied < head.length
        unsafe target.storeBytes(of: frame.pointee.entryTag, as: UInt8.self)
        let valueStart = start &+ head.length
        unsafe state.pointee.count = valueStart
        return OpenEntry(prefix: head.prefix, start: start, valueStart: valueStart)
    }

    /// Opens an entry with two bytes for each length.
    @inline(never)
    private func openLongEntry(_ head: KeyHead, entryTag: UInt8) -> OpenEntry {
        let start = unsafe state.pointee.count
        reserve(head.length + 16)
        put(byte: entryTag)
        putLongLength()
        // What is between the two lengths.
        let named = unsafe UnsafeRawBufferPointer(start: head.bytes.unsafelyUnwrapped + 2, count: head.length - 3)
        unsafe put(bytes: named)
        putLongLength()
        return unsafe OpenEntry(prefix: head.prefix, start: start, valueStart: state.pointee.count, isLong: true)
    }

    /// Opens an entry of the innermost frame.
    func openEntry(named name: String) throws -> OpenEntry {
        try checkFieldName(name)
        let frame = unsafe state.pointee.frames + state.pointee.top
        let start = unsafe state.pointee.count
        unsafe frame.pointee.partStart = start
        unsafe frame.pointee.keyTable = nil
        unsafe state.pointee.expectsLong = false
        var name = name
        let prefix = name.withUTF8 { utf8 in
            reserve(utf8.count + 12)
            unsafe put(byte: frame.pointee.entryTag)
            put(byte: 0)
            put(byte: ValueWireTag.entryKey)
            put(varint: UInt64(utf8.count))
            let nameStart = count
            unsafe put(bytes: UnsafeRawBufferPointer(utf8))
            let prefix = keyPrefix(at: nameStart, count: utf8.count)
            put(byte: ValueWireTag.entryValue)
            put(byte: 0)
            return prefix
        }
        return OpenEntry(prefix: prefix, start: start, valueStart: count)
    }

    /// The prefix of a name in the buffer, after which the buffer's slack may be read.
    @inline(__always)
    private func keyPrefix(at start: Int, count: Int) -> UInt64 {
        if count == 0 { return 0 }
        let word = unsafe UInt64(bigEndian: (state.pointee.base + start).loadUnaligned(as: UInt64.self))
        return count >= 8 ? word : word & ~(UInt64.max >> UInt64(count * 8))
    }

    /// Ends an entry whose value was written.
    @inline(__always)
    func closeEntry(_ entry: OpenEntry) {
        let frame = unsafe state.pointee.frames + state.pointee.top
        let end = unsafe state.pointee.count
        let base = unsafe state.pointee.base
        let entryLength = end &- entry.start &- 2
        if entry.isLong {
            unsafe closeLongEntry(entry, frame)
        } else if entryLength < 0x80 {
            unsafe base.storeBytes(
                of: UInt8(truncatingIfNeeded: end &- entry.valueStart), toByteOffset: entry.valueStart &- 1,
                as: UInt8.self)
            unsafe base.storeBytes(
                of: UInt8(truncatingIfNeeded: entryLength), toByteOffset: entry.start &+ 1, as: UInt8.self)
        } else {
            if Self.isLong(end &- entry.valueStart), let table = unsafe frame.pointee.keyTable {
                unsafe table.pointee.heads[frame.pointee.keyIndex].isLong = true
            }
            fillLength(at: entry.valueStart - 1)
            fillLength(at: entry.start + 1)
        }
        if unsafe entry.prefix <= frame.pointee.lastPrefix { unsafe frame.pointee.isUnsorted = true }
        unsafe frame.pointee.lastPrefix = entry.prefix
        let place = unsafe state.pointee.entryCount
        if unsafe place == state.pointee.entryCapacity { growEntries() }
        unsafe (state.pointee.entries + place).initialize(
            to: EncodedEntry(
                prefix: entry.prefix, start: UInt32(truncatingIfNeeded: entry.start),
                end: UInt32(truncatingIfNeeded: state.pointee.count)))
        unsafe state.pointee.entryCount = place &+ 1
    }

    /// Fills in the lengths of an entry that has two bytes for each; gives back those that it does not need.
    @inline(never)
    private func closeLongEntry(_ entry: OpenEntry, _ frame: UnsafeMutablePointer<EncodingFrame>) {
        let end = unsafe state.pointee.count
        let (valueLength, entryLength) = (end &- entry.valueStart, end &- entry.start &- 3)
        if Self.isLong(valueLength) && Self.isLong(entryLength) {
            fillTwoBytes(at: entry.valueStart &- 2, valueLength)
            fillTwoBytes(at: entry.start &+ 1, entryLength)
            return
        }
        if let table = unsafe frame.pointee.keyTable {
            unsafe table.pointee.heads[frame.pointee.keyIndex].isLong = false
        }
        removeByte(at: entry.valueStart &- 1)
        removeByte(at: entry.start &+ 2)
        fillLength(at: entry.valueStart &- 3)
        fillLength(at: entry.start &+ 1)
    }

    /// Takes back an entry or element whose value failed or leaves nothing.
    @inline(__always)
    func dropPart(from start: Int) {
        unsafe state.pointee.count = start
    }

    /// Takes back an entry whose value is a sentinel. An earlier entry with its name leaves when the map is sorted.
    @inline(never)
    func closeSentinel(_ entry: OpenEntry) {
        let start = UInt32(truncatingIfNeeded: entry.start)
        let sentinel = EncodedEntry(prefix: entry.prefix, start: start, end: start)
        let frame = unsafe state.pointee.frames + state.pointee.top
        let place = unsafe state.pointee.entryCount
        let repeats = unsafe (frame.pointee.firstEntry..<place).contains { earlier in
            let earlier = unsafe state.pointee.entries[earlier]
            return earlier.prefix == sentinel.prefix && compareNames(earlier, sentinel) == 0
        }
        if !repeats { return dropPart(from: entry.start) }
        unsafe frame.pointee.isUnsorted = true
        if unsafe place == state.pointee.entryCapacity { growEntries() }
        unsafe (state.pointee.entries + place).initialize(to: sentinel)
        unsafe state.pointee.entryCount = place &+ 1
    }

    @inline(never)
    private func growEntries() {
        let capacity = unsafe state.pointee.entryCapacity
        unsafe state.pointee.entries.grow(from: capacity, to: capacity * 2)
        unsafe state.pointee.entryCapacity = capacity * 2
    }

    /// Opens an element of the innermost frame; returns where it begins.
    @inline(__always)
    func openElement() -> Int {
        reserve(2)
        unsafe state.pointee.expectsLong = false
        let start = unsafe state.pointee.count
        unsafe state.pointee.frames[state.pointee.top].partStart = start
        put(byte: ValueWireTag.arrayElement)
        put(byte: 0)
        return start
    }

    /// Ends an element whose value was written.
    @inline(__always)
    func closeElement(_ start: Int) {
        fillLength(at: start &+ 1)
        unsafe state.pointee.frames[state.pointee.top].count &+= 1
    }

    // MARK: Sorting

    /// Puts the entries of a map in the order of their names; of entries with one name the last stays.
    ///
    /// The entries are the last bytes of the buffer. They are copied after its end in order and back as one block.
    /// Those of a document are not copied back.
    @inline(never)
    func sortEntries(of frame: UnsafeMutablePointer<EncodingFrame>) {
        let first = unsafe frame.pointee.firstEntry
        let count = unsafe state.pointee.entryCount &- first
        var entries = unsafe UnsafeMutableBufferPointer(start: state.pointee.entries + first, count: count)
        if count == 2, unsafe exchange(entries[0], entries[1]) { return }
        let mayRepeat: Bool
        if count <= 16 {
            mayRepeat = unsafe insertionSort(entries)
        } else {
            unsafe entries.sort { isBefore($0, $1) }
            mayRepeat = true
        }

        let bodyStart = unsafe frame.pointee.bodyStart
        let bodyLength = unsafe state.pointee.count &- bodyStart
        reserve(bodyLength)
        let base = unsafe state.pointee.base
        let sorted = unsafe base + (bodyStart &+ bodyLength)
        var length = 0
        for position in 0..<count {
            let entry = unsafe entries[position]
            if mayRepeat, position &+ 1 < count, unsafe entry.prefix == entries[position &+ 1].prefix,
                unsafe compareNames(entry, entries[position &+ 1]) == 0
            {
                continue
            }
            let size = Int(entry.end &- entry.start)
            unsafe copyWithSlack(sorted + length, base + Int(entry.start), size)
            length &+= size
        }
        if unsafe frame.pointee.isDocument {
            unsafe frame.pointee.bodyStart = bodyStart &+ bodyLength
            unsafe state.pointee.count = bodyStart &+ bodyLength &+ length
            return
        }
        // The slack after the body is the start of the copy, which is read before.
        unsafe copyWithSlack(base + bodyStart, sorted, length)
        unsafe state.pointee.count = bodyStart &+ length
    }

    /// Lets two short entries change places, in registers.
    ///
    /// - Returns: false if they are long, in order, or may have one name. Then nothing has changed.
    @inline(__always)
    private func exchange(_ first: EncodedEntry, _ second: EncodedEntry) -> Bool {
        let (firstSize, secondSize) = (first.end &- first.start, second.end &- second.start)
        if firstSize > 32 || secondSize > 32 || first.prefix <= second.prefix { return false }
        let target = unsafe state.pointee.base + Int(first.start)
        let source = unsafe state.pointee.base + Int(second.start)
        let blocks = unsafe (
            target.loadUnaligned(as: SIMD16<UInt8>.self),
            target.loadUnaligned(fromByteOffset: 16, as: SIMD16<UInt8>.self)
        )
        let others = unsafe (
            source.loadUnaligned(as: SIMD16<UInt8>.self),
            source.loadUnaligned(fromByteOffset: 16, as: SIMD16<UInt8>.self)
        )
        // What is written after the end of an entry is written again or lies in the slack.
        unsafe target.storeBytes(of: others.0, as: SIMD16<UInt8>.self)
        unsafe target.storeBytes(of: others.1, toByteOffset: 16, as: SIMD16<UInt8>.self)
        unsafe target.storeBytes(of: blocks.0, toByteOffset: Int(secondSize), as: SIMD16<UInt8>.self)
        unsafe target.storeBytes(of: blocks.1, toByteOffset: Int(secondSize) + 16, as: SIMD16<UInt8>.self)
        return true
    }

    /// Copies a few bytes as blocks of 32; the bytes written too many lie in the slack or are written again.
    @inline(__always)
    private func copyWithSlack(_ target: UnsafeMutableRawPointer, _ source: UnsafeMutableRawPointer, _ count: Int) {
        if count > 128 {
            unsafe memcpy(target, source, count)
            return
        }
        var at = 0
        repeat {
            let low = unsafe source.loadUnaligned(fromByteOffset: at, as: SIMD16<UInt8>.self)
            let high = unsafe source.loadUnaligned(fromByteOffset: at &+ 16, as: SIMD16<UInt8>.self)
            unsafe target.storeBytes(of: low, toByteOffset: at, as: SIMD16<UInt8>.self)
            unsafe target.storeBytes(of: high, toByteOffset: at &+ 16, as: SIMD16<UInt8>.self)
            at &+= 32
        } while at < count
    }

    /// - Returns: whether names may be equal: two begin with the same eight bytes.
    @inline(__always)
    private func insertionSort(_ entries: UnsafeMutableBufferPointer<EncodedEntry>) -> Bool {
        var mayRepeat = false
        var sorted = 1
        while sorted < entries.count {
            let entry = unsafe entries[sorted]
            var place = sorted
            while place > 0 {
                let before = unsafe entries[place &- 1]
                if entry.prefix > before.prefix { break }
                if entry.prefix == before.prefix {
                    mayRepeat = true
                    if !isBefore(entry, before) { break }
                }
                unsafe entries[place] = before
                place &-= 1
            }
            unsafe entries[place] = entry
            sorted &+= 1
        }
        return mayRepeat
    }

    /// Order by name; entries of one name keep the order they were written in.
    @inline(__always)
    private func isBefore(_ left: EncodedEntry, _ right: EncodedEntry) -> Bool {
        if left.prefix != right.prefix { return left.prefix < right.prefix }
        let order = compareNames(left, right)
        return order != 0 ? order < 0 : left.start < right.start
    }

    @inline(never)
    private func compareNames(_ left: EncodedEntry, _ right: EncodedEntry) -> Int {
        let leftName = unsafe name(at: Int(left.start))
        let rightName = unsafe name(at: Int(right.start))
        let order = unsafe memcmp(leftName.baseAddress!, rightName.baseAddress!, min(leftName.count, rightName.count))
        return order != 0 ? Int(order) : leftName.count - rightName.count
    }

    /// The name of the entry that begins at an offset, complete or with its lengths still to be filled in.
    func name(at start: Int) -> UnsafeRawBufferPointer {
        var at = start + 1
        // The entry's own length: one byte while it is open.
        while unsafe state.pointee.base.load(fromByteOffset: at, as: UInt8.self) >= 0x80 { at += 1 }
        at += 2
        var count = 0
        var shift = 0
        while true {
            let byte = unsafe state.pointee.base.load(fromByteOffset: at, as: UInt8.self)
            at += 1
            count |= Int(byte & 0x7f) << shift
            if byte < 0x80 { break }
            shift += 7
        }
        return unsafe UnsafeRawBufferPointer(start: state.pointee.base + at, count: count)
    }
}
