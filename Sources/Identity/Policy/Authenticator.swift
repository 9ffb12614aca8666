// From the credentials of a call to its caller.

/// Everything that credentials are checked against. Immutable: a reload makes another one. Thread-safe.
package final class Authenticator: Sendable {
    /// The difference of clocks, in seconds, that calls are granted; streams are not.
    package static var clockSkewSeconds: Int64 { Claims.skewSeconds }

    package let mode: SecurityMode
    private let users: TokenVerifier
    private let principals: Principals
    private let revocations: Revocations
    private let accessTokens: AccessTokens
    /// Verified tokens of service accounts. The principals are those of this object, so an entry stays true.
    private let recent = RecentTokens<Authentication>(entriesMax: 1000)

    package init(
        mode: SecurityMode, users: TokenVerifier, principals: Principals, revocations: Revocations,
        accessTokens: AccessTokens
    ) {
        self.mode = mode
        self.users = users
        self.principals = principals
        self.revocations = revocations
        self.accessTokens = accessTokens
    }

    /// The same in another mode.
    package func with(mode: SecurityMode) -> Authenticator {
        Authenticator(
            mode: mode, users: users, principals: principals, revocations: revocations, accessTokens: accessTokens)
    }

    // MARK: Calls

    /// Who sends a request.
    ///
    /// - Parameters:
    ///   - authorization: the field `Authorization`; nil without one. It decides before a certificate does.
    ///   - certificates: alternative names of a verified client certificate, as `URI:...` and `DNS:...`.
    ///   - now: seconds since 1970.
    package func authenticate(
        authorization: String?, certificates: [String] = [], now: Int64
    ) throws(TokenError) -> Authentication {
        if mode.trustsEveryone { return .admin }
        if let authorization { return try authenticate(bearer: try Self.bearer(authorization), now: now) }
        for name in certificates {
            if let principal = principals.principal(certificate: name) {
                return Authentication(.service(principal), credential: .certificate(name))
            }
        }
        return .anonymous
    }

    /// Who sends a bearer token.
    package func authenticate(bearer token: [UInt8], now: Int64) throws(TokenError) -> Authentication {
        if mode.trustsEveryone { return .admin }
        if token.starts(with: AccessTokens.prefix.utf8) { return try accessToken(token, now) }
        if token.starts(with: APIKey.prefix.utf8) { return try apiKey(token) }
        if token.elementsEqual(UnsignedTokens.owner.utf8) {
            guard mode.acceptsUnsigned else { throw .emulatorOnly }
            return .admin
        }
        guard token.count <= TokenParts.bytesMax else { throw .tooLarge }
        let hash = SHA256Hash(of: token)
        if let user = try users.remembered(hash, now: now) { return try authentication(of: user) }
        if let known = recent.value(of: hash) {
            if let end = known.expiresAt, end <= now - Claims.skewSeconds { throw .expired }
            return known
        }
        return try verify(token, hash, now)
    }

    private func verify(_ token: [UInt8], _ hash: SHA256Hash, _ now: Int64) throws(TokenError) -> Authentication {
        let parts = try TokenParts(token)
        if UnsignedTokens.isUnsigned(parts) {
            guard mode.acceptsUnsigned else { throw .emulatorOnly }
            return Authentication(.user(try UnsignedTokens.user(parts)), credential: .userToken)
        }
        if let identifier = parts.keyIdentifier, let key = principals.serviceKey(identifier) {
            let end = try ServiceTokens.verifyCall(parts, key, now: now)
            let known = Authentication(
                .service(key.principal), expiresAt: end, credential: .serviceKey(identifier))
            recent.remember(hash, known)
            return known
        }
        return try authentication(of: try users.user(parts, hash, now: now))
    }

    private func authentication(of user: User) throws(TokenError) -> Authentication {
        try checkRevocation(user)
        return Authentication(.user(user), expiresAt: user.expiresAt, credential: .userToken)
    }

    /// Asks for newer keys because of a token that was refused with `unknownKey`.
    ///
    /// - Parameter then: called when the token may be tried again, on any thread.
    /// - Returns: whether `then` will be called.
    package func refreshKeys(for token: [UInt8], _ then: @escaping @Sendable () -> Void) -> Bool {
        users.refreshKeys(for: token, then)
    }

    /// The token of a field `Authorization` (RFC 6750, section 2.1).
    package static func bearer(_ authorization: String) throws(TokenError) -> [UInt8] {
        let bytes = Array(authorization.utf8)
        let scheme = "bearer "
        let isBearer = bytes.prefix(scheme.utf8.count).map { $0 == 0x20 ? $0 : $0 | 0x20 }.elementsEqual(scheme.utf8)
        let token = bytes.dropFirst(scheme.utf8.count).drop { $0 == 0x20 }
        guard isBearer, !token.isEmpty, token.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw .scheme }
        return Array(token)
    }

    /// The name that a credential claims: the identifier of an API key, or of a service account's key. A key of an
    /// issuer is all its users', so the tokens of users claim nothing.
    ///
    /// - Parameter token: a bearer token, or an assertion; nothing about it is verified.
    package func claimedName(of token: [UInt8]) -> String? {
        if token.starts(with: APIKey.prefix.utf8) { return APIKey.identifier(of: token) }
        guard let identifier = TokenParts.keyIdentifier(of: token), principals.serviceKey(identifier) != nil else {
            return nil
        }
        return identifier
    }

    private func apiKey(_ token: [UInt8]) throws(TokenError) -> Authentication {
        guard let (identifier, principal) = principals.principal(apiKey: token) else { throw .unknownPrincipal }
        return Authentication(.service(principal), credential: .apiKey(identifier))
    }

    private func accessToken(_ token: [UInt8], _ now: Int64) throws(TokenError) -> Authentication {
        let (key, end) = try accessTokens.read(token, now: now)
        switch key {
        case .serviceAccount(let identifier):
            guard let key = principals.serviceKey(identifier) else { throw .unknownPrincipal }
            return Authentication(.service(key.principal), expiresAt: end, credential: .serviceKey(identifier))
        case .api(let identifier):
            guard let principal = principals.principal(apiKeyIdentifier: identifier) else { throw .unknownPrincipal }
            return Authentication(.service(principal), expiresAt: end, credential: .apiKey(identifier))
        }
    }

    private func checkRevocation(_ user: User) throws(TokenError) {
        // Before the look: what was awaited is there when it is over.
        let areAwaited = revocations.areAwaited
        if revocations.isRevoked(uid: user.uid, signedInAt: user.signedInAt) { throw .revoked }
        if areAwaited { throw .revocationsUnknown }
    }

    /// Whether what verified the credential is as it was. Otherwise the credential has to be shown again.
    package func isCurrent(_ authentication: Authentication) -> Bool {
        if case .user(let user) = authentication.caller { user.hasCurrentKeys } else { true }
    }

    /// Grows with each revocation: who was admitted before may be revoked now.
    package var revocationsVersion: UInt64 { revocations.version }

    // MARK: Streams

    /// Checks that what began a stream is still valid: to be asked every few seconds, with the authenticator of that
    /// moment.
    ///
    /// - Throws: `expired`, `revoked`, `unknownPrincipal`. The stream ends then; the client may come again.
    package func check(_ authentication: Authentication, now: Int64) throws(TokenError) {
        if mode.trustsEveryone { return }
        // Without the difference of clocks that a new call is granted: a stream ends soon after its token.
        if let end = authentication.expiresAt, end <= now { throw .expired }
        if case .user(let user) = authentication.caller { try checkRevocation(user) }
        let current: ServicePrincipal?
        switch authentication.credential {
        case .none, .userToken: return
        case .apiKey(let identifier): current = principals.principal(apiKeyIdentifier: identifier)
        case .serviceKey(let identifier): current = principals.serviceKey(identifier)?.principal
        case .certificate(let name): current = principals.principal(certificate: name)
        }
        guard case .service(let principal) = authentication.caller, let current, principal.hasSameRights(as: current)
        else { throw .unknownPrincipal }
    }

    // MARK: Exchange

    /// An access token for a signed assertion (RFC 7523, section 2.1).
    package struct AccessToken: Sendable {
        package let token: String
        /// How long it is valid, in seconds.
        package let expiresIn: Int64
    }

    /// A token of at most an hour that stands for a credential, so that a page need not keep the credential.
    ///
    /// A credential that expires is its own token: another one would be valid for longer.
    ///
    /// - Parameters:
    ///   - shown: the bearer token that was authenticated.
    ///   - now: seconds since 1970.
    package func temporaryToken(for authentication: Authentication, shown: [UInt8], now: Int64) -> AccessToken {
        if case .apiKey(let identifier) = authentication.credential, authentication.expiresAt == nil {
            return AccessToken(
                token: accessTokens.token(apiKeyIdentifier: identifier, now: now), expiresIn: AccessTokens.validSeconds)
        }
        let end = authentication.expiresAt ?? now + AccessTokens.validSeconds
        return AccessToken(token: String(decoding: shown, as: UTF8.self), expiresIn: max(0, end - now))
    }

    /// Gives an access token for the assertion of a service account.
    ///
    /// - Parameter grantType: the form's `grant_type`.
    /// - Throws: `scheme` for another grant type, else what is wrong with the assertion.
    package func exchange(grantType: String, assertion: [UInt8], now: Int64) throws(TokenError) -> AccessToken {
        guard grantType.isSame(as: ServiceTokens.grantType) else { throw .scheme }
        let parts = try TokenParts(assertion)
        guard let identifier = parts.keyIdentifier, let key = principals.serviceKey(identifier) else {
            throw .unknownKey
        }
        try ServiceTokens.verifyAssertion(parts, key, now: now)
        return AccessToken(
            token: accessTokens.token(keyIdentifier: identifier, now: now), expiresIn: AccessTokens.validSeconds)
    }
}

extension ServicePrincipal {
    /// Whether nothing has changed that a running stream was permitted by.
    fileprivate func hasSameRights(as other: ServicePrincipal) -> Bool {
        name == other.name && role == other.role && scope == other.scope && bypassesRules == other.bypassesRules
    }
}
