// What the sessions of a server, or of a client, have in common.
//
// TLS 1.2 with ECDHE and AEAD, and TLS 1.3. There is no compression, no renegotiation and no early data. Sessions are
// resumed by tickets alone (TicketKeys.swift): nothing is kept for a client that is gone.

internal import COpenSSLTLS

/// Settings, certificates and keys for any number of sessions. Immutable: a reload makes another context for new
/// sessions, and open sessions keep theirs. Thread-safe.
@safe
package final class TLSContext: @unchecked Sendable {
    // Sendable: OpenSSL's context is only changed within `init`, and counts its references atomically.
    enum Role {
        case server
        case client
    }

    /// Bytes of the certificates that a peer may show.
    static let peerCertificatesBytesMax = 32 << 10
    /// Certificates between the peer's and a trusted one.
    static let chainMax: Int32 = 8

    let role: Role
    // Owner: this object. OpenSSL holds an unretained reference to this object; each session retains it.
    let context: OpaquePointer
    let protocols: ApplicationProtocols
    let ticketKeys: TicketKeys?
    /// When the own certificate expires, in seconds since 1970; nil without a certificate.
    package private(set) var certificateExpires: Int64?
    /// When the first of the revocation lists expires, in seconds since 1970; nil without one. Then all certificates of
    /// its authority are refused.
    package private(set) var revocationListExpires: Int64?

    private init(
        role: Role, minimum: TLSVersion, protocols: [String], credential: TLSCredential?, ticketKeys: TicketKeys?
    ) throws(TLSError) {
        self.role = role
        self.protocols = try ApplicationProtocols(protocols)
        self.ticketKeys = ticketKeys
        let method = unsafe role == .server ? TLS_server_method() : TLS_client_method()
        guard let made = unsafe SSL_CTX_new(method) else { throw .taken(.configuration, "OpenSSL has no TLS") }
        unsafe context = made
        unsafe SSL_CTX_set_ex_data(context, 0, Unmanaged.passUnretained(self).toOpaque())
        try harden(minimum)
        if let credential { try use(credential) }
    }

    deinit { unsafe SSL_CTX_free(context) }

    /// A server's context.
    ///
    /// - Parameter tickets: the keys of the server's tickets, the same over reloads.
    /// - Throws: `configuration` if a certificate, key, list or name cannot be used; a key that does not belong to its
    ///   certificate too.
    package convenience init(server settings: TLSServerSettings, tickets: TicketKeys) throws(TLSError) {
        try self.init(
            role: .server, minimum: settings.minimum, protocols: settings.protocols, credential: settings.credential,
            ticketKeys: tickets)
        try serveTickets(for: settings.clients)
        if let clients = settings.clients { try verify(clients) }
        if !settings.protocols.isEmpty { chooseProtocols() }
    }

    /// A client's context.
    ///
    /// - Throws: `configuration` if a certificate, key or name cannot be used.
    package convenience init(client settings: TLSClientSettings) throws(TLSError) {
        try self.init(
            role: .client, minimum: settings.minimum, protocols: settings.protocols, credential: settings.credential,
            ticketKeys: nil)
        switch settings.authorities {
        case .system:
            guard unsafe SSL_CTX_set_default_verify_paths(context) == 1 else {
                throw .taken(.configuration, "the system's authorities cannot be read")
            }
        case .file(let path):
            guard unsafe SSL_CTX_load_verify_file(context, path) == 1 else { throw .taken(.configuration, path) }
        case .certificates(let text): try unsafe trust(text, "the file of authorities") { _ in }
        }
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        try offerProtocols()
    }

    private func harden(_ minimum: TLSVersion) throws(TLSError) {
        unsafe hearth_tls_harden(context)
        unsafe hearth_tls_limit_certificates(context, Self.peerCertificatesBytesMax)
        unsafe SSL_CTX_set_verify_depth(context, Self.chainMax)
        // A certificate that the operator names is trusted itself, be it a root or not.
        unsafe X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), UInt(X509_V_FLAG_PARTIAL_CHAIN))
        let isDone =
            unsafe hearth_tls_require_version(context, minimum.number) == 1
            && SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!PSK") == 1
            && hearth_tls_set_groups(context, "X25519:P-256:P-384") == 1
        if !isDone { throw .taken(.configuration, "OpenSSL lacks ciphers") }
    }

    // MARK: The own certificate

    private func use(_ credential: TLSCredential) throws(TLSError) {
        var certificates = try PEM(credential.certificates, "the certificate file")
        var count = 0
        try unsafe certificates.certificates("the certificate file") { certificate throws(TLSError) in
            count += 1
            let isDone =
                unsafe count == 1
                ? SSL_CTX_use_certificate(context, certificate) : hearth_tls_add_chain(context, certificate)
            if isDone != 1 { throw .taken(.configuration, "certificate \(count) of the certificate file") }
            if count == 1 { certificateExpires = unsafe seconds(X509_get0_notAfter(certificate)) }
        }
        var key = try PEM(credential.key, "the key file")
        try unsafe key.privateKey("the key file") { key throws(TLSError) in
            // OpenSSL compares the key with the certificate.
            guard unsafe SSL_CTX_use_PrivateKey(context, key) == 1, unsafe SSL_CTX_check_private_key(context) == 1
            else {
                throw .taken(.configuration, "the key does not belong to the certificate")
            }
        }
    }

    // MARK: The peer's certificate

    /// Trusts the certificates of a text.
    private func trust(
        _ text: [UInt8], _ what: String, _ body: (_ certificate: OpaquePointer) throws(TLSError) -> Void
    ) throws(TLSError) {
        var authorities = try PEM(text, what)
        try unsafe authorities.certificates(what) { certificate throws(TLSError) in
            guard unsafe X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1 else {
                throw .taken(.configuration, what)
            }
            try unsafe body(certificate)
        }
    }

    private func verify(_ clients: TLSClientVerification) throws(TLSError) {
        try unsafe trust(clients.authorities, "the file of client authorities") { certificate throws(TLSError) in
            guard unsafe SSL_CTX_add_client_CA(context, certificate) == 1 else {
                throw .taken(.configuration, "the file of client authorities")
            }
        }
        if let text = clients.revocationLists { try check(text) }
        let required = clients.isRequired ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0
        unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER | required, nil)
    }

    /// Refuses certificates of revocation lists, and certificates that no list is about.
    private func check(_ revocationLists: [UInt8]) throws(TLSError) {
        let what = "the file of revocation lists"
        var lists = try PEM(revocationLists, what)
        try unsafe lists.revocationLists(what) { list throws(TLSError) in
            guard unsafe X509_STORE_add_crl(SSL_CTX_get_cert_store(context), list) == 1 else {
                throw .taken(.configuration, what)
            }
            guard let end = unsafe seconds(X509_CRL_get0_nextUpdate(list)) else { return }
            revocationListExpires = min(revocationListExpires ?? end, end)
        }
        let flags = X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL
        unsafe X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), UInt(flags))
    }
}
