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
            expectNil(violation, "seed \(seed), round \(round)")
        }
    }

    /// Sees what a session reports, and answers nothing.
    private final class Observer: HTTP2SessionDelegate {
        private(set) var windowsOpened: [UInt32?] = []
        /// Messages of calls, with the bytes of each, and their ends.
        private(set) var messages: [String] = []
        private(set) var refusals: [Refusal] = []

        func windowOpened(_ stream: UInt32?) { windowsOpened.append(stream) }

        func begin(_ stream: UInt32, _ head: RequestHead, _ payload: RawSpan) {
            messages.append("\(stream): \(payload.byteCount)\(head.isComplete ? ", end" : "")")
        }
        func message(_ stream: UInt32, _ payload: RawSpan, isLast: Bool) {
            messages.append("\(stream): \(payload.byteCount)\(isLast ? ", end" : "")")
        }
        func halfClosed(_ stream: UInt32) { messages.append("\(stream): end") }
        func waits(_ stream: UInt32, _ head: RequestHead) {}
        func cancelled(_ stream: UInt32) {}
        func endedEmpty(_ stream: UInt32) {}
        func refused(_ stream: UInt32, _ refusal: Refusal) { refusals.append(refusal) }
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
        expectEqual(receive(session, HTTP2Preface.bytes + HTTP2Frame.settings().bytes, now: 0), .open)
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
            expectEqual(receive(session, HTTP2Frame.headers(list, stream: 1).bytes, now: 1_000), .open)
            expect(!session.isLate(now: 100_000, limit: 10_000), "\(number)")
            // In two frames, the second of which ends it.
            let block = HTTP2Frame.encode(list)
            let first = HTTP2Frame(.headers, 0, stream: 3, Array(block.dropLast(20)))
            let second = HTTP2Frame(.continuation, HTTP2Frame.endHeaders, stream: 3, Array(block.suffix(20)))
            expectEqual(receive(session, first.bytes, now: 2_000), .open)
            expect(session.isLate(now: 100_000, limit: 10_000), "\(number)")
            expectEqual(receive(session, second.bytes, now: 2_000), .open)
            expectEqual(receive(session, HTTP2Frame.window(1, stream: 0).bytes, now: 2_000), .open)
            expect(!session.isLate(now: 100_000, limit: 10_000), "\(number)")
        }
        expect(!observer.windowsOpened.isEmpty)
    }

    @Test func `A window of the connection that is opened often is reported once`() {
        let observer = Observer()
        let session = session(observer)
        let before = observer.windowsOpened.count
        let frames = (0..<500).flatMap { _ in HTTP2Frame.window(1, stream: 0).bytes + HTTP2Frame.settings().bytes }
        expectEqual(receive(session, frames, now: 1), .open)
        expectEqual(observer.windowsOpened.count, before + 1)
    }

    // MARK: Compression

    private static let compression = [("grpc-encoding", "deflate")]

    /// The frames of a call whose messages are zeros, with the length of each.
    private func zeros(_ lengths: [Int], to method: RPC, stream: UInt32, ends: Bool = true) -> [UInt8] {
        let messages = lengths.flatMap { grpcMessage(Compressed.zlib([UInt8](repeating: 0, count: $0)), flag: 1) }
        return HTTP2Frame.request(path(method), stream: stream, fields: Self.compression).bytes
            + HTTP2Frame.data(messages, stream: stream, endStream: ends).bytes
    }

    @Test func `A long message is inflated in pieces, between which other calls begin`() {
        let observer = Observer()
        let session = session(observer)
        let frames =
            zeros([8 << 20], to: .getDocument, stream: 1) + zeros([100], to: .getDocument, stream: 3)
            + HTTP2Frame.request(path(.getDocument), stream: 5).bytes
            + HTTP2Frame.data(grpcMessage([1, 2, 3]), stream: 5).bytes
        expectEqual(receive(session, frames, now: 1), .open)
        expect(observer.messages == ["5: 3, end"] && session.isInflating)
        var pieces = 0
        while session.isInflating {
            session.inflatePiece()
            pieces += 1
            expect(pieces < 1_000)
        }
        expectEqual(observer.messages, ["5: 3, end", "1: \(8 << 20), end", "3: 100, end"])
        expect(pieces > 50 && session.assemblyBytes == 0 && observer.refusals.isEmpty)
    }

    @Test func `Many short messages that come at once are inflated in pieces too`() {
        let observer = Observer()
        let session = session(observer)
        let lengths = [Int](repeating: 100 << 10, count: 50)
        expectEqual(receive(session, zeros(lengths, to: .write, stream: 1), now: 1), .open)
        expect(observer.messages.count < 5 && session.isInflating)
        var pieces = 0
        while session.isInflating {
            session.inflatePiece()
            pieces += 1
        }
        expectEqual(observer.messages, [String](repeating: "1: \(100 << 10)", count: 49) + ["1: \(100 << 10), end"])
        expect(pieces > 20 && session.assemblyBytes == 0 && observer.refusals.isEmpty)
    }

    @Test func `What follows a message that is being inflated keeps its place`() {
        let observer = Observer()
        let session = session(observer)
        let first = zeros([5, 1 << 20, 6, 1 << 20, 7], to: .write, stream: 1, ends: false)
        expectEqual(receive(session, first, now: 1), .open)
        expect(observer.messages == ["1: 5"] && session.isInflating)
        let rest =
            HTTP2Frame.data(grpcMessage([1, 2]), stream: 1, endStream: false).bytes
            + HTTP2Frame.data([], stream: 1).bytes
        expectEqual(receive(session, rest, now: 2), .open)
        while session.isInflating { session.inflatePiece() }
        let lengths = ["1: 5", "1: \(1 << 20)", "1: 6", "1: \(1 << 20)", "1: 7"]
        expect(observer.messages == lengths + ["1: 2, end"] || observer.messages == lengths + ["1: 2", "1: end"])
        expect(session.assemblyBytes == 0 && observer.refusals.isEmpty)
    }

    @Test func `A call that ends while its message is inflated leaves nothing`() {
        let observer = Observer()
        let session = session(observer)
        let frames = zeros([8 << 20], to: .getDocument, stream: 1) + zeros([12 << 20], to: .getDocument, stream: 3)
        expectEqual(receive(session, frames, now: 1), .open)
        session.inflatePiece()
        expectEqual(receive(session, HTTP2Frame.reset(8, stream: 1).bytes, now: 2), .open)
        while session.isInflating, observer.refusals.isEmpty { session.inflatePiece() }
        expect(observer.messages.isEmpty && observer.refusals.count == 1)
        _ = session.endCall(3)
        expect(!session.isInflating && session.assemblyBytes == 0)
    }
}
