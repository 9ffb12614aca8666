// An issuer of tests: its keys, its tokens, and tokens that are wrong in one way.

import Basics
import DocumentJSON
import Identity
import Synchronization
import TLSTestSupport

/// 2026-01-01, the present of these tests.
let present: Int64 = 1_767_225_600

/// Keys of tests, made once: RSA keys take time.
enum TestKeys {
    static let rsa = TestKey(.rsa(bits: 2048))
    static let otherRSA = TestKey(.rsa(bits: 2048))
    static let p256 = TestKey(.p256)
    static let p384 = TestKey(.p384)
    static let ed25519 = TestKey(.ed25519)
}

extension TestKey {
    func signing(_ algorithm: SignatureAlgorithm? = nil) throws -> SigningKey {
        try SigningKey(pem: privatePEM, algorithm: algorithm)
    }

    func verification(_ algorithm: SignatureAlgorithm? = nil) throws -> VerificationKey {
        try VerificationKey(pem: publicPEM, algorithm: algorithm)
    }
}

/// Firebase Authentication of the project `shop`.
struct TestIssuer {
    static let project = "shop"

    /// The claims of a good token.
    static var claims: [String: JSONValue] {
        [
            "iss": .string("https://securetoken.google.com/shop"), "aud": .string("shop"), "sub": .string("ada"),
            "user_id": .string("ada"), "iat": .integer(present - 10), "exp": .integer(present + 3600),
            "auth_time": .integer(present - 100), "email_verified": .boolean(true),
        ]
    }

    /// A set with one RSA key, in Google's form.
    static func keys(_ identifier: String = "k1", _ key: TestKey = TestKeys.rsa) throws -> KeySet {
        let text = JSONValue.object([identifier: .string(certificatePEM(key))]).json
        return try KeySet.read(text: Array(text.utf8))
    }

    static func certificatePEM(_ key: TestKey) -> String {
        String(decoding: TestAuthority("Issuer").issue([], key: key).certificate, as: UTF8.self)
    }

    static func verifier() throws -> TokenVerifier {
        TokenVerifier([.firebase(project: project, keys: FixedKeys(try keys()))])
    }

    /// A signed token of any header and payload.
    static func token(header: String, payload: String, key: TestKey = TestKeys.rsa) throws -> [UInt8] {
        let signed = "\(base64URL(header)).\(base64URL(payload))"
        let signature = try key.signing().signature(of: Array(signed.utf8)) ?? []
        return Array("\(signed).\(base64URL(signature))".utf8)
    }

    /// A token of the issuer, with some claims changed; nil removes one.
    static func token(
        _ changes: [String: JSONValue?] = [:], key: TestKey = TestKeys.rsa, identifier: String? = "k1"
    ) throws -> [UInt8] {
        var claims = claims
        for (name, value) in changes { claims[name] = value }
        let token = TokenMint.token(.object(claims), key: try key.signing(), keyIdentifier: identifier)
        return Array((token ?? "").utf8)
    }
}

func base64URL(_ text: String) -> String { base64URL(Array(text.utf8)) }

func base64URL(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    Base64.append(bytes.byteSpan, to: &text)
    return String(decoding: text, as: UTF8.self).replacing("+", with: "-").replacing("/", with: "_")
        .replacing("=", with: "")
}

/// Seconds that a test steps.
final class TestClock: Sendable {
    private let seconds: Mutex<Int64>

    init(_ start: Int64 = present) { seconds = Mutex(start) }

    var now: Int64 { seconds.withLock { $0 } }
    func step(_ by: Int64) { seconds.withLock { $0 += by } }
}
