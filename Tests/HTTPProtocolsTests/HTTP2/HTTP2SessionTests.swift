// The HTTP/2 session without a socket: the saved corpus of its fuzzer, and random conversations; see Tests/Fuzz.

import Basics
import Calls
import ConnectionTestSupport
import Connections
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

    /// Sees what a session reports, and answers nothing.
    private final class Observer: HTTP2SessionDelegate {
        private(set) var windowsOpened: [UInt32?] = []

        func windowOpened(_ stream: UInt32?) { windowsOpened.append(stream) }

        func begin(_ stream: UInt32, _ head: RequestHead, _ payload: RawSpan) {}
        func message(_ stream: UInt32, _ payload: RawSpan, isLast: Bool) {}
        func halfClosed(_ stream: UInt32) {}
        func waits(_ stream: UInt32, _ head: RequestHead) {}
        func cancelled(_ stream: UInt32) {}
        func endedEmpty(_ stream: UInt32) {}
        func refused(_ stream: UInt32, _ refusal: Refusal) {}
        func request(_ exchange: HTTP2Exchange, _ body: RawSpan) {}
        func refused(_ exchange: HTTP2Exchange, _ refusal: HTTPRefusal) {}
        func pingAcknowledged() {}
        func takeBuffer() -> ByteBuffer { ByteBuffer() }
        func recycle(_ writer: consuming ByteBuffer) {}
    }

    /// A session that has got the preface and SETTINGS at 0 ms.
    private func session(_ observer: Observer) -> HTTP2Session {
        let session = HTTP2Session(
            limits: ServerConfiguration().http2, rpcs: TestProcedures.table, delegate: observer)
        #expect(receive(session, HTTP2Preface.bytes + HTTP2Frame.settings().bytes, now: 0) == .open)
        return session
    }

    private func receive(_ session: HTTP2Session, _ bytes: [UInt8], now: UInt64) -> HTTP2Progress {
        session.receive(bytes.byteSpan, now: now)
    }

    @Test func `A header list that breaks a rule is not waited for when it has come`() {
        let observer = Observer()
        let fields = HTTP2Frame.grpcFields("/x")
        let withoutPath = fields.filter { $0.0 != ":path" }
        let lists = [fields + [("Upper", "x")], fields + [(":path", "/y")], withoutPath, fields + [("x", "a\nb")]]
        for (number, list) in lists.enumerated() {
            let session = session(observer)
            #expect(receive(session, HTTP2Frame.headers(list, stream: 1).bytes, now: 1_000) == .open)
            #expect(!session.isLate(now: 100_000, limit: 10_000), "\(number)")
            // In two frames, the second of which ends it.
            let block = HTTP2Frame.encode(list)
            let first = HTTP2Frame(.headers, 0, stream: 3, Array(block.dropLast(20)))
            let second = HTTP2Frame(.continuation, HTTP2Frame.endHeaders, stream: 3, Array(block.suffix(20)))
            #expect(receive(session, first.bytes, now: 2_000) == .open)
            #expect(session.isLate(now: 100_000, limit: 10_000), "\(number)")
            #expect(receive(session, second.bytes, now: 2_000) == .open)
            #expect(receive(session, HTTP2Frame.window(1, stream: 0).bytes, now: 2_000) == .open)
            #expect(!session.isLate(now: 100_000, limit: 10_000), "\(number)")
        }
        #expect(!observer.windowsOpened.isEmpty)
    }

    @Test func `A window of the connection that is opened often is reported once`() {
        let observer = Observer()
        let session = session(observer)
        let before = observer.windowsOpened.count
        let frames = (0..<500).flatMap { _ in HTTP2Frame.window(1, stream: 0).bytes + HTTP2Frame.settings().bytes }
        #expect(receive(session, frames, now: 1) == .open)
        #expect(observer.windowsOpened.count == before + 1)
    }
}
