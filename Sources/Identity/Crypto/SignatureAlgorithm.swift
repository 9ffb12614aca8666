/// Algorithms by which tokens are signed (RFC 7518, RFC 8037). There is no `none`, and no HMAC: a public key must never
/// be taken for a secret.
package enum SignatureAlgorithm: String, Sendable, CaseIterable {
    case rs256 = "RS256"
    case rs384 = "RS384"
    case rs512 = "RS512"
    case es256 = "ES256"
    case es384 = "ES384"
    case edDSA = "EdDSA"

    /// Bytes of one of the two numbers of an ECDSA signature; nil for other algorithms.
    var ellipticHalf: Int? {
        switch self {
        case .es256: 32
        case .es384: 48
        default: nil
        }
    }

    var isRSA: Bool {
        switch self {
        case .rs256, .rs384, .rs512: true
        default: false
        }
    }
}
