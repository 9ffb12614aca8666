// The HTTP/2 session without a socket: the saved corpus of its fuzzer, and random conversations; see Tests/Fuzz.

import Basics
import TestSupport
import Testing

@testable import HTTPProtocols
@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct HTTP2SessionTests {
    @Test func `Every saved input of the session's fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("HTTP2Session", over: 50) {
            HTTP2SessionCheck.violation((HTTP2Preface.bytes + $0).span.bytes)
        }
    }

    @Test(arguments: CaseShare.of(UInt64(41)...50, 1))
    func `Random conversations keep every property, damaged or not`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for round in 0..<300 {
            var bytes = HTTP2Conversation.random(&random)
            if round % 4 != 0 { HTTP2Conversation.mutate(&bytes, &random) }
            bytes = HTTP2Preface.bytes + bytes
            let violation = HTTP2SessionCheck.violation(bytes.span.bytes)
            #expect(violation == nil, "seed \(seed), round \(round)")
        }
    }
}
