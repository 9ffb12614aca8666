package import DocumentJSON

/// Makes tokens, for tests of applications and of this server.
package enum TokenMint {
    /// A signed token.
    ///
    /// - Parameters:
    ///   - claims: an object.
    ///   - keyIdentifier: the `kid` of its header; nil for none.
    /// - Returns: nil if OpenSSL cannot sign.
    package static func token(_ claims: JSONValue, key: SigningKey, keyIdentifier: String?) -> String? {
        var header: [String: JSONValue] = [
            "alg": .string(key.verification.algorithm.rawValue), "typ": .string("JWT"),
        ]
        if let keyIdentifier { header["kid"] = .string(keyIdentifier) }
        let signed = Self.signed(.object(header), claims)
        return key.signature(of: Array(signed.utf8)).map { "\(signed).\(Base64URL.encode($0))" }
    }

    /// The two parts of a token that its signature is of.
    static func signed(_ header: JSONValue, _ claims: JSONValue) -> String {
        "\(Base64URL.encode(Array(header.json.utf8))).\(Base64URL.encode(Array(claims.json.utf8)))"
    }
}
