// One wrong token for each check, and the tokens at the edges of the checks.

import DocumentJSON
import Identity
import TLSTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct TokenTableTests {
    /// A token with changed claims, and why it is refused; nil if it is accepted.
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let changes: [String: JSONValue?]
        let error: TokenError?

        init(_ name: String, _ changes: [String: JSONValue?], _ error: TokenError?) {
            (self.name, self.changes, self.error) = (name, changes, error)
        }

        var testDescription: String { name }
    }

    static let cases: [Case] = [
        Case("as it is", [:], nil),
        Case("another issuer", ["iss": .string("https://securetoken.google.com/other")], .issuer),
        Case("an issuer with a slash more", ["iss": .string("https://securetoken.google.com/shop/")], .issuer),
        Case("no issuer", ["iss": nil], .issuer),
        Case(
            "an issuer that is not a text", ["iss": .array([.string("https://securetoken.google.com/shop")])], .issuer),
        Case("another audience", ["aud": .string("other")], .audience),
        Case("no audience", ["aud": nil], .audience),
        Case("an audience among others", ["aud": .array([.string("other"), .string("shop")])], nil),
        Case("audiences without ours", ["aud": .array([.string("shop2"), .string("sho")])], .audience),
        Case("an audience that is an object", ["aud": .object(["shop": .string("shop")])], .audience),
        Case("an empty list of audiences", ["aud": .array([])], .audience),
        Case("no subject", ["sub": nil], .subject),
        Case("an empty subject", ["sub": .string("")], .subject),
        Case("a subject that is a number", ["sub": .integer(7)], .subject),
        Case("a subject of 128 characters", ["sub": .string(String(repeating: "é", count: 128))], nil),
        Case("a subject of 129 characters", ["sub": .string(String(repeating: "a", count: 129))], .subject),
        Case("expired for 59 s", ["exp": .integer(present - 59)], nil),
        Case("expired for 60 s", ["exp": .integer(present - 60)], .expired),
        Case("no end", ["exp": nil], .malformed),
        Case("an end that is a text", ["exp": .string("1767229200")], .malformed),
        Case("an end of 63 bits", ["exp": .integer(.max)], .malformed),
        Case("an end that is infinite", ["exp": .double(1e300)], .malformed),
        Case("an end with a fraction", ["exp": .double(Double(present) + 0.5)], nil),
        Case("issued in 60 s", ["iat": .integer(present + 60)], nil),
        Case("issued in 61 s", ["iat": .integer(present + 61)], .notYetValid),
        Case("no time of issue", ["iat": nil], .malformed),
        Case("an issue at the least number", ["iat": .integer(.min)], .malformed),
        Case("valid in 60 s", ["nbf": .integer(present + 60)], nil),
        Case("valid in 61 s", ["nbf": .integer(present + 61)], .notYetValid),
        Case("a start that is null", ["nbf": .some(.null)], .malformed),
        Case("signed in in 60 s", ["auth_time": .integer(present + 60)], nil),
        Case("signed in in 61 s", ["auth_time": .integer(present + 61)], .authTime),
        Case("no time of sign-in", ["auth_time": nil], .authTime),
        Case("a time of sign-in that is a text", ["auth_time": .string("now")], .malformed),
    ]

    @Test(arguments: cases)
    func `Each claim is checked`(case given: Case) throws {
        let verifier = try TestIssuer.verifier()
        let token = try TestIssuer.token(given.changes)
        expectEqual(refusal(verifier, token), given.error)
    }

    private func refusal(_ verifier: TokenVerifier, _ token: [UInt8]) -> TokenError? {
        do throws(TokenError) {
            _ = try verifier.user(token, now: present)
            return nil
        } catch {
            return error
        }
    }

    @Test
    func `A good token leads to its user with all claims`() throws {
        let user = try TestIssuer.verifier().user(TestIssuer.token(), now: present)
        expectEqual(user.uid, "ada")
        expectEqual(user.claims["email_verified"], .boolean(true))
        expectEqual(user.expiresAt, present + 3600)
        expectEqual(user.signedInAt, present - 100)
        expect(user.opens(project: "shop"))
        expect(!user.opens(project: "other"))
        expect(!user.isExpired(at: present + 3659))
        expect(user.isExpired(at: present + 3660))
    }

    @Test
    func `The header neither chooses an algorithm nor a key`() throws {
        let verifier = try TestIssuer.verifier()
        let payload = JSONValue.object(TestIssuer.claims).json
        let cases: [(String, TokenError?)] = [
            (#"{"alg":"RS256","kid":"k1"}"#, nil), (#"{"alg":"RS256","kid":"k1","typ":"JWT","x":[1]}"#, nil),
            // A set of one key serves tokens without an identifier.
            (#"{"alg":"RS256"}"#, nil), (#"{"alg":"none","kid":"k1"}"#, .algorithm),
            (#"{"alg":"HS256","kid":"k1"}"#, .algorithm), (#"{"alg":"RS384","kid":"k1"}"#, .algorithm),
            (#"{"alg":"rs256","kid":"k1"}"#, .algorithm), (#"{"alg":"PS256","kid":"k1"}"#, .algorithm),
            (#"{"kid":"k1"}"#, .malformed), (#"{"alg":256,"kid":"k1"}"#, .malformed),
            (#"{"alg":"RS256","kid":"k2"}"#, .unknownKey), (#"{"alg":"RS256","kid":""}"#, .unknownKey),
            (#"{"alg":"RS256","kid":1}"#, .malformed), (#"{"alg":"RS256","kid":"k1","alg":"RS256"}"#, .duplicateName),
            (#"{"alg":"RS256","kid":"k1","crit":[]}"#, .forbiddenHeader),
            (#"{"alg":"RS256","kid":"k1","jwk":{}}"#, .forbiddenHeader),
            (#"{"alg":"RS256","kid":"k1","jku":"https://a"}"#, .forbiddenHeader),
            (#"{"alg":"RS256","kid":"k1","x5u":"https://a"}"#, .forbiddenHeader),
            (#"{"alg":"RS256","kid":"k1","x5c":[]}"#, .forbiddenHeader),
            (#"["alg","RS256"]"#, .malformed), (#""RS256""#, .malformed), ("", .malformed),
            (#"{"alg":"RS256","kid":"k1"} x"#, .malformed),
        ]
        for (header, expected) in cases {
            let token = try TestIssuer.token(header: header, payload: payload)
            expectEqual(refusal(verifier, token), expected, "\(header)")
        }
    }

    @Test
    func `A signature of another key, of other bytes, or none is refused`() throws {
        let verifier = try TestIssuer.verifier()
        let good = try TestIssuer.token()
        let parts = good.split(separator: UInt8(ascii: "."))
        let other = try TestIssuer.token(["sub": .string("eve")]).split(separator: UInt8(ascii: "."))
        var damaged = Array(parts[2])
        damaged[10] = damaged[10] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let dot = UInt8(ascii: ".")
        let cases: [([UInt8], TokenError)] = [
            (try TestIssuer.token(key: TestKeys.otherRSA), .signature),
            (parts[0] + [dot] + other[1] + [dot] + parts[2], .signature),
            (parts[0] + [dot] + parts[1] + [dot] + damaged, .signature),
            (parts[0] + [dot] + parts[1] + [dot], .signature), (parts[0] + [dot] + parts[1], .malformed),
            (good + [dot], .malformed), (good + [UInt8(ascii: "=")], .malformed), ([], .malformed),
            ([dot, dot], .malformed), (good + Array("\n".utf8), .malformed),
            (good + [UInt8](repeating: UInt8(ascii: "A"), count: 16_384), .tooLarge),
        ]
        for (index, (token, expected)) in cases.enumerated() {
            expectEqual(refusal(verifier, token), expected, "case \(index)")
        }
    }

    @Test
    func `A payload with a member twice, in any object, is refused`() throws {
        let verifier = try TestIssuer.verifier()
        let payload = JSONValue.object(TestIssuer.claims).json
        for extra in [#","sub":"eve"}"#, #","a":{"b":1,"b":2}}"#, #","s\u0075b":"eve"}"#] {
            let token = try TestIssuer.token(
                header: #"{"alg":"RS256","kid":"k1"}"#, payload: String(payload.dropLast()) + extra)
            expectEqual(refusal(verifier, token), .duplicateName)
        }
        let deep = String(repeating: "[", count: 5000)
        let token = try TestIssuer.token(
            header: #"{"alg":"RS256","kid":"k1"}"#, payload: String(payload.dropLast()) + #","a":\#(deep)"#)
        expectEqual(refusal(verifier, token), .malformed)
    }

    @Test(arguments: SignatureAlgorithm.allCases)
    func `Each algorithm verifies its own signatures and no others`(algorithm: SignatureAlgorithm) throws {
        let key =
            switch algorithm {
            case .rs256, .rs384, .rs512: TestKeys.rsa
            case .es256: TestKeys.p256
            case .es384: TestKeys.p384
            case .edDSA: TestKeys.ed25519
            }
        let message = Array("a message".utf8)
        let signing = try key.signing(algorithm)
        let verification = try key.verification(algorithm)
        for _ in 0..<20 {
            let signature = try #require(signing.signature(of: message))
            expect(verification.verifies(signature, of: message))
            expect(!verification.verifies(signature, of: message + [0]))
            expect(!verification.verifies(signature.dropLast(), of: message))
            expect(!verification.verifies(signature + [0], of: message))
            expect(!verification.verifies([], of: message))
        }
        expect(!verification.verifies([UInt8](repeating: 0, count: 64), of: message))
        let other = try TestKey(.p256).verification()
        expect(!other.verifies(try #require(signing.signature(of: message)), of: message))
    }

    @Test
    func `The claim with the user's identifier is configurable; the subject is checked too`() throws {
        let issuer = TokenIssuer(
            issuer: "https://id.example", audiences: ["a", "b"], projects: ["p", "q"], userClaim: "email",
            keys: FixedKeys(try TestIssuer.keys()))
        let verifier = TokenVerifier([.firebase(project: "shop", keys: FixedKeys(.empty)), issuer])
        func token(_ changes: [String: JSONValue?]) throws -> [UInt8] {
            let base: [String: JSONValue?] = [
                "iss": .string("https://id.example"), "aud": .string("b"), "email": .string("ada@b.test"),
                "auth_time": nil,
            ]
            return try TestIssuer.token(base.merging(changes) { $1 })
        }
        let user = try verifier.user(token([:]), now: present)
        expectEqual(user.uid, "ada@b.test")
        expectEqual(user.signedInAt, present - 10)
        expect(user.opens(project: "q"))
        expect(!user.opens(project: "shop"))
        #expect(throws: TokenError.subject) { try verifier.user(token(["email": nil]), now: present) }
        #expect(throws: TokenError.subject) { try verifier.user(token(["sub": .string("")]), now: present) }
        // The keys of one issuer verify no tokens of another.
        #expect(throws: TokenError.unknownKey) { try verifier.user(TestIssuer.token(), now: present) }
    }

    @Test
    func `Verified tokens are remembered until they expire or their key is gone, within a bound`() throws {
        let keys = FixedKeys(try TestIssuer.keys())
        let verifier = TokenVerifier([.firebase(project: "shop", keys: keys)], cachedMax: 4)
        let token = try TestIssuer.token()
        let first = try verifier.user(token, now: present)
        try expect(verifier.user(token, now: present + 100) === first)
        #expect(throws: TokenError.expired) { try verifier.user(token, now: present + 3660) }
        for number in 0..<10 {
            _ = try verifier.user(TestIssuer.token(["sub": .string("u\(number)")]), now: present)
        }
        try expect(verifier.user(token, now: present) !== first)
        keys.replace(try TestIssuer.keys("k2", TestKeys.otherRSA))
        #expect(throws: TokenError.unknownKey) { try verifier.user(token, now: present) }
    }
}
