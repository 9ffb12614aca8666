// Frames of the native protocol for tests, right or wrong.

package import Basics
package import NativeProtocol

/// One frame, whatever its merits.
package struct TestFrame {
    package var kind: UInt8
    package var flags: FrameFlags
    package var code: UInt16
    package var stream: UInt32
    package var payload: [UInt8]

    package init(
        _ kind: FrameKind, _ flags: FrameFlags = [], code: UInt16 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []
    ) {
        self.kind = kind.rawValue
        self.flags = flags
        self.code = code
        self.stream = stream
        self.payload = payload
    }

    package static func request(
        _ rpc: RPC, _ flags: FrameFlags = .endStream, stream: UInt32, _ payload: [UInt8] = []
    ) -> TestFrame {
        TestFrame(.request, flags, code: rpc.number, stream: stream, payload)
    }

    package var bytes: [UInt8] {
        var header = FrameHeader(length: payload.count, kind: .hello, flags: flags, code: code, stream: stream)
        header.kind = kind
        var output = ByteBuffer()
        output.append(header)
        output.append(payload)
        return output.copyBytes()
    }

    package static let hello = TestFrame(.hello, code: Settings.protocolVersion)
}
