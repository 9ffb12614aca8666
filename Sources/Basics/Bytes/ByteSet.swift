// A search for any of several bytes.

/// A set of bytes.
package struct ByteSet: Sendable {
    private var words = InlineArray<4, UInt64>(repeating: 0)

    package init(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { words[Int(byte >> 6)] |= 1 &<< UInt64(byte & 63) }
    }

    package func contains(_ byte: UInt8) -> Bool { words[Int(byte >> 6)] &>> UInt64(byte & 63) & 1 != 0 }
}

extension RawSpan {
    /// Offset of the first byte at or after `start` that is in the set, or nil.
    package func firstOffset(in set: ByteSet, from start: Int = 0) -> Int? {
        precondition(start >= 0, "byte offset out of bounds")
        var offset = start
        while offset < byteCount {
            if set.contains(self[byteAt: offset]) { return offset }
            offset += 1
        }
        return nil
    }

    /// How many bytes are `byte`.
    package func count(of byte: UInt8) -> Int {
        var count = 0
        for offset in 0..<byteCount where self[byteAt: offset] == byte { count += 1 }
        return count
    }
}
