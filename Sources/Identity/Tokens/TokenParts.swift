// The outer form of a JSON Web Token (RFC 7519, RFC 7515 section 7.1): HEADER.PAYLOAD.SIGNATURE.

internal import DocumentJSON

/// A token whose signature nobody has verified: its claims are claims of a stranger.
struct TokenParts {
    /// Bytes of a whole token.
    static let bytesMax = 16 << 10

    /// As the token names it; to be compared with the algorithm of a key, never to choose one.
    let algorithm: String
    let keyIdentifier: String?
    let claims: JSONValue
    /// What the signature is of.
    let signed: [UInt8]
    let signature: [UInt8]

    private static let forbidden = ["crit", "jwk", "jku", "x5u", "x5c"]

    init(_ token: [UInt8]) throws(TokenError) {
        guard token.count <= Self.bytesMax else { throw .tooLarge }
        let parts = token.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let signature = Base64URL.decode(parts[2]) else { throw .malformed }
        let header = try Self.object(parts[0])
        for name in Self.forbidden where header[name] != nil { throw .forbiddenHeader }
        guard let algorithm = header["alg"]?.text else { throw .malformed }
        if let identifier = header["kid"] {
            guard let text = identifier.text else { throw .malformed }
            keyIdentifier = text
        } else {
            keyIdentifier = nil
        }
        self.algorithm = algorithm
        claims = try Self.object(parts[1])
        signed = Array(token[..<parts[1].endIndex])
        self.signature = signature
    }

    /// The key that a token names; nil if it names none. Reads nothing but the header.
    static func keyIdentifier(of token: [UInt8]) -> String? {
        guard token.count <= bytesMax else { return nil }
        return try? object(token.prefix { $0 != UInt8(ascii: ".") })["kid"]?.text
    }

    private static func object(_ part: ArraySlice<UInt8>) throws(TokenError) -> JSONValue {
        guard let text = Base64URL.decode(part) else { throw .malformed }
        let value: JSONValue
        do throws(JSONValue.Fault) {
            value = try JSONValue.read(text)
        } catch {
            throw error.isDuplicateName ? .duplicateName : .malformed
        }
        guard case .object = value else { throw .malformed }
        return value
    }

    /// Checks the signature.
    ///
    /// - Parameter key: the key that the caller found for ``keyIdentifier``.
    func verify(with key: VerificationKey) throws(TokenError) {
        guard algorithm == key.algorithm.rawValue else { throw .algorithm }
        guard key.verifies(signature, of: signed) else { throw .signature }
    }
}
