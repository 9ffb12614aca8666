// What a context is made from. All texts are PEM, as bytes: the caller reads the files, so that a certificate and its
// key are of one moment.

/// A certificate, and the private key that proves it.
package struct TLSCredential: Sendable {
    /// The certificate first, then those that lead to a root; PEM.
    package var certificates: [UInt8]
    /// PEM, not encrypted.
    package var key: [UInt8]

    package init(certificates: [UInt8], key: [UInt8]) {
        self.certificates = certificates
        self.key = key
    }
}

/// Clients that show certificates.
package struct TLSClientVerification: Sendable {
    /// Certificates that a client's must lead to, roots or not; PEM.
    package var authorities: [UInt8]
    /// Whether a client without a certificate is refused; else it has no names.
    package var isRequired: Bool
    /// Lists of revoked certificates, PEM: one of each authority in a client's chain, else the client is refused. An
    /// expired list refuses too.
    package var revocationLists: [UInt8]?

    package init(authorities: [UInt8], isRequired: Bool = false, revocationLists: [UInt8]? = nil) {
        self.authorities = authorities
        self.isRequired = isRequired
        self.revocationLists = revocationLists
    }
}

/// A server's settings.
package struct TLSServerSettings: Sendable {
    package var credential: TLSCredential
    /// nil: clients are not asked for certificates.
    package var clients: TLSClientVerification?
    package var minimum: TLSVersion
    /// Names of protocols (ALPN), the preferred one first. A client that offers none of them gets an alert; a client
    /// without ALPN gets a session without a protocol. Empty: ALPN is ignored.
    package var protocols: [String]

    package init(
        credential: TLSCredential, clients: TLSClientVerification? = nil, minimum: TLSVersion = .tls12,
        protocols: [String] = []
    ) {
        self.credential = credential
        self.clients = clients
        self.minimum = minimum
        self.protocols = protocols
    }
}

/// Certificates that a client trusts.
package enum TLSAuthorities: Sendable {
    /// Those of the system: OpenSSL's directory, or `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    case system
    /// These alone, roots or not; PEM.
    case certificates([UInt8])
    /// Those of a file, alone, roots or not; PEM.
    case file(String)
}

/// A client's settings.
package struct TLSClientSettings: Sendable {
    package var authorities: TLSAuthorities
    /// What the client shows to a server that asks.
    package var credential: TLSCredential?
    package var minimum: TLSVersion
    /// Names of protocols (ALPN), the preferred one first; empty: none are offered.
    package var protocols: [String]

    package init(
        authorities: TLSAuthorities = .system, credential: TLSCredential? = nil, minimum: TLSVersion = .tls12,
        protocols: [String] = []
    ) {
        self.authorities = authorities
        self.credential = credential
        self.minimum = minimum
        self.protocols = protocols
    }
}
