// A public key as a JSON Web Key (RFC 7518, section 6; RFC 8037).

internal import COpenSSL
internal import DocumentJSON

extension VerificationKey {
    /// Reads one key of a set.
    ///
    /// - Returns: nil for a key that is not for signatures, or of a kind or algorithm that is not verified here: sets
    ///   may have such keys for others.
    /// - Throws: `KeyFault` for a key that is damaged, weak, or private.
    static func of(webKey: JSONValue) throws(KeyFault) -> VerificationKey? {
        guard case .object(let members) = webKey else { throw KeyFault("a key of a set is not an object") }
        if let use = members["use"], use.text != "sig" { return nil }
        if let operations = members["key_ops"]?.elements, !operations.contains(.string("verify")) { return nil }
        guard let kind = members["kty"]?.text else { throw KeyFault("a key of a set has no 'kty'") }
        var algorithm: SignatureAlgorithm?
        if let name = members["alg"] {
            algorithm = name.text.flatMap(SignatureAlgorithm.init)
            if algorithm == nil { return nil }
        }
        guard ["RSA", "EC", "OKP"].contains(kind) else { return nil }
        if members["d"] != nil { throw KeyFault("a private key is not needed to verify, and is refused") }
        guard let key = try unsafe pointer(kind, webKey) else { return nil }
        return try unsafe VerificationKey(taking: key, algorithm: algorithm)
    }

    private static func pointer(_ kind: String, _ webKey: JSONValue) throws(KeyFault) -> OpaquePointer? {
        defer { ERR_clear_error() }
        let key: OpaquePointer?
        switch (kind, webKey["crv"]?.text) {
        case ("RSA", _):
            let (modulus, exponent) = (try number(webKey, "n", 1...1024), try number(webKey, "e", 1...8))
            unsafe key = hearth_rsa_public_key(modulus, Int32(modulus.count), exponent, Int32(exponent.count))
        case ("EC", "P-256"): unsafe key = try elliptic(webKey, "P-256", 32)
        case ("EC", "P-384"): unsafe key = try elliptic(webKey, "P-384", 48)
        case ("OKP", "Ed25519"):
            let point = try number(webKey, "x", 32...32)
            unsafe key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, point, point.count)
        default: return nil
        }
        guard unsafe key != nil else { throw KeyFault("the numbers of a key are not a key") }
        return unsafe key
    }

    private static func elliptic(_ webKey: JSONValue, _ group: String, _ size: Int) throws(KeyFault) -> OpaquePointer? {
        // An uncompressed point (SEC 1, section 2.3.3).
        let point = [4] + (try number(webKey, "x", size...size)) + (try number(webKey, "y", size...size))
        return unsafe hearth_ec_public_key(group, point, point.count)
    }

    private static func number(
        _ webKey: JSONValue, _ name: String, _ sizes: ClosedRange<Int>
    ) throws(KeyFault) -> [UInt8] {
        guard let text = webKey[name]?.text, let bytes = Base64URL.decode(text.utf8), sizes.contains(bytes.count) else {
            throw KeyFault("the member '\(name)' of a key is not its number")
        }
        return bytes
    }
}
