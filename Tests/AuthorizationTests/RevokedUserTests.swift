// Users whose tokens are revoked, or whose issuer gives up the key, while they call.

import Authorization
import AuthorizationTestSupport
import Basics
import DocumentJSON
import FirestoreMessages
import Identity
import ServiceTestSupport
import TLSTestSupport
import TestSupport
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

    /// The keys of an issuer with one key, by its identifier.
    private func keys(_ identifier: String = "k") throws -> KeySet {
        let certificate = String(
            decoding: TestAuthority("Issuer").issue([], key: key).certificate, as: UTF8.self)
        return try KeySet.read(text: Array(JSONValue.object([identifier: .string(certificate)]).json.utf8))
    }

    /// A store whose users have tokens of an issuer.
    private func store(_ keys: FixedKeys, _ revocations: Revocations = Revocations()) throws -> GuardedStore {
        let store = try GuardedStore("match /c/{id} { allow read: if request.auth != null; }")
        store.authorization.replace(
            Authenticator(
                mode: .closed, users: TokenVerifier([.firebase(project: "p", keys: keys)]),
                principals: try Principals(), revocations: revocations, accessTokens: AccessTokens()))
        return store
    }

    private let request = GetDocumentRequest(name: Harness.name("c/x"), consistency: .latest).encodedBytes()

    private func status(_ store: GuardedStore, _ authorization: String) -> StatusCode? {
        store.harness.call(.getDocument, request, authorization: authorization).status
    }

    @Test
    func `A call after the revocation is refused, also in the second in which the user was admitted`() throws {
        let revocations = Revocations()
        let store = try store(FixedKeys(try keys()), revocations)
        for uid in (0..<10).map({ "user\($0)" }) {
            let authorization = try user(uid)
            // The second call is one of a caller who is known.
            for _ in 0..<2 { expectEqual(status(store, authorization), .notFound) }
            try revocations.revoke(uid: uid, before: .max)
            expectEqual(status(store, authorization), .unauthenticated)
        }
    }

    @Test
    func `A token whose key the issuer gives up is refused to a caller who is known, and ends its streams`() throws {
        let keys = FixedKeys(try keys())
        let store = try store(keys)
        let authorization = try user("ada")
        for _ in 0..<2 { expectEqual(status(store, authorization), .notFound) }
        let listener = TestCall(loop: store.harness.loop, method: .listen, authorization: authorization)
        let target = ListenTarget(.documents([Harness.name("c/x")]), id: 1)
        store.harness.service.begin(listener, ListenRequest(database: Harness.database, .add(target)).encodedBytes())
        let streams = store.harness.service.longLivedStreams
        // Other keys, the one of the token among them.
        keys.replace(try self.keys())
        let second = SystemClock.microseconds() / 1_000_000
        try waitUntil("a second has passed, after which callers are looked at again") {
            SystemClock.microseconds() / 1_000_000 > second
        }
        streams.checkAccess()
        expectEqual(status(store, authorization), .notFound)
        expectNil(listener.answer.status)
        keys.replace(try self.keys("another"))
        try waitUntil("the token is refused") { status(store, authorization) == .unauthenticated }
        try waitUntil("the stream ends") {
            streams.checkAccess()
            // What the loop has to do is done before the answer.
            return status(store, authorization) == .unauthenticated && listener.answer.status != nil
        }
        expectEqual(listener.answer.status, .unauthenticated)
    }
}
