// Tokens of users: from bytes to a user.

/// Verifies the tokens of users against the configured issuers. Thread-safe.
package final class TokenVerifier: Sendable {
    private let issuers: [TokenIssuer]
    private let recent: RecentTokens<User>
    /// The keys of the issuers of tokens that were refused with `unknownKey`, so that these are not parsed again.
    private let refused = RecentTokens<any KeySource>(entriesMax: 1000)

    /// - Parameter cachedMax: verified tokens that are remembered.
    package init(_ issuers: [TokenIssuer], cachedMax: Int = 10_000) {
        self.issuers = issuers
        recent = RecentTokens(entriesMax: cachedMax)
    }

    package var isEmpty: Bool { issuers.isEmpty }

    /// The user of a token. Does not ask whether the user's tokens were revoked.
    ///
    /// - Parameter now: seconds since 1970.
    package func user(_ token: [UInt8], now: Int64) throws(TokenError) -> User {
        guard token.count <= TokenParts.bytesMax else { throw .tooLarge }
        let hash = SHA256Hash(of: token)
        if let user = try remembered(hash, now: now) { return user }
        return try user(try TokenParts(token), hash, now: now)
    }

    /// The user of a token that was verified before, with keys that are still the issuer's.
    func remembered(_ hash: SHA256Hash, now: Int64) throws(TokenError) -> User? {
        guard let user = recent.value(of: hash), user.hasCurrentKeys else { return nil }
        if user.isExpired(at: now) { throw .expired }
        return user
    }

    /// Verifies a token.
    func user(_ parts: TokenParts, _ hash: SHA256Hash, now: Int64) throws(TokenError) -> User {
        let issuer = try issuer(of: parts)
        // The claims are read before the signature is verified, to find the issuer, and count only after it.
        let keys = issuer.keys.keys
        guard let key = keys.key(parts.keyIdentifier) else {
            refused.remember(hash, issuer.keys)
            throw .unknownKey
        }
        try parts.verify(with: key)
        let user = try issuer.user(parts.claims, verifiedBy: keys, now: now)
        recent.remember(hash, user)
        return user
    }

    /// Asks for newer keys because of a token that was refused with `unknownKey`, lately and here.
    ///
    /// - Parameter then: called when the token may be tried again, on any thread.
    /// - Returns: whether `then` will be called.
    package func refreshKeys(for token: [UInt8], _ then: @escaping @Sendable () -> Void) -> Bool {
        refused.value(of: SHA256Hash(of: token))?.refresh(then) ?? false
    }

    private func issuer(of parts: TokenParts) throws(TokenError) -> TokenIssuer {
        guard let name = parts.claims["iss"]?.text, let issuer = issuers.first(where: { name.isSame(as: $0.issuer) })
        else { throw .issuer }
        return issuer
    }
}
