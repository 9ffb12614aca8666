// Secrets reach no message: each secret of these tests has a text that no error may have.

import DocumentJSON
import Foundation
import TestSupport
import Testing

@testable import Identity

@Suite(.timeLimit(.minutes(20))) struct CanaryTests {
    private let canary = "CANARYcanary0123456789"

    @Test
    func `No refusal of a token has a part of it`() throws {
        let closed = Authenticator(
            mode: .closed, users: try TestIssuer.verifier(), principals: try Principals(), revocations: Revocations(),
            accessTokens: AccessTokens())
        let header = base64URL(#"{"alg":"RS256","kid":"\#(canary)"}"#)
        let payload = base64URL(#"{"iss":"\#(canary)","sub":"\#(canary)","\#(canary)":1,"\#(canary)":2}"#)
        var texts = [
            canary, "Basic \(canary)", "Bearer \(canary)", "Bearer \(canary).\(canary).\(canary)",
            "Bearer hearth_\(canary)", "Bearer hearthat_\(canary)", "Bearer \(header).\(payload).\(canary)",
            "Bearer \(header).\(base64URL(canary)).\(canary)", "Bearer \(base64URL(canary)).\(payload).",
        ]
        let changes: [[String: JSONValue?]] = [
            ["iss": .string(canary)], ["aud": .string(canary)], ["exp": .string(canary)],
            ["sub": .array([.string(canary)])],
        ]
        for change in changes {
            texts.append("Bearer \(String(decoding: try TestIssuer.token(change), as: UTF8.self))")
        }
        for text in texts {
            let error = #expect(throws: TokenError.self) { try closed.authenticate(authorization: text, now: present) }
            let refusal = try #require(error)
            check("\(refusal) \(String(reflecting: refusal)) \(refusal.requestError)", text)
        }
    }

    @Test
    func `No mistake in a file has a part of a secret`() throws {
        let directory = TemporaryDirectory("hearth-canary")
        let path = directory.path(of: "principals.json")
        let reader = #""name":"a","role":"reader","projects":["p"]"#
        let apiKey = #"{"id":"i","sha256":"\#(canary)","created":1}"#
        let serviceKey = #"{"id":"i","publicKey":"\#(canary)","created":1}"#
        let texts = [
            canary,
            #"{"principals":[{\#(reader),"apiKeys":[\#(apiKey)]}]}"#,
            #"{"principals":[{\#(reader),"apiKeys":["\#(canary)"]}]}"#,
            #"{"principals":[{"name":"a","role":"\#(canary)","projects":["p"]}]}"#,
            #"{"principals":[{\#(reader),"serviceAccount":{"email":"e","tokenURI":"t","keys":[\#(serviceKey)]}}]}"#,
        ]
        for text in texts {
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
            let error = #expect(throws: PrincipalFault.self) { try Principals(PrincipalFile.read(path)) }
            check(try #require(error).description, text)
        }
        for text in [
            canary, #"{"keys":[{"kty":"RSA","n":"\#(canary)","e":"AQAB","kid":"\#(canary)","d":"\#(canary)"}]}"#,
        ] {
            let error = #expect(throws: KeyFault.self) { try KeySet.read(text: Array(text.utf8)) }
            check(try #require(error).description, text)
        }
    }

    private func check(_ message: String, _ text: String) {
        expect(!message.contains(canary), "\(text)")
        // Its middle as base64url, at each of the three alignments.
        for start in 0..<3 {
            let encoded = base64URL(String(canary.dropFirst(start)))
            expect(!message.contains(encoded.dropFirst(4).prefix(12)), "\(text)")
        }
    }
}
