// Replays the saved corpus of the fuzzer of rules, and texts that mutate valid ones; see Tests/Fuzz.

import TestSupport
import Testing

@testable import SecurityRules

@Suite(.timeLimit(.minutes(20)))
struct RulesFuzzCorpusTests {
    @Test
    func `Every saved input of the fuzzer keeps every property`() throws {
        let inputs = try Repository.corpus("SecurityRules")
        #expect(inputs.count > 20)
        for (name, bytes) in inputs { #expect(RulesCheck.violation(bytes) == nil, "\(name)") }
    }

    @Test
    func `Texts with parts removed, repeated and exchanged keep every property`() throws {
        let scripts = try RulesScriptTests.scripts.map {
            try #require(try RulesTestFile(try String(contentsOf: $0, encoding: .utf8)).rules)
        }
        var random = SeededGenerator(seed: UInt64(CaseShare.number))
        for _ in 0..<300 {
            let bytes = random.damaged(
                Array(random.pick(scripts).utf8), replacements: Array("{}()[]/$*.,;:=!&|'\"0a\u{0}".utf8))
            #expect(
                RulesCheck.violation(bytes) == nil, "seed \(random.seed): \(String(decoding: bytes, as: UTF8.self))")
        }
    }
}
