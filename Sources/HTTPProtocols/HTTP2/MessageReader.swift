// gRPC's framing: each message has a prefix of five bytes, and knows nothing of the DATA frames that carry it.
//
//     +------------+---------------------------+------------------+
//     | compressed | length, big-endian        | message          |
//     | 1 byte     | 4 bytes                   | `length` bytes   |
//     +------------+---------------------------+------------------+

import Basics

/// Cuts the bytes of a request into messages as they come: pure data, no copies of what comes whole.
struct MessageReader {
    /// Bytes of a message's prefix.
    static let prefixBytes = 5

    /// The result of the bytes received so far.
    enum Step: Equatable {
        /// All were taken, and a message is not complete.
        case incomplete
        /// A message stands whole in the bytes.
        case whole(Range<Int>)
        /// A message is complete: its earlier parts were kept, and its last one stands here.
        case lastPart(Range<Int>)
        /// Part of a message, to be kept.
        case part(Range<Int>)
        /// The first byte of a message is neither 0 nor 1.
        case reservedFlag(UInt8)
        /// A message is longer than the limit.
        case tooLarge
    }

    /// The prefix so far, first byte highest.
    private var prefix: UInt64 = 0
    private var prefixCount = 0
    /// Bytes that the current message still needs; meaningless while its prefix is not complete.
    private var missing = 0
    private var hasPart = false

    /// Whether the message read last, or being read, is compressed.
    private(set) var isCompressed = false

    /// Whether a message has begun and is not complete.
    var isInsideMessage: Bool { prefixCount > 0 }

    /// Reads the bytes from `offset` on, and moves it after what was taken.
    mutating func next(_ bytes: RawSpan, _ offset: inout Int, bytesMax: Int) -> Step {
        if prefixCount < Self.prefixBytes {
            guard takePrefix(bytes, &offset) else { return .incomplete }
            let flag = UInt8(prefix >> 32)
            guard flag <= 1 else { return .reservedFlag(flag) }
            missing = Int(prefix & 0xFFFF_FFFF)
            guard missing <= bytesMax else { return .tooLarge }
            isCompressed = flag == 1
        }
        let start = offset
        let available = bytes.byteCount - start
        guard available >= missing else {
            guard available > 0 else { return .incomplete }
            offset = bytes.byteCount
            missing -= available
            hasPart = true
            return .part(start..<offset)
        }
        offset = start + missing
        let hadPart = hasPart
        (prefix, prefixCount, missing, hasPart) = (0, 0, 0, false)
        return hadPart ? .lastPart(start..<offset) : .whole(start..<offset)
    }

    /// Whether the prefix is complete now.
    private mutating func takePrefix(_ bytes: RawSpan, _ offset: inout Int) -> Bool {
        while prefixCount < Self.prefixBytes {
            guard offset < bytes.byteCount else { return false }
            prefix = prefix << 8 | UInt64(bytes[byteAt: offset])
            prefixCount += 1
            offset += 1
        }
        return true
    }
}
