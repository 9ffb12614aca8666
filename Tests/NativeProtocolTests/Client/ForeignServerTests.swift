// Telling other servers by their first bytes.

import Basics
import TestSupport
import Testing

@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct ForeignServerTests {
    private func recognise(_ bytes: [UInt8]) -> ForeignServer? { ForeignServer(firstBytes: bytes.span.bytes) }

    @Test
    func `Answers of other protocols are recognised once there are enough bytes`() {
        expectEqual(recognise(Array("HTTP/1.1 400 Bad Request\r\n".utf8)), .http1)
        expectEqual(recognise([0, 0, 0, 4, 0, 0, 0, 0, 0]), .http2)
        expectEqual(recognise([0, 0, 18, 4, 0, 0, 0, 0, 0, 0, 3]), .http2)
        expectEqual(recognise([0x15, 3, 1, 0, 2, 2, 70]), .tls)
        expectEqual(recognise([0x16, 3, 3, 0, 90]), .tls)
        for bytes in [Array("HTTP".utf8), [], [0x15, 3], [0, 0, 18, 4, 0, 0, 0, 0]] { expectNil(recognise(bytes)) }
    }

    @Test
    func `A Hearth server's first frames are not taken for anything else`() {
        var hello = ByteBuffer()
        Settings.assumed.appendHello(to: &hello)
        expectNil(recognise(hello.copyBytes()))
        for length in [0, 3, 21, 22, 789, 790] {
            var goAway = ByteBuffer()
            goAway.appendGoAway(.unavailable, String(repeating: "x", count: length), lastStream: 0)
            expectNil(recognise(goAway.copyBytes()))
        }
    }
}
