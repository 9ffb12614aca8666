// One side of a TLS connection, without I/O: ciphertext goes in and plain text comes out, and the other way around.
//
//     received ciphertext ──▶ receive ──▶ plain text
//     plain text ──▶ send ──▶ `output` ──▶ takeOutput ──▶ ciphertext to send
//
// After each call the caller sends what `output` has: the handshake, alerts and close_notify are there too, also after
// an error.

package import Basics
internal import COpenSSLTLS

/// What both sides agreed on in the handshake.
package struct TLSHandshake: Equatable, Sendable {
    package let version: TLSVersion
    /// OpenSSL's name of the cipher suite.
    package let cipher: String
    /// The protocol that the server chose (ALPN); nil if the client offered none or the server ignores the offer.
    package let protocolName: String?
    /// Whether a ticket of an earlier session took the place of certificates.
    package let isResumed: Bool
    /// The peer's verified names; nil for a client without a certificate.
    package let peer: TLSPeer?
}

/// Bounds of a session's memory.
package struct TLSLimits: Sendable {
    /// Bytes that wait to be sent; `send` accepts no more.
    package var outputBytesMax = 1 << 20
    /// Bytes that the peer may send for its handshake.
    package var handshakeBytesMax = 64 << 10

    package init() {}
}

/// A TLS connection of a server or a client. Not thread-safe: one event loop has it.
@safe
package final class TLSSession {
    /// Most bytes of plain text in a record (RFC 8446, section 5.1).
    static let recordBytesMax = 16_384
    /// Room for the records of handshake and alerts beyond ``TLSLimits/outputBytesMax``, and for the head and the end
    /// of a record.
    static let outputReserve = 64 << 10

    private let context: TLSContext
    private let transfer: TLSTransfer
    private let limits: TLSLimits
    // Owner: this object. OpenSSL's session refers to `transfer` without retaining it.
    private let session: OpaquePointer
    private let serverName: String?
    // Owner: this object. OpenSSL's session writes to it, and ends first.
    private let keyUpdates: UnsafeMutablePointer<UInt>
    /// Bytes of plain text in both directions.
    private var plaintextBytes: UInt = 0

    /// Key updates that the peer may send at once; one more for each MiB of plain text. Each costs as much as some
    /// kilobytes of data, and honest peers send one for gigabytes (RFC 8446, section 5.5).
    private static let keyUpdatesMax: UInt = 32

    /// What was agreed on; nil until the handshake is done.
    package private(set) var handshake: TLSHandshake?
    /// Whether the peer has sent close_notify: it sends nothing more.
    package private(set) var hasReceivedClose = false
    /// Whether close_notify has been written: nothing more can be sent.
    package private(set) var hasSentClose = false
    /// Why the session failed; then every further call throws it.
    package private(set) var failure: TLSError?

    /// A server's side, which waits for the client.
    ///
    /// - Throws: `configuration` if the context is a client's or memory is short.
    package convenience init(server context: TLSContext, limits: TLSLimits = TLSLimits()) throws(TLSError) {
        guard context.role == .server else { throw TLSError(.configuration, "the context is not a server's") }
        try self.init(context, nil, limits)
        unsafe SSL_set_accept_state(session)
    }

    /// A client's side. Its first message is in ``takeOutput(into:)``.
    ///
    /// - Parameters:
    ///   - serverName: the host name, or the IP address, that the server's certificate must have.
    ///   - ticket: of an earlier session of the same context; ignored if the server had another name.
    /// - Throws: `configuration` if the context is a server's, the name cannot be one, or memory is short.
    package convenience init(
        client context: TLSContext, serverName: String, ticket: TLSTicket? = nil, limits: TLSLimits = TLSLimits()
    ) throws(TLSError) {
        guard context.role == .client else { throw TLSError(.configuration, "the context is not a client's") }
        let name = try ServerName(serverName)
        try self.init(context, name.text, limits)
        unsafe SSL_set_connect_state(session)
        guard unsafe name.demand(of: session) else { throw .taken(.configuration, "the server's name") }
        // A ticket that does not fit leads to a full handshake.
        if let ticket, ticket.fits(context, serverName: name.text) { _ = unsafe ticket.use(in: session) }
        try shakeHands()
    }

    private init(_ context: TLSContext, _ serverName: String?, _ limits: TLSLimits) throws(TLSError) {
        self.context = context
        self.serverName = serverName
        self.limits = limits
        transfer = TLSTransfer(
            outputBytesMax: limits.outputBytesMax + Self.outputReserve, handshakeBytesMax: limits.handshakeBytesMax)
        ERR_clear_error()
        guard let made = unsafe SSL_new(context.context) else { throw .taken(.configuration, "a session") }
        unsafe session = made
        unsafe keyUpdates = .allocate(capacity: 1)
        unsafe keyUpdates.initialize(to: 0)
        unsafe hearth_tls_count_key_updates(session, keyUpdates)
        guard let bio = unsafe transfer.makeBIO() else { throw .taken(.configuration, "a session") }
        unsafe SSL_set_bio(session, bio, bio)
    }

    deinit {
        unsafe SSL_free(session)
        unsafe keyUpdates.deallocate()
    }

    // MARK: Receiving

    /// Takes ciphertext, and appends the plain text in it to `plaintext`: at most as many bytes as there is ciphertext,
    /// and one record. Bytes after the peer's close_notify are ignored.
    ///
    /// - Throws: `untrustedPeer`, `alert`, `violation`, `limit`. The session has then failed; an alert for the peer may
    ///   be among the bytes to send, and what was appended to `plaintext` is valid.
    package func receive(_ ciphertext: RawSpan, into plaintext: inout ByteBuffer) throws(TLSError) {
        if let failure { throw failure }
        if hasReceivedClose { return }
        try transfer.lend(ciphertext) { () throws(TLSError) in
            try shakeHands()
            if handshake != nil { try read(into: &plaintext) }
        }
    }

    /// To be called when the connection has ended.
    ///
    /// - Throws: `truncated` if the peer did not send close_notify.
    package func receiveEnd() throws(TLSError) {
        if let failure { throw failure }
        if !hasReceivedClose { throw fail(TLSError(.truncated, "the connection ended without close_notify")) }
    }

    private func read(into plaintext: inout ByteBuffer) throws(TLSError) {
        while true {
            ERR_clear_error()
            var result: Int32 = 0
            unsafe plaintext.append(capacity: Self.recordBytesMax) { room in
                var count = 0
                result = unsafe SSL_read_ex(session, room.baseAddress, room.count, &count)
                guard result == 1 else { return 0 }
                plaintextBytes &+= UInt(count)
                return count
            }
            if unsafe keyUpdates.pointee > Self.keyUpdatesMax + plaintextBytes >> 20 {
                throw fail(TLSError(.limit, "too many key updates"))
            }
            if result == 1 { continue }
            switch unsafe SSL_get_error(session, result) {
            case SSL_ERROR_WANT_READ: return
            case SSL_ERROR_ZERO_RETURN:
                hasReceivedClose = true
                return
            default: throw fail(cause())
            }
        }
    }

    // MARK: Handshake

    /// Takes the handshake as far as the received bytes permit.
    private func shakeHands() throws(TLSError) {
        if handshake != nil { return }
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(session)
        if result == 1 {
            transfer.endHandshake()
            handshake = try agreed()
        } else if unsafe SSL_get_error(session, result) != SSL_ERROR_WANT_READ {
            throw fail(cause())
        }
    }

    private func agreed() throws(TLSError) -> TLSHandshake {
        guard let version = unsafe TLSVersion(number: SSL_version(session)) else {
            throw fail(TLSError(.violation, "an unknown version"))
        }
        let isResumed = unsafe SSL_session_reused(session) == 1
        return TLSHandshake(
            version: version, cipher: unsafe String(cString: SSL_CIPHER_get_name(SSL_get_current_cipher(session))),
            protocolName: selectedProtocol(), isResumed: isResumed, peer: try verifiedPeer(isResumed: isResumed))
    }

    private func selectedProtocol() -> String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(session, &start, &count)
        guard let start = unsafe start else { return nil }
        // The name is a part of the session.
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// A ticket keeps the result of the verification, so the dates are compared again.
    private func verifiedPeer(isResumed: Bool) throws(TLSError) -> TLSPeer? {
        guard let certificate = unsafe SSL_get0_peer_certificate(session) else { return nil }
        if isResumed, unsafe X509_cmp_time(X509_get0_notAfter(certificate), nil) <= 0 {
            throw fail(TLSError(.untrustedPeer, "the peer's certificate: certificate has expired"))
        }
        return unsafe TLSPeer(certificate)
    }

    // MARK: Sending

    /// Encrypts plain text for the peer.
    ///
    /// - Returns: how many of the first bytes were taken: all, or fewer if ``TLSLimits/outputBytesMax`` bytes wait to
    ///   be sent. The caller gives the others again after ``takeOutput(into:)``.
    /// - Throws: `state` before the handshake is done and after `close`, else as `receive` does.
    package func send(_ plaintext: RawSpan) throws(TLSError) -> Int {
        if let failure { throw failure }
        if handshake == nil || hasSentClose { throw TLSError(.state, "the session is not open") }
        var sent = 0
        while sent < plaintext.byteCount, transfer.output.count < limits.outputBytesMax {
            let end = min(plaintext.byteCount, sent + Self.recordBytesMax)
            try write(plaintext.extracting(sent..<end))
            plaintextBytes &+= UInt(end - sent)
            sent = end
        }
        return sent
    }

    private func write(_ record: RawSpan) throws(TLSError) {
        ERR_clear_error()
        let isWritten = unsafe record.withUnsafeBytes { bytes in
            var count = 0
            return unsafe SSL_write_ex(session, bytes.baseAddress, bytes.count, &count) == 1 && count == bytes.count
        }
        if !isWritten { throw fail(cause()) }
    }

    /// Writes close_notify, once. The peer may still send. Does nothing during the handshake and after a failure.
    package func close() {
        if failure != nil || handshake == nil || hasSentClose { return }
        hasSentClose = true
        ERR_clear_error()
        if unsafe SSL_shutdown(session) < 0 { failure = cause() }
    }

    /// Bytes that wait to be sent.
    package var outputBytes: Int { transfer.output.count }

    /// Moves the ciphertext to send to the end of `target`.
    package func takeOutput(into target: inout ByteBuffer) { transfer.takeOutput(into: &target) }

    /// A client's ticket for a further session; nil before the server has sent one.
    package func ticket() -> TLSTicket? {
        guard failure == nil, let serverName else { return nil }
        return unsafe TLSTicket(of: session, context, serverName: serverName)
    }

    // MARK: Failures

    private func fail(_ error: TLSError) -> TLSError {
        failure = error
        return error
    }

    /// What the calling thread's queue of errors says about the call before.
    private func cause() -> TLSError {
        if let exceeded = transfer.exceeded { return TLSError(.limit, exceeded) }
        if let alert = TLSError.queuedAlert() { return .taken(.alert(alert), "the peer refuses") }
        let verified = unsafe SSL_get_verify_result(session)
        if handshake == nil, verified != X509_V_OK, let text = unsafe X509_verify_cert_error_string(verified) {
            return TLSError(.untrustedPeer, "the peer's certificate: \(unsafe String(cString: text))")
        }
        let isMissing = ERR_peek_error() & 0x7F_FFFF == UInt(SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        return .taken(isMissing ? .untrustedPeer : .violation, "")
    }
}
