// Which protocol the first bytes belong to.

import Basics
import TestSupport
import Testing

@testable import HTTPProtocols
@testable import NativeProtocol
@testable import Server

@Suite(.timeLimit(.minutes(20))) struct WireProtocolTests {
    @Test(
        arguments: [
            ([], nil),
            ([0x89], nil),
            ([0x89, 0x48, 0x45, 0x41, 0x52, 0x54, 0x48], nil),
            (Preface.hearth, .hearth),
            (Preface.hearth + [1, 2, 3], .hearth),
            ([0x89, 0x48, 0x45, 0x41, 0x52, 0x54, 0x48, 0x0D], .unknown),
            (Array("P".utf8), nil),
            (Array("PRI * HT".utf8), nil),
            (HTTP2Preface.bytes, .http2),
            (Array("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".utf8), .http1),
            (Array("POST / HTTP/1.1\r\n".utf8), .http1),
            (Array("GET / HTTP/1.1\r\n".utf8), .http1),
            ([0x16, 3, 1], .unknown),
            ([0, 0, 0, 0], .unknown),
        ] as [([UInt8], WireProtocol?)])
    func `The first bytes tell the protocol as soon as they can`(bytes: [UInt8], expected: WireProtocol?) {
        expectEqual(WireProtocol.of(bytes.span.bytes), expected)
    }
}
