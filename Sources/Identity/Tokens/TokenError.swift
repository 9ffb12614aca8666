package import Basics

/// Why a credential is refused. No message has a part of the credential: messages reach logs and callers.
package enum TokenError: Error, Equatable, Sendable, CaseIterable {
    /// Not three parts of base64url with JSON, or a member of the wrong type.
    case malformed
    case tooLarge
    /// A member occurs twice.
    case duplicateName
    /// The header has `crit`, `jwk`, `jku`, `x5u` or `x5c`: a key, or a rule, of the token's choice.
    case forbiddenHeader
    /// The algorithm is not that of the key; `none` and HMAC never are.
    case algorithm
    /// No key has the token's `kid`.
    case unknownKey
    case signature
    /// No issuer that is configured.
    case issuer
    case audience
    /// `sub`, or the claim that is configured as the user's identifier, is missing, empty, or too long.
    case subject
    case expired
    /// `nbf` or `iat` is in the future.
    case notYetValid
    /// `auth_time` is missing where it must be there, or in the future.
    case authTime
    /// The lifetime is longer than permitted.
    case lifetime
    case revoked
    /// The server does not know yet whom another one, whose revocations count here, has revoked.
    case revocationsUnknown
    /// An API key, an access token or a client certificate that belongs to no principal.
    case unknownPrincipal
    /// An unsigned token, or `owner`, on a server that is not in the emulator's mode.
    case emulatorOnly
    /// The field `Authorization` is not a bearer token.
    case scheme

    /// The text for the caller.
    package var message: String {
        switch self {
        case .malformed: "the token is not a JSON Web Token"
        case .tooLarge: "the token has more than 16384 bytes"
        case .duplicateName: "a member occurs twice in the token"
        case .forbiddenHeader: "the token's header has a member that is not accepted (crit, jwk, jku, x5u, x5c)"
        case .algorithm: "the token's algorithm is not the one of its key"
        case .unknownKey: "the token's key (kid) is not known"
        case .signature: "the token's signature is wrong"
        case .issuer: "the token's issuer (iss) is not accepted"
        case .audience: "the token is for another audience (aud)"
        case .subject: "the token's user (sub) is missing, empty or too long"
        case .expired: "the token has expired"
        case .notYetValid: "the token is not valid yet (nbf, iat)"
        case .authTime: "the token's time of sign-in (auth_time) is missing or in the future"
        case .lifetime: "the token is valid for longer than an hour"
        case .revoked: "the user's tokens have been revoked"
        case .revocationsUnknown: "this replica does not know yet which users its source has revoked; try again"
        case .unknownPrincipal: "the credential belongs to no principal"
        case .emulatorOnly: "unsigned tokens and 'owner' are accepted by a server in the emulator's mode alone"
        case .scheme: "the field Authorization is not 'Bearer TOKEN'"
        }
    }

    /// The refusal of a request: UNAUTHENTICATED; UNAVAILABLE if the same token may be accepted later.
    package var requestError: RequestError {
        RequestError(self == .revocationsUnknown ? .unavailable : .unauthenticated, message)
    }
}

extension TokenError: CustomStringConvertible {
    package var description: String { message }
}
