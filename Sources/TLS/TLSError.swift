// Why a context cannot be made, or a session failed.

internal import COpenSSLTLS

/// A failure of TLS: what kind it is, and OpenSSL's reason for people. The text has no secret.
package struct TLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What a caller can distinguish.
    package enum Kind: Equatable, Sendable {
        /// A certificate, key or setting cannot be used. Only while a context or a session is made.
        case configuration
        /// The peer's certificate does not verify: unknown issuer, expired, revoked, another name.
        case untrustedPeer
        /// The peer ended the session with this alert (RFC 8446, section 6).
        case alert(UInt8)
        /// The peer's bytes are not TLS, or both sides have nothing in common.
        case violation
        /// The connection ended without close_notify: what was received may be cut.
        case truncated
        /// A limit of bytes is exceeded.
        case limit
        /// The session does not permit the call in its state.
        case state
    }

    package let kind: Kind
    package let reason: String

    package init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    package var description: String { "TLS: \(reason)" }
}

extension TLSError {
    /// The codes of alerts that a peer sent start here in OpenSSL's reasons (`SSL_AD_REASON_OFFSET`).
    private static let alertReasons: UInt = 1000

    /// Takes the errors of the calling thread's queue.
    ///
    /// - Parameters:
    ///   - kind: the kind if OpenSSL's reason does not say more.
    ///   - what: what was attempted, as the start of the reason.
    static func taken(_ kind: Kind, _ what: String) -> TLSError {
        defer { ERR_clear_error() }
        let code = ERR_peek_error()
        guard code != 0, let text = unsafe ERR_reason_error_string(code) else { return TLSError(kind, what) }
        let reason = unsafe String(cString: text)
        return TLSError(kind, what.isEmpty ? reason : "\(what): \(reason)")
    }

    /// The number of the alert that the peer sent, if the first error of the calling thread's queue is one.
    static func queuedAlert() -> UInt8? {
        let reason = ERR_peek_error() & 0x7F_FFFF
        return alertReasons + 1..<alertReasons + 256 ~= reason ? UInt8(reason - alertReasons) : nil
    }
}
