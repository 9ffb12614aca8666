// Tokens of PyJWT and jwcrypto verified by us, ours verified by them, and the tokens that google-auth makes of our key
// files. What they do is in Tests/Interop/token_peer.py.

import DocumentJSON
import Foundation
import Identity
import TLSTestSupport
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20))) struct TokenPeerTests {
    private let directory = TemporaryDirectory("hearth-tokens")
    private let now = Int64(Date().timeIntervalSince1970)

    private struct Made: Decodable {
        let tokens: [String: String]
    }

    private struct Service: Decodable {
        let tokens: [String]
        let assertion: String
        let tokenURI: String
    }

    private func run<Output: Decodable>(_ arguments: String...) throws -> (text: String, output: Output) {
        let outcome = try OfficialClient.run(arguments, program: "token_peer.py")
        try #require(outcome.status == 0, "\(outcome.text)")
        return (outcome.text, try JSONDecoder().decode(Output.self, from: Data(outcome.text.utf8)))
    }

    @Test
    func `We verify what they sign, by the key sets that they write`() throws {
        let (text, made): (String, Made) = try run("make")
        // The output is a key set with a further member.
        let keys = FixedKeys(try KeySet.read(text: Array(text.utf8)))
        let issuer = TokenIssuer(issuer: "https://id.example", audiences: ["web"], projects: ["p"], keys: keys)
        expectEqual(Set(made.tokens.keys), Set(SignatureAlgorithm.allCases.map(\.rawValue)))
        for (algorithm, token) in made.tokens {
            let user = try TokenVerifier([issuer]).user(Array(token.utf8), now: now)
            expectEqual(user.uid, algorithm)
        }
    }

    @Test
    func `They verify what we sign`() throws {
        let kinds: [(TestKeyKind, SignatureAlgorithm)] = [
            (.rsa(bits: 2048), .rs256), (.rsa(bits: 2048), .rs384), (.rsa(bits: 3072), .rs512), (.p256, .es256),
            (.p384, .es384), (.ed25519, .edDSA),
        ]
        var entries: [JSONValue] = []
        for (kind, algorithm) in kinds {
            let key = TestKey(kind)
            let claims: JSONValue = .object([
                "sub": .string("é\"\n"), "aud": .string("web"), "exp": .integer(now + 600),
                "n": .array([.integer(.max), .double(0.5), .null]),
            ])
            let token = TokenMint.token(
                claims, key: try SigningKey(pem: key.privatePEM, algorithm: algorithm), keyIdentifier: "k")
            entries.append(
                .object([
                    "token": .string(try #require(token)), "algorithm": .string(algorithm.rawValue),
                    "key": .string(String(decoding: key.publicPEM, as: UTF8.self)),
                ]))
        }
        let file = directory.path(of: "tokens.json")
        try Data(JSONValue.object(["tokens": .array(entries)]).json.utf8).write(to: URL(fileURLWithPath: file))
        struct Claims: Decodable {
            let sub: String
            let exp: Int64
        }
        let (_, claims): (String, [Claims]) = try run("check", file)
        expectEqual(claims.count, kinds.count)
        expect(claims.allSatisfy { $0.sub == "é\"\n" && $0.exp == now + 600 })
    }

    @Test
    func `google-auth reads our key files, and we accept what it makes of them`() throws {
        let path = directory.path(of: "principals.json")
        let grant = PrincipalList.Grant(role: .writer, scope: Scope(projects: ["shop"]))
        let key = try PrincipalFile.edit(path) { list throws(PrincipalFault) in
            try list.addServiceKey(to: "backend", grant, url: "https://db.example", project: "shop", now: now)
        }
        let file = directory.path(of: "key.json")
        try Data(key.utf8).write(to: URL(fileURLWithPath: file))
        let (_, made): (String, Service) = try run("service", file)

        let authenticator = Authenticator(
            mode: .closed, users: TokenVerifier([]), principals: try Principals(PrincipalFile.read(path)),
            revocations: Revocations(), accessTokens: AccessTokens())
        expectEqual(made.tokens.count, 3)
        for token in made.tokens {
            try expectEqual(authenticator.authenticate(bearer: Array(token.utf8), now: now).caller.name, "backend")
        }
        expectEqual(made.tokenURI, "https://db.example/token")
        let access = try authenticator.exchange(
            grantType: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion: Array(made.assertion.utf8), now: now)
        try expectEqual(authenticator.authenticate(bearer: Array(access.token.utf8), now: now).caller.name, "backend")
    }
}
