// Frames as they are written: text within its limit, messages cut to the receiver's.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@testable import Calls
@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct FrameWritingTests {
    @Test(arguments: [4_095, 4_096, 4_097, 4_098, 10_000])
    func `A status text is cut at a character`(count: Int) throws {
        // Two bytes each, after one of one byte, so that the limit falls inside a character.
        let text = "x" + String(repeating: "é", count: count / 2)
        var output = ByteBuffer()
        output.appendStatus(.internal, text, stream: 1)
        let bytes = output.copyBytes()
        let header = FrameHeader(bytes.span.bytes, at: 0)
        let payload = bytes.dropFirst(FrameHeader.byteCount)
        expectEqual(Int(header.length), payload.count)
        expect(payload.count <= statusTextBytesMax)
        expect(payload.count >= min(text.utf8.count, statusTextBytesMax - 1))
        let read = try #require(String(validating: payload, as: UTF8.self))
        expect(text.hasPrefix(read))
    }

    @Test(arguments: [0, 1, 99, 100, 101, 200, 201, 1_234])
    func `A message is cut into frames that join to the same message`(size: Int) {
        let message = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        var output = ByteBuffer()
        let header = FrameHeader(length: 0, kind: .message, flags: .endStream, stream: 9)
        output.append(header)
        output.append(message)
        output.finishMessage(at: 0, header, frameBytesMax: 100)
        let bytes = output.copyBytes()
        var joined: [UInt8] = []
        var offset = 0
        while case .frame(let header) = FrameDecoder.scan(bytes.span.bytes, at: offset, payloadBytesMax: 100) {
            let start = offset + FrameHeader.byteCount
            offset = start + Int(header.length)
            joined += bytes[start..<offset]
            expectEqual(header.kind, FrameKind.message.rawValue)
            expectEqual(header.stream, 9)
            expectEqual(header.flags, offset == bytes.count ? .endStream : .more)
        }
        expectEqual(offset, bytes.count)
        expectEqual(joined, message)
    }

    @Test func `The decoder asks for what is missing and refuses what is too large`() {
        let bytes = TestFrame(.message, stream: 1, [1, 2, 3]).bytes
        for count in 0..<FrameHeader.byteCount {
            expectEqual(
                FrameDecoder.scan(bytes.span.bytes.extracting(first: count), at: 0, payloadBytesMax: 3),
                .incomplete(bytesNeeded: 12))
        }
        for count in FrameHeader.byteCount..<bytes.count {
            expectEqual(
                FrameDecoder.scan(bytes.span.bytes.extracting(first: count), at: 0, payloadBytesMax: 3),
                .incomplete(bytesNeeded: 15))
        }
        let header = FrameHeader(length: 3, kind: .message, stream: 1)
        expectEqual(FrameDecoder.scan(bytes.span.bytes, at: 0, payloadBytesMax: 3), .frame(header))
        expectEqual(FrameDecoder.scan(bytes.span.bytes, at: 0, payloadBytesMax: 2), .tooLarge(header))
    }
}
