// Byte-level operations on spans that the standard library lacks.

import Glibc

extension RawSpan {
    /// Lexicographic order of unsigned bytes, the shorter first when one is a prefix of the other: negative, 0 or
    /// positive as in `memcmp`.
    @usableFromInline
    package func compareBytes(_ other: RawSpan) -> Int {
        let shared = Swift.min(byteCount, other.byteCount)
        if shared > 0 {
            let order = unsafe withUnsafeBytes { left in
                // Both pointers are valid for `shared` bytes, which is more than none.
                unsafe other.withUnsafeBytes { right in
                    unsafe memcmp(left.baseAddress.unsafelyUnwrapped, right.baseAddress.unsafelyUnwrapped, shared)
                }
            }
            if order != 0 { return Int(order) }
        }
        return byteCount - other.byteCount
    }

    /// Whether both hold the same bytes.
    @inlinable
    package func equalsBytes(_ other: RawSpan) -> Bool {
        byteCount == other.byteCount && compareBytes(other) == 0
    }

    /// Whether these are the UTF-8 bytes of a text.
    @inlinable
    package func equalsUTF8(of text: String) -> Bool { text.withUTF8Span { equalsBytes($0) } }

    /// Whether the first bytes are those of `prefix`.
    @inlinable
    package func startsWith(_ prefix: RawSpan) -> Bool {
        byteCount >= prefix.byteCount && extracting(first: prefix.byteCount).compareBytes(prefix) == 0
    }

    /// The byte at `offset`; traps when it is out of bounds.
    @inlinable
    package subscript(byteAt offset: Int) -> UInt8 {
        precondition(offset >= 0 && offset < byteCount, "byte offset out of bounds")
        // In bounds by the check above.
        return unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }

    /// Whether the eight bytes at `offset` are there and are those of `word`, the first one lowest.
    @inlinable @inline(__always)
    package func holds(_ word: UInt64, at offset: Int) -> Bool {
        guard offset >= 0, byteCount - offset >= 8 else { return false }
        // In bounds by the check above.
        return UInt64(littleEndian: unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
            == word
    }

    /// Offset of the last `byte` at or after `start`, or nil.
    package func lastOffset(of byte: UInt8, from start: Int = 0) -> Int? {
        precondition(start >= 0, "byte offset out of bounds")
        var offset = byteCount
        while offset > start {
            offset -= 1
            if self[byteAt: offset] == byte { return offset }
        }
        return nil
    }

    /// Offset of the first `byte` at or after `start`, or nil.
    @usableFromInline
    package func firstOffset(of byte: UInt8, from start: Int = 0) -> Int? {
        precondition(start >= 0, "byte offset out of bounds")
        var offset = start
        let ones: UInt64 = 0x0101_0101_0101_0101
        while byteCount - offset >= 8 {
            // In bounds by the comparison. A byte that matches becomes zero, and only below the first zero byte can the
            // subtraction not borrow: the lowest high bit left is the first match.
            let word = unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self)
            let difference = UInt64(littleEndian: word) ^ (ones &* UInt64(byte))
            let matches = (difference &- ones) & ~difference & (ones &<< 7)
            if matches != 0 { return offset + matches.trailingZeroBitCount / 8 }
            offset += 8
        }
        if byteCount >= 8, offset < byteCount {
            // The last eight bytes, without those seen before.
            let seen = UInt64(8 - (byteCount - offset)) * 8
            let word = unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: byteCount - 8, as: UInt64.self)
            let difference = (UInt64(littleEndian: word) ^ (ones &* UInt64(byte))) &>> seen
            // What was shifted in is zero, as a match is, but stands above all of them.
            let matches = (difference &- ones) & ~difference & (ones &<< 7)
            let found = offset + matches.trailingZeroBitCount / 8
            return found < byteCount ? found : nil
        }
        while offset < byteCount {
            if self[byteAt: offset] == byte { return offset }
            offset += 1
        }
        return nil
    }
}
