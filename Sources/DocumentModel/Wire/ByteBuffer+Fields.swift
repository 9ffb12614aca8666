// Protobuf fields, appended to a buffer of bytes.
//
// Functions named `append…` write every value, including zero. Functions named `writeIfSet…` follow proto3 and leave
// out a field that has its default value.

public import Basics
import Glibc

extension ByteBuffer {
    /// Bytes that ``appendVarint(_:)`` takes for the value, 1 ... 10.
    @inlinable @inline(__always)
    package static func varintSize(_ value: UInt64) -> Int {
        // Nine bits of length become two bytes of eight: (bits * 9 + 64) / 64 is the ceiling of bits / 7 up to 64.
        let bits = 64 &- (value | 1).leadingZeroBitCount
        return (bits &* 9 &+ 64) &>> 6
    }

    @inlinable @inline(__always)
    package mutating func appendVarint(_ value: UInt64) {
        if value < 0x80 { return append(byte: UInt8(truncatingIfNeeded: value)) }
        appendLongVarint(value)
    }

    @usableFromInline
    mutating func appendLongVarint(_ value: UInt64) {
        reserve(10)
        storeVarint(value)
    }

    /// Appends a varint for which ten bytes are reserved.
    @inline(__always)
    private mutating func storeVarint(_ value: UInt64) {
        if value < 1 << 56 {
            // Seven bits to a byte, by bisection; then the continuation bit on all bytes except the last.
            var spread = (value & 0x00FF_FFFF_F000_0000) &<< 4 | (value & 0x0FFF_FFFF)
            spread = (spread & 0x0FFF_C000_0FFF_C000) &<< 2 | (spread & 0x0000_3FFF_0000_3FFF)
            spread = (spread & 0x3F80_3F80_3F80_3F80) &<< 1 | (spread & 0x007F_007F_007F_007F)
            let size = ByteBuffer.varintSize(value)
            let marks: UInt64 = 0x8080_8080_8080_8080 & ((1 &<< UInt64(8 &* (size &- 1))) &- 1)
            // Ten bytes are there; what is written beyond the varint is written over next.
            unsafe base.storeBytes(of: (spread | marks).littleEndian, toByteOffset: count, as: UInt64.self)
            count &+= size
            return
        }
        var rest = value
        while rest >= 0x80 {
            unsafe base.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: count, as: UInt8.self)
            count &+= 1
            rest >>= 7
        }
        unsafe base.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    @inlinable @inline(__always)
    package mutating func appendTag(field: Int, _ type: WireType) {
        appendVarint(UInt64(WireTag(field: field, type).rawValue))
    }

    @inlinable
    package mutating func appendField(_ field: Int, varint value: UInt64) {
        appendTag(field: field, .varint)
        appendVarint(value)
    }

    @inlinable
    package mutating func appendField(_ field: Int, int64 value: Int64) {
        appendField(field, varint: UInt64(bitPattern: value))
    }

    @inlinable
    package mutating func appendField(_ field: Int, boolean value: Bool) {
        appendField(field, varint: value ? 1 : 0)
    }

    @inlinable
    package mutating func appendField(_ field: Int, double value: Double) {
        appendTag(field: field, .fixed64)
        append(littleEndian: value.bitPattern)
    }

    @inlinable
    package mutating func appendField(_ field: Int, bytes value: RawSpan) {
        appendTag(field: field, .lengthDelimited)
        appendVarint(UInt64(value.byteCount))
        append(value)
    }

    @inlinable
    package mutating func appendField(_ field: Int, bytes value: [UInt8]) {
        unsafe appendField(field, bytes: value.span.bytes)
    }

    @inlinable
    package mutating func appendField(_ field: Int, string value: String) {
        value.withUTF8Span { appendField(field, bytes: $0) }
    }

    /// A `google.protobuf.Timestamp` message; it is written even when it is all zero, because its presence counts.
    package mutating func appendField(_ field: Int, timestamp value: TimestampValue) {
        appendTag(field: field, .lengthDelimited)
        // A length of one byte, and two fields of a tag and a varint.
        reserve(1 + 2 * 11)
        let place = count
        count &+= 1
        storeField(FieldNumber.Protobuf.Timestamp.seconds, ifSet: UInt64(bitPattern: value.seconds))
        storeField(FieldNumber.Protobuf.Timestamp.nanos, ifSet: UInt64(bitPattern: Int64(value.nanoseconds)))
        endLength(at: place)
    }

    /// Appends a field of a number below 16, unless it is zero. Eleven bytes are reserved for it.
    @inline(__always)
    private mutating func storeField(_ field: Int, ifSet value: UInt64) {
        if value == 0 { return }
        let tag = UInt8(truncatingIfNeeded: WireTag(field: field, .varint).rawValue)
        unsafe base.storeBytes(of: tag, toByteOffset: count, as: UInt8.self)
        count &+= 1
        storeVarint(value)
    }

    // MARK: Proto3 scalars, left out when they hold their default

    @inlinable
    package mutating func writeIfSet(_ field: Int, int64 value: Int64) {
        if value != 0 { appendField(field, int64: value) }
    }

    @inlinable
    package mutating func writeIfSet(_ field: Int, boolean value: Bool) {
        if value { appendField(field, boolean: value) }
    }

    /// Minus zero is not the default and is written.
    @inlinable
    package mutating func writeIfSet(_ field: Int, double value: Double) {
        if value.bitPattern != 0 { appendField(field, double: value) }
    }

    @inlinable
    package mutating func writeIfSet(_ field: Int, string value: String) {
        if !value.isEmpty { appendField(field, string: value) }
    }

    @inlinable
    package mutating func writeIfSet(_ field: Int, bytes value: [UInt8]) {
        if !value.isEmpty { appendField(field, bytes: value) }
    }

    @inlinable
    package mutating func writeIfSet(_ field: Int, bytes value: RawSpan) {
        if !value.isEmpty { appendField(field, bytes: value) }
    }

    // MARK: Lengths that are not known yet

    /// Writes tag, length and whatever `body` writes: a nested message.
    @inlinable
    package mutating func withLengthPrefix<Failure: Error>(
        field: Int, _ body: (inout ByteBuffer) throws(Failure) -> Void
    ) throws(Failure) {
        appendTag(field: field, .lengthDelimited)
        let place = beginLength()
        try body(&self)
        endLength(at: place)
    }

    /// Leaves one byte for a length; give the result to ``endLength(at:)`` when the contents are written.
    @inlinable @inline(__always)
    package mutating func beginLength() -> Int {
        append(byte: 0)
        return count &- 1
    }

    /// Fills in the length of everything written since ``beginLength()``.
    @inlinable @inline(__always)
    package mutating func endLength(at place: Int) {
        let length = count &- place &- 1
        precondition(place >= 0 && length >= 0, "endLength without beginLength")
        if length < 0x80 {
            unsafe base.storeBytes(of: UInt8(truncatingIfNeeded: length), toByteOffset: place, as: UInt8.self)
        } else {
            endLongLength(at: place, length)
        }
    }

    @usableFromInline
    mutating func endLongLength(at place: Int, _ length: Int) {
        let extra = ByteBuffer.varintSize(UInt64(length)) - 1
        reserve(extra)
        // The contents move up to make room for a longer length; both ranges lie within the reserved bytes.
        unsafe memmove(base + place + 1 + extra, base + place + 1, length)
        // Byte by byte: what follows is there already.
        var rest = length
        for at in place..<(place + extra) {
            unsafe base.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: at, as: UInt8.self)
            rest >>= 7
        }
        unsafe base.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: place + extra, as: UInt8.self)
        count += extra
    }
}
