// What OpenSSL asks a context during a handshake: which protocol, and which key encrypts a ticket.

internal import Basics
internal import COpenSSLTLS

extension TLSContext {
    /// Calls `body` with the context of a session that is calling back.
    private static func of(_ session: OpaquePointer?) -> TLSContext? {
        guard let session = unsafe session, let context = unsafe SSL_get_SSL_CTX(session),
            let reference = unsafe SSL_CTX_get_ex_data(context, 0)
        else { return nil }
        return unsafe Unmanaged<TLSContext>.fromOpaque(reference).takeUnretainedValue()
    }

    // MARK: Protocols

    /// A server's choice among the protocols that a client offers.
    func chooseProtocols() {
        unsafe SSL_CTX_set_alpn_select_cb(
            context,
            { session, chosen, chosenCount, offered, offeredCount, _ in
                // No protocol in common is an alert (RFC 7301, section 3.2).
                guard let context = unsafe TLSContext.of(session), let offered = unsafe offered else {
                    return SSL_TLSEXT_ERR_ALERT_FATAL
                }
                // OpenSSL keeps the client's bytes for the call.
                let list = unsafe UnsafeBufferPointer(start: offered, count: Int(offeredCount))
                guard let range = unsafe context.protocols.choose(from: list.span) else {
                    return SSL_TLSEXT_ERR_ALERT_FATAL
                }
                unsafe chosen?.pointee = offered + range.lowerBound
                unsafe chosenCount?.pointee = UInt8(range.count)
                return SSL_TLSEXT_ERR_OK
            }, nil)
    }

    /// The protocols that a client offers.
    func offerProtocols() throws(TLSError) {
        let list = protocols.wireForm
        // This function returns 0 for success.
        guard unsafe list.isEmpty || SSL_CTX_set_alpn_protos(context, list, UInt32(list.count)) == 0 else {
            throw .taken(.configuration, "the protocols cannot be offered")
        }
    }

    // MARK: Tickets

    /// Lets a server give tickets, bound to what it demands of clients: a ticket is void when certificates become
    /// required, and when authorities or revocation lists change.
    func serveTickets(for clients: TLSClientVerification?) throws(TLSError) {
        var text: [UInt8] = [clients.map { $0.isRequired ? 2 : 1 } ?? 0]
        for part in [clients?.authorities, clients?.revocationLists] {
            text.append(contentsOf: Self.lengthBytes(part?.count ?? -1))
            text.append(contentsOf: part ?? [])
        }
        var digest = [UInt8](repeating: 0, count: 32)
        let isDone =
            unsafe EVP_Digest(text, text.count, &digest, nil, EVP_sha256(), nil) == 1
            && SSL_CTX_set_session_id_context(context, digest, UInt32(digest.count)) == 1
        if !isDone { throw .taken(.configuration, "OpenSSL has no SHA-256") }
        unsafe SSL_CTX_set_timeout(context, TicketKeys.ticketSeconds)
        unsafe SSL_CTX_set_tlsext_ticket_key_evp_cb(context) { session, name, iv, cipher, code, encrypts in
            guard let keys = unsafe TLSContext.of(session)?.ticketKeys, let name = unsafe name, let iv = unsafe iv,
                let cipher = unsafe cipher, let code = unsafe code
            else { return 0 }
            return unsafe encrypts == 1
                ? keys.encrypt(name, iv, cipher, code) : keys.decrypt(name, iv, cipher, code)
        }
    }

    private static func lengthBytes(_ count: Int) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
    }
}

extension TicketKeys {
    /// Prepares the encryption of a ticket; the arguments are those of OpenSSL's callback.
    /// - Returns: 1, or 0 for no ticket.
    fileprivate func encrypt(
        _ name: UnsafeMutablePointer<UInt8>, _ iv: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer,
        _ code: OpaquePointer
    ) -> Int32 {
        // AES has blocks of 16 bytes.
        guard let key = encrypting(), unsafe RAND_bytes(iv, 16) == 1 else { return 0 }
        unsafe key.copyName(to: name)
        return unsafe hearth_ticket_begin(cipher, code, key.secret, iv, 1)
    }

    /// Prepares the decryption of a ticket.
    /// - Returns: 1; 2 if the client should get a new ticket; 0 for a full handshake.
    fileprivate func decrypt(
        _ name: UnsafeMutablePointer<UInt8>, _ iv: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer,
        _ code: OpaquePointer
    ) -> Int32 {
        let span = unsafe RawSpan(_unsafeStart: name, byteCount: TicketKey.nameBytes)
        guard let (key, isOld) = decrypting(span),
            unsafe hearth_ticket_begin(cipher, code, key.secret, iv, 0) == 1
        else { return 0 }
        return isOld ? 2 : 1
    }
}
