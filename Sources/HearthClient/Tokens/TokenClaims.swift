import Basics
import DocumentJSON

/// What a client reads of a token that is a JSON Web Token (RFC 7519). It verifies nothing: that is the server's task.
package struct TokenClaims: Equatable, Sendable {
    /// Whose token it is: `user_id`, as Firebase writes it, or else `sub`; nil without both.
    package private(set) var user: String?
    /// `iat` in seconds since 1970.
    private(set) var issuedAt: Int64?
    /// `exp` in seconds since 1970.
    private(set) var expiresAt: Int64?

    /// The longest time between a refresh and the end of the token's life.
    private static let refreshBeforeMilliseconds: Int64 = 300_000
    /// Up to the year 9999.
    private static let moments: ClosedRange<Int64> = 0...253_402_300_799

    /// - Returns: nil for a token that is not a JSON Web Token. A claim of another type counts as missing.
    package init?(_ token: String) {
        let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64.decodeAnyForm(Array(parts[1]).span),
            let claims = try? JSONObject(payload)
        else { return nil }
        user = (try? claims.string("user_id")) ?? (try? claims.string("sub"))
        issuedAt = Self.moment("iat", of: claims)
        expiresAt = Self.moment("exp", of: claims)
    }

    private static func moment(_ name: String, of claims: JSONObject) -> Int64? {
        guard let seconds: Int64 = try? claims.integer(name), moments.contains(seconds) else { return nil }
        return seconds
    }

    /// The time that is left until the token should be replaced: until five minutes before its end, or until 80 % of a
    /// life of less than 25 minutes have passed. Negative if that was earlier; nil for a token without an end.
    ///
    /// - Parameter wall: milliseconds since 1970.
    func refreshMilliseconds(wall: Int64) -> Int64? {
        guard let left = millisecondsLeft(wall: wall), let expiresAt else { return nil }
        let life = max(0, issuedAt.map { (expiresAt - $0) * 1_000 } ?? left)
        return left - min(Self.refreshBeforeMilliseconds, life / 5)
    }

    /// The time until the token's end; negative after it, nil for a token without an end.
    func millisecondsLeft(wall: Int64) -> Int64? { expiresAt.map { $0 * 1_000 - wall } }
}
