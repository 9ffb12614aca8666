// Regular expressions.

import Expressions
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct PatternTests {
    @Test(arguments: [
        ("a.*", "abc", true), ("b", "abc", false), ("", "", true), ("", "a", false), ("a|abc", "abc", true),
        ("(?i)ABC", "abc", true), ("..", "é😀", true), ("a.b", "a\nb", false), ("\\w", "é", false),
        ("[]a]", "]", true), ("(?<name>a)b", "ab", true), ("(?P<name>a)b", "ab", true), ("[(?<]", "<", true),
        ("\\Q(?<x\\E", "(?<x", true), ("a{1000}", String(repeating: "a", count: 1_000), true),
    ])
    func `A pattern matches the whole text`(pattern: String, text: String, isMatch: Bool) throws {
        try expectEqual(#require(Pattern(pattern)).matchesWhole(text), isMatch)
    }

    @Test(arguments: ["(", "a{1001}", "(?=a)", "(a)\\1", "\\C", "[z-a]", "*", String(repeating: "a", count: 70_000)])
    func `What RE2 does not have is refused`(pattern: String) {
        expectNil(Pattern(pattern))
    }

    @Test
    func `A match has the ranges of its groups`() throws {
        let pattern = try #require(Pattern("(?<first>b)(c)?"))
        expectEqual(pattern.groupCount, 2)
        expectEqual(pattern.group(named: "first"), 1)
        expectNil(pattern.group(named: "second"))
        expectEqual(pattern.firstMatch(in: "abd"), [1..<2, 1..<2, nil])
        expectNil(pattern.firstMatch(in: "abd", from: 2))
    }

    @Test(arguments: [
        ("a*", "aaa", [0..<3, 3..<3]), ("", "aé", [0..<0, 1..<1, 3..<3]), ("b", "abcb", [1..<2, 3..<4]),
        ("x", "", []),
    ])
    func `Matches follow each other, also empty ones`(pattern: String, text: String, ranges: [Range<Int>]) throws {
        var found: [Range<Int>] = []
        try #require(Pattern(pattern)).forEachMatch(in: text) { match in
            if let whole = match[0] { found.append(whole) }
        }
        expectEqual(found, ranges)
    }

    @Test
    func `A search costs what its pattern can make of a text`() throws {
        let simple = try #require(Pattern("a.c"))
        let slow = try #require(Pattern(".*a.{900}x"))
        expect(simple.searchCost(1_000) < 200_000)
        expect(slow.searchCost(1_000) > 10_000_000)
        // A pattern of a certain length looks no further than that.
        expect(simple.furtherSearchCost(1 << 20) < 100)
        try expect(#require(Pattern("a(.*x)?")).furtherSearchCost(1 << 20) >= 1 << 20)
    }

    @Test
    func `A pattern that would take exponential time elsewhere takes linear time`() throws {
        let pattern = try #require(Pattern("(a*)*b"))
        expect(!pattern.matchesWhole(String(repeating: "a", count: 100_000)))
    }
}
