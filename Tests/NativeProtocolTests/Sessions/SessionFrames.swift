// Sessions that take frames as bytes.

import Basics
import ConnectionTestSupport

@testable import NativeProtocol

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
