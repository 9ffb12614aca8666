// Rules of the source tree: each violation with its file, its line and the remedy.

import TestSupport
import Testing

@Suite("Tidy", .timeLimit(.minutes(20))) struct TidyTests {
    @Test("The rules of the source tree hold", arguments: TidyRule.all)
    func rulesHold(rule: TidyRule) throws {
        var violations: [String: [Violation]] = [:]
        for file in try rule.files() {
            let found = rule.broken(file).map { Violation(file: file, index: $0) }
            if !found.isEmpty { violations[file.part, default: []] += found }
        }
        for (part, found) in violations.sorted(by: { $0.key < $1.key }) {
            let places = found.prefix(200).map(\.description).joined(separator: "\n")
            Issue.record("\(part): \(rule.name). There are \(found.count) violations. \(rule.remedy)\n\(places)")
        }
    }

    @Test("The rules find what breaks them")
    func rulesFind() {
        let long = String(repeating: "x", count: 121)
        let cases: [(TidyRule, [String], [Int])] = [
            (.lineLength, [long, String(long.dropLast()), String(repeating: "é", count: 120)], [0]),
            (
                .suitesHaveTimeLimits, ["@Suite struct A {", "@Suite(\"B\", .timeLimit(.minutes(20)))", "struct B {"],
                [0]
            ),
            (.suitesHaveTimeLimits, ["@Suite(", "    \"A\",", "    .serialized)", "struct A {}", "// @Suite"], [0]),
            (.answersAreNotDiscarded, ["    @discardable" + "Result", "// @discardable" + "Result"], [0]),
            (
                .expectationsAreFunctions,
                ["    #" + "expect(a == 1)", "expect(a)", "#" + "expect(throws: E.self) { f() }", "#" + "expect("],
                [0, 3]
            ),
            (.expectationsAreFunctions, ["#" + "expect(", "    throws: E.self", ") { f() }"], []),
            (.expectationsAreFunctions, ["#" + "expect(a.contains(b) { $0 })", "#" + "expect(\"a\") {"], [0]),
            (.nothingIsLeftToDo, ["// TO" + "DO: more", "let mastodon = 1", "// FIX" + "ME"], [0, 2]),
            (.sleepsHaveReasons, ["usleep" + "(20_000)", "usleep" + "(20_001_000)", "usleep" + "(count)"], [1, 2]),
            (.sleepsHaveReasons, ["// A kill at any moment.", "Task" + ".sleep(for: .seconds(1))"], []),
            (.plainPages, ["It hangs" + " on it.", "He is" + " told.", "There is no."], [0, 1]),
            (.plainPages, ["It is no longer there.", "It is no" + " use."], [1]),
            (.plainComments, ["let who" + "ever = 1", "// Who" + "ever", "f() // a" + "new"], [1, 2]),
            (.plainComments, ["func `It goes" + " on`() {", "func `A`() { goes(on) }"], [0]),
            (.plainComments, ["f(\"a\", \"be" + "hind\")", "f(\"be\", hind, \"\")"], [0]),
            (.plainComments, ["\"\"\"", "be" + "hind", "\"\"\"", "behind()"], [1]),
            (.plainComments, ["// MARK: Coming" + " in", "// MARK: Arrivals"], [0]),
            (.plainNames, ["func judgeAnew() {}", "let a = \"judge\" // judge", "let countMaximum = 1"], [0, 2]),
            (.plainNames, ["let maximum = 1", "\"\"\"", "judge", "\"\"\""], []),
            (.publicIsDocumented, ["public var a = 1", "/// One.", "@inlinable", "public func f() {"], [0]),
            (.publicIsDocumented, ["/// One.", "", "open class C {", "public override init() {}"], [2]),
            (.publicIsDocumented, ["public func encode(to encoder: any Encoder) {", "public import A"], []),
            (
                .inlinableMembersAreUsable,
                [
                    "package struct A {", "    @inlinable", "    package var a: Int { 1 }",
                    "    @inlinable package init() {}",
                ],
                [1, 3]
            ),
            (.inlinableMembersAreUsable, ["@usableFromInline package enum A {", "    @inlinable init() {}", "}"], []),
            (.inlinableMembersAreUsable, ["package struct A {", "}", "extension B {", "    @inlinable init() {}"], []),
            (.locksHoldNoClosures, ["let a = Mutex" + "<(@Sendable () -> Void)?>(nil)", "let b = Mutex(B())"], [0]),
            (.locksHoldNoClosures, ["let a = Monitor" + "<@Sendable () -> Void>({})", "// Mutex" + "<@Sendable"], [0]),
            (.sleepsHaveReasons, ["Task" + ".sleep(for: .milliseconds(5))", "Task" + ".sleep(for: .seconds(1))"], [1]),
        ]
        for (rule, lines, expected) in cases {
            let file = SourceFile(path: "Tests/A/B.swift", lines: lines.map { $0[...] })
            expectEqual(rule.broken(file), expected, "\(rule.name): \(lines)")
        }
    }
}
