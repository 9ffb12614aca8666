// The file of principals as values.

/// A public key of a service account.
package struct ServiceKeyRecord: Equatable, Sendable {
    /// The `private_key_id` of the key's file, and the `kid` of its tokens.
    package let identifier: String
    /// PEM.
    let publicKey: String
    /// Seconds since 1970.
    package let createdAt: Int64
}

/// A service account: a name and keys that sign its tokens.
package struct ServiceAccountRecord: Equatable, Sendable {
    /// The issuer and subject of its tokens.
    package let email: String
    /// Where its clients exchange tokens, as their key files have it: the audience of such tokens.
    package let tokenURI: String
    package internal(set) var keys: [ServiceKeyRecord]
}

/// A principal with its credentials.
package struct PrincipalRecord: Equatable, Sendable {
    package let name: String
    package let role: Role
    package let scope: Scope
    package let bypassesRules: Bool
    package internal(set) var apiKeys: [APIKeyRecord] = []
    /// Exact alternative names of client certificates, as `URI:spiffe://a/b` or `DNS:job.example`.
    package internal(set) var certificates: [String] = []
    package internal(set) var account: ServiceAccountRecord?

    /// Whether the principal has no credential left.
    var isBare: Bool { apiKeys.isEmpty && certificates.isEmpty && account == nil }
}

/// Why a file of principals, or a change of it, is refused. Without hashes and keys.
package struct PrincipalFault: Error, Equatable, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
