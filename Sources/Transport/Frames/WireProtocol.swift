// One port, several protocols: a client's first bytes tell which one it uses.

/// A protocol that a client may open a connection with.
package enum WireProtocol: Equatable, Sendable {
    /// Hearth frames, after the eight bytes of ``Preface``.
    case hearth
    /// HTTP/2 with prior knowledge, hence gRPC.
    case http2
    /// HTTP/1.x: some method name in capitals.
    case http1
    /// TLS, or anything else.
    case unknown

    /// What the first bytes say; nil when more are needed.
    ///
    /// The first byte separates Hearth (above 0x7F) from HTTP (a capital letter). `PRI` could still be either HTTP.
    package static func of(_ bytes: RawSpan) -> WireProtocol? {
        guard bytes.byteCount > 0 else { return nil }
        switch bytes.matches(Preface.hearth) {
        case .whole: return .hearth
        case .partly: return nil
        case .not: break
        }
        switch bytes.matches(Preface.http2) {
        case .whole: return .http2
        case .partly: return nil
        case .not: break
        }
        let first: UInt8 = bytes.loadInteger(at: 0)
        return UInt8(ascii: "A")...UInt8(ascii: "Z") ~= first ? .http1 : .unknown
    }
}

/// The bytes that open a connection.
package enum Preface {
    /// `0x89 "HEARTH" 0x0A`: no text, no HTTP and no TLS begins so; damaged by anything that strips bits or rewrites
    /// line ends.
    package static let hearth: [UInt8] = [0x89, 0x48, 0x45, 0x41, 0x52, 0x54, 0x48, 0x0A]
    /// RFC 9113 section 3.4.
    package static let http2 = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
}

private enum PrefixMatch {
    case whole, partly, not
}

extension RawSpan {
    /// Whether these bytes begin with `prefix`, or could with more bytes.
    fileprivate func matches(_ prefix: [UInt8]) -> PrefixMatch {
        for index in 0..<Swift.min(byteCount, prefix.count) {
            let byte: UInt8 = loadInteger(at: index)
            if byte != prefix[index] { return .not }
        }
        return byteCount >= prefix.count ? .whole : .partly
    }
}
