// Claims that every token is checked for (RFC 7519, section 4.1; OpenID Connect Core, sections 2 and 3.1.3.7).

internal import DocumentJSON

/// The claims of a token, and the moment that they are compared with.
struct Claims {
    /// Seconds that the clocks of issuer and server may differ.
    static let skewSeconds: Int64 = 60
    /// Characters of a user's identifier.
    static let identifierMax = 128

    let values: JSONValue
    /// Seconds since 1970.
    let now: Int64

    /// A moment in seconds since 1970, rounded down; nil if there is no such claim.
    func moment(_ name: String) throws(TokenError) -> Int64? {
        guard let value = values[name] else { return nil }
        guard let moment = value.wholeNumber else { throw .malformed }
        return moment
    }

    /// Checks `exp`, `iat` and `nbf`; the first two must be there.
    ///
    /// - Returns: when the token was issued, and when it expires.
    func lifetime() throws(TokenError) -> (issuedAt: Int64, expiresAt: Int64) {
        guard let expiresAt = try moment("exp"), let issuedAt = try moment("iat") else { throw .malformed }
        if expiresAt <= now - Self.skewSeconds { throw .expired }
        if issuedAt > now + Self.skewSeconds { throw .notYetValid }
        if let start = try moment("nbf"), start > now + Self.skewSeconds { throw .notYetValid }
        return (issuedAt, expiresAt)
    }

    /// Whether `aud` is, or contains, one of the names.
    func hasAudience(_ names: [String]) -> Bool {
        let audiences = values["aud"].map { $0.elements ?? [$0] } ?? []
        return audiences.contains { audience in
            audience.text.map { text in names.contains { text.isSame(as: $0) } } ?? false
        }
    }

    /// The identifier of a user in a claim.
    func identifier(_ name: String) throws(TokenError) -> String {
        guard let text = values[name]?.text, (1...Self.identifierMax).contains(text.unicodeScalars.count) else {
            throw .subject
        }
        return text
    }

    /// When the user signed in.
    ///
    /// - Parameter isRequired: whether a token without `auth_time` is refused.
    func signedInAt(isRequired: Bool) throws(TokenError) -> Int64? {
        guard let moment = try moment("auth_time") else {
            if isRequired { throw .authTime }
            return nil
        }
        if moment > now + Self.skewSeconds { throw .authTime }
        return moment
    }
}

extension String {
    /// Whether both have the same bytes. `==` also takes other bytes for the same characters.
    func isSame(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
