// Access tokens that a server gives for the assertions of service accounts (RFC 7523).

internal import Basics

/// Makes and checks access tokens. They are not kept: each has its key's identifier and its end, and a code by a secret
/// of the server, so that a restart does not void them. Thread-safe.
package struct AccessTokens: Sendable {
    static let prefix = "hearthat_"
    /// How long a token is valid, in seconds.
    package static let validSeconds: Int64 = 3600
    static let secretBytes = 32

    /// A secret for tokens.
    package static func makeSecret() -> [UInt8] { randomSecret(byteCount: secretBytes) }

    private let secret: [UInt8]

    /// - Parameter secret: 32 random bytes, kept over restarts; nil for some that last as long as the process.
    package init(secret: [UInt8]? = nil) {
        self.secret = secret ?? Self.makeSecret()
        precondition(self.secret.count >= Self.secretBytes, "a secret has at least 32 bytes")
    }

    /// Before the identifier of an API key, which a token was given for; no key of a service account has it.
    private static let apiKeyMark = "\0"

    /// What a token was given for.
    enum Key: Equatable {
        /// A key of a service account, by its identifier.
        case serviceAccount(String)
        /// An API key, by its identifier.
        case api(String)
    }

    /// - Parameter now: seconds since 1970.
    func token(apiKeyIdentifier: String, now: Int64) -> String {
        token(keyIdentifier: Self.apiKeyMark + apiKeyIdentifier, now: now)
    }

    /// - Parameter now: seconds since 1970.
    func token(keyIdentifier: String, now: Int64) -> String {
        let end = UInt64(bitPattern: now + Self.validSeconds)
        let body = (0..<8).map { UInt8(truncatingIfNeeded: end >> (56 - 8 * $0)) } + Array(keyIdentifier.utf8)
        return Self.prefix + Base64URL.encode(body + messageCode(body, key: secret))
    }

    /// The key that a token was given for.
    ///
    /// - Throws: `unknownPrincipal`, `expired`.
    func read(_ token: [UInt8], now: Int64) throws(TokenError) -> (key: Key, expiresAt: Int64) {
        guard token.count <= 1024, let bytes = Base64URL.decode(token.dropFirst(Self.prefix.utf8.count)),
            bytes.count > 8 + SHA256Hash.byteCount
        else { throw .unknownPrincipal }
        let body = Array(bytes.dropLast(SHA256Hash.byteCount))
        let code = Array(bytes.suffix(SHA256Hash.byteCount))
        guard constantTimeEquals(messageCode(body, key: secret), code) else { throw .unknownPrincipal }
        let end = Int64(bitPattern: body.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        if end <= now { throw .expired }
        let identifier = String(decoding: body.dropFirst(8), as: UTF8.self)
        if identifier.hasPrefix(Self.apiKeyMark) { return (.api(String(identifier.dropFirst())), end) }
        return (.serviceAccount(identifier), end)
    }
}
