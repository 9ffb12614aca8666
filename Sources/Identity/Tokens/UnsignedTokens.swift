// What the emulator accepts instead of verified tokens. A server in its mode serves this machine alone.

/// The emulator's credentials.
enum UnsignedTokens {
    /// Has every right.
    static let owner = "owner"

    /// Whether a token says itself that it is not signed.
    static func isUnsigned(_ parts: TokenParts) -> Bool { parts.algorithm == "none" && parts.signature.isEmpty }

    /// The user that an unsigned token names. Its moments and its issuer are not checked: test tools write `iat` 0.
    static func user(_ parts: TokenParts) throws(TokenError) -> User {
        let claims = Claims(values: parts.claims, now: 0)
        let uid = try claims.identifier(parts.claims["sub"] == nil ? "user_id" : "sub")
        return User(uid: uid, claims: parts.claims, projects: nil, expiresAt: .max, signedInAt: .max)
    }
}
