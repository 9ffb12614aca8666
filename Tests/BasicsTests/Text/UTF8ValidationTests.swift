// The UTF-8 check against the standard library's, at every place that its words of eight bytes treat differently.

import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct UTF8ValidationTests {
    private static func isValid(_ bytes: [UInt8]) -> Bool { UTF8Validation.isValid(bytes.span.bytes) }

    /// What the standard library says.
    private static func expected(_ bytes: [UInt8]) -> Bool { (try? UTF8Span(validating: bytes.span)) != nil }

    /// Sequences at the edges of table 3-7 of the Unicode Standard, and whether they are well-formed.
    private static let sequences: [([UInt8], Bool)] = [
        ([0x00], true), ([0x7F], true), ([0x80], false), ([0xBF], false), ([0xC0, 0x80], false), ([0xC1, 0xBF], false),
        ([0xC2, 0x80], true), ([0xC2, 0x7F], false), ([0xC2, 0xC0], false), ([0xC2], false), ([0xDF, 0xBF], true),
        ([0xE0, 0x9F, 0x80], false), ([0xE0, 0xA0, 0x80], true), ([0xE0, 0xA0], false), ([0xE1, 0x80, 0x80], true),
        ([0xE1, 0x80, 0x7F], false), ([0xE1, 0x80, 0xC0], false), ([0xED, 0x9F, 0xBF], true),
        ([0xED, 0xA0, 0x80], false), ([0xED, 0xBF, 0xBF], false), ([0xEE, 0x80, 0x80], true),
        ([0xEF, 0xBF, 0xBF], true),
        ([0xF0, 0x8F, 0xBF, 0xBF], false), ([0xF0, 0x90, 0x80, 0x80], true), ([0xF0, 0x90, 0x80], false),
        ([0xF3, 0xBF, 0xBF, 0xBF], true), ([0xF4, 0x8F, 0xBF, 0xBF], true), ([0xF4, 0x90, 0x80, 0x80], false),
        ([0xF5, 0x80, 0x80, 0x80], false), ([0xF8, 0x88, 0x80, 0x80, 0x80], false), ([0xFE], false), ([0xFF], false),
    ]

    @Test func `Sequences at the edges are validated alike at every offset`() {
        for (sequence, isWellFormed) in Self.sequences {
            for before in 0...41 {
                for after in [0, 1, 7, 8, 33] {
                    let letters = [UInt8](repeating: 0x61, count: before)
                    let bytes = letters + sequence + [UInt8](repeating: 0x7A, count: after)
                    expectEqual(
                        Self.isValid(bytes), isWellFormed, "\(sequence) after \(before), before \(after) letters")
                }
            }
        }
    }

    @Test func `Every lead byte with every second byte is validated as the standard library does`() {
        for lead in 0x80...0xFF as ClosedRange<UInt8> {
            for second in 0...0xFF as ClosedRange<UInt8> {
                for bytes in [[lead, second], [lead, second, 0x80], [lead, second, 0xBF, 0x80]] {
                    expectEqual(Self.isValid(bytes), Self.expected(bytes), "\(bytes)")
                }
            }
        }
    }

    @Test func `ASCII of every length is valid, and one byte above it is not`() {
        for count in 0...100 {
            var bytes = [UInt8](repeating: 0x7F, count: count)
            expect(Self.isValid(bytes))
            for place in bytes.indices {
                bytes[place] = 0x80
                expect(!Self.isValid(bytes), "\(count) bytes, bad at \(place)")
                bytes[place] = 0x7F
            }
        }
    }

    @Test func `Random bytes are validated as the standard library does`() {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        let texts = ["a", "a", "abcdefgh", "日本", "😀"].map { Array($0.utf8) }
        let pieces = Self.sequences.map(\.0) + texts
        for _ in 0..<20_000 {
            let bytes = (0..<generator.below(12)).flatMap { _ in generator.pick(pieces) }
            expectEqual(Self.isValid(bytes), Self.expected(bytes), "seed \(generator.seed): \(bytes)")
        }
    }
}
