// `hearth rules`: security rules, checked and tested without a server, and applied to one.

import Expressions
import SecurityRules

/// Checks, tests, explains and applies security rules.
enum RulesCommand: AsyncSubcommand {
    static let name = "rules"
    static let summary = "Checks, tests, explains and applies security rules."
    static let words = ["ACTION", "[FILE]"]
    static let actions = ["check", "test", "explain", "apply", "rollback", "list", "show"]

    static let discussion = """
        ACTION is check, test, explain, apply, rollback, list or show. check reads the rules
        in FILE and prints each error and warning with its line, a caret and what to do. The
        exit status is 1 if there is an error.

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

        explain judges one request by the rules in FILE and prints every allow that fits
        it, and why it allows or does not. --request, --document, --user and --time are
        lines of a test file without their first words.

        apply checks FILE and puts it in force. The data directory keeps it: a server takes
        the newest rules of its directory, unless it runs with --rules. A running server
        has them in force when the command ends; streams are judged again. An open server
        is closed from then on. rollback puts the rules before the current ones in force
        again. list prints the rules that are kept, up to 100, the newest last; show prints
        the text of those with a number, or of the newest. --data names the data directory,
        whose owner may change rules; --to names a server, and HEARTH_TOKEN has the
        credential of an admin.

        Examples:

          hearth rules check firestore.rules
          hearth rules apply firestore.rules --data /var/lib/hearth
          hearth rules show 3 --to db.example.org:8080 --tls
          hearth rules test firestore.rules.test --coverage
          hearth rules explain firestore.rules --request "get users/alice" --user alice
        """

    static let coverage = Flag(switch: "coverage", help: "Print the outcomes of all conditions and their parts.")
    private static let request = Flag<String>(
        "request", "REQUEST", required: false, help: "explain: the request, such as 'get users/alice'.")
    private static let documents = Flag<String>(
        repeatable: "document", "DOCUMENT", help: "explain: a document, such as 'users/alice {\"role\": \"admin\"}'.")
    private static let user = Flag<String>(
        "user", "USER", required: false, help: "explain: who asks, such as 'alice {\"email\": \"a@example.com\"}'.")
    private static let time = Flag<String>(
        "time", "TIME", required: false, help: "explain: when, such as 2026-01-01T00:00:00Z, which is the default.")
    static let json = Flag(
        switch: "json", help: "list prints objects with the members number, time, bytes and inForce.")
    static let flagGroups = [
        FlagGroup(heading: "Flags", flags: [coverage, json]),
        FlagGroup(heading: "The request (explain)", flags: [request, documents, user, time]),
        FlagGroup(heading: "The place (apply, rollback, list, show)", flags: RulesActions.flags),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let action = try action(arguments)
        if ["rollback", "list", "show"].contains(action) { return try await runWithoutFile(action, arguments) }
        guard arguments.words.count == 2 else { throw UsageError(message: "usage: hearth rules \(action) FILE") }
        let file = arguments.words[1]
        switch action {
        case "check":
            let ruleset = try ruleset(try RulesFile.text(of: file), file: file)
            try StandardOutput.print("\(file): valid, with \(ruleset.statements.count) allow statements")
        case "test": try test(file, printsCoverage: arguments[coverage])
        case "explain": try explain(file, arguments)
        default:
            let text = try RulesFile.text(of: file)
            _ = try ruleset(text, file: file)
            try await RulesActions.apply(text, of: file, arguments)
        }
    }

    private static func runWithoutFile(_ action: String, _ arguments: ParsedArguments) async throws {
        let word = arguments.words.dropFirst().first
        if action == "show" { return try await RulesActions.show(word, arguments) }
        if let word { throw UsageError(message: "unexpected argument \"\(word)\"") }
        if action == "list" {
            try await RulesActions.list(arguments)
        } else {
            try await RulesActions.rollback(arguments)
        }
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
            tests = try RulesTestFile(try RulesFile.text(of: file))
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

    // MARK: explain

    private static func explain(_ file: String, _ arguments: ParsedArguments) throws {
        let ruleset = try ruleset(try RulesFile.text(of: file), file: file)
        let test = try testCase(arguments)
        let coverage = ExpressionCoverage(expressions: ruleset.tree.count)
        let verdict = test.verdict(by: ruleset, coverage: coverage)
        for line in verdict.debugLines { try StandardOutput.print("debug: \(line)") }
        try StandardOutput.print(verdict.isAllowed ? "allowed" : "denied")
        for line in ruleset.explanation(of: verdict) { try StandardOutput.print("  \(line)") }
        guard arguments[self.coverage] else { return }
        for line in ruleset.coverageLines(coverage) { try StandardOutput.print(line) }
    }

    /// The request of a command line: the flags are lines of a test file.
    private static func testCase(_ arguments: ParsedArguments) throws -> RulesTestCase {
        let missing = UsageError(message: "missing --request REQUEST")
        guard let request = arguments.value(of: request) else { throw missing }
        var lines = arguments.values(of: documents).map { "document \($0)" }
        if let time = arguments.value(of: time) { lines.append("time \(time)") }
        if let user = arguments.value(of: user) { lines.append("user \(user)") }
        lines.append("allow \(request)")
        // A line feed between the tokens of JSON is white space.
        lines = lines.map { line in String(line.map { $0 == "\n" || $0 == "\r\n" ? " " : $0 }) }
        let file: RulesTestFile
        do throws(RulesTestError) {
            file = try RulesTestFile(lines.joined(separator: "\n"))
        } catch {
            throw CommandFailure("\(lines[error.line - 1]): \(error.message)")
        }
        guard let test = file.cases.first else { throw missing }
        return test
    }

    /// The rules in a test file, or in the file that it names, which is relative to its folder.
    private static func ruleset(of tests: RulesTestFile, in file: String) throws -> Ruleset {
        if let rules = tests.rules { return try ruleset(rules, file: file) }
        guard let name = tests.rulesFile else { throw CommandFailure("\(file) has no rules") }
        let folder = file.lastIndex(of: "/").map { String(file[...$0]) } ?? ""
        let path = name.hasPrefix("/") ? name : folder + name
        return try ruleset(try RulesFile.text(of: path), file: path)
    }
}
