package import Basics

/// Order-preserving encodings: the order of the encoded bytes is the order of the values.
///
/// No encoding is a prefix of another. So encodings can be concatenated and still compare part by part, and inverting
/// every bit gives exactly the descending order.
///
/// The obvious encodings fail: a length before a string sorts "b" before "aa"; two's complement sorts -1 after 1; the
/// bits of a double sort negative numbers backwards; the eight bytes of a double cannot distinguish 2^53 and 2^53 + 1.
///
/// These encodings are on disk: never change one.
package enum KeyEncoding {
    /// Ends a sequence (array, map, path); below every label of ``TypeClass``.
    package static let terminator: UInt8 = 2

    /// Appends bytes or text of any length, ended by 00. The bytes 00 and 01 become 01 01 and 01 02.
    ///
    ///     "ab"  61 62 00        ""  00        00 01 02  01 01 01 02 02 00
    package static func append(escaped bytes: RawSpan, into writer: inout ByteBuffer) {
        let count = bytes.byteCount
        var start = 0
        var offset = 0
        while offset < count {
            if count - offset >= 8 {
                // In bounds by the comparison. Eight bytes of which none is below 2 need no escape.
                let word = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self)
                if (word &- 0x0202_0202_0202_0202) & ~word & 0x8080_8080_8080_8080 == 0 {
                    offset += 8
                    continue
                }
            }
            let byte = bytes[byteAt: offset]
            if byte <= 1 {
                writer.append(bytes.extracting(start..<offset))
                writer.append(byte: 1)
                writer.append(byte: byte + 1)
                start = offset + 1
            }
            offset += 1
        }
        writer.append(bytes.extracting(start..<count))
        writer.append(byte: 0)
    }

    /// Appends eight bytes: the number with its sign bit inverted, most significant byte first.
    package static func append(integer value: Int64, into writer: inout ByteBuffer) {
        writer.append(bigEndian: UInt64(bitPattern: value) ^ 1 << 63)
    }

    /// Appends a number other than NaN; integers and doubles of equal value give equal bytes.
    ///
    /// The number is split into the largest double not above it and, for integers that no double holds, the rest (below
    /// 1024). The double becomes 64 bits that count up through all doubles, with zero at 2^63, followed by the rest's
    /// 10 bits. These 74 bits are written seven to a byte, the top ones first; the lowest bit of a byte says that more
    /// follow that are not all zero. So short numbers stay short: 0 takes 1 byte, 304 takes 3, a random double 10.
    ///
    ///     -1  41 08        0  80        1  bf f8        304  c1 39 c0
    package static func append(number: Number, into writer: inout ByteBuffer) {
        let base: Double
        var rest: UInt64 = 0
        switch number {
        case .double(let value): base = value
        case .integer(let value):
            var below = Double(value)
            // Rounding may have gone up; 2^63 itself is above every integer.
            if below >= 0x1p63 || Int64(below) > value { below = below.nextDown }
            base = below
            rest = UInt64(value - Int64(below))
        }
        let magnitude = base.bitPattern & 0x7fff_ffff_ffff_ffff
        // Counting down from 2^63 rather than inverting keeps the trailing zeros of negative numbers.
        var high = base.sign == .minus ? (1 << 63) - magnitude : (1 << 63) + magnitude
        var low = rest << 54
        repeat {
            let group = UInt8(truncatingIfNeeded: high >> 57)
            high = high << 7 | low >> 57
            low <<= 7
            writer.append(byte: group << 1 | (high | low == 0 ? 0 : 1))
        } while high | low != 0
    }
}
