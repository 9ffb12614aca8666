// Servers of other protocols, recognised by the first bytes that they send to a client.

internal import Basics

/// The protocol of a server that is not a Hearth server.
enum ForeignServer: String, Equatable {
    case http1 = "HTTP/1"
    case http2 = "HTTP/2"
    case tls = "TLS"

    /// - Parameter bytes: what has arrived on the connection so far.
    /// - Returns: nil for a Hearth server, for an unknown protocol, and while there are too few bytes to tell.
    init?(firstBytes bytes: RawSpan) {
        if Self.begins(bytes, with: Array("HTTP/".utf8)) {
            self = .http1
        } else if Self.beginsWithRecord(bytes) {
            self = .tls
        } else if Self.beginsWithSettings(bytes) {
            self = .http2
        } else {
            return nil
        }
    }

    /// Whether the bytes begin with a record of TLS (RFC 8446, 5.1): an alert or a handshake, version 3.1 to 3.4. As a
    /// Hearth frame it would be longer than 64 KiB, which no first frame is.
    private static func beginsWithRecord(_ bytes: RawSpan) -> Bool {
        let isRecord = begins(bytes, with: [0x15, 0x03]) || begins(bytes, with: [0x16, 0x03])
        return isRecord && bytes.byteCount >= 3 && (1...4).contains(bytes[byteAt: 2])
    }

    /// Whether the bytes begin with HTTP/2's SETTINGS (RFC 9113, 6.5): a length below 256 that is a multiple of 6, type
    /// 4, no flags, stream 0. As a Hearth frame it would be longer than any frame may be.
    private static func beginsWithSettings(_ bytes: RawSpan) -> Bool {
        guard bytes.byteCount >= 9, begins(bytes, with: [0, 0]) else { return false }
        return bytes[byteAt: 2].isMultiple(of: 6) && begins(bytes.extracting(3...), with: [0x04, 0, 0, 0, 0, 0])
    }

    private static func begins(_ bytes: RawSpan, with prefix: [UInt8]) -> Bool {
        unsafe bytes.startsWith(prefix.span.bytes)
    }
}
