// Users whose tokens are revoked while they call.

import Authorization
import AuthorizationTestSupport
import Basics
import DocumentJSON
import FirestoreMessages
import Identity
import ServiceTestSupport
import TLSTestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RevokedUserTests {
    private let key = TestKey(.rsa(bits: 2048))

    /// The field `Authorization` of a user of the project, who has signed in a minute ago.
    private func user(_ uid: String) throws -> String {
        let now = Int64(SystemClock.microseconds() / 1_000_000)
        let claims: [String: JSONValue] = [
            "iss": .string("https://securetoken.google.com/p"), "aud": .string("p"), "sub": .string(uid),
            "iat": .integer(now - 60), "exp": .integer(now + 3_600), "auth_time": .integer(now - 60),
        ]
        let token = TokenMint.token(
            .object(claims), key: try SigningKey(pem: key.privatePEM), keyIdentifier: "k")
        return "Bearer \(try #require(token))"
    }

    private func verifier() throws -> TokenVerifier {
        let certificate = String(
            decoding: TestAuthority("Issuer").issue([], key: key).certificate, as: UTF8.self)
        let keys = try KeySet.read(text: Array(JSONValue.object(["k": .string(certificate)]).json.utf8))
        return TokenVerifier([.firebase(project: "p", keys: FixedKeys(keys))])
    }

    @Test
    func `A call after the revocation is refused, also in the second in which the user was admitted`() throws {
        let store = try GuardedStore("match /c/{id} { allow get: if request.auth != null; }")
        let revocations = Revocations()
        store.authorization.replace(
            Authenticator(
                mode: .closed, users: try verifier(), principals: try Principals(), revocations: revocations,
                accessTokens: AccessTokens()))
        let request = GetDocumentRequest(name: Harness.name("c/x"), consistency: .latest).encodedBytes()
        for uid in (0..<10).map({ "user\($0)" }) {
            let authorization = try user(uid)
            // The second call is one of a caller who is known.
            for _ in 0..<2 {
                #expect(
                    store.harness.call(.getDocument, request, authorization: authorization).status == .notFound)
            }
            try revocations.revoke(uid: uid, before: .max)
            #expect(
                store.harness.call(.getDocument, request, authorization: authorization).status == .unauthenticated)
        }
    }
}
