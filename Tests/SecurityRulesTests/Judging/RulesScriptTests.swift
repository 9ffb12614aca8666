// Golden cases: rules with requests that they allow and deny. `Ruleset` and `RulesTestFile`.

import Foundation
import SecurityRules
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RulesScriptTests {
    static let scripts: [URL] = {
        let folder = Bundle.module.url(forResource: "RulesScripts", withExtension: nil)
        let files = folder.flatMap {
            try? FileManager.default.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil)
        }
        return (files ?? []).sorted { $0.path < $1.path }
    }()

    @Test
    func `There are scripts`() { expect(Self.scripts.count >= 3) }

    @Test(arguments: scripts)
    func `Every case of a script is decided as it says`(script: URL) throws {
        let file = try RulesTestFile(try String(contentsOf: script, encoding: .utf8))
        let ruleset = try Ruleset(try #require(file.rules))
        expect(ruleset.warnings.isEmpty || script.lastPathComponent == "versions.txt")
        for test in file.cases {
            let verdict = test.verdict(by: ruleset)
            expectEqual(
                verdict.isAllowed, test.isAllowed,
                "line \(test.line): \(test.text)\n\(ruleset.explanation(of: verdict).joined(separator: "\n"))")
            expect(verdict.decision != .needs([]))
        }
    }

    @Test(arguments: [
        ("allow", 1), ("deny fly a/b", 1), ("user alice\nallow get a", 2), ("document a/b {", 1),
        ("allow list a where n ! 1", 1), ("allow list a where n == nothing", 1), ("time noon", 1), ("hello", 1),
    ])
    func `A line that cannot be read is named`(text: String, line: Int) {
        let error = #expect(throws: RulesTestError.self) { try RulesTestFile(text) }
        expectEqual(error?.line, line)
    }
}
