// The grammar, and messages for texts that break it.

import Glibc
import TestSupport
import Testing

@testable import SecurityRules

@Suite(.timeLimit(.minutes(20)))
struct ParserTests {
    /// The message of the first error, or nil.
    private func error(_ text: String) -> RulesDiagnostic? {
        do {
            _ = try Ruleset(text)
            return nil
        } catch {
            return error.diagnostics.first { $0.severity == .error }
        }
    }

    private static func inBody(_ text: String) -> String {
        "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents { \(text) } }"
    }

    @Test(arguments: [
        "match /a/{b} { allow read; }", "match /a/{b} { allow read, write: if true }",
        "match /a/{b} { allow GET: if true; allow write }", "allow read: if true;",
        "match /a/{b=*} { allow read; }", "match /{b=**}/c/{x} { allow read; }", "match /a/{ b } { allow read; }",
        "match /a-b.c:d@e~f/{b = **} { allow read; }", "match /a/(b)/%41{ allow read; }",
        "match /** { allow read; }",
        "function f() { return true } match /a/{f} { allow read: if f(); }",
        "function f(a, b) { let x = a; let y = x; return x == y && b; }",
        "match /a/{b} { function b() { return b; } allow read: if b(); }",
        "function get(x) { return x; } function debug() { return 1; } match /a/{request} { allow read; }",
        "/* a */ match /a/{b} { // b\n allow read; }", "match /a/{b} { allow read: if x.in.is.match.if.true; }",
        "match /a/{b} { allow read: if f(1,) == [1,] && {'a': 1,} == {}; }",
        "match /a/{b} { allow read: if a[1:] == a[:2]; }", "match /a/{b} { allow read: if /a /b == /{x = **}; }",
        "match /a/{b} { allow read: if .5 + 5. > 1.0; }", "match /a/{b} { allow read: if a ? b : c ? d : e; }",
        "match /a/{b} { allow read: if math.abs(1) == 1; }",
        "match /a/{b} { allow read: if 1 - -1 == -(-a.b) && !!true; }",
    ])
    func `Valid declarations`(text: String) {
        expectNil(error(Self.inBody(text)))
    }

    @Test(arguments: [
        ("", "body must contain"), ("match /a/{b} { }", "body must contain"),
        ("match a/{b} { allow read; }", "path"),
        ("match /a/{b} { allow : if true; }", "operation"), ("match /a/{b} { allow read if true; }", "Missing ':'"),
        ("match /a/{b} { allow read: true; }", "'if' was expected"),
        ("match /a/{b} { allow read: if; }", "expression"),
        ("match /a/{b}/{b} { allow read; }", "already exists"), ("match /a/$(x) { allow read; }", "cannot have"),
        ("match /{a=**}/{b=**} { allow read; }", "Only one"), ("match /a/{math} { allow read; }", "package"),
        ("match /{a=**} { match /{b=**} { allow read; } }", "Only one"),
        ("function f(a, a) { return a; }", "already defined"),
        ("function f(a) { let a = 1; return a; }", "already bound"),
        ("function f() { return f(); }", "Recursive"),
        ("function f() { return true; } function f() { return 1; }", "already"),
        ("function f() { return g(); } function g() { return f(); }", "Recursive"),
        ("function f() { }", "'return'"),
        ("function f() { let a = 1 return a; }", "';'"), ("function f(a,b,c,d,e,f,g,h) { return a; }", "arguments"),
        ("function if() { return true; }", "name of a function"),
        ("match /a/{b} { allow read: if 100/10 == 10; }", "/10"),
        ("match /a/{b} { allow read: if 'a; }", "Missing a closing '"),
        ("match /a/{b} { allow read: if '\\q'; }", "escape"),
        ("match /a/{b} { allow read: if b'\\u0041'; }", "bytes"), ("match /a/{b} { allow read: if 1e3; }", "e3"),
        ("match /a/{b} { allow read: if 007; }", "'0'"), ("match /a/{b} { allow read: if +1; }", "'+'"),
        ("match /a/{b} { allow read: if - -1; }", "'-'"), ("match /a/{b} { allow read: if -!a; }", "'!'"),
        ("match /a/{b} { allow read: if --1; }", "decrement"), ("match /a/{b} { allow read: if a = b; }", "'='"),
        ("match /a/{b} { allow read: if 9223372036854775808; }", "number"),
        ("match /a/{b} { allow read: if x is y; }", "'is'"),
        ("match /a/{b} { allow read: if 'a'.matches('('); }", "regular expression"),
        ("match /a/{b} { allow read: if math; }", "package"),
        ("match /a/{b} { allow read: if x[]; }", "expression"),
        ("match /a/{b} { allow read: if f(1)(2); }", "'('"), ("match /a/{b} { allow read: if äb; }", "character"),
        ("match /a/{b} { allow read: if let; }", "'let'"), ("match /a/{b} { allow read; };", "';'"),
    ])
    func `Invalid declarations`(text: String, message: String) throws {
        let diagnostic = try #require(error(Self.inBody(text)))
        expect(diagnostic.message.contains(message))
    }

    @Test(arguments: [
        ("", "no rules"), ("service cloud.firestore {}", "body must contain"),
        ("rules_version = '3'; service a { function f() { return 1; } }", "version"),
        ("\u{FEFF}service a {}", "character"),
        ("service a { allow read; }", "'allow'"),
        ("service a { function f() { return 1; } } service a { function f() { return 1; } }", "Duplicate"),
        ("service cloud.firestore { match /{a=**}/b { allow read; } }", "last segment"),
        ("service cloud.firestore { function f() { let a = 1; return a; } }", "rules_version"),
    ])
    func `Whole texts`(text: String, message: String) throws {
        let diagnostic = try #require(error(text))
        expect(diagnostic.message.contains(message))
    }

    @Test
    func `A message has line, column, caret and remedy`() throws {
        let text = "rules_version = '2';\nservice cloud.firestore {\n\tmatch /ä { allow read: if 4/2 == 2; }\n}"
        let diagnostic = try #require(error("// é\n" + text))
        let shown = diagnostic.rendered(in: SourceText("// é\n" + text), file: "f.rules")
        expect(shown.hasPrefix("f.rules:4:8: error: "))
        let plain = try #require(error(text.replacing("ä", with: "a")))
        let lines = plain.rendered(in: SourceText(text.replacing("ä", with: "a")), file: "f").split(separator: "\n")
        expect(lines[0].hasPrefix("f:3:29: error: Unexpected '/2'"))
        expectEqual(lines[2], "    \t" + String(repeating: " ", count: 27) + "^~")
        expect(lines[3].contains("Write a space after '/'"))
    }

    @Test
    func `Limits of texts`() throws {
        func nested(_ count: Int) -> String {
            rules(String(repeating: "(", count: count) + "true" + String(repeating: ")", count: count))
        }
        expectNil(error(nested(98)))
        expectEqual(error(nested(99))?.message.contains("too complex"), true)
        expectEqual(error(nested(100_000))?.message.contains("too complex"), true)
        expect(error(rules(String(repeating: "!", count: 100_000) + "true")) != nil)
        expectEqual(
            error(rules(String(repeating: "true && ", count: 20_000) + "true"))?.message.contains("complex"), true)
        expectEqual(error(rules("true") + String(repeating: " ", count: 256 << 10))?.message.contains("bytes"), true)
        let chain = (0..<5_000).map { "function f\($0)() { return f\($0 + 1)(); }" }.joined()
        expectEqual(error(rules("f0()", functions: chain))?.message.contains("call depth"), true)
        func calls(_ count: Int) -> String {
            let functions = (1..<count).map { "function f\($0)() { return f\($0 - 1)(); }" }
            return rules(
                "f\(count - 1)()", functions: "function f0() { return true; }" + functions.joined())
        }
        expectNil(error(calls(21)))
        expectEqual(error(calls(22))?.message.contains("call depth"), true)
        let lets = { (count: Int) in
            let variables = (0..<count).map { "let a\($0) = 1;" }.joined()
            return rules("f()", functions: "function f() { \(variables) return true; }")
        }
        expectNil(error(lets(11)))
        expect(error(lets(12)) != nil)
        let deep = { (count: Int) in
            "service cloud.firestore { " + (0..<count).map { "match /a\($0) { " }.joined() + "allow read; "
                + String(repeating: "}", count: count + 1)
        }
        expectNil(error(deep(RulesLimits.matchDepth)))
        expect(error(deep(RulesLimits.matchDepth + 1)) != nil)
        let wildcards = (0..<21).map { "/{w\($0)}" }.joined()
        expectEqual(error(Self.inBody("match \(wildcards) { allow read; }"))?.message.contains("wildcards"), true)
    }

    /// An event loop compiles the rules that arrive over the network. Compiled within each other, the functions with
    /// `!` would take 5 MB of its stack.
    @Test(arguments: ["(true && ", "!", "[", "string(", "get(/a/$("])
    func `Functions that nest and call each other as deeply as permitted compile on a small stack`(
        before: String
    ) throws {
        let after = String(before.compactMap { ["(": ")", "[": "]"][$0] as Character? }.reversed())
        func function(_ number: Int, _ count: Int) -> String {
            let nested =
                String(repeating: before, count: count) + "f\(number + 1)()" + String(repeating: after, count: count)
            return "function f\(number)() { return \(nested); }"
        }
        let last = "function f20() { return true; }"
        let deepest = try #require(
            (1...98).last { error(rules("f19()", functions: last + function(19, $0))) == nil })
        expect(deepest >= 20)
        let text = rules("f0()", functions: last + (0..<20).map { function($0, deepest) }.joined())
        try expectNil(message(text, stackBytes: 4 << 20))
    }

    /// Each level of brackets has an operator of each precedence, the right operand of the one before.
    @Test
    func `Operators within brackets count as levels, so that they take little of the stack`() throws {
        let level = "1 || 1 && 1 in 1 == 1 < 1 + 1 * ("
        let text = rules(String(repeating: level, count: 3_000) + "1" + String(repeating: ")", count: 3_000))
        try expectEqual(message(text, stackBytes: 2 << 20)?.contains("too complex"), true)
    }

    /// The message of the first error, found on a thread with a stack of this size.
    private func message(_ text: String, stackBytes: Int) throws -> String? {
        let run = StackRun { self.error(text)?.message }
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, stackBytes)
        var thread = pthread_t()
        let status = pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument else { return nil }
                let run = Unmanaged<StackRun>.fromOpaque(argument).takeUnretainedValue()
                run.result = run.body()
                return nil
            }, Unmanaged.passUnretained(run).toOpaque())
        try #require(status == 0)
        pthread_join(thread, nil)
        return run.result
    }

    /// What the thread of ``message(_:stackBytes:)`` does, and its result.
    private final class StackRun {
        let body: () -> String?
        var result: String?

        init(_ body: @escaping () -> String?) { self.body = body }
    }

    /// If the end of each were looked for in all of the text, this would take minutes.
    @Test
    func `Comments that do not end are segments of paths`() throws {
        let many = String(repeating: "/*a", count: 80_000)
        expect(Self.inBody("match \(many) { allow read; }").utf8.count < RulesLimits.sourceBytes)
        expectNil(error(Self.inBody("match \(many) { allow read; }")))
        expect(error(Self.inBody("match \(many) { allow read; } /* the end */")) != nil)
        expectNil(error(Self.inBody("/* one /* two */ match /a/{b} { allow read; } /**/")))
    }

    @Test
    func `Names that do not exist are warnings`() throws {
        let ruleset = try Ruleset(
            rules(
                "unknown || none(1) || 'a'.nothing() || math.none() || math.abs()",
                functions: "function f() { return 1; }"))
        let expected = [
            "Unused function: f.", "Invalid variable name: unknown.", "Invalid function name: none.",
            "Invalid function name: nothing.", "Invalid function name: math.none.",
            "Incorrect number of arguments supplied to function: math.abs.",
        ]
        expectEqual(Set(ruleset.warnings.map(\.message)), Set(expected))
        expect(!ruleset.judge(request()).isAllowed)
    }
    @Test
    func `An error is reported, however many warnings are before it`() {
        let unknown = String(repeating: "allow read: if unknown; ", count: RulesLimits.diagnostics + 10)
        let found = error(Self.inBody("match /a/{b} { \(unknown) match /c/{x}/{x} { allow read; } }"))
        expectEqual(found?.message, "Variable x already exists in the path.")
    }
}
