import Foundation

/// MD5 (RFC 1321), written from the RFC: an oracle for the bloom filters, which use a library.
enum MD5 {
    private static let shifts: [UInt32] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21]

    /// The sixteen bytes of the digest.
    static func digest(_ message: [UInt8]) -> [UInt8] {
        var padded = message + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        for byte in 0..<8 { padded.append(UInt8(truncatingIfNeeded: (message.count * 8) >> (8 * byte))) }
        var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476]
        for start in stride(from: 0, to: padded.count, by: 64) {
            let words = (0..<16).map { word in
                (0..<4).reduce(UInt32(0)) { $0 | UInt32(padded[start + word * 4 + $1]) << UInt32(8 * $1) }
            }
            state = zip(state, rounds(words, state)).map { $0 &+ $1 }
        }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(8 * $0)) } }
    }

    private static func rounds(_ words: [UInt32], _ state: [UInt32]) -> [UInt32] {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        for step in 0..<64 {
            let (mixed, word): (UInt32, Int) =
                switch step / 16 {
                case 0: (b & c | ~b & d, step)
                case 1: (d & b | ~d & c, (5 * step + 1) % 16)
                case 2: (b ^ c ^ d, (3 * step + 5) % 16)
                default: (c ^ (b | ~d), 7 * step % 16)
                }
            let sum = a &+ mixed &+ constant(step) &+ words[word]
            let shift = shifts[step / 16 * 4 + step % 4]
            (a, d, c, b) = (d, c, b, b &+ (sum << shift | sum >> (32 - shift)))
        }
        return [a, b, c, d]
    }

    /// The integer part of 2^32 * |sin(step + 1)|.
    private static func constant(_ step: Int) -> UInt32 { UInt32(abs(sin(Double(step + 1))) * 4_294_967_296) }
}
