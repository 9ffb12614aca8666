// Reading protobuf messages in place, without copying and without trusting a byte of them.

/// A cursor over the bytes of one message.
///
/// Every read is checked against the end; a bad byte throws ``InvalidDocument`` with its offset and never traps. The
/// reader borrows the bytes and hands out sub-spans that live as long as they do. Unknown fields are the caller's to
/// ``skip(_:)``; groups are refused.
@usableFromInline package struct WireReader: ~Escapable {
    /// The message being read.
    @usableFromInline package let bytes: RawSpan
    /// Offset of the next byte to read, 0 ... `bytes.byteCount`.
    @usableFromInline package var position: Int

    @inlinable
    @_lifetime(copy bytes)
    package init(_ bytes: RawSpan) {
        self.bytes = bytes
        position = 0
    }

    @inlinable
    package var isAtEnd: Bool { position >= bytes.byteCount }

    @inlinable
    package var remaining: Int { bytes.byteCount - position }

    /// The byte at `offset`, which the caller has checked.
    @inlinable @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        // In bounds: every caller compares with byteCount first.
        unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }

    /// The next field's tag, or nil at the end of the message.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func nextTag() throws(InvalidDocument) -> WireTag? {
        if position >= bytes.byteCount { return nil }
        let start = position
        let first = byte(at: start)
        if first < 0x80 {
            position = start + 1
            return try checkedTag(UInt64(first), at: start)
        }
        return try checkedTag(try longVarint(), at: start)
    }

    @inlinable @inline(__always)
    func checkedTag(_ raw: UInt64, at start: Int) throws(InvalidDocument) -> WireTag {
        // Field number 0, numbers past 29 bits and wire types 6 and 7 do not exist.
        if raw < 8 || raw > 0xffff_ffff || raw & 7 > 5 { throw InvalidDocument(.invalidTag, offset: start) }
        return WireTag(rawValue: UInt32(truncatingIfNeeded: raw))
    }

    /// A base-128 integer of at most ten bytes.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func varint() throws(InvalidDocument) -> UInt64 {
        if position < bytes.byteCount {
            let first = byte(at: position)
            if first < 0x80 {
                position += 1
                return UInt64(first)
            }
        }
        return try longVarint()
    }

    @usableFromInline
    @_lifetime(self: copy self)
    mutating func longVarint() throws(InvalidDocument) -> UInt64 {
        let start = position
        var at = start
        var result: UInt64 = 0
        var shift: UInt64 = 0
        while at < bytes.byteCount {
            let next = byte(at: at)
            at &+= 1
            // The tenth byte has room for the top bit alone.
            if shift == 63, next > 1 { throw InvalidDocument(.varintTooLong, offset: start) }
            result |= UInt64(next & 0x7f) &<< shift
            if next < 0x80 {
                position = at
                return result
            }
            shift &+= 7
        }
        throw InvalidDocument(.truncated, offset: start)
    }

    /// Eight little-endian bytes.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func fixed64() throws(InvalidDocument) -> UInt64 {
        if bytes.byteCount - position < 8 { throw InvalidDocument(.truncated, offset: position) }
        // In bounds by the check above.
        let value = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: position, as: UInt64.self)
        position += 8
        return UInt64(littleEndian: value)
    }

    /// Four little-endian bytes.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func fixed32() throws(InvalidDocument) -> UInt32 {
        if bytes.byteCount - position < 4 { throw InvalidDocument(.truncated, offset: position) }
        // In bounds by the check above.
        let value = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: position, as: UInt32.self)
        position += 4
        return UInt32(littleEndian: value)
    }

    /// Reads a length and returns the offset at which the bytes that follow it end, without moving past them.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func endOfLengthDelimited() throws(InvalidDocument) -> Int {
        let start = position
        let length = try varint()
        if length > UInt64(bytes.byteCount - position) { throw InvalidDocument(.truncated, offset: start) }
        return position + Int(truncatingIfNeeded: length)
    }

    /// The payload of a length-delimited field: a string, bytes or a message.
    @inlinable
    @_lifetime(copy self)
    package mutating func lengthDelimited() throws(InvalidDocument) -> RawSpan {
        let end = try endOfLengthDelimited()
        let from = position
        position = end
        // In bounds: the end was checked against the length of the message.
        return unsafe bytes.extracting(unchecked: from..<end)
    }

    /// Steps over the payload of a field that is not wanted.
    @inlinable
    @_lifetime(self: copy self)
    package mutating func skip(_ tag: WireTag) throws(InvalidDocument) {
        switch tag.wireType {
        case .varint: _ = try varint()
        case .fixed64: _ = try fixed64()
        case .fixed32: _ = try fixed32()
        case .lengthDelimited: _ = try lengthDelimited()
        case .startGroup, .endGroup: throw InvalidDocument(.groupNotSupported, offset: position)
        }
    }
}
