// The checksum of LevelDB logs.

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4), eight bytes in a step.
enum CRC32C {
    /// Eight tables of 256 entries: table `n` has the remainder of a byte that `n` zero bytes follow.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var remainder = UInt32(byte)
            for _ in 0..<8 { remainder = remainder >> 1 ^ (remainder & 1 == 1 ? 0x82F6_3B78 : 0) }
            tables[byte] = remainder
        }
        for at in 256..<(8 * 256) {
            let before = tables[at - 256]
            tables[at] = before >> 8 ^ tables[Int(before & 0xFF)]
        }
        return tables
    }()

    /// The checksum of a byte that the other bytes follow.
    static func checksum(_ first: UInt8, _ bytes: RawSpan) -> UInt32 {
        let tables = tables.span
        // In bounds: an index is a byte, plus 256 times at most 7.
        func entry(_ table: Int, _ byte: UInt64) -> UInt32 {
            unsafe tables[unchecked: table &* 256 &+ Int(truncatingIfNeeded: byte & 0xFF)]
        }
        var remainder = ~UInt32(0)
        remainder = remainder >> 8 ^ entry(0, UInt64(remainder ^ UInt32(first)))
        var offset = 0
        while bytes.byteCount &- offset >= 8 {
            // In bounds by the loop's condition.
            let word = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self)
            let mixed = UInt64(littleEndian: word) ^ UInt64(remainder)
            remainder = entry(7, mixed) ^ entry(6, mixed &>> 8) ^ entry(5, mixed &>> 16) ^ entry(4, mixed &>> 24)
            remainder ^= entry(3, mixed &>> 32) ^ entry(2, mixed &>> 40)
            remainder ^= entry(1, mixed &>> 48) ^ entry(0, mixed &>> 56)
            offset &+= 8
        }
        while offset < bytes.byteCount {
            // In bounds by the loop's condition.
            let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            remainder = remainder >> 8 ^ entry(0, UInt64(remainder ^ UInt32(byte)))
            offset &+= 1
        }
        return ~remainder
    }

    /// A checksum as a log stores it: rotated right by 15 bits, plus a constant. So the checksum of bytes that contain
    /// checksums is not special.
    static func masked(_ checksum: UInt32) -> UInt32 { (checksum >> 15 | checksum << 17) &+ 0xA282_EAD8 }
}
