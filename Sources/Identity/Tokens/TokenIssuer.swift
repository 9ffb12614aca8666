internal import DocumentJSON

/// A provider whose tokens are accepted: Firebase Authentication of a project, or another OpenID provider.
package struct TokenIssuer: Sendable {
    /// The claim `iss`, exactly.
    package var issuer: String
    /// One of these is, or is in, the claim `aud`.
    package var audiences: [String]
    /// Projects whose data the users may reach, if rules permit it.
    package var projects: [String]
    /// The claim with the user's identifier.
    package var userClaim: String
    /// Whether a token without `auth_time` is refused.
    package var needsSignInTime: Bool
    package var keys: any KeySource

    package init(
        issuer: String, audiences: [String], projects: [String], userClaim: String = "sub",
        needsSignInTime: Bool = false, keys: any KeySource
    ) {
        self.issuer = issuer
        self.audiences = audiences
        self.projects = projects
        self.userClaim = userClaim
        self.needsSignInTime = needsSignInTime
        self.keys = keys
    }

    /// ID tokens of Firebase Authentication.
    package static func firebase(project: String, keys: any KeySource) -> TokenIssuer {
        TokenIssuer(
            issuer: "https://securetoken.google.com/\(project)", audiences: [project], projects: [project],
            needsSignInTime: true, keys: keys)
    }

    /// Where Google publishes the certificates of Firebase's tokens.
    package static let firebaseKeysURL =
        "https://www.googleapis.com/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com"

    /// Checks the claims of a token whose signature has been verified.
    ///
    /// - Parameter keys: the issuer's that verified it.
    func user(_ values: JSONValue, verifiedBy keys: KeySet, now: Int64) throws(TokenError) -> User {
        let claims = Claims(values: values, now: now)
        let (issuedAt, expiresAt) = try claims.lifetime()
        guard claims.hasAudience(audiences) else { throw .audience }
        let subject = try claims.identifier("sub")
        let uid = userClaim == "sub" ? subject : try claims.identifier(userClaim)
        let signedInAt = try claims.signedInAt(isRequired: needsSignInTime)
        return User(
            uid: uid, claims: values, projects: projects, expiresAt: expiresAt, signedInAt: signedInAt ?? issuedAt,
            verification: User.Verification(keys: keys, source: self.keys))
    }
}
