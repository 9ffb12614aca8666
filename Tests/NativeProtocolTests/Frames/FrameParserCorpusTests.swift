// Replays the saved corpus of the frame parser's fuzzer, and random conversations; see Tests/Fuzz.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct FrameParserCorpusTests {
    @Test func `Every saved input of the frame parser's fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("FrameParser", over: 50) { FrameParserCheck.violation($0.span.bytes) }
    }

    @Test(arguments: [11, 12, 13] as [UInt64])
    func `Random frames keep every property`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for round in 0..<2_000 {
            var bytes = TestFrame.hello.bytes
            for _ in 0..<Int(random.next() % 12) {
                var frame = TestFrame(
                    .hello, FrameFlags(rawValue: UInt8(random.next() % 5)), code: UInt16(random.next() % 18),
                    stream: UInt32(random.next() % 6), [UInt8](repeating: 1, count: Int(random.next() % 200)))
                frame.kind = UInt8(random.next() % 12)
                if [4, 6].contains(frame.kind) { frame.payload = [] }
                if frame.kind == FrameKind.credential.rawValue, random.next() % 2 == 0 {
                    frame.payload = [UInt8](repeating: 0x61, count: frame.payload.count)
                }
                if frame.kind == 7 { frame.payload = littleEndianBytes(UInt32(random.next() % 1_000)) }
                bytes += frame.bytes
            }
            if random.next() % 4 == 0 { bytes.removeLast(Int(random.next() % 8)) }
            let violation = FrameParserCheck.violation(bytes.span.bytes)
            expectNil(violation, "seed \(seed), round \(round)")
        }
    }
}
