internal import COpenSSL

extension VerificationKey {
    /// The public key of a PEM text: of its first certificate, or its first public key.
    ///
    /// - Throws: `KeyFault`, for a private key too: it does not belong on a server.
    package convenience init(pem text: [UInt8], algorithm: SignatureAlgorithm? = nil) throws(KeyFault) {
        let words = String(decoding: text, as: UTF8.self)
        if words.contains("PRIVATE KEY-----") {
            throw KeyFault("a private key is not needed to verify, and is refused")
        }
        guard text.count <= KeyLimits.fileBytesMax, let bio = unsafe BIO_new(BIO_s_mem()) else {
            throw KeyFault("a key is too long")
        }
        defer {
            unsafe BIO_free_all(bio)
            ERR_clear_error()
        }
        let written = unsafe text.isEmpty ? 0 : BIO_write(bio, text, Int32(text.count))
        guard written > 0, let key = unsafe Self.read(bio, isCertificate: words.contains("-----BEGIN CERTIFICATE"))
        else { throw KeyFault("a text is neither a public key nor a certificate in PEM") }
        try unsafe self.init(taking: key, algorithm: algorithm)
    }

    private static func read(_ bio: OpaquePointer, isCertificate: Bool) -> OpaquePointer? {
        if !isCertificate { return unsafe PEM_read_bio_PUBKEY(bio, nil, noPassword, nil) }
        guard let certificate = unsafe PEM_read_bio_X509(bio, nil, noPassword, nil) else { return nil }
        defer { unsafe X509_free(certificate) }
        return unsafe X509_get_pubkey(certificate)
    }
}

/// OpenSSL would ask for the password of an encrypted block on the terminal.
func noPassword(
    _ target: UnsafeMutablePointer<CChar>?, _ count: Int32, _ encrypts: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 { -1 }
