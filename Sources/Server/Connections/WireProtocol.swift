// One port, several protocols: a client's first bytes tell which one it uses.

import Basics
import HTTPProtocols
import NativeProtocol

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
