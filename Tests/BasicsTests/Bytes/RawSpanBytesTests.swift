// Searching and comparing bytes a word at a time, against the plain loops.

import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct RawSpanBytesTests {
    @Test func `The last of a byte is found from a start on`() {
        let bytes = Array("a\nb\nc".utf8)
        let found = (0...6).map { bytes.span.bytes.lastOffset(of: 0x0A, from: $0) }
        expectEqual(found, [3, 3, 3, 3, nil, nil, nil])
        expectNil(bytes.span.bytes.extracting(0..<0).lastOffset(of: 0x0A))
    }

    @Test func `The first of a byte is found at every place, length and start`() {
        // Neighbours of the byte that is sought, for a subtraction may borrow from them; the ends of the range; high
        // bits.
        for sought in [0x00, 0x01, 0x2F, 0x7F, 0x80, 0xFE, 0xFF] as [UInt8] {
            for filler in [sought &- 1, sought &+ 1, sought ^ 0x80, 0x00, 0xFF] where filler != sought {
                for count in 0...35 {
                    var bytes = [UInt8](repeating: filler, count: count)
                    for place in 0..<max(count, 1) {
                        if count > 0 { bytes[place] = sought }
                        for start in 0...count + 2 {
                            let expected = bytes.indices.first { $0 >= start && bytes[$0] == sought }
                            let found = bytes.span.bytes.firstOffset(of: sought, from: start)
                            if found != expected {
                                Issue.record("\(sought) in \(bytes) from \(start): \(found as Int?)")
                                return
                            }
                        }
                        if count > 0 { bytes[place] = filler }
                    }
                }
            }
        }
    }

    @Test func `Of several the first is found`() {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        for _ in 0..<20_000 {
            let bytes = (0..<generator.below(40)).map { _ in generator.pick([0x2E, 0x2F, 0x30, 0xAF, 0x00] as [UInt8]) }
            let start = generator.below(bytes.count + 1)
            let expected = bytes.indices.first { $0 >= start && bytes[$0] == 0x2F }
            let found = bytes.span.bytes.firstOffset(of: 0x2F, from: start)
            expectEqual(found, expected, "seed \(generator.seed): \(bytes) from \(start)")
        }
    }

    @Test func `A span ends where it ends, whatever lies after it`() {
        let bytes = [UInt8](repeating: 0x61, count: 20) + [0x2F]
        for count in 0...20 {
            expectNil(bytes.span.bytes.extracting(0..<count).firstOffset(of: 0x2F))
        }
    }

    @Test func `Comparisons agree with those of arrays`() {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        for _ in 0..<20_000 {
            let left = (0..<generator.below(24)).map { _ in generator.pick([0x00, 0x7F, 0x80, 0xFF] as [UInt8]) }
            var right = left
            if generator.oneIn(2), !right.isEmpty {
                right[generator.below(right.count)] = generator.pick([0x00, 0x80, 0xFF])
            }
            if generator.oneIn(3) { right = Array(right.prefix(generator.below(right.count + 1))) }
            let order = left.span.bytes.compareBytes(right.span.bytes)
            let expected = left.lexicographicallyPrecedes(right) ? -1 : right.lexicographicallyPrecedes(left) ? 1 : 0
            expectEqual(order.signum(), expected, "seed \(generator.seed): \(left), \(right)")
            expectEqual(left.span.bytes.equalsBytes(right.span.bytes), left == right, "seed \(generator.seed)")
            expectEqual(
                left.span.bytes.startsWith(right.span.bytes), left.starts(with: right), "seed \(generator.seed)")
        }
    }
}
