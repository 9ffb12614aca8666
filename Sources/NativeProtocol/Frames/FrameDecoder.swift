// Cuts a stream of bytes into frames: the whole incremental parser, without state and without copies.

/// What begins at an offset of the received bytes.
package enum FrameScan: Equatable, Sendable {
    /// A whole frame; its payload follows the header.
    case frame(FrameHeader)
    /// The frame is not complete; its end is known to need this many bytes from where it begins.
    case incomplete(bytesNeeded: Int)
    /// The header announces more than this side accepts; nothing after it can be understood.
    case tooLarge(FrameHeader)
}

package enum FrameDecoder {
    /// Looks at the frame that begins at `offset`.
    ///
    /// - Parameters:
    ///   - bytes: all that is received and not yet consumed.
    ///   - offset: where the frame begins, `0...bytes.byteCount`.
    ///   - payloadBytesMax: the largest payload that this side announced.
    package static func scan(_ bytes: RawSpan, at offset: Int, payloadBytesMax: Int) -> FrameScan {
        let available = bytes.byteCount - offset
        guard available >= FrameHeader.byteCount else { return .incomplete(bytesNeeded: FrameHeader.byteCount) }
        let header = FrameHeader(bytes, at: offset)
        guard Int(header.length) <= payloadBytesMax else { return .tooLarge(header) }
        let total = FrameHeader.byteCount + Int(header.length)
        return available >= total ? .frame(header) : .incomplete(bytesNeeded: total)
    }
}
