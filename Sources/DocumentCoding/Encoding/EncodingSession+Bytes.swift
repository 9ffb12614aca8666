// Writing bytes into a session's buffer.

import Glibc

extension EncodingSession {
    /// How far a fixed-size copy may write past the bytes it is asked for.
    static let slack = 32

    /// Makes room for `more` bytes and the slack after them.
    @inline(__always)
    func reserve(_ more: Int) {
        if unsafe state.pointee.count &+ more &+ Self.slack > state.pointee.capacity { grow(more) }
    }

    @inline(never)
    private func grow(_ more: Int) {
        let needed = unsafe state.pointee.count + more + Self.slack
        // Offsets of entries are 32 bits wide; a request is at most 10 MiB.
        precondition(needed < 1 << 31, "a document of more than 2 GiB cannot be encoded")
        let larger = unsafe max(state.pointee.capacity * 2, needed)
        let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        unsafe moved.copyMemory(from: state.pointee.base, byteCount: state.pointee.count)
        unsafe state.pointee.base.deallocate()
        unsafe state.pointee.base = unsafe moved
        unsafe state.pointee.capacity = larger
    }

    // The functions named `put` write without a check: their caller has reserved the room.

    @inline(__always)
    func put(byte: UInt8) {
        let count = unsafe state.pointee.count
        unsafe state.pointee.base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        unsafe state.pointee.count = count &+ 1
    }

    @inline(__always)
    func put(varint value: UInt64) {
        var count = unsafe state.pointee.count
        let base = unsafe state.pointee.base
        var rest = value
        while rest >= 0x80 {
            unsafe base.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: count, as: UInt8.self)
            count &+= 1
            rest >>= 7
        }
        unsafe base.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: count, as: UInt8.self)
        unsafe state.pointee.count = count &+ 1
    }

    @inline(__always)
    func put(littleEndian value: UInt64) {
        let count = unsafe state.pointee.count
        unsafe state.pointee.base.storeBytes(of: value.littleEndian, toByteOffset: count, as: UInt64.self)
        unsafe state.pointee.count = count &+ 8
    }

    @inline(__always)
    func put(bytes: UnsafeRawBufferPointer) {
        let count = unsafe state.pointee.count
        if let start = bytes.baseAddress {
            unsafe Self.copy(start, to: state.pointee.base + count, bytes.count)
        }
        unsafe state.pointee.count = count &+ bytes.count
    }

    /// Copies bytes; the few bytes of most strings without a call, as two words that may overlap.
    @inline(__always)
    private static func copy(_ source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, _ count: Int) {
        if count > 16 || count < 4 {
            unsafe target.copyMemory(from: source, byteCount: count)
        } else if count >= 8 {
            let head = unsafe source.loadUnaligned(as: UInt64.self)
            let tail = unsafe source.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
            unsafe target.storeBytes(of: head, as: UInt64.self)
            unsafe target.storeBytes(of: tail, toByteOffset: count &- 8, as: UInt64.self)
        } else {
            let head = unsafe source.loadUnaligned(as: UInt32.self)
            let tail = unsafe source.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
            unsafe target.storeBytes(of: head, as: UInt32.self)
            unsafe target.storeBytes(of: tail, toByteOffset: count &- 4, as: UInt32.self)
        }
    }

    /// Reserves room and writes a tag of one or two bytes, the length, and the bytes.
    @inline(__always)
    func append(bytes: UnsafeRawBufferPointer, longTag: UInt8) {
        reserve(bytes.count + 8)
        put(byte: longTag)
        put(byte: ValueWireTag.longTagEnd)
        put(varint: UInt64(bytes.count))
        unsafe put(bytes: bytes)
    }

    /// Bytes of a varint.
    @inline(__always)
    static func varintSize(_ value: Int) -> Int {
        value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5
    }

    // MARK: Lengths

    // Two bytes are reserved where the last value of a key had a length of two.

    /// Whether a length takes two bytes.
    @inline(__always)
    static func isLong(_ length: Int) -> Bool { length >= 0x80 && length < 0x4000 }

    /// Leaves two bytes for a length. Code that looks for what follows a length reads them as one.
    @inline(__always)
    func putLongLength() {
        put(byte: 0x80)
        put(byte: 0)
    }

    /// Fills in two bytes with a length that takes two.
    @inline(__always)
    func fillTwoBytes(at place: Int, _ length: Int) {
        let bytes = UInt16(truncatingIfNeeded: length & 0x7f | 0x80 | length << 1 & 0x7f00)
        unsafe state.pointee.base.storeBytes(of: bytes.littleEndian, toByteOffset: place, as: UInt16.self)
    }

    /// Moves everything after a byte into its place.
    @inline(never)
    func removeByte(at place: Int) {
        let target = unsafe state.pointee.base + place
        unsafe memmove(target, target + 1, state.pointee.count - place - 1)
        unsafe state.pointee.count -= 1
    }

    /// Fills in the byte at `place` with the length of everything after it.
    @inline(__always)
    func fillLength(at place: Int) {
        let length = unsafe state.pointee.count &- place &- 1
        if length < 0x80 {
            unsafe state.pointee.base.storeBytes(
                of: UInt8(truncatingIfNeeded: length), toByteOffset: place, as: UInt8.self)
        } else {
            fillLongLength(at: place, length)
        }
    }

    @inline(never)
    private func fillLongLength(at place: Int, _ length: Int) {
        let extra = Self.varintSize(length) - 1
        reserve(extra)
        // The contents move up; both ranges lie within the reserved bytes.
        let body = unsafe state.pointee.base + place + 1
        unsafe memmove(body + extra, body, length)
        unsafe state.pointee.count = place
        put(varint: UInt64(length))
        unsafe state.pointee.count += length
    }
}
