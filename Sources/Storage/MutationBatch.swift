// The keys that one commit changes, collected in one reusable buffer before anything is published.

/// Puts and deletes of one commit, in any order; of several for the same key the last wins.
///
/// Layout of an entry in the buffer: key length (2 bytes), flags (1), padding (1), value length (4), key, value.
/// Reuse one batch for many commits: `removeAll()` keeps the memory. Not thread-safe.
/// Safe to use: the pointer is private to this file except in `forEachEntry`, and bounded by `capacity`.
@safe
@usableFromInline package struct MutationBatch: ~Copyable {
    @inlinable static var headerBytes: Int { 8 }
    @inlinable static var deletionFlag: UInt8 { 1 }

    @usableFromInline var buffer: UnsafeMutableRawPointer
    private var capacity: Int

    /// Bytes used in the buffer.
    @usableFromInline package private(set) var byteCount = 0

    /// Bytes of the keys and values that will be in LMDB files, with their heads.
    package private(set) var documentBytes = 0
    /// Bytes of the head of an entry in an LMDB file: of a node, its offset, the version in the key, the value's own.
    package static let documentHeadBytes = 40

    /// Puts and deletes in the batch.
    package private(set) var count = 0

    package init(reservingBytes bytes: Int = 4096) {
        capacity = max(bytes, 64)
        unsafe buffer = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
    }

    deinit {
        unsafe buffer.deallocate()
    }

    package var isEmpty: Bool { count == 0 }

    /// Memory that staging the batch takes at most, in bytes.
    package var bytesNeeded: Int {
        byteCount + count * EngineLimits.entryOverheadMax + EngineLimits.batchOverheadMax
    }

    /// Sets `key` to `value`.
    package mutating func put(key: RawSpan, value: RawSpan) {
        var entry = unsafe append(key: key, valueLength: value.byteCount, flags: 0)
        unsafe Self.copy(value, to: &entry)
    }

    /// Sets `key` to the concatenation of two spans, such as a header and a body.
    package mutating func put(key: RawSpan, value first: RawSpan, _ second: RawSpan) {
        var entry = unsafe append(key: key, valueLength: first.byteCount + second.byteCount, flags: 0)
        unsafe Self.copy(first, to: &entry)
        unsafe Self.copy(second, to: &entry)
    }

    /// Sets `key` to the concatenation of three spans.
    package mutating func put(key: RawSpan, value first: RawSpan, _ second: RawSpan, _ third: RawSpan) {
        let length = first.byteCount + second.byteCount + third.byteCount
        var entry = unsafe append(key: key, valueLength: length, flags: 0)
        unsafe Self.copy(first, to: &entry)
        unsafe Self.copy(second, to: &entry)
        unsafe Self.copy(third, to: &entry)
    }

    /// Sets `key` to `length` bytes that `write` fills in; what it leaves out is zero.
    package mutating func put(key: RawSpan, valueLength length: Int, _ write: (inout MutableRawSpan) -> Void) {
        let start = unsafe append(key: key, valueLength: length, flags: 0)
        unsafe start.initializeMemory(as: UInt8.self, repeating: 0, count: length)
        // The span covers exactly the value's bytes and does not outlive this call.
        var span = unsafe MutableRawSpan(_unsafeStart: start, byteCount: length)
        write(&span)
    }

    /// Removes `key`, whether it has a value or not.
    package mutating func delete(key: RawSpan) {
        _ = unsafe append(key: key, valueLength: 0, flags: Self.deletionFlag)
    }

    /// A hash of all entries in their order. The same on every machine with the same byte order; not for hostile input.
    package var contentHash: UInt64 {
        unsafe Self.hash(UnsafeRawBufferPointer(start: buffer, count: byteCount), seed: UInt64(count))
    }

    /// Calls `body` for each entry, in order, with the first byte of its key and a hash as ``contentHash`` is one.
    package borrowing func forEachHash(_ body: (UInt8, UInt64) -> Void) {
        var offset = 0
        while offset < byteCount {
            let entry = unsafe entry(at: offset)
            let length = unsafe Self.headerBytes + entry.key.count + (entry.value?.count ?? 0)
            let bytes = unsafe UnsafeRawBufferPointer(start: buffer + offset, count: length)
            unsafe body(entry.key[0], Self.hash(bytes, seed: 1))
            offset += length
        }
    }

    private static func hash(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        var hash = seed &+ 0x9E37_79B9_7F4A_7C15
        func add(_ word: UInt64) {
            hash = (hash ^ word) &* 0xBF58_476D_1CE4_E5B9
            hash ^= hash >> 29
        }
        var offset = 0
        while bytes.count - offset >= 8 {
            add(unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            offset += 8
        }
        if offset < bytes.count {
            var word: UInt64 = 0
            unsafe withUnsafeMutableBytes(of: &word) {
                unsafe $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset...]))
            }
            add(word)
        }
        hash = (hash ^ UInt64(bytes.count)) &* 0x94D0_49BB_1331_11EB
        return hash ^ (hash >> 32)
    }

    /// Empties the batch and keeps its memory, unless a giant commit has made it large.
    package mutating func removeAll() {
        byteCount = 0
        documentBytes = 0
        count = 0
        if capacity > 4 << 20 {
            unsafe buffer.deallocate()
            capacity = 64 << 10
            unsafe buffer = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
        }
    }

    /// Appends header and key, makes room for the value and returns where it goes.
    private mutating func append(key: RawSpan, valueLength: Int, flags: UInt8) -> UnsafeMutableRawPointer {
        precondition(
            key.byteCount > 0 && key.byteCount <= EngineLimits.keyBytesMax,
            "a key has 1...\(EngineLimits.keyBytesMax) bytes")
        precondition(
            valueLength <= EngineLimits.valueBytesMax, "a value has at most \(EngineLimits.valueBytesMax) bytes")
        let needed = Self.headerBytes + key.byteCount + valueLength
        if capacity - byteCount < needed { grow(toHold: byteCount + needed) }
        var end = unsafe buffer + byteCount
        unsafe end.storeBytes(of: UInt16(key.byteCount), as: UInt16.self)
        unsafe end.storeBytes(of: flags, toByteOffset: 2, as: UInt8.self)
        unsafe end.storeBytes(of: 0, toByteOffset: 3, as: UInt8.self)
        unsafe end.storeBytes(of: UInt32(valueLength), toByteOffset: 4, as: UInt32.self)
        unsafe end += Self.headerBytes
        unsafe Self.copy(key, to: &end)
        if unsafe key.unsafeLoad(fromByteOffset: 0, as: UInt8.self) < EntrySpaces.lowest {
            documentBytes += Self.documentHeadBytes + key.byteCount + valueLength
        }
        byteCount += needed
        count += 1
        return unsafe end
    }

    private mutating func grow(toHold needed: Int) {
        let larger = max(needed, capacity * 2)
        let replacement = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 8)
        unsafe replacement.copyMemory(from: buffer, byteCount: byteCount)
        unsafe buffer.deallocate()
        unsafe buffer = replacement
        capacity = larger
    }

    private static func copy(_ source: RawSpan, to destination: inout UnsafeMutableRawPointer) {
        unsafe source.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            unsafe destination.copyMemory(from: start, byteCount: bytes.count)
        }
        unsafe destination += source.byteCount
    }
}

extension MutationBatch {
    /// One put or delete, pointing into the batch's buffer.
    @unsafe
    @usableFromInline package struct Entry {
        @usableFromInline package let key: UnsafeRawBufferPointer
        /// Nil for a delete.
        @usableFromInline package let value: UnsafeRawBufferPointer?

        @inlinable
        package init(key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer?) {
            unsafe self.key = key
            unsafe self.value = value
        }
    }

    /// Calls `body` with up to `count` entries, in the order they were added, from the one at `offset` of the buffer
    /// on. Pointers are valid during the call.
    /// - Returns: the offset of the entry after them; `byteCount` at the end.
    @discardableResult @inlinable
    package borrowing func forEachEntry<Failure: Error>(
        from offset: Int, atMost count: Int, _ body: (Entry) throws(Failure) -> Void
    ) throws(Failure) -> Int {
        var offset = offset
        var left = count
        while offset < byteCount, left > 0 {
            let entry = unsafe entry(at: offset)
            unsafe try body(entry)
            unsafe offset += Self.headerBytes + entry.key.count + (entry.value?.count ?? 0)
            left -= 1
        }
        return offset
    }

    /// The entry that begins at an offset of the buffer, which `append` has written.
    @inlinable
    borrowing func entry(at offset: Int) -> Entry {
        let header = unsafe UnsafeRawPointer(buffer) + offset
        let keyLength = unsafe Int(header.loadUnaligned(as: UInt16.self))
        let flags = unsafe header.load(fromByteOffset: 2, as: UInt8.self)
        let valueLength = unsafe Int(header.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
        let key = unsafe UnsafeRawBufferPointer(start: header + Self.headerBytes, count: keyLength)
        let value = unsafe UnsafeRawBufferPointer(start: header + Self.headerBytes + keyLength, count: valueLength)
        return unsafe Entry(key: key, value: flags & Self.deletionFlag == 0 ? value : nil)
    }
}
