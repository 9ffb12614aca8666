// Certificates, keys and revocation lists in PEM (RFC 7468).

internal import COpenSSLTLS

/// A source of PEM blocks in memory, read by OpenSSL.
///
/// Its objects have one owner each, and are freed with it.
@safe
struct PEM: ~Copyable {
    // Owner: this value. The bytes are copied into it.
    private let source: OpaquePointer

    /// Bytes of a file of certificates, such as all roots of a system.
    static let bytesMax = 4 << 20

    /// - Throws: `configuration` if the text is too long.
    init(_ text: [UInt8], _ what: String) throws(TLSError) {
        guard text.count <= Self.bytesMax, let source = unsafe BIO_new(BIO_s_mem()) else {
            throw TLSError(.configuration, "\(what) has more than \(Self.bytesMax) bytes")
        }
        ERR_clear_error()
        let written = unsafe text.isEmpty ? 0 : BIO_write(source, text, Int32(text.count))
        guard written == Int32(text.count) else {
            unsafe BIO_free_all(source)
            throw .taken(.configuration, what)
        }
        unsafe self.source = source
    }

    deinit { unsafe BIO_free_all(source) }

    /// Hands all certificates to `body`, in their order; other blocks are passed over.
    ///
    /// - Throws: `configuration` if there is none, or a block is damaged.
    mutating func certificates(
        _ what: String, _ body: (_ certificate: OpaquePointer) throws(TLSError) -> Void
    ) throws(TLSError) {
        var count = 0
        while let certificate = unsafe PEM_read_bio_X509(source, nil, noPassword, nil) {
            defer { unsafe X509_free(certificate) }
            try unsafe body(certificate)
            count += 1
        }
        try Self.checkEnd(what)
        if count == 0 { throw TLSError(.configuration, "\(what) has no certificate") }
    }

    /// Hands all revocation lists to `body`.
    ///
    /// - Throws: `configuration` if there is none, or a block is damaged.
    mutating func revocationLists(
        _ what: String, _ body: (_ list: OpaquePointer) throws(TLSError) -> Void
    ) throws(TLSError) {
        var count = 0
        while let list = unsafe PEM_read_bio_X509_CRL(source, nil, noPassword, nil) {
            defer { unsafe X509_CRL_free(list) }
            try unsafe body(list)
            count += 1
        }
        try Self.checkEnd(what)
        if count == 0 { throw TLSError(.configuration, "\(what) has no revocation list") }
    }

    /// Hands the first private key to `body`.
    ///
    /// - Throws: `configuration` if there is none, or it is encrypted.
    mutating func privateKey(_ what: String, _ body: (_ key: OpaquePointer) throws(TLSError) -> Void) throws(TLSError) {
        guard let key = unsafe PEM_read_bio_PrivateKey(source, nil, noPassword, nil) else {
            ERR_clear_error()
            throw TLSError(.configuration, "\(what) has no private key that can be read without a password")
        }
        defer { unsafe EVP_PKEY_free(key) }
        try unsafe body(key)
    }

    /// The end of the blocks is an error of its kind; every other error is one of the text.
    private static func checkEnd(_ what: String) throws(TLSError) {
        let code = ERR_peek_last_error()
        let isEnd = code >> 23 & 0xFF == UInt(ERR_LIB_PEM) && code & 0x7F_FFFF == UInt(PEM_R_NO_START_LINE)
        if isEnd || code == 0 {
            ERR_clear_error()
        } else {
            throw .taken(.configuration, "\(what) is damaged")
        }
    }
}

/// OpenSSL would ask for the password of an encrypted block on the terminal.
private func noPassword(
    _ target: UnsafeMutablePointer<CChar>?, _ count: Int32, _ encrypts: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 { -1 }
