/// A growing byte buffer, written forwards, that owns its memory.
///
/// Made to be kept and reused: ``reset(keeping:)`` forgets the bytes and keeps the memory. Noncopyable, so that the
/// memory has one owner. `DocumentModel` adds protobuf fields.
@safe @usableFromInline package struct ByteBuffer: ~Copyable {
    // Owner: this value. Bounds: `capacity` bytes, of which `count` are initialised. Lifetime: until deinit.
    @usableFromInline package internal(set) var base: UnsafeMutableRawPointer
    /// Bytes that fit without growing.
    @usableFromInline package private(set) var capacity: Int
    /// Bytes written. Code that stores through ``base`` sets it; at most ``capacity``.
    @usableFromInline package var count: Int

    /// An empty buffer with room for `capacity` bytes.
    package init(capacity: Int = 256) {
        precondition(capacity >= 0, "a buffer's capacity cannot be negative")
        self.capacity = max(capacity, 16)
        count = 0
        unsafe base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    deinit { unsafe base.deallocate() }

    /// Everything written so far, lent until the next change.
    @inlinable
    package var bytes: RawSpan {
        @_lifetime(borrow self)
        borrowing get {
            let buffer = unsafe UnsafeRawBufferPointer(start: base, count: count)
            let span = unsafe RawSpan(_unsafeBytes: buffer)
            // The memory lives as long as self and is not written while self is borrowed.
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Forgets the bytes and keeps the room, unless there is more than `keeping` of it.
    package mutating func reset(keeping: Int = .max) {
        count = 0
        if capacity > keeping { self = ByteBuffer(capacity: keeping) }
    }

    /// Cuts the buffer back to its first `count` bytes; for giving up on something half written.
    @inlinable
    package mutating func truncate(to count: Int) {
        precondition(count >= 0 && count <= self.count, "cannot truncate to more bytes than there are")
        self.count = count
    }

    /// Makes room for at least `more` bytes.
    @inlinable @inline(__always)
    package mutating func reserve(_ more: Int) {
        if more > capacity &- count { grow(more) }
    }

    @usableFromInline
    mutating func grow(_ more: Int) {
        precondition(more >= 0, "cannot reserve a negative number of bytes")
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        unsafe moved.copyMemory(from: base, byteCount: count)
        unsafe base.deallocate()
        unsafe base = moved
        capacity = larger
    }

    // MARK: Bytes

    @inlinable @inline(__always)
    package mutating func append(byte: UInt8) {
        reserve(1)
        unsafe base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    @inlinable
    package mutating func append(_ span: RawSpan) {
        let length = span.byteCount
        if length == 0 { return }
        reserve(length)
        let target = unsafe base + count
        // Room for `length` bytes was reserved; a lent span cannot overlap memory that we own alone.
        unsafe span.withUnsafeBytes { source in
            unsafe target.copyMemory(from: source.baseAddress.unsafelyUnwrapped, byteCount: length)
        }
        count &+= length
    }

    @inlinable
    package mutating func append(_ array: [UInt8]) {
        unsafe append(array.span.bytes)
    }

    @inlinable
    package mutating func append(utf8 text: String) {
        text.withUTF8Span { append($0) }
    }

    /// Appends the integer's bytes, least significant first.
    @inlinable @inline(__always)
    package mutating func append<Number: FixedWidthInteger & BitwiseCopyable>(littleEndian value: Number) {
        reserve(MemoryLayout<Number>.size)
        unsafe base.storeBytes(of: value.littleEndian, toByteOffset: count, as: Number.self)
        count &+= MemoryLayout<Number>.size
    }

    /// Appends the integer's bytes, most significant first.
    @inlinable
    package mutating func append<Number: FixedWidthInteger & BitwiseCopyable>(bigEndian value: Number) {
        reserve(MemoryLayout<Number>.size)
        unsafe base.storeBytes(of: value.bigEndian, toByteOffset: count, as: Number.self)
        count &+= MemoryLayout<Number>.size
    }

    /// Appends up to `capacity` bytes that `body` writes itself, returning how many.
    @inlinable
    package mutating func append<Failure: Error>(
        capacity: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) {
        reserve(capacity)
        let room = unsafe UnsafeMutableRawBufferPointer(start: base + count, count: capacity)
        let written = try unsafe body(room)
        precondition(written >= 0 && written <= capacity, "more bytes written than were reserved")
        count += written
    }

    /// Replaces bytes already written, starting at `offset`.
    @inlinable @inline(__always)
    package mutating func overwrite<Number: FixedWidthInteger & BitwiseCopyable>(
        at offset: Int, littleEndian value: Number
    ) {
        precondition(offset >= 0 && offset + MemoryLayout<Number>.size <= count, "overwrite out of bounds")
        unsafe base.storeBytes(of: value.littleEndian, toByteOffset: offset, as: Number.self)
    }

    /// Inverts every bit from `offset` on.
    package mutating func invertBits(from offset: Int) {
        precondition(offset >= 0 && offset <= count, "invertBits out of bounds")
        for at in offset..<count {
            // In bounds: below `count`.
            unsafe base.storeBytes(of: ~base.load(fromByteOffset: at, as: UInt8.self), toByteOffset: at, as: UInt8.self)
        }
    }

    /// A copy of everything written.
    package func copyBytes() -> [UInt8] {
        [UInt8](copying: bytes)
    }
}

// Safe: the memory has one owner, which moves as a whole and is only changed through `mutating` calls.
extension ByteBuffer: @unchecked Sendable {}
