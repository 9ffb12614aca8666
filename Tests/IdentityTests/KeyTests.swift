// The forms in which issuers publish keys, and keys that are refused.

import Basics
import DocumentJSON
import Foundation
import Identity
import TLSTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct KeyTests {
    private func read(_ text: String) throws -> KeySet { try KeySet.read(text: Array(text.utf8)) }

    @Test
    func `Certificates by identifier, as Google publishes them`() throws {
        let text = JSONValue.object([
            "a": .string(TestIssuer.certificatePEM(TestKeys.rsa)),
            "b": .string(TestIssuer.certificatePEM(TestKeys.otherRSA)),
        ]).json
        let keys = try read(text)
        expectEqual(keys.count, 2)
        expectEqual(keys.key("a")?.algorithm, .rs256)
        expectNil(keys.key("c"))
        expectNil(keys.key(nil))
    }

    /// Numbers of RFC 7517 (appendix A.1), RFC 7515 (appendices A.2, A.3) and RFC 8037 (appendix A.2), public parts.
    private static let p256 = """
        {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",\
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","kid":"ec"}
        """
    private static let ed25519 = """
        {"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"ed"}
        """
    private static let modulus = """
        0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3o\
        knjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZH\
        zu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEg\
        U8awapJzKnqDKgw
        """
    private static let rsa = #"{"kty":"RSA","n":"\#(modulus)","e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#

    @Test
    func `A key set, with the keys that are not for signatures passed over`() throws {
        let others = [
            Self.rsa.replacing("2011-04-29", with: "enc").replacing("\"kty\"", with: "\"use\":\"enc\",\"kty\""),
            #"{"kty":"oct","k":"AAAA","kid":"secret"}"#, #"{"kty":"EC","crv":"P-521","x":"","y":"","kid":"521"}"#,
            Self.rsa.replacing("2011-04-29", with: "ps").replacing("RS256", with: "PS256"),
            Self.rsa.replacing("2011-04-29", with: "ops").replacing(
                "\"kty\"", with: "\"key_ops\":[\"wrapKey\"],\"kty\""),
        ]
        let keys = try read(#"{"keys":[\#(([Self.rsa, Self.p256, Self.ed25519] + others).joined(separator: ","))]}"#)
        expectEqual(keys.count, 3)
        expectEqual(keys.key("2011-04-29")?.algorithm, .rs256)
        expectEqual(keys.key("ec")?.algorithm, .es256)
        expectEqual(keys.key("ed")?.algorithm, .edDSA)
        let named = try read(#"{"keys":[\#(Self.rsa.replacing("RS256", with: "RS512"))]}"#)
        expectEqual(named.key("2011-04-29")?.algorithm, .rs512)
    }

    @Test
    func `The signed examples of the RFCs verify`() throws {
        let keys = try read(#"{"keys":[\#(Self.p256),\#(Self.ed25519)]}"#)
        let examples = [
            (
                "ec",
                """
                eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb\
                290Ijp0cnVlfQ
                """,
                "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
            ),
            (
                "ed", "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
                "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
            ),
        ]
        for (identifier, signed, signature) in examples {
            let bytes = Base64.decodeAnyForm(Array(signature.utf8).span) ?? []
            expectEqual(keys.key(identifier)?.verifies(bytes, of: Array(signed.utf8)), true, "\(identifier)")
        }
    }

    @Test
    func `What is not a set of keys is refused`() {
        let weak = TestIssuer.certificatePEM(TestKey(.rsa(bits: 1024)))
        let publicPEM = String(decoding: TestKeys.rsa.publicPEM, as: UTF8.self)
        let cases: [(String, String)] = [
            ("", "PEM"), ("{}", "no key"), (#"{"keys":[]}"#, "no key"), (#"{"keys":{}}"#, "not an array"),
            (#"{"keys":[1]}"#, "not an object"), (#"{"keys":[{"kid":"a"}]}"#, "kty"), ("{", "not valid JSON"),
            (#"{"keys":[],"keys":[]}"#, "not valid JSON"), (#"{"a":"b"}"#, "neither a key set"),
            (#"{"a":1}"#, "neither a key set"), (JSONValue.object(["a": .string(weak)]).json, "1024 bits"),
            (#"{"keys":[\#(Self.rsa),\#(Self.rsa)]}"#, "same identifier"),
            (#"{"keys":[\#(Self.rsa.replacing("\"kid\":\"2011-04-29\"", with: "\"x\":1"))]}"#, "no 'kid'"),
            (#"{"keys":[\#(Self.rsa.replacing("\"e\"", with: "\"d\":\"AQAB\",\"e\""))]}"#, "private"),
            (#"{"keys":[\#(Self.rsa.replacing("AQAB", with: "AQ=="))]}"#, "'e'"),
            (#"{"keys":[\#(Self.rsa.replacing("0vx7", with: ""))]}"#, "bits"),
            (#"{"keys":[\#(Self.p256.replacing("f83O", with: "f83P"))]}"#, "not a key"),
            (#"{"keys":[\#(Self.p256.replacing("f83O", with: ""))]}"#, "'x'"),
            (#"{"keys":[\#(Self.rsa.replacing("RS256", with: "ES256"))]}"#, "does not fit"),
            (String(decoding: TestKeys.rsa.privatePEM, as: UTF8.self), "private"),
            (publicPEM.replacing("MIIB", with: "MIIC"), "PEM"), (String(repeating: " ", count: 2 << 20), "bytes"),
        ]
        for (text, reason) in cases {
            let error = #expect(throws: KeyFault.self) { try read(text) }
            expectEqual(error?.description.contains(reason), true, "\(String(describing: error)), expected: \(reason)")
        }
    }

    @Test
    func `A file, or a directory whose names are identifiers of PEM keys`() throws {
        let directory = TemporaryDirectory("hearth-keys")
        func write(_ name: String, _ bytes: [UInt8]) throws {
            try Data(bytes).write(to: URL(fileURLWithPath: directory.path(of: name)))
        }
        try write("first.pem", TestKeys.p256.publicPEM)
        try write("set.json", Array(#"{"keys":[\#(Self.rsa)]}"#.utf8))
        try write(".hidden", Array("not a key".utf8))
        let all = try KeySet.read(directory.path)
        expectEqual(all.count, 2)
        expectEqual(all.key("first")?.algorithm, .es256)
        expect(all.key("2011-04-29") != nil)
        let one = try KeySet.read(directory.path(of: "first.pem"))
        expect(one.key("first") != nil)
        expect(one.key(nil) != nil)

        try write("wrong.pem", Array("not a key".utf8))
        let error = #expect(throws: KeyFault.self) { try KeySet.read(directory.path) }
        expectEqual(error?.description.contains("wrong.pem"), true)
        // Each message names the file once.
        try write("large.pem", [UInt8](repeating: 0x20, count: (1 << 20) + 1))
        for name in ["missing", "large.pem"] {
            let path = directory.path(of: name)
            let error = #expect(throws: KeyFault.self) { try KeySet.read(path) }
            let parts = (error?.description ?? "").split(separator: path, omittingEmptySubsequences: false)
            expectEqual(parts.count, 2, "\(String(describing: error))")
        }
    }
}
