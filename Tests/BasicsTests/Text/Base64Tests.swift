// Base64 by the vectors of RFC 4648, section 10, and what is not base64.

import Basics
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct Base64Tests {
    /// RFC 4648, section 10, and each of the 64 characters.
    private static let vectors: [(bytes: [UInt8], text: String)] = [
        ([], ""), (Array("f".utf8), "Zg=="), (Array("fo".utf8), "Zm8="), (Array("foo".utf8), "Zm9v"),
        (Array("foob".utf8), "Zm9vYg=="), (Array("fooba".utf8), "Zm9vYmE="), (Array("foobar".utf8), "Zm9vYmFy"),
        ([0], "AA=="), ([0xFF], "/w=="), ([0xFF, 0xFF], "//8="), ([0xFF, 0xFF, 0xFF], "////"),
        ([0xFB, 0xEF, 0xBE], "++++"),
        (
            [
                0x00, 0x10, 0x83, 0x10, 0x51, 0x87, 0x20, 0x92, 0x8B, 0x30, 0xD3, 0x8F, 0x41, 0x14, 0x93, 0x51, 0x55,
                0x97, 0x61, 0x96, 0x9B, 0x71, 0xD7, 0x9F, 0x82, 0x18, 0xA3, 0x92, 0x59, 0xA7, 0xA2, 0x9A, 0xAB, 0xB2,
                0xDB, 0xAF, 0xC3, 0x1C, 0xB3, 0xD3, 0x5D, 0xB7, 0xE3, 0x9E, 0xBB, 0xF3, 0xDF, 0xBF,
            ], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        ),
    ]

    private static func encoded(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        Base64.append(bytes.span.bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    @Test func `The vectors hold both ways`() {
        for (bytes, text) in Self.vectors {
            expectEqual(Self.encoded(bytes), text)
            expectEqual(Base64.decode(Array(text.utf8).span), bytes)
            expectEqual(Base64.decodeAnyForm(Array(text.utf8).span), bytes)
        }
    }

    @Test(arguments: [
        // Too short or long, padding that lacks, is too much or stands elsewhere.
        "A", "AA", "AAA", "AAAAA", "=", "==", "===", "====", "A===", "=AAA", "A=AA", "AA=A", "AA==AA==",
        "AAAA====", "AA=",
        // Characters of other alphabets, white space, other bytes.
        "-w==", "_w==", "AA A", " AAA", "AAA\n", "AA\u{0}A", "AAé", "A,AA", "AA.A",
        // Bits that no byte uses (section 3.5).
        "AB==", "Ax==", "A/==", "AAB=", "AA/=", "Zh==", "Zm9=",
    ])
    func `Text that is not padded base64 is refused`(text: String) {
        expectNil(Base64.decode(Array(text.utf8).span))
    }

    @Test func `The URL alphabet and absent padding are accepted where protobuf's JSON accepts them`() {
        let cases: [(String, [UInt8])] = [
            ("_w", [0xFF]), ("_w==", [0xFF]), ("-_-_", [0xFB, 0xFF, 0xBF]), ("Zm8", [0x66, 0x6F]),
            ("+/-_", [0xFB, 0xFF, 0xBF]),
        ]
        for (text, bytes) in cases {
            expectEqual(Base64.decodeAnyForm(Array(text.utf8).span), bytes, "\(text)")
        }
        for text in ["A", "AAAAA", "AB", "AAB", "A=", "===", "A A"] {
            expectNil(Base64.decodeAnyForm(Array(text.utf8).span), "\(text)")
        }
    }

    @Test func `Every length and byte agrees with Foundation`() {
        var generator = SeededGenerator(seed: .random(in: 0 ... .max))
        for count in 0..<200 {
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            let text = Self.encoded(bytes)
            expectEqual(text, Data(bytes).base64EncodedString(), "seed \(generator.seed)")
            expectEqual(Base64.decode(Array(text.utf8).span), bytes, "seed \(generator.seed)")
        }
    }
}
