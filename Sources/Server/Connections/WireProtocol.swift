// One port, several protocols: a client's first bytes tell which one it uses.

import Basics
import HTTPProtocols
import NativeProtocol
import TLS

/// A protocol that a client may open a connection with.
enum WireProtocol: Equatable, Sendable {
    /// Hearth frames, after the eight bytes of ``Preface/hearth``.
    case hearth
    /// HTTP/2 with prior knowledge, hence gRPC.
    case http2
    /// HTTP/1.x: some method name in capitals.
    case http1
    /// TLS, or anything else.
    case unknown

    /// The name of the protocol for ALPN (RFC 7301); nil for what is not served.
    var name: String? {
        switch self {
        case .hearth: Preface.protocolName
        case .http2: "h2"
        case .http1: "http/1.1"
        case .unknown: nil
        }
    }

    /// The names of all protocols, in the order in which the server prefers them.
    static let names = [WireProtocol.hearth, .http2, .http1].compactMap(\.name)

    /// Whether a client may speak this protocol after a handshake. Without ALPN, and without TLS, it may speak any.
    func isAllowed(by handshake: TLSHandshake?) -> Bool {
        handshake?.protocolName.map { $0 == name } ?? true
    }

    /// What the first bytes say; nil when more are needed.
    ///
    /// The first byte separates Hearth (above 0x7F) from HTTP (a capital letter). `PRI` could still be either HTTP.
    static func of(_ bytes: RawSpan) -> WireProtocol? {
        guard bytes.byteCount > 0 else { return nil }
        switch bytes.matches(Preface.hearth) {
        case .whole: return .hearth
        case .partly: return nil
        case .not: break
        }
        switch bytes.matches(HTTP2Preface.bytes) {
        case .whole: return .http2
        case .partly: return nil
        case .not: break
        }
        return UInt8(ascii: "A")...UInt8(ascii: "Z") ~= bytes[byteAt: 0] ? .http1 : .unknown
    }
}

private enum PrefixMatch {
    case whole, partly, not
}

extension RawSpan {
    /// Whether these bytes begin with `prefix`, or could with more bytes.
    fileprivate func matches(_ prefix: [UInt8]) -> PrefixMatch {
        for index in 0..<Swift.min(byteCount, prefix.count) where self[byteAt: index] != prefix[index] { return .not }
        return byteCount >= prefix.count ? .whole : .partly
    }
}
