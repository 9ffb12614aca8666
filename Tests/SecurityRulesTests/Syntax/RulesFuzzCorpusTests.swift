// Replays the saved corpus of the fuzzer of rules, and texts that mutate valid ones; see Tests/Fuzz.

import TestSupport
import Testing

@testable import SecurityRules

@Suite(.timeLimit(.minutes(20)))
struct RulesFuzzCorpusTests {
    @Test
    func `Every saved input of the fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("SecurityRules", over: 20, RulesCheck.violation)
    }

    @Test
    func `Texts with parts removed, repeated and exchanged keep every property`() throws {
        let scripts = try RulesScriptTests.scripts.map {
            Array(try #require(try RulesTestFile(try String(contentsOf: $0, encoding: .utf8)).rules).utf8)
        }
        FuzzCorpus.expectKept(
            damaged: scripts, rounds: 300, replacements: Array("{}()[]/$*.,;:=!&|'\"0a\u{0}".utf8),
            RulesCheck.violation)
    }
}
