// `hearth rules`.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RulesCommandTests {
    private static let rules = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            match /a/{id} { allow get: if resource.data.n == 1; }
          }
        }
        """

    @Test
    func `A valid file is accepted, an invalid one is shown with line, column, caret and remedy`() throws {
        let directory = TemporaryDirectory("rules")
        let file = directory.path(of: "firestore.rules")
        try Data(Self.rules.utf8).write(to: URL(fileURLWithPath: file))
        let valid = try HearthBinary.run(["rules", "check", file])
        expect(valid.status == 0 && valid.output == "\(file): valid, with 1 allow statements\n", "\(valid.errors)")
        let text = Self.rules.replacing("data.n ==", with: "data.n/2 ==")
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        let invalid = try HearthBinary.run(["rules", "check", file])
        expectEqual(invalid.status, 1)
        expect(invalid.output.hasPrefix("\(file):4:50: error: Unexpected '/2'"))
        expect(invalid.output.contains("^~\n") && invalid.output.contains("Write a space after '/' to divide."))
    }

    @Test
    func `A file may begin with a byte order mark, and a long line is shown in part`() throws {
        let directory = TemporaryDirectory("rules")
        let file = directory.path(of: "firestore.rules")
        func check(_ text: String) throws -> HearthBinary.Outcome {
            try Data(text.utf8).write(to: URL(fileURLWithPath: file))
            return try HearthBinary.run(["rules", "check", file])
        }
        let valid = try check("\u{FEFF}" + Self.rules)
        expect(valid.status == 0 && valid.output == "\(file): valid, with 1 allow statements\n", "\(valid.output)")
        // A mark elsewhere is an error, as in the emulator; nobody sees it, so the message names it.
        let other = try check(Self.rules.replacing("allow", with: "\u{FEFF}allow"))
        expect(other.output.hasPrefix("\(file):4:21: error: Unexpected character U+FEFF."), "\(other.output)")
        let rules = Self.rules.replacing("\n", with: " ").replacing("allow", with: "x allow")
        let blanks = String(repeating: " ", count: 10_000)
        let long = try check(rules + blanks)
        expect(long.output.utf8.count < 1_000 && long.output.contains(" x allow "), "\(long.output.utf8.count) bytes")
        let lines = long.output.split(separator: "\n")
        expect(lines[1].dropFirst(lines[2].prefix { $0 != "^" }.count).hasPrefix("x allow"))
        let late = try check(blanks + rules)
        expect(late.output.utf8.count < 1_000 && late.output.contains(" x allow "), "\(late.output.utf8.count) bytes")
        try expect(check(String(repeating: "x", count: 1 << 20)).output.utf8.count < 1_000)
    }

    @Test
    func `Cases of a test file pass or fail, with the reasons and the coverage`() throws {
        let directory = TemporaryDirectory("rules")
        let file = directory.path(of: "cases")
        try Data(Self.rules.utf8).write(to: URL(fileURLWithPath: directory.path(of: "firestore.rules")))
        let cases = "rules firestore.rules\ndocument a/x {\"n\": 1}\nallow get a/x\ndeny get a/y\n"
        try Data(cases.utf8).write(to: URL(fileURLWithPath: file))
        let passed = try HearthBinary.run(["rules", "test", file, "--coverage"])
        expectEqual(passed.status, 0, "\(passed.output)\(passed.errors)")
        expect(passed.output.contains("line 4: 1 true, 0 false, 1 failed: resource.data.n == 1\n2 cases passed"))
        try Data((cases + "allow get b/x\n").utf8).write(to: URL(fileURLWithPath: file))
        let failed = try HearthBinary.run(["rules", "test", file])
        expectEqual(failed.status, 1)
        expect(failed.output.contains("cases:5: allow get b/x\n  is denied:\n  no 'allow' fits"))
    }

    @Test
    func `One request is explained, allow by allow`() throws {
        let directory = TemporaryDirectory("rules")
        let file = directory.path(of: "firestore.rules")
        let more = "allow get: if request.auth.uid == 'ada'; allow get: if request.time.year() == 2030;"
        try Data(Self.rules.replacing("{ allow", with: "{\n      \(more)\n      allow").utf8)
            .write(to: URL(fileURLWithPath: file))
        func explain(_ flags: String...) throws -> HearthBinary.Outcome {
            try HearthBinary.run(["rules", "explain", file] + flags)
        }
        let (request, document) = (["--request", "get a/x"], ["--document", "a/x {\"n\":\n2}"])
        let denied = try HearthBinary.run(["rules", "explain", file] + request + document)
        expectEqual(denied.status, 0, "\(denied.errors)")
        let lines = denied.output.split(separator: "\n")
        expect(lines.count == 4 && lines.first == "denied", "\(denied.output)")
        expectEqual(lines.dropFirst().first?.hasPrefix("  line 5 fails in "), true, "\(denied.output)")
        expectEqual(lines.last?.hasPrefix("  line 6 is false: "), true, "\(denied.output)")
        let allowed = try explain("--request", "get a/x", "--user", "ada {}", "--coverage")
        expect(allowed.output.hasPrefix("allowed\n  line 5 allows: allow get"), "\(allowed.output)")
        expect(allowed.output.contains("line 5: 1 true, 0 false, 0 failed: request.auth.uid == 'ada'"))
        let later = try explain("--request", "get a/x", "--time", "2030-01-01T00:00:00Z")
        expect(later.output.hasPrefix("allowed\n"), "\(later.output)")
        try expect(explain().errors.contains("missing --request REQUEST"))
        try expect(explain("--request", "get a").errors.contains("allow get a: a is not the path of a document"))
        let wrong = try explain("--request", "get a/x", "--document", "a/x {")
        expect(wrong.status == 1 && wrong.errors.contains("document a/x {: the JSON is invalid"), "\(wrong.errors)")
    }
}
