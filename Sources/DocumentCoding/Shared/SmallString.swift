// Strings of up to 15 bytes, made and read in registers.

/// The memory layout of a standard library's string that has no storage: 15 bytes of UTF-8 in two little-endian words,
/// and in the highest byte the length and a flag for ASCII.
package enum SmallString {
    static let countMax = 15

    /// Whether this toolchain's strings have that layout. Strings of every length are compared once. If it is false,
    /// the standard library makes and reads all strings.
    package static let isKnown: Bool = {
        guard MemoryLayout<String>.size == 16 else { return false }
        let areSmall = (0...countMax).allSatisfy { count in
            let ascii = String(repeating: "q", count: count)
            let other = count < 2 ? "" : "\u{e9}" + String(repeating: "q", count: count - 2)
            return hasLayout(ascii, flag: 0xe0) && hasLayout(other, flag: other.isEmpty ? 0xe0 : 0xa0)
        }
        return areSmall && words(of: String(repeating: "q", count: countMax + 1)) == nil
    }()

    private static func hasLayout(_ string: String, flag: UInt64) -> Bool {
        var expected = [UInt64](repeating: 0, count: 2)
        for (offset, byte) in string.utf8.enumerated() {
            expected[offset / 8] |= UInt64(byte) << UInt64(offset % 8 * 8)
        }
        expected[1] |= (flag | UInt64(string.utf8.count)) << 56
        return unsafe unsafeBitCast(string, to: (UInt64, UInt64).self) == (expected[0], expected[1])
    }

    /// The bytes of a string of that kind. The highest byte of the second word is not text. Nil for other strings.
    ///
    /// Only if `isKnown`.
    @inline(__always)
    static func words(of string: String) -> (UInt64, UInt64, count: Int)? {
        let words = unsafe unsafeBitCast(string, to: (UInt64, UInt64).self)
        // Except the flag for ASCII, the highest bits are 1010 in these strings only.
        if words.1 >> 60 & 0b1011 != 0b1010 { return nil }
        return (words.0, words.1, Int(words.1 >> 56 & 0xf))
    }

    /// The text of bytes that are ASCII; nil for others.
    ///
    /// Only if `isKnown`.
    ///
    /// - Parameters:
    ///   - start: 16 bytes can be read here.
    ///   - count: how many of them are the text's, at most `countMax`.
    @inline(__always)
    static func make(_ start: UnsafeRawPointer, _ count: Int) -> String? {
        let bits = UInt64(truncatingIfNeeded: count &* 8)
        var first = unsafe start.loadUnaligned(as: UInt64.self).littleEndian
        var second: UInt64 = 0
        if count < 8 {
            first &= (1 &<< bits) &- 1
        } else {
            second =
                unsafe start.loadUnaligned(fromByteOffset: 8, as: UInt64.self).littleEndian
                & ((1 &<< (bits &- 64)) &- 1)
        }
        if (first | second) & 0x8080_8080_8080_8080 != 0 { return nil }
        // A string of this kind is these two words. It is moved and not cast: a cast would count references.
        var words = (first, second | (0xe0 | UInt64(truncatingIfNeeded: count)) << 56)
        return unsafe withUnsafeMutableBytes(of: &words) { words in
            unsafe words.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: String.self).move()
        }
    }
}
