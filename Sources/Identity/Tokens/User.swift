package import DocumentJSON

/// A user whose token has been verified. Immutable: a reference to it is all that a call carries. Thread-safe.
package final class User: Sendable {
    /// The identifier (`request.auth.uid`), 1...128 characters.
    package let uid: String
    /// All claims of the token (`request.auth.token`): an object.
    package let claims: JSONValue
    /// Projects that the issuer is bound to; nil for all, in the emulator's mode alone.
    package let projects: [String]?
    /// When the token expires, in seconds since 1970. Streams of the user end soon after it.
    package let expiresAt: Int64
    /// When the user signed in, or else when the token was issued, in seconds since 1970: revocations compare it.
    package let signedInAt: Int64
    /// What verified the token; nil if another server did, or nobody.
    private let verification: Verification?

    /// The keys that verified a token, and where they came from.
    struct Verification: Sendable {
        let keys: KeySet
        let source: any KeySource
    }

    init(
        uid: String, claims: JSONValue, projects: [String]?, expiresAt: Int64, signedInAt: Int64,
        verification: Verification? = nil
    ) {
        self.verification = verification
        self.uid = uid
        self.claims = claims
        self.projects = projects
        self.expiresAt = expiresAt
        self.signedInAt = signedInAt
    }

    /// Whether the user's issuer may speak for a project.
    package func opens(project: String) -> Bool {
        guard let projects else { return true }
        return projects.contains { $0.isSame(as: project) }
    }

    /// Whether the issuer still has the keys that verified the token. Otherwise it has to be verified again: a key that
    /// the issuer no longer has verifies nothing.
    package var hasCurrentKeys: Bool { verification.map { $0.source.keys === $0.keys } ?? true }

    /// Whether the token has expired, with the difference of clocks that tokens are permitted.
    package func isExpired(at now: Int64) -> Bool { expiresAt <= now - Claims.skewSeconds }
}
