// `hearth rules`: security rules, checked and tested without a server.

import Expressions
import SecurityRules

/// Checks a `firestore.rules`, or runs the cases of a test file.
enum RulesCommand: Subcommand {
    static let name = "rules"
    static let summary = "Checks security rules, or runs test cases for them."
    static let words = ["ACTION", "FILE"]

    static let discussion = """
        ACTION is check or test. check reads the rules in FILE and prints each error and
        warning with its line, a caret and what to do. The exit status is 1 if there is an
        error.

        test runs the cases in FILE, one request a line:

          rules firestore.rules
          document users/alice {"role": "admin"}
          user alice {"email": "alice@example.com"}
          allow get users/alice
          deny update users/alice {"role": "owner"}
          allow list posts where owner == "alice" order date limit 10

        docs/rules.md describes the format. For each case that is decided otherwise, test
        prints every allow that fits the request and why it does not allow. --coverage prints
        how often each expression of a condition was true, false or failed.

        Examples:

          hearth rules check firestore.rules
          hearth rules test firestore.rules.test --coverage
        """

    static let coverage = Flag(switch: "coverage", help: "Print the outcomes of all conditions and their parts.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [coverage])]

    static func run(_ arguments: ParsedArguments) async throws {
        let file = arguments.words[1]
        switch arguments.words[0] {
        case "check":
            let ruleset = try ruleset(try text(of: file), file: file)
            try StandardOutput.print("\(file): valid, with \(ruleset.statements.count) allow statements")
        case "test": try test(file, printsCoverage: arguments[coverage])
        case let action: throw UsageError(message: "\"\(action)\" is not check or test")
        }
    }

    private static func text(of file: String) throws -> String {
        guard let bytes = try InputFile.contents(of: file) else { throw CommandFailure("cannot read \(file)") }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw CommandFailure("\(file) is not UTF-8") }
        return text
    }

    /// Compiles rules and prints what is wrong with them.
    private static func ruleset(_ text: String, file: String) throws -> Ruleset {
        func show(_ diagnostics: [RulesDiagnostic]) throws {
            let source = SourceText(text)
            for diagnostic in diagnostics { try StandardOutput.print(diagnostic.rendered(in: source, file: file)) }
        }
        do {
            let ruleset = try Ruleset(text)
            try show(ruleset.warnings)
            return ruleset
        } catch let error as InvalidRules {
            try show(error.diagnostics)
            throw CommandFailure("\(file) has errors")
        }
    }

    private static func test(_ file: String, printsCoverage: Bool) throws {
        let tests: RulesTestFile
        do {
            tests = try RulesTestFile(try text(of: file))
        } catch let error as RulesTestError {
            throw CommandFailure("\(file), \(error)")
        }
        let ruleset = try ruleset(of: tests, in: file)
        let coverage = ExpressionCoverage(expressions: ruleset.tree.count)
        var failures = 0
        for test in tests.cases {
            let verdict = test.verdict(by: ruleset, coverage: coverage)
            for line in verdict.debugLines { try StandardOutput.print("\(file):\(test.line): debug: \(line)") }
            if verdict.isAllowed == test.isAllowed { continue }
            failures += 1
            try StandardOutput.print(
                "\(file):\(test.line): \(test.text)\n  is \(verdict.isAllowed ? "allowed" : "denied"):")
            for line in ruleset.explanation(of: verdict) { try StandardOutput.print("  \(line)") }
        }
        if printsCoverage {
            for line in ruleset.coverageLines(coverage) { try StandardOutput.print(line) }
        }
        if failures > 0 { throw CommandFailure("\(failures) of \(tests.cases.count) cases failed") }
        try StandardOutput.print("\(tests.cases.count) cases passed")
    }

    /// The rules in a test file, or in the file that it names, which is relative to its folder.
    private static func ruleset(of tests: RulesTestFile, in file: String) throws -> Ruleset {
        if let rules = tests.rules { return try ruleset(rules, file: file) }
        guard let name = tests.rulesFile else { throw CommandFailure("\(file) has no rules") }
        let folder = file.lastIndex(of: "/").map { String(file[...$0]) } ?? ""
        let path = name.hasPrefix("/") ? name : folder + name
        return try ruleset(try text(of: path), file: path)
    }
}
