// Path strings of the API.

import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct PathRulesTests {
    @Test(arguments: [
        ("a", ["a"]), ("/a/", ["a"]), ("a/b/c", ["a", "b", "c"]), ("/a/b", ["a", "b"]),
        ("a b/ü.x", ["a b", "ü.x"]),
        ("a/\u{301}b", ["a", "\u{301}b"]), ("/\u{301}a/", ["\u{301}a"]),
    ])
    func `Outer slashes are tolerated, everything else is literal`(path: String, expected: [String]) throws {
        try expectEqual(PathRules.segments(path), expected)
    }

    @Test(arguments: [
        ("", "Path cannot be empty."), ("/", "Path cannot be empty."),
        ("a//b", "Invalid path (a//b). Paths must not contain // in them."),
        ("//a", "Invalid path (//a). Paths must not contain // in them."),
    ])
    func `Empty paths and empty segments are programming errors`(path: String, message: String) {
        #expect(throws: RuleViolation(message)) { try PathRules.segments(path) }
    }

    @Test
    func `Collections have an odd number of segments, documents an even one`() throws {
        try expectEqual(PathRules.collection("a/b/c"), ["a", "b", "c"])
        try expectEqual(PathRules.collection("c", below: ["a", "b"]), ["a", "b", "c"])
        try expectEqual(PathRules.document("b", below: ["a"]), ["a", "b"])
        try expectEqual(PathRules.document("b/c/d", below: ["a"]), ["a", "b", "c", "d"])
        #expect(
            throws: RuleViolation(
                "Invalid collection reference. Collection references must have an odd number of segments, but a/b has 2"
            )
        ) { try PathRules.collection("a/b") }
        #expect(
            throws: RuleViolation(
                "Invalid document reference. Document references must have an even number of segments, but a/b/c has 3")
        ) { try PathRules.document("b/c", below: ["a"]) }
    }

    @Test(arguments: ["", "a/b", "/"])
    func `A collection group is one id`(id: String) {
        #expect(throws: RuleViolation.self) { try PathRules.collectionGroup(id) }
    }

    @Test
    func `Automatic ids are 20 letters and digits, and do not repeat`() {
        let ids = (0..<2000).map { _ in AutoID.next() }
        expectEqual(Set(ids).count, ids.count)
        for id in ids {
            expectEqual(id.utf8.count, 20)
            expect(id.utf8.allSatisfy { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7a || $0 >= 0x30 && $0 <= 0x39 })
        }
        expectEqual(Set(ids.joined()).count, 62, "every character of the alphabet occurs")
    }
}
