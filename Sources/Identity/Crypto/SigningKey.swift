internal import COpenSSL

/// A private key that signs tokens: of a new service account, or of tests. Thread-safe.
@safe
package final class SigningKey: @unchecked Sendable {
    // Sendable: never changed. Owner of the key: this object.
    private let key: OpaquePointer
    package let verification: VerificationKey

    private init(taking key: OpaquePointer, algorithm: SignatureAlgorithm?) throws(KeyFault) {
        // The verifying half shares the key, which counts its references.
        unsafe EVP_PKEY_up_ref(key)
        do throws(KeyFault) {
            verification = try unsafe VerificationKey(taking: key, algorithm: algorithm)
        } catch {
            unsafe EVP_PKEY_free(key)
            throw error
        }
        unsafe self.key = key
    }

    deinit { unsafe EVP_PKEY_free(key) }

    /// A new RSA key of 2048 bits, for RS256. Takes some 100 ms.
    package static func generateRSA() throws(KeyFault) -> SigningKey {
        guard let context = unsafe EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nil) else { throw KeyFault("OpenSSL has no RSA") }
        defer {
            unsafe EVP_PKEY_CTX_free(context)
            ERR_clear_error()
        }
        var made: OpaquePointer?
        let isDone =
            unsafe EVP_PKEY_keygen_init(context) == 1 && EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048) == 1
            && EVP_PKEY_keygen(context, &made) == 1
        guard isDone, let made = unsafe made else { throw KeyFault("OpenSSL makes no key") }
        return try unsafe SigningKey(taking: made, algorithm: .rs256)
    }

    /// The private key of a PEM text that is not encrypted.
    package convenience init(pem text: [UInt8], algorithm: SignatureAlgorithm? = nil) throws(KeyFault) {
        guard text.count <= KeyLimits.fileBytesMax, let bio = unsafe BIO_new(BIO_s_mem()) else {
            throw KeyFault("a key is too long")
        }
        defer {
            unsafe BIO_free_all(bio)
            ERR_clear_error()
        }
        let written = unsafe text.isEmpty ? 0 : BIO_write(bio, text, Int32(text.count))
        guard written > 0, let key = unsafe PEM_read_bio_PrivateKey(bio, nil, noPassword, nil) else {
            throw KeyFault("a text has no private key in PEM that can be read without a password")
        }
        try unsafe self.init(taking: key, algorithm: algorithm)
    }

    /// The private key as PKCS #8 in PEM. Secret.
    package var privatePEM: String {
        unsafe pemText { unsafe PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
    }

    /// A signature in the form of tokens.
    package func signature(of message: [UInt8]) -> [UInt8]? {
        guard let context = unsafe EVP_MD_CTX_new() else { return nil }
        defer {
            unsafe EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        let algorithm = verification.algorithm
        var signature = [UInt8](repeating: 0, count: 2048)
        var count = signature.count
        let hash = unsafe VerificationKey.hash(of: algorithm)
        guard unsafe EVP_DigestSignInit(context, nil, hash, nil, key) == 1,
            unsafe EVP_DigestSign(context, &signature, &count, message, message.count) == 1
        else { return nil }
        signature.removeLast(signature.count - count)
        guard let half = algorithm.ellipticHalf else { return signature }
        var raw = [UInt8](repeating: 0, count: 2 * half)
        return unsafe hearth_ecdsa_from_der(signature, count, &raw, Int32(half)) == 1 ? raw : nil
    }
}
