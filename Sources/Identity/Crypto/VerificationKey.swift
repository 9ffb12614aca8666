// Public keys that verify signatures.

internal import Basics
internal import COpenSSL

/// A public key and the one algorithm that it verifies. Thread-safe.
@safe
package final class VerificationKey: @unchecked Sendable {
    // Sendable: never changed; OpenSSL's operations on a key take locks of their parts.

    /// Bits of the modulus of an RSA key.
    static let rsaBits = 2048...8192

    package let algorithm: SignatureAlgorithm
    // Owner: this object.
    private let key: OpaquePointer

    /// Takes over a key.
    ///
    /// - Parameter algorithm: as the key's source names it; nil for the usual one of its type: RS256, ES256 for P-256,
    ///   ES384 for P-384, EdDSA for Ed25519.
    /// - Throws: `KeyFault` for another type, a weak key, or an algorithm that does not fit. The key is freed then.
    init(taking key: OpaquePointer, algorithm named: SignatureAlgorithm?) throws(KeyFault) {
        do throws(KeyFault) {
            algorithm = try unsafe Self.algorithm(of: key, named: named)
        } catch {
            unsafe EVP_PKEY_free(key)
            throw error
        }
        unsafe self.key = key
    }

    deinit { unsafe EVP_PKEY_free(key) }

    private static func algorithm(
        of key: OpaquePointer, named: SignatureAlgorithm?
    ) throws(KeyFault) -> SignatureAlgorithm {
        let usual = try unsafe usualAlgorithm(of: key)
        guard let named, named != usual else { return usual }
        guard named.isRSA, usual.isRSA else { throw KeyFault("a key's algorithm does not fit its type") }
        return named
    }

    private static func usualAlgorithm(of key: OpaquePointer) throws(KeyFault) -> SignatureAlgorithm {
        let bits = Int(unsafe EVP_PKEY_get_bits(key))
        switch unsafe EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA:
            guard rsaBits.contains(bits) else {
                throw KeyFault(
                    "an RSA key has \(bits) bits; between \(rsaBits.lowerBound) and \(rsaBits.upperBound) are accepted")
            }
            return .rs256
        case EVP_PKEY_EC:
            switch unsafe groupName(of: key) {
            case "prime256v1", "P-256": return .es256
            case "secp384r1", "P-384": return .es384
            default: throw KeyFault("a key's curve is neither P-256 nor P-384")
            }
        case EVP_PKEY_ED25519: return .edDSA
        default: throw KeyFault("a key is neither RSA, P-256, P-384 nor Ed25519")
        }
    }

    private static func groupName(of key: OpaquePointer) -> String {
        var name = [CChar](repeating: 0, count: 64)
        var count = 0
        guard unsafe EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1 else { return "" }
        return String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Whether `signature` is one of `message`.
    package func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        guard let signature = Self.openSSLForm(signature, algorithm), !signature.isEmpty,
            let context = unsafe EVP_MD_CTX_new()
        else { return false }
        defer {
            unsafe EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        let hash = unsafe Self.hash(of: algorithm)
        return unsafe EVP_DigestVerifyInit(context, nil, hash, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// OpenSSL wants signatures of ECDSA in DER.
    private static func openSSLForm(_ signature: [UInt8], _ algorithm: SignatureAlgorithm) -> [UInt8]? {
        guard let half = algorithm.ellipticHalf else { return signature }
        guard signature.count == 2 * half else { return nil }
        var der = [UInt8](repeating: 0, count: 2 * half + 16)
        let count = unsafe hearth_ecdsa_to_der(signature, Int32(half), &der, Int32(der.count))
        return count > 0 ? Array(der.prefix(Int(count))) : nil
    }

    /// nil: the algorithm hashes itself.
    static func hash(of algorithm: SignatureAlgorithm) -> OpaquePointer? {
        switch algorithm {
        case .rs256, .es256: unsafe EVP_sha256()
        case .rs384, .es384: unsafe EVP_sha384()
        case .rs512: unsafe EVP_sha512()
        case .edDSA: nil
        }
    }

    /// The key in PEM.
    var pem: String { unsafe pemText { unsafe PEM_write_bio_PUBKEY($0, key) } }
}

/// Why something is not a key that verifies; a clause without secrets.
package struct KeyFault: Error, Equatable, Sendable, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}

/// What OpenSSL writes into memory.
func pemText(_ write: (OpaquePointer?) -> Int32) -> String {
    guard let bio = unsafe BIO_new(BIO_s_mem()) else { return "" }
    defer { unsafe BIO_free_all(bio) }
    guard unsafe write(bio) == 1 else { return "" }
    // No key of this size is longer.
    var bytes = [UInt8](repeating: 0, count: 16_384)
    let count = unsafe BIO_read(bio, &bytes, Int32(bytes.count))
    return String(decoding: bytes.prefix(Int(max(count, 0))), as: UTF8.self)
}
