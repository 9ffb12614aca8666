// The 12 bytes that open every frame of the Hearth protocol, and the names of what they hold.
//
//      0               4       5       6         8               12
//     +---------------+-------+-------+---------+---------------+----------------- - -
//     | length  (u32) | kind  | flags | code u16| stream  (u32) | payload: length bytes
//     +---------------+-------+-------+---------+---------------+----------------- - -
//
// All integers are little-endian. `length` counts the payload only. `code` is a method number on REQUEST,
// a status code on STATUS, CANCEL and GOAWAY, the protocol version on HELLO, and zero elsewhere. Stream 0 is the
// connection itself. `docs/protocol.md` is the specification; its vectors are this file's tests.

/// What a frame is for.
package enum FrameKind: UInt8, Sendable, CaseIterable {
    /// First frame of either side: protocol version in `code`, settings as payload.
    case hello = 1
    /// Opens a stream with a call's first message; client only.
    case request = 2
    /// A message on an open stream, or a part of one.
    case message = 3
    /// The client sends no more messages on the stream.
    case end = 4
    /// The call is over: status in `code`, text as payload; server only.
    case status = 5
    /// The client has lost interest in the call.
    case cancel = 6
    /// Permits the other side to send more message bytes on the stream.
    case window = 7
    /// Asks for a PONG with the same eight bytes.
    case ping = 8
    case pong = 9
    /// The sender will take no new streams beyond the one named.
    case goAway = 10
    /// The client's token for calls that begin after this frame; client only.
    case credential = 11
}

/// Bits of the header's flags byte; those not named here must be zero.
package struct FrameFlags: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The sender sends no more messages on this stream. From the server it also means status OK.
    package static let endStream = FrameFlags(rawValue: 1 << 0)
    /// The message continues in the stream's next REQUEST or MESSAGE frame.
    package static let more = FrameFlags(rawValue: 1 << 1)
    /// On REQUEST: four bytes of deadline stand before the message.
    package static let deadline = FrameFlags(rawValue: 1 << 2)
    /// On REQUEST: 32 bytes of request id stand before the message, after the deadline if there is one.
    package static let requestID = FrameFlags(rawValue: 1 << 3)
    /// On REQUEST with a request id: 24 bytes follow it, which name a request that must have been applied.
    package static let after = FrameFlags(rawValue: 1 << 4)

    /// All that REQUEST may have.
    static let ofRequest: FrameFlags = [.endStream, .more, .deadline, .requestID, .after]
}

/// A frame's header, as read or as to be written.
///
/// `kind` stays a raw byte so that a header can be read before anything is known to be valid.
package struct FrameHeader: Equatable, Sendable {
    /// Bytes of an encoded header.
    package static let byteCount = 12

    /// Bytes of payload that follow.
    package var length: UInt32
    package var kind: UInt8
    package var flags: FrameFlags
    package var code: UInt16
    package var stream: UInt32

    package init(length: Int, kind: FrameKind, flags: FrameFlags = [], code: UInt16 = 0, stream: UInt32 = 0) {
        self.length = UInt32(truncatingIfNeeded: length)
        self.kind = kind.rawValue
        self.flags = flags
        self.code = code
        self.stream = stream
    }

    /// Reads the header at `offset`; the caller has checked that 12 bytes are there.
    package init(_ bytes: RawSpan, at offset: Int) {
        precondition(offset >= 0 && bytes.byteCount - offset >= Self.byteCount, "a header is read within its bytes")
        let low = unsafe UInt64(
            littleEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
        let high = unsafe UInt32(
            littleEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset + 8, as: UInt32.self))
        length = UInt32(truncatingIfNeeded: low)
        kind = UInt8(truncatingIfNeeded: low >> 32)
        flags = FrameFlags(rawValue: UInt8(truncatingIfNeeded: low >> 40))
        code = UInt16(truncatingIfNeeded: low >> 48)
        stream = high
    }

    /// The first eight bytes as a little-endian number, the form in which they are stored.
    var lowWord: UInt64 {
        UInt64(length) | UInt64(kind) << 32 | UInt64(flags.rawValue) << 40 | UInt64(code) << 48
    }
}
