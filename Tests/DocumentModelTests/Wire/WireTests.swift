// The wire reader and writer: byte vectors both ways, limits, and behaviour on cut and random bytes.

import Basics
import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct WireTests {
    static let varints: [(UInt64, [UInt8])] = [
        (0, [0]), (1, [1]), (127, [0x7f]), (128, [0x80, 1]), (300, [0xac, 2]), (16383, [0xff, 0x7f]),
        (16384, [0x80, 0x80, 1]), (1 << 63, [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]),
        (.max, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
    ]

    @Test(arguments: varints)
    func `Varints are minimal and read back`(value: UInt64, bytes: [UInt8]) throws {
        var writer = ByteBuffer()
        writer.appendVarint(value)
        let written = writer.copyBytes()
        expectEqual(written, bytes)
        expectEqual(ByteBuffer.varintSize(value), bytes.count)
        var reader = WireReader(bytes.span.bytes)
        let read = try reader.varint()
        expectEqual(read, value)
        let atEnd = reader.isAtEnd
        expect(atEnd)
    }

    @Test
    func `The size of every power of two is the bytes it takes`() {
        for shift in 0..<64 {
            let power = UInt64(1) << UInt64(shift)
            for value in [power, power - 1] {
                var writer = ByteBuffer()
                writer.appendVarint(value)
                let count = writer.count
                expectEqual(ByteBuffer.varintSize(value), count)
            }
        }
    }

    static let malformedMessages: [([UInt8], InvalidDocument.Reason)] = [
        ([UInt8](repeating: 0x80, count: 9) + [2], .varintTooLong),
        ([UInt8](repeating: 0x80, count: 11), .varintTooLong),
        ([0x80], .truncated),
        ([0x00], .invalidTag),
        ([0x07], .invalidTag),
        ([0x0e], .invalidTag),
        ([0xff, 0xff, 0xff, 0xff, 0x7f], .invalidTag),
        ([0x0b], .groupNotSupported),
        ([0x0c], .groupNotSupported),
        ([0x0a, 0x01], .truncated),
        ([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], .truncated),
        ([0x09, 1, 2, 3, 4, 5, 6, 7], .truncated),
        ([0x0d, 1, 2, 3], .truncated),
    ]

    @Test(arguments: malformedMessages)
    func `Malformed varints, tags and lengths throw with their reason`(bytes: [UInt8], reason: InvalidDocument.Reason) {
        do {
            var reader = WireReader(bytes.span.bytes)
            while let tag = try reader.nextTag() { try reader.skip(tag) }
            Issue.record("accepted")
        } catch {
            expectEqual(error.reason, reason)
        }
    }

    @Test(arguments: [0, 1, 127, 128, 129, 16383, 16384, 70_000])
    func `Nested messages get minimal lengths whatever their size`(size: Int) throws {
        let contents = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        var writer = ByteBuffer(capacity: 0)
        writer.append(byte: 0xee)
        writer.withLengthPrefix(field: 3) { outer in
            outer.withLengthPrefix(field: 1) { $0.append(contents) }
            outer.appendField(2, string: "after")
        }
        let bytes = writer.copyBytes()
        var reader = WireReader(bytes.span.bytes)
        reader.position = 1
        let tag = try reader.nextTag()
        expectEqual(tag, WireTag(field: 3, .lengthDelimited))
        var message = WireReader(try reader.lengthDelimited())
        let first = try message.nextTag()
        expectEqual(first, WireTag(field: 1, .lengthDelimited))
        try expectEqual([UInt8](copying: message.lengthDelimited()), contents)
        let second = try #require(try message.nextTag())
        try expectEqual(message.string(second), "after")
        let ended = message.isAtEnd && reader.isAtEnd
        expect(ended)
    }

    @Test
    func `Repeated integers are read packed and unpacked`() throws {
        let bytes: [UInt8] = [0x08, 5, 0x0a, 3, 6, 0x96, 0x01]
        var reader = WireReader(bytes.span.bytes)
        var values: [UInt64] = []
        while let tag = try reader.nextTag() { try reader.repeatedVarints(tag) { values.append($0) } }
        expectEqual(values, [5, 6, 150])
    }

    @Test
    func `A reset writer keeps its capacity by default`() {
        var writer = ByteBuffer(capacity: 16)
        writer.append([UInt8](repeating: 1, count: 1000))
        writer.reset()
        var state = (writer.count, writer.capacity >= 1000)
        expect(state == (0, true))
        writer.append(byte: 7)
        writer.reset(keeping: 64)
        state = (writer.count, writer.capacity == 64)
        expect(state == (0, true))
    }

    static let encodings: [([UInt8], Bool)] = [
        (Array("plain ascii of some length".utf8), true), (Array("aé日😀\u{10ffff}\u{0}".utf8), true),
        ([0xc0, 0x80], false), ([0xc1, 0xbf], false), ([0xe0, 0x9f, 0xbf], false), ([0xed, 0xa0, 0x80], false),
        ([0xf0, 0x8f, 0xbf, 0xbf], false), ([0xf4, 0x90, 0x80, 0x80], false), ([0xf5, 0x80, 0x80, 0x80], false),
        ([0x80], false), ([0xc3], false), ([0xe2, 0x82], false), ([0xf0, 0x9f, 0x98], false),
        ([0x61, 0x61, 0x61, 0x61, 0x61, 0x61, 0x61, 0x61, 0xff], false), ([0xee, 0x80, 0x80], true),
    ]

    @Test(arguments: encodings)
    func `Well-formed UTF-8 passes and everything else does not`(bytes: [UInt8], valid: Bool) {
        expectEqual(UTF8Validation.isValid(bytes.span.bytes), valid)
        expectEqual(String(validatingUTF8: bytes.span.bytes) != nil, valid)
    }
}

@Suite(.timeLimit(.minutes(20))) struct ByteHelperTests {
    @Test(arguments: [0, 1, 2, 0x2f, 0x7f, 0x80, 0xff] as [UInt8])
    func `The first occurrence of a byte is found wherever it stands`(byte: UInt8) {
        // The neighbours of the byte must not be taken for it.
        let filler: [UInt8] = [byte &+ 1, byte &- 1, byte ^ 0x80, byte ^ 1]
        for count in 0..<40 {
            let without = (0..<count).map { filler[$0 % 4] }
            expectNil(without.span.bytes.firstOffset(of: byte))
            for place in 0..<count {
                var bytes = without
                bytes[place] = byte
                let with = bytes
                for start in 0...count {
                    expectEqual(with.span.bytes.firstOffset(of: byte, from: start), start <= place ? place : nil)
                }
            }
        }
    }

    @Test
    func `Escaped bytes sort like the bytes, at every length and place`() {
        func escaped(_ bytes: [UInt8]) -> [UInt8] {
            var writer = ByteBuffer()
            KeyEncoding.append(escaped: bytes.span.bytes, into: &writer)
            return writer.copyBytes()
        }
        for count in 0..<20 {
            let plain = [UInt8](repeating: 7, count: count)
            expectEqual(escaped(plain), plain + [0])
            for place in 0..<count {
                for byte in [0, 1, 2, 0xff] as [UInt8] {
                    var bytes = plain
                    bytes[place] = byte
                    let expected =
                        bytes.flatMap { (byte: UInt8) -> [UInt8] in byte <= 1 ? [1, byte + 1] : [byte] } + [0]
                    expectEqual(escaped(bytes), expected)
                }
            }
        }
    }
}
