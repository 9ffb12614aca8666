// Replays the saved corpus of the credentials' fuzzer; see Tests/Fuzz.

import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct FuzzCorpusTests {
    @Test
    func `Every saved input keeps every property`() throws {
        try FuzzCorpus.expectKept("Credential", over: 50, CredentialCheck.violation)
    }

    @Test
    func `Damaged tokens, keys and files keep every property`() throws {
        let point = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        let good = [
            Array(#"{"alg":"none"}"#.utf8) + [0] + Array(#"{"sub":"a","iat":1000,"exp":1000,"aud":["p"]}"#.utf8) + [0],
            try TestIssuer.token(),
            Array(#"{"principals":[{"name":"a","role":"reader","projects":["p"],"certificates":["DNS:a"]}]}"#.utf8),
            Array(#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"\#(point)"}]}"#.utf8),
        ]
        for seed in 0..<4000 {
            var random = SeededGenerator(seed: UInt64(seed))
            let bytes = random.damaged(random.pick(good))
            expectNil(CredentialCheck.violation(bytes), "seed \(seed)")
        }
    }
}
