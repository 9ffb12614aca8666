// What a client makes of the fields and bytes of an answer, also of hostile ones.

import Basics
import Calls
import TestSupport
import Testing

@testable import HTTPProtocols

@Suite(.timeLimit(.minutes(1)))
struct GRPCAnswerTests {
    private static func answer(_ fields: (String, String)...) -> GRPCAnswer {
        var answer = GRPCAnswer()
        for (name, value) in fields { expectNil(take(name, value, &answer)) }
        return answer
    }

    private static func take(_ name: String, _ value: String, _ answer: inout GRPCAnswer) -> CallOutcome? {
        answer.take(Array(name.utf8).byteSpan, Array(value.utf8).byteSpan, fieldBytesMax: 1_000)
    }

    private static func good(_ fields: (String, String)...) -> GRPCAnswer {
        var answer = answer((":status", "200"), ("content-type", "application/grpc+proto"))
        for (name, value) in fields { expectNil(take(name, value, &answer)) }
        return answer
    }

    /// Feeds bytes in pieces of a size.
    private static func feed(
        _ bytes: [UInt8], _ size: Int, to answer: inout GRPCAnswer, max: Int = 1 << 20
    ) -> (messages: [[UInt8]], failure: CallOutcome?) {
        var messages: [[UInt8]] = []
        var start = 0
        while start < bytes.count {
            let end = min(start + size, bytes.count)
            let part = Array(bytes[start..<end])
            let failure = answer.take(part.byteSpan, bytesMax: max) { messages.append([UInt8](copying: $0)) }
            if let failure { return (messages, failure) }
            start = end
        }
        return (messages, nil)
    }

    private static func frame(_ message: [UInt8], flag: UInt8 = 0) -> [UInt8] {
        [flag] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: message.count >> $0) } + message
    }

    @Test
    func `Messages come whole, however the bytes are cut`() {
        let messages: [[UInt8]] = [[], [1], Array(repeating: 7, count: 300), [2, 3]]
        let bytes = messages.flatMap { Self.frame($0) }
        for size in [1, 2, 5, 7, 100, bytes.count] {
            var answer = Self.good(("grpc-status", "0"))
            expectEqual(Self.feed(bytes, size, to: &answer).messages, messages)
            expectEqual(answer.outcome, .ok)
        }
        var cut = Self.good(("grpc-status", "0"))
        expectNil(Self.feed(Array(bytes.dropLast()), 50, to: &cut).failure)
        expectEqual(cut.outcome.code, .internal)
    }

    @Test
    func `Compressed messages are inflated within the limit, others are refused`() {
        let message = [UInt8](repeating: 9, count: 10_000)
        for encoding in ["gzip", "deflate"] {
            let compressed = Self.frame(Compressed.zlib(message), flag: 1)
            var answer = Self.good(("grpc-encoding", encoding))
            expectEqual(Self.feed(compressed, 11, to: &answer).messages, [message])
            var small = Self.good(("grpc-encoding", encoding))
            expectEqual(Self.feed(compressed, 11, to: &small, max: 9_999).failure?.code, .resourceExhausted)
        }
        for encoding in ["identity", "snappy", "gzip"] {
            var answer = Self.good(("grpc-encoding", encoding))
            expectEqual(Self.feed(Self.frame([1, 2, 3], flag: 1), 3, to: &answer).failure?.code, .internal)
        }
        var flag = Self.good()
        expectEqual(Self.feed(Self.frame([1], flag: 2), 9, to: &flag).failure?.code, .internal)
        var large = Self.good()
        expectEqual(Self.feed([0, 255, 255, 255, 255], 5, to: &large).failure?.code, .resourceExhausted)
    }

    @Test
    func `An end is a status of gRPC, or what the status of HTTP stands for`() {
        let failed = Self.good(("grpc-status", "14"), ("grpc-message", "a%20b%C3%A9"))
        expectEqual(failed.outcome, CallOutcome(.unavailable, "a bé"))
        expectEqual(Self.good(("grpc-status", "99")).outcome.code, .unknown)
        expectEqual(Self.good(("grpc-status", "x")).outcome.code, .unknown)
        expectEqual(GRPCAnswer().outcome.code, .internal)
        for (status, code) in [
            ("401", StatusCode.unauthenticated), ("403", .permissionDenied), ("404", .unimplemented),
            ("429", .unavailable), ("503", .unavailable), ("200", .unknown), ("302", .unknown),
        ] {
            var page = Self.answer((":status", status), ("content-type", "text/html"))
            expectNil(Self.feed(Array("<html>".utf8), 3, to: &page).failure)
            expectEqual(page.outcome.code, code, "\(status)")
            expect(page.outcome.message.contains(status))
        }
    }

    @Test
    func `Header fields beyond the limit end the call`() {
        var answer = Self.good()
        expectEqual(Self.take("x", String(repeating: "y", count: 2_000), &answer)?.code, .resourceExhausted)
    }

    @Test
    func `A timeout has at most eight digits`() {
        expectEqual(GRPCClientCall.timeout(milliseconds: 99_999_999), "99999999m")
        expectEqual(GRPCClientCall.timeout(milliseconds: .max), "4294967S")
    }
}
