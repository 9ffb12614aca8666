// Frames for tests of the sessions, and sessions that take them as bytes.

import Basics

@testable import Transport

/// One frame, whatever its merits.
struct TestFrame {
    var kind: UInt8
    var flags: FrameFlags
    var code: UInt16
    var stream: UInt32
    var payload: [UInt8]

    init(_ kind: FrameKind, _ flags: FrameFlags = [], code: UInt16 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) {
        self.kind = kind.rawValue
        self.flags = flags
        self.code = code
        self.stream = stream
        self.payload = payload
    }

    static func request(
        _ rpc: RPC, _ flags: FrameFlags = .endStream, stream: UInt32, _ payload: [UInt8] = []
    ) -> TestFrame {
        TestFrame(.request, flags, code: rpc.number, stream: stream, payload)
    }

    var bytes: [UInt8] {
        var header = FrameHeader(length: payload.count, kind: .hello, flags: flags, code: code, stream: stream)
        header.kind = kind
        var output = ByteBuffer()
        output.append(header)
        output.append(payload)
        return output.copyBytes()
    }

    static let hello = TestFrame(.hello, code: Settings.protocolVersion)
}

extension ServerSession {
    /// Takes the first frame of `bytes`.
    mutating func receive(_ bytes: [UInt8]) -> ServerAction {
        let span = bytes.span.bytes
        return receive(FrameHeader(span, at: 0), span.extracting(droppingFirst: FrameHeader.byteCount))
    }

    mutating func receive(_ frame: TestFrame) -> ServerAction { receive(frame.bytes) }

    /// A session whose client has said hello.
    static func opened(_ limits: ServerSessionLimits = .forTests()) -> ServerSession {
        var session = ServerSession(limits: limits, rpcs: TestProcedures.table)
        _ = session.receive(TestFrame.hello)
        return session
    }
}

extension ClientSession {
    mutating func receive(_ bytes: [UInt8]) -> ClientAction {
        let span = bytes.span.bytes
        return receive(FrameHeader(span, at: 0), span.extracting(droppingFirst: FrameHeader.byteCount))
    }

    mutating func receive(_ frame: TestFrame) -> ClientAction { receive(frame.bytes) }
}

extension ServerSessionLimits {
    static func forTests(
        messageBytesMax: UInt32 = 1_000, streamsMax: UInt32 = 100, initialWindowBytes: UInt32 = 100,
        assemblyBytesMax: Int = 1_500
    ) -> ServerSessionLimits {
        ServerSessionLimits(
            settings: Settings(
                messageBytesMax: messageBytesMax, streamsMax: streamsMax, initialWindowBytes: initialWindowBytes),
            assemblyBytesMax: assemblyBytesMax)
    }
}
