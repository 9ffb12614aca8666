// Keys of service accounts in Google's form, and the tokens that official libraries make of them.

import DocumentJSON
import Foundation
import TestSupport
import Testing

@testable import Identity

@Suite(.timeLimit(.minutes(20))) struct ServiceAccountTests {
    /// A key file, and the principals of its server.
    private struct Account {
        let file: JSONValue
        let principals: Principals
        let authenticator: Authenticator
        let key: SigningKey
        let secret = [UInt8](repeating: 7, count: 32)

        init() throws {
            var list = PrincipalList([])
            let grant = PrincipalList.Grant(role: .writer, scope: Scope(projects: ["shop"]))
            let text = try list.addServiceKey(
                to: "backend", grant, url: "https://db.example/", project: "shop", now: present)
            file = try JSONValue.read(Array(text.utf8))
            principals = try Principals(list.records)
            authenticator = Self.authenticator(principals, secret)
            key = try SigningKey(pem: Array((file["private_key"]?.text ?? "").utf8))
        }

        static func authenticator(_ principals: Principals, _ secret: [UInt8]) -> Authenticator {
            Authenticator(
                mode: .closed, users: TokenVerifier([]), principals: principals, revocations: Revocations(),
                accessTokens: AccessTokens(secret: secret))
        }

        var identifier: String { file["private_key_id"]?.text ?? "" }
        var email: String { file["client_email"]?.text ?? "" }

        /// A token as google-auth signs it, with some claims changed.
        func token(_ changes: [String: JSONValue?] = [:], identifier: String? = nil) -> [UInt8] {
            var claims: [String: JSONValue] = [
                "iss": .string(email), "sub": .string(email), "aud": .string("https://firestore.googleapis.com/"),
                "iat": .integer(present), "exp": .integer(present + 3600),
            ]
            for (name, value) in changes { claims[name] = value }
            let token = TokenMint.token(.object(claims), key: key, keyIdentifier: identifier ?? self.identifier)
            return Array((token ?? "").utf8)
        }
    }

    private static let account = Result { try Account() }
    private let account: Account

    init() throws { account = try Self.account.get() }

    @Test
    func `The file has what official libraries read, and the server keeps the public key alone`() throws {
        expectEqual(account.file["type"], .string("service_account"))
        expectEqual(account.file["project_id"], .string("shop"))
        expectEqual(account.file["token_uri"], .string("https://db.example/token"))
        expectEqual(account.file["private_key"]?.text?.hasPrefix("-----BEGIN PRIVATE KEY-----\n"), true)
        expectEqual(account.identifier.utf8.count, 40)
        expectEqual(account.email, "backend@shop.iam.hearth")
        let key = try #require(account.principals.serviceKey(account.identifier))
        expect(key.account.keys[0].publicKey.hasPrefix("-----BEGIN PUBLIC KEY-----"))
    }

    @Test
    func `A token that the key signs is the principal`() throws {
        let authentication = try account.authenticator.authenticate(bearer: account.token(), now: present)
        guard case .service(let principal) = authentication.caller else {
            Issue.record("not a service")
            return
        }
        expectEqual(principal.name, "backend")
        expectEqual(authentication.expiresAt, present + 3600)
        // The second time it is remembered, and still ends.
        try expect(account.authenticator.authenticate(bearer: account.token(), now: present + 3659).expiresAt != nil)
        #expect(throws: TokenError.expired) {
            try account.authenticator.authenticate(bearer: account.token(), now: present + 3660)
        }
        // With `universe_domain`, google-auth writes scopes and no audience.
        let scoped = account.token(["aud": nil, "scope": .string("a https://www.googleapis.com/auth/datastore")])
        try expectEqual(account.authenticator.authenticate(bearer: scoped, now: present).caller.name, "backend")
        let empty = account.token(["aud": .string(""), "scope": .string("https://www.googleapis.com/auth/datastore")])
        try expectEqual(account.authenticator.authenticate(bearer: empty, now: present).caller.name, "backend")
    }

    @Test
    func `Each claim of such a token is checked`() throws {
        let cases: [([String: JSONValue?], TokenError)] = [
            (["iss": .string("eve")], .issuer), (["iss": nil], .issuer), (["sub": .string("eve")], .subject),
            (["sub": nil], .subject), (["aud": .string("https://firestore.googleapis.com")], .audience),
            (["aud": .string("https://db.example/token")], .audience), (["aud": nil], .audience),
            (["aud": .string("")], .audience), (["aud": nil, "scope": .string("openid")], .audience),
            (["aud": .null, "scope": .string("https://www.googleapis.com/auth/datastore")], .audience),
            (["exp": .integer(present + 3601)], .lifetime), (["exp": .integer(present - 60)], .expired),
            (["iat": .integer(present + 61), "exp": .integer(present + 100)], .notYetValid),
            (["iat": nil], .malformed), (["exp": nil], .malformed),
        ]
        for (changes, expected) in cases {
            #expect(throws: expected) {
                try account.authenticator.authenticate(bearer: account.token(changes), now: present)
            }
        }
        // A key that the server does not have is one of no issuer.
        #expect(throws: TokenError.issuer) {
            try account.authenticator.authenticate(bearer: account.token(identifier: "other"), now: present)
        }
        let forged = TokenMint.token(
            .object(["iss": .string(account.email)]), key: try TestKeys.otherRSA.signing(),
            keyIdentifier: account.identifier)
        #expect(throws: TokenError.signature) {
            try account.authenticator.authenticate(bearer: Array((forged ?? "").utf8), now: present)
        }
    }

    private static let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    private func assertion(_ changes: [String: JSONValue?] = [:]) -> [UInt8] {
        let base: [String: JSONValue?] = [
            "aud": .string("https://db.example/token"), "sub": nil,
            "scope": .string("https://www.googleapis.com/auth/datastore"),
        ]
        return account.token(base.merging(changes) { $1 })
    }

    @Test
    func `An assertion is exchanged for an access token of an hour, which survives a restart`() throws {
        let google = assertion(["aud": .string("https://oauth2.googleapis.com/token")])
        #expect(throws: Never.self) {
            try account.authenticator.exchange(grantType: Self.grant, assertion: google, now: present)
        }
        let token = try account.authenticator.exchange(grantType: Self.grant, assertion: assertion(), now: present)
        expectEqual(token.expiresIn, 3600)
        let bytes = Array(token.token.utf8)
        let restarted = Account.authenticator(account.principals, account.secret)
        let authentication = try restarted.authenticate(bearer: bytes, now: present + 3599)
        expectEqual(authentication.caller.name, "backend")
        expectEqual(authentication.expiresAt, present + 3600)
        #expect(throws: TokenError.expired) { try restarted.authenticate(bearer: bytes, now: present + 3600) }

        let other = Account.authenticator(account.principals, [UInt8](repeating: 8, count: 32))
        #expect(throws: TokenError.unknownPrincipal) { try other.authenticate(bearer: bytes, now: present) }
        let revoked = Account.authenticator(try Principals(), account.secret)
        #expect(throws: TokenError.unknownPrincipal) { try revoked.authenticate(bearer: bytes, now: present) }
        for index in [9, 15, 60, bytes.count - 1] {
            var changed = bytes
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(throws: TokenError.self) { try restarted.authenticate(bearer: changed, now: present) }
        }
        for cut in ["hearthat_", "hearthat_AAAA", "hearthat_!!!"] {
            #expect(throws: TokenError.unknownPrincipal) {
                try restarted.authenticate(bearer: Array(cut.utf8), now: present)
            }
        }
    }

    @Test
    func `An assertion for another audience, account or grant is refused`() throws {
        let cases: [([String: JSONValue?], TokenError)] = [
            (["aud": .string("https://other.example/token")], .audience), (["aud": nil], .audience),
            (["sub": .string("eve@shop")], .subject), (["sub": .null], .subject), (["iss": .string("eve")], .issuer),
            (["exp": .integer(present + 7200)], .lifetime), (["exp": .integer(present - 100)], .expired),
        ]
        for (changes, expected) in cases {
            #expect(throws: expected) {
                try account.authenticator.exchange(grantType: Self.grant, assertion: assertion(changes), now: present)
            }
        }
        #expect(throws: TokenError.scheme) {
            try account.authenticator.exchange(grantType: "password", assertion: assertion(), now: present)
        }
        #expect(throws: TokenError.unknownKey) {
            try account.authenticator.exchange(
                grantType: Self.grant, assertion: TestIssuer.token(), now: present)
        }
        // An assertion is not a token for calls.
        #expect(throws: TokenError.self) {
            try account.authenticator.authenticate(bearer: assertion(), now: present)
        }
    }

    @Test
    func `A second key of an account has the same name; another URL is another account`() throws {
        var list = PrincipalList([])
        let grant = PrincipalList.Grant(role: .writer, scope: Scope(projects: ["shop"]))
        _ = try list.addServiceKey(to: "a", grant, url: "https://h", project: "shop", now: 1)
        _ = try list.addServiceKey(to: "a", grant, url: "https://h/", project: "shop", now: 2)
        let keys = try #require(list.records[0].account?.keys)
        expectEqual(keys.count, 2)
        #expect(throws: PrincipalFault.self) {
            try list.addServiceKey(to: "a", grant, url: "https://other", project: "shop", now: 3)
        }
        let isFirstRevoked = list.revoke(credential: keys[0].identifier)
        expect(isFirstRevoked)
        try expectNil(Principals(list.records).serviceKey(keys[0].identifier))
        try expect(Principals(list.records).serviceKey(keys[1].identifier) != nil)
        let isSecondRevoked = list.revoke(credential: keys[1].identifier)
        expect(isSecondRevoked)
        expect(list.records.isEmpty)
    }
}
