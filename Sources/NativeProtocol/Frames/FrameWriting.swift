// Appending whole frames to a connection's output.

package import Basics
import Calls

extension ByteBuffer {
    /// Appends a frame's header.
    @inline(__always)
    package mutating func append(_ header: FrameHeader) {
        reserve(FrameHeader.byteCount)
        append(littleEndian: header.lowWord)
        append(littleEndian: header.stream)
    }

    /// Writes a header over one that is there already.
    @inline(__always)
    mutating func overwrite(at offset: Int, _ header: FrameHeader) {
        overwrite(at: offset, littleEndian: header.lowWord)
        overwrite(at: offset + 8, littleEndian: header.stream)
    }

    /// Ends a call: status and text, the text cut at ``statusTextBytesMax``.
    package mutating func appendStatus(_ code: StatusCode, _ text: String, stream: UInt32) {
        appendText(text, kind: .status, code: UInt16(code.rawValue), stream: stream)
    }

    /// Says that no stream beyond `lastStream` will be taken, and why.
    package mutating func appendGoAway(_ code: StatusCode, _ text: String, lastStream: UInt32) {
        appendText(text, kind: .goAway, code: UInt16(code.rawValue), stream: lastStream)
    }

    package mutating func appendCancel(_ code: StatusCode, stream: UInt32) {
        append(FrameHeader(length: 0, kind: .cancel, code: UInt16(code.rawValue), stream: stream))
    }

    package mutating func appendEnd(stream: UInt32) {
        append(FrameHeader(length: 0, kind: .end, stream: stream))
    }

    package mutating func appendWindow(_ increment: UInt32, stream: UInt32) {
        append(FrameHeader(length: 4, kind: .window, stream: stream))
        append(littleEndian: increment)
    }

    /// Appends PING or PONG with its eight bytes.
    package mutating func appendPing(_ kind: FrameKind, _ opaque: UInt64) {
        append(FrameHeader(length: 8, kind: kind))
        append(littleEndian: opaque)
    }

    /// Shows a token for the calls that begin after this frame.
    package mutating func appendCredential(_ credential: Credential) {
        append(FrameHeader(length: credential.token.utf8.count, kind: .credential))
        append(utf8: credential.token)
    }

    private mutating func appendText(_ text: String, kind: FrameKind, code: UInt16, stream: UInt32) {
        let start = count
        append(FrameHeader(length: 0, kind: kind, code: code, stream: stream))
        append(utf8: text)
        if count - start - FrameHeader.byteCount > statusTextBytesMax { cutText(from: start + FrameHeader.byteCount) }
        overwrite(
            at: start,
            FrameHeader(length: count - start - FrameHeader.byteCount, kind: kind, code: code, stream: stream))
    }

    /// Cuts a text that is too long at the start of a character.
    private mutating func cutText(from start: Int) {
        var end = start + statusTextBytesMax
        while end > start, bytes[byteAt: end] & 0xC0 == 0x80 { end -= 1 }
        truncate(to: end)
    }

    /// Completes a message whose bytes were written after a header's room at `start`.
    ///
    /// - Parameter header: the message's header as it would be in one frame; its `length` is ignored.
    mutating func finishMessage(at start: Int, _ header: FrameHeader, frameBytesMax: Int) {
        let length = count - start - FrameHeader.byteCount
        guard length > frameBytesMax else {
            var header = header
            header.length = UInt32(truncatingIfNeeded: length)
            return overwrite(at: start, header)
        }
        splitMessage(at: start, header, frameBytesMax: frameBytesMax)
    }

    /// Cuts a message into frames that the other side accepts: REQUEST or MESSAGE first, MESSAGE after it, all but
    /// the last marked `more`.
    private mutating func splitMessage(at start: Int, _ header: FrameHeader, frameBytesMax: Int) {
        let firstEnd = start + FrameHeader.byteCount + frameBytesMax
        let rest = [UInt8](copying: bytes.extracting(firstEnd..<count))
        truncate(to: firstEnd)
        var first = header
        first.length = UInt32(truncatingIfNeeded: frameBytesMax)
        first.flags.remove(.endStream)
        first.flags.insert(.more)
        overwrite(at: start, first)
        var offset = 0
        while offset < rest.count {
            let size = min(frameBytesMax, rest.count - offset)
            let isLast = offset + size == rest.count
            let flags: FrameFlags = isLast ? header.flags.intersection(.endStream) : .more
            append(FrameHeader(length: size, kind: .message, flags: flags, stream: header.stream))
            append(unsafe rest.span.bytes.extracting(offset..<offset + size))
            offset += size
        }
    }
}
