// HELLO: the protocol version and what each side is ready to accept.

internal import Basics

/// What one side of a connection accepts from the other, as its HELLO says.
///
/// On the wire: any number of entries of six bytes, `id: u16` and `value: u32`. Unknown ids are ignored, a missing one
/// means the default, and the last of a repeated id counts.
package struct Settings: Equatable, Sendable {
    /// The only version of the protocol so far; the `code` of HELLO.
    package static let protocolVersion: UInt16 = 1

    /// No side may announce a smaller frame limit than this, so that a client may send before it has heard the server.
    package static let frameBytesFloor: UInt32 = 16_384

    /// Largest frame payload, at least ``frameBytesFloor``.
    package var frameBytesMax: UInt32
    /// Largest message after its parts are joined.
    package var messageBytesMax: UInt32
    /// Calls that may be open at once.
    package var streamsMax: UInt32
    /// Message bytes that may be sent on a stream before the first WINDOW.
    package var initialWindowBytes: UInt32
    /// The connection is closed after so many milliseconds without a frame and without an open call; 0 = never.
    package var idleMilliseconds: UInt32
    /// Whether requests may say after which other one they are to be executed.
    package var takesAfter: Bool

    package init(
        frameBytesMax: UInt32 = frameBytesFloor, messageBytesMax: UInt32 = 10 << 20, streamsMax: UInt32 = 100,
        initialWindowBytes: UInt32 = 65_536, idleMilliseconds: UInt32 = 0, takesAfter: Bool = false
    ) {
        self.frameBytesMax = frameBytesMax
        self.messageBytesMax = messageBytesMax
        self.streamsMax = streamsMax
        self.initialWindowBytes = initialWindowBytes
        self.idleMilliseconds = idleMilliseconds
        self.takesAfter = takesAfter
    }

    /// What each side assumes of the other until its HELLO has come.
    package static let assumed = Settings()

    private enum Identifier {
        static let frameBytesMax: UInt16 = 1
        static let messageBytesMax: UInt16 = 2
        static let streamsMax: UInt16 = 3
        static let initialWindowBytes: UInt16 = 4
        static let idleMilliseconds: UInt16 = 5
        static let takesAfter: UInt16 = 6
    }

    private static let entryBytes = 6

    /// Reads the payload of a HELLO; nil when its length is not whole entries or a value is out of range.
    init?(payload: RawSpan) {
        self.init()
        guard payload.byteCount.isMultiple(of: Self.entryBytes) else { return nil }
        for offset in stride(from: 0, to: payload.byteCount, by: Self.entryBytes) {
            let value = UInt32(littleEndian: payload.loadInteger(at: offset + 2))
            switch UInt16(littleEndian: payload.loadInteger(at: offset)) {
            case Identifier.frameBytesMax: frameBytesMax = value
            case Identifier.messageBytesMax: messageBytesMax = value
            case Identifier.streamsMax: streamsMax = value
            case Identifier.initialWindowBytes: initialWindowBytes = value
            case Identifier.idleMilliseconds: idleMilliseconds = value
            case Identifier.takesAfter: takesAfter = value != 0
            default: break
            }
        }
        guard frameBytesMax >= Self.frameBytesFloor, initialWindowBytes <= FlowWindow.max else { return nil }
    }

    /// Appends a whole HELLO frame.
    func appendHello(to output: inout ByteBuffer) {
        var entries: [(UInt16, UInt32)] = [
            (Identifier.frameBytesMax, frameBytesMax), (Identifier.messageBytesMax, messageBytesMax),
            (Identifier.streamsMax, streamsMax), (Identifier.initialWindowBytes, initialWindowBytes),
            (Identifier.idleMilliseconds, idleMilliseconds),
        ]
        if takesAfter { entries.append((Identifier.takesAfter, 1)) }
        output.append(
            FrameHeader(length: entries.count * Self.entryBytes, kind: .hello, code: Self.protocolVersion))
        for (identifier, value) in entries {
            output.append(littleEndian: identifier)
            output.append(littleEndian: value)
        }
    }
}
