// The twelve bytes of a frame's header.

import Basics
import TestSupport
import Testing

@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct FrameHeaderTests {
    @Test func `A header's bytes are little-endian and in the order of the specification`() {
        var output = ByteBuffer()
        output.append(
            FrameHeader(
                length: 0x0004_0302, kind: .request, flags: [.endStream, .requestID], code: 0x0201, stream: 0x0D0C_0B0A)
        )
        expectEqual(output.copyBytes(), [0x02, 0x03, 0x04, 0x00, 2, 0b1001, 0x01, 0x02, 0x0A, 0x0B, 0x0C, 0x0D])
    }
}
