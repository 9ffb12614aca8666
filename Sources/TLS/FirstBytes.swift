internal import Basics

/// What a client speaks on a port for TLS, by its first bytes.
package enum FirstBytes: Equatable, Sendable {
    /// A handshake record of TLS (RFC 8446, section 5.1).
    case tls
    /// The start line of an HTTP request in plain text, HTTP/2's preface included: a capital letter.
    case plainHTTP
    /// Something else, for example Hearth's frames in plain text.
    case other

    /// - Parameter bytes: what has arrived.
    /// - Returns: nil if more bytes are needed: at most two are.
    package static func of(_ bytes: RawSpan) -> FirstBytes? {
        guard bytes.byteCount > 0 else { return nil }
        switch bytes[byteAt: 0] {
        case 0x16:
            guard bytes.byteCount > 1 else { return nil }
            return bytes[byteAt: 1] == 0x03 ? .tls : .other
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): return .plainHTTP
        default: return .other
        }
    }

    /// Whether a server can explain itself with an HTTP response in plain text.
    package static func looksLikePlainText(_ bytes: RawSpan) -> Bool { of(bytes) == .plainHTTP }
}
