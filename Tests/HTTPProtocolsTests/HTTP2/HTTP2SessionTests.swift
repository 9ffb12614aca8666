// The HTTP/2 session without a socket: the saved corpus of its fuzzer, and random conversations; see Tests/Fuzz.

import Basics
import Foundation
import TestSupport
import Testing

@testable import HTTPProtocols
@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct HTTP2SessionTests {
    @Test func `Every saved input of the session's fuzzer keeps every property`() throws {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let corpus = tests.appending(path: "Fuzz/Corpus/HTTP2Session")
        let files = try FileManager.default.contentsOfDirectory(at: corpus, includingPropertiesForKeys: nil)
        #expect(files.count > 50)
        for file in files {
            let bytes = HTTP2Preface.bytes + [UInt8](try Data(contentsOf: file))
            #expect(HTTP2SessionCheck.violation(bytes.span.bytes) == nil, "\(file.lastPathComponent)")
        }
    }

    @Test(arguments: [41, 42, 43] as [UInt64])
    func `Random conversations keep every property, damaged or not`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for round in 0..<1_000 {
            var bytes = HTTP2Conversation.random(&random)
            if round % 4 != 0 { HTTP2Conversation.mutate(&bytes, &random) }
            bytes = HTTP2Preface.bytes + bytes
            let violation = HTTP2SessionCheck.violation(bytes.span.bytes)
            #expect(violation == nil, "seed \(seed), round \(round)")
        }
    }
}
