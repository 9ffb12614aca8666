// docs/protocol.md is the specification: its vectors are read from the page and hold both ways.

import Basics
import ConnectionTestSupport
import Foundation
import TestSupport
import Testing

@testable import Calls
@testable import NativeProtocol

/// The vectors of the page, by name.
enum ProtocolPage {
    static let vectors: [String: [UInt8]] = {
        guard let text = try? String(contentsOf: Repository.url("docs/protocol.md"), encoding: .utf8) else {
            return [:]
        }
        var found: [String: [UInt8]] = [:]
        var name: String?
        for line in text.split(separator: "\n") {
            if line.hasPrefix("```vector ") {
                name = String(line.dropFirst(10))
                found[name!] = []
            } else if line.hasPrefix("```") {
                name = nil
            } else if let name {
                let hex = line.prefix { $0 != "#" }.split(separator: " ")
                found[name]! += hex.map { UInt8($0, radix: 16)! }
            }
        }
        return found
    }()

    static func vector(_ name: String) throws -> [UInt8] {
        try #require(vectors[name], "the page lacks the vector \(name)")
    }
}

@Suite(.timeLimit(.minutes(20))) struct VectorTests {
    private static let requestID = RequestID(
        sessionHigh: 0x0001_0203_0405_0607, sessionLow: 0x0809_0A0B_0C0D_0E0F, sequence: 42, oldestPending: 41)

    private static let predecessor = CommitSequence.Ticket(
        session: CommitSequence.SessionID(high: 0x1011_1213_1415_1617, low: 0x1819_1A1B_1C1D_1E1F), sequence: 41)

    private static let requestAfterAnother = RequestID(
        sessionHigh: requestID.sessionHigh, sessionLow: requestID.sessionLow, sequence: 42, oldestPending: 41,
        after: predecessor)

    /// What the implementation writes for each vector.
    private static let written: [String: @Sendable (inout ByteBuffer) -> Void] = [
        "preface": { $0.append(Preface.hearth) },
        "hello": { ClientConfiguration().settings.appendHello(to: &$0) },
        "request": {
            $0.append(
                FrameHeader(length: 3, kind: .request, flags: .endStream, code: RPC.getDocument.number, stream: 1))
            $0.append([0x0A, 0x01, 0x78])
        },
        "request-with-extensions": {
            let flags: FrameFlags = [.endStream, .deadline, .requestID]
            $0.append(FrameHeader(length: 38, kind: .request, flags: flags, code: RPC.commit.number, stream: 2))
            $0.append(littleEndian: UInt32(1_500))
            requestID.append(to: &$0)
            $0.append([0x0A, 0x00])
        },
        "request-after-another": {
            let flags: FrameFlags = [.endStream, .requestID, .after]
            $0.append(FrameHeader(length: 58, kind: .request, flags: flags, code: RPC.commit.number, stream: 3))
            requestID.append(to: &$0)
            predecessor.append(to: &$0)
            $0.append([0x0A, 0x00])
        },
        "reply": {
            $0.append(FrameHeader(length: 2, kind: .message, flags: .endStream, stream: 2))
            $0.append([0x1A, 0x00])
        },
        "message": {
            $0.append(FrameHeader(length: 4, kind: .message, stream: 3))
            $0.append([0xDE, 0xAD, 0xBE, 0xEF])
        },
        "status": { $0.appendStatus(.aborted, "zu spät", stream: 2) },
        "end": { $0.appendEnd(stream: 3) },
        "cancel": { $0.appendCancel(.cancelled, stream: 4) },
        "window": { $0.appendWindow(65_536, stream: 3) },
        "ping": { $0.appendPing(.ping, 0x0102_0304_0506_0708) },
        "pong": { $0.appendPing(.pong, 0x0102_0304_0506_0708) },
        "credential": { if let token = Credential("eyJhbGciOiJSUzI1NiJ9") { $0.appendCredential(token) } },
        "no-credential": { $0.appendCredential(.none) },
        "goaway": { $0.appendGoAway(.ok, "the server is draining", lastStream: 7) },
        "split-first": { $0.append(splitMessage().bytes.extracting(0..<12)) },
        "split-last": { $0.append(splitMessage().bytes.extracting(12 + 16_384..<24 + 16_384)) },
    ]

    private static func splitMessage() -> ByteBuffer {
        var output = ByteBuffer()
        let header = FrameHeader(length: 0, kind: .request, flags: .endStream, code: RPC.commit.number, stream: 5)
        output.append(header)
        output.append([UInt8](repeating: 0x55, count: 20_000))
        output.finishMessage(at: 0, header, frameBytesMax: 16_384)
        return output
    }

    @Test func `Every vector of the page is written by the implementation, and no other`() {
        expectEqual(Set(ProtocolPage.vectors.keys), Set(Self.written.keys))
    }

    @Test(arguments: VectorTests.written.keys.sorted())
    func `The implementation writes the bytes of the page`(name: String) throws {
        var output = ByteBuffer()
        Self.written[name]!(&output)
        try expectEqual(output.copyBytes(), ProtocolPage.vector(name))
    }

    @Test(arguments: [
        ("hello", ServerAction.opened),
        ("request", .begin(1, RequestHead(rpc: .getDocument), .inFrame(from: 0))),
        (
            "request-with-extensions",
            .begin(
                2, RequestHead(rpc: .commit, deadlineMilliseconds: 1_500, requestID: requestID), .inFrame(from: 36))
        ),
        (
            "request-after-another",
            .begin(3, RequestHead(rpc: .commit, requestID: requestAfterAnother), .inFrame(from: 56))
        ),
        ("end", .halfClosed(3)),
        ("cancel", .cancelled(4)),
        ("window", .windowOpened(3)),
        ("ping", .pong(0x0102_0304_0506_0708)),
        ("pong", .pongReceived(0x0102_0304_0506_0708)),
        ("credential", .nothing),
        ("no-credential", .nothing),
        ("goaway", .clientLeaves),
    ])
    func `The server understands the bytes of the page`(name: String, expected: ServerAction) throws {
        var session = ServerSession(limits: .forTests(), rpcs: TestProcedures.table)
        if name != "hello" { _ = session.receive(try ProtocolPage.vector("hello")) }
        // The streams that the later vectors speak of are open.
        if ["end", "cancel", "window"].contains(name) {
            for stream in [UInt32(3), 4] {
                _ = session.receive(TestFrame(.request, code: RPC.listen.number, stream: stream).bytes)
                _ = session.settleCurrent()
            }
        }
        expectEqual(session.receive(try ProtocolPage.vector(name)), expected)
    }

    @Test(arguments: [
        ("reply", ClientAction.message(2, .inFrame(from: 0), isLast: true)),
        ("message", .message(3, .inFrame(from: 0), isLast: false)),
        ("status", .status(2, .aborted)),
        ("window", .windowOpened(3)),
        ("ping", .pong(0x0102_0304_0506_0708)),
        ("goaway", .goAway(.ok, lastStream: 7)),
    ])
    func `The client understands the bytes of the page`(name: String, expected: ClientAction) throws {
        var session = ClientSession<Int>(settings: Settings())
        expectEqual(session.receive(try ProtocolPage.vector("hello")), .opened)
        for attachment in 1...3 { _ = session.open(isComplete: false, attachment) }
        expectEqual(session.receive(try ProtocolPage.vector(name)), expected)
    }
}
