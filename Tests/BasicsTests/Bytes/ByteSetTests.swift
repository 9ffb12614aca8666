import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ByteSetTests {
    @Test func `A set holds the bytes it is made of, of all 256`() {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        for _ in 0..<200 {
            let bytes = (0..<generator.below(40)).map { _ in UInt8(generator.below(256)) }
            let set = ByteSet(bytes)
            for byte in UInt8.min...UInt8.max {
                expectEqual(set.contains(byte), bytes.contains(byte), "seed \(generator.seed): \(byte) in \(bytes)")
            }
        }
    }

    @Test func `The first byte of a set is found, and bytes are counted`() {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        for _ in 0..<5_000 {
            let bytes = (0..<generator.below(40)).map { _ in generator.pick([0x00, 0x22, 0x5C, 0x61, 0xFF] as [UInt8]) }
            let start = generator.below(bytes.count + 3)
            let expected = bytes.indices.first { $0 >= start && (bytes[$0] == 0x22 || bytes[$0] == 0xFF) }
            let found = bytes.byteSpan.firstOffset(in: ByteSet([0x22, 0xFF]), from: start)
            expectEqual(found, expected, "seed \(generator.seed): \(bytes) from \(start)")
            expectNil(bytes.byteSpan.firstOffset(in: ByteSet([])))
            expectEqual(bytes.byteSpan.count(of: 0x22), bytes.count { $0 == 0x22 }, "seed \(generator.seed): \(bytes)")
        }
    }
}
