// Tokens that service accounts sign themselves, as Google's libraries send them.

/// The two uses of such tokens.
enum ServiceTokens {
    /// The audience that official clients write, whatever server they call.
    static let firestoreAudience = "https://firestore.googleapis.com/"
    /// The audience of google-auth's assertions, whatever `token_uri` the key's file has (seen in 2.62). Nobody else
    /// accepts what these keys sign, so such an assertion has no use elsewhere.
    static let exchangeAudience = "https://oauth2.googleapis.com/token"
    /// Scopes of clients, one of which a token without an audience has to have.
    static let scopes = [
        "https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/datastore",
    ]
    /// How long such a token may be valid, in seconds.
    static let validSecondsMax: Int64 = 3600
    /// The grant type of an exchange.
    static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    /// The end of a token that takes the place of an access token: for Firestore, or with one of the scopes and without
    /// an audience.
    static func verifyCall(_ parts: TokenParts, _ key: Principals.ServiceKey, now: Int64) throws(TokenError) -> Int64 {
        let (claims, end) = try verify(parts, key, now)
        guard let subject = claims.values["sub"]?.text, subject.isSame(as: key.account.email) else { throw .subject }
        // Go's library writes an empty audience beside scopes.
        if claims.values["aud"] == nil || claims.values["aud"] == .string("") {
            let named = claims.values["scope"]?.text?.split(separator: " ") ?? []
            guard named.contains(where: { name in scopes.contains { name.utf8.elementsEqual($0.utf8) } }) else {
                throw .audience
            }
        } else if !claims.hasAudience([firestoreAudience]) {
            throw .audience
        }
        return end
    }

    /// Checks an assertion that asks for an access token. It may not ask for another account's.
    static func verifyAssertion(_ parts: TokenParts, _ key: Principals.ServiceKey, now: Int64) throws(TokenError) {
        let (claims, _) = try verify(parts, key, now)
        guard claims.hasAudience([key.account.tokenURI, exchangeAudience]) else { throw .audience }
        if let subject = claims.values["sub"] {
            guard let text = subject.text, text.isSame(as: key.account.email) else { throw .subject }
        }
    }

    private static func verify(
        _ parts: TokenParts, _ key: Principals.ServiceKey, _ now: Int64
    ) throws(TokenError) -> (Claims, Int64) {
        try parts.verify(with: key.key)
        let claims = Claims(values: parts.claims, now: now)
        let (issuedAt, expiresAt) = try claims.lifetime()
        // Both are whole numbers of 53 bits.
        guard expiresAt - issuedAt <= validSecondsMax else { throw .lifetime }
        guard let issuer = claims.values["iss"]?.text, issuer.isSame(as: key.account.email) else { throw .issuer }
        return (claims, expiresAt)
    }
}
