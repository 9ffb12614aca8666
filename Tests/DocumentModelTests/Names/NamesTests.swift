// Resource names, ids and field paths: parsing, rules and order.

import Basics
import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ResourceNameTests {
    static let root = "projects/p/databases/(default)/documents"

    func problem(_ name: String, rules: NameRules = .stored) -> NameProblem? {
        name.withUTF8Span { bytes in
            do throws(NameProblem) {
                _ = try ResourceNameView(bytes, rules: rules)
                return nil
            } catch {
                return error
            }
        }
    }

    @Test
    func `A document name gives database, path and id`() throws {
        let name = "\(Self.root)/users/jeff/tasks/my_task_id"
        try name.withUTF8Span { bytes in
            let view = try ResourceNameView(bytes)
            expectEqual(String(repairingUTF8: view.databaseBytes), "projects/p/databases/(default)")
            expectEqual(String(repairingUTF8: view.pathBytes), "users/jeff/tasks/my_task_id")
            expectEqual(String(repairingUTF8: bytes.extracting(view.lastSegmentOffset..<bytes.byteCount)), "my_task_id")
            let count = view.segmentCount
            expectEqual(count, 4)
            var iterator = view.segments
            var segments: [String] = []
            while let segment = iterator.next() { segments.append(String(repairingUTF8: segment)) }
            expectEqual(segments, ["users", "jeff", "tasks", "my_task_id"])
        }
        let path = try DocumentPath(name)
        expectEqual(path.description, name)
        expectEqual(path.documentID, "my_task_id")
        expectEqual(path.parent.collectionID, "tasks")
        expectEqual(path.parent.parent?.path, "users/jeff")
        expectNil(path.parent.parent?.parent.parent)
        expectEqual(path.database.project, "p")
        expectEqual(path.database.database, "(default)")
    }

    @Test(arguments: [
        "", "/c", "/c/d", "/c\u{0}/d", "/____/d", "/c/__id7__", "/c/__id-9223372036854775808__", "/c/é", "/.../..a",
        "/c/" + String(repeating: "x", count: 1500),
    ])
    func `Names that are accepted`(path: String) {
        expectNil(problem(Self.root + path))
    }

    static let refusedNames: [(String, NameProblem)] = [
        ("projects/p", .notAResourceName),
        ("projects/p/databases", .notAResourceName),
        ("projects/p/databases/d", .notAResourceName),
        ("projects//databases/d/documents", .notAResourceName),
        ("projects/p/databases//documents", .notAResourceName),
        ("projects/p/databases/d/documentsx", .notAResourceName),
        ("projects/p/databases/d/document", .notAResourceName),
        (root + "/", .emptyID),
        (root + "//d", .emptyID),
        (root + "/c/", .emptyID),
        (root + "/./d", .dotID),
        (root + "/c/..", .dotID),
        (root + "/_____/d", .reservedID),
        (root + "/c/__x__", .reservedID),
        (root + "/c/__id01__", .reservedID),
        (root + "/c/__id-0__", .reservedID),
        (root + "/c/__id9223372036854775808__", .reservedID),
        (root + "/c/" + String(repeating: "x", count: 1501), .idTooLong),
        (root + String(repeating: "/c/d", count: 101), .tooDeep),
        (root + String(repeating: "/" + String(repeating: "x", count: 1500), count: 5), .nameTooLong),
    ]

    @Test(arguments: refusedNames)
    func `Names that are refused, with the rule they break`(name: String, rule: NameProblem) {
        expectEqual(problem(name), rule)
    }

    @Test(arguments: [
        ("/__id7__/d", "Collection id \"__id7__\" is invalid because it is reserved."),
        ("/c/d/__id-1__/e", "Collection id \"__id-1__\" is invalid because it is reserved."),
        ("/c/__id0__", "Resource id \"__id0__\" is invalid because it is reserved."),
        ("/c/__id0__/d/e", "Resource id \"__id0__\" is invalid because it is reserved."),
    ])
    func `A request cannot name reserved ids that earlier versions stored`(path: String, text: String) throws {
        let bytes = Array((Self.root + path).utf8)
        _ = try ResourceNameView(resource: bytes.span.bytes, rules: .stored)
        _ = try ResourceNameView(resource: bytes.span.bytes, rules: .query)
        do throws(RequestError) {
            _ = try ResourceNameView(resource: bytes.span.bytes, rules: .request)
            Issue.record("\(path) is accepted")
        } catch {
            expectEqual(error, .invalidArgument(text))
        }
    }

    @Test(arguments: ["__id1__", "__id-1__", "____", "__id"])
    func `Numeric document ids but zero are names in requests`(id: String) throws {
        let bytes = Array((Self.root + "/c/" + id).utf8)
        _ = try ResourceNameView(resource: bytes.span.bytes, rules: .request)
    }

    @Test
    func `Malformed UTF-8 in a name is refused`() {
        let bytes = Array((Self.root + "/c/").utf8) + [0xff]
        let copy = bytes
        #expect(throws: RequestError.self) { try DocumentPath(copy.span.bytes) }
    }

    @Test
    func `Queries may name reserved ids`() {
        expectNil(problem(Self.root + "/c/__x__", rules: .query))
        expectEqual(problem(Self.root + "/c/", rules: .query), .emptyID)
    }

    static let orderedIDs = [
        "__id-9223372036854775808__", "__id-1__", "__id0__", "__id9__", "__id10__", "", "A", "a", "a\u{0}", "é",
        "\u{ffff}", "😀",
    ]

    @Test(arguments: orderedIDs.indices.dropLast())
    func `Ids order numerically, then by UTF-8 bytes`(index: Int) {
        let (smaller, larger) = (Self.orderedIDs[index], Self.orderedIDs[index + 1])
        smaller.withUTF8Span { smaller in
            larger.withUTF8Span { larger in
                expect(ResourceID.compare(smaller, larger) < 0)
                expect(ResourceID.compare(larger, smaller) > 0)
                expectEqual(ResourceID.compare(smaller, smaller), 0)
            }
        }
    }

    @Test
    func `Paths order segment by segment, not by the bytes of the slash`() throws {
        let ordered = ["a/b", "a/b/c/d", "a/b!/c/d", "a!/b", "b/__id2__", "b/__id10__", "b/a"]
        let paths = try ordered.map { try DocumentPath("\(Self.root)/\($0)") }
        expectEqual(paths.shuffled().sorted(), paths)
    }

    @Test
    func `Canonically equivalent ids are different documents`() throws {
        let composed = try DocumentPath("\(Self.root)/c/\u{e9}")
        let decomposed = try DocumentPath("\(Self.root)/c/e\u{301}")
        expect(composed != decomposed)
        expectEqual(Set([composed, decomposed]).count, 2)
    }
}

@Suite(.timeLimit(.minutes(20))) struct FieldPathTests {
    /// Many are sorted by the bytes of keys, few by comparisons.
    @Test(arguments: [0, 1, 2, 256, 257, 3_000])
    func `Any number of paths is sorted, and equal ones keep their order`(count: Int) throws {
        var random = SystemRandomNumberGenerator()
        let pieces: [[UInt8]] = [[0], [0, 0], [0, 1], [1], [0x61], [0x61, 0], [0x61, 0x62], [0xC3, 0xBF], [0x7F]]
        let paths = try (0..<count).map { _ in
            try FieldPath(
                utf8Segments: (0..<Int.random(in: 1...4, using: &random)).map { _ in
                    (0..<Int.random(in: 1...3, using: &random)).flatMap { _ in
                        pieces[Int.random(in: 0..<pieces.count, using: &random)]
                    }
                })
        }
        let numbered = Array(zip(paths, 0...))
        var sorted = numbered
        sorted.sort(byPath: \.0)
        let expected = numbered.sorted { left, right in
            let (one, other) = (left.0.utf8Segments, right.0.utf8Segments)
            if one == other { return left.1 < right.1 }
            return one.lexicographicallyPrecedes(other) { $0.lexicographicallyPrecedes($1) }
        }
        expectEqual(sorted.map(\.1), expected.map(\.1), "\(paths)")
    }

    @Test(
        "Text forms parse into segments and print again",
        arguments: [
            ("a", ["a"]), ("a.b_1._c", ["a", "b_1", "_c"]), ("`a-b`.c", ["a-b", "c"]), ("`é`", ["é"]),
            (#"`a\`b`"#, ["a`b"]), (#"`a\\`"#, [#"a\"#]), ("`a.b`", ["a.b"]), ("`1`.x", ["1", "x"]),
            ("__name__", ["__name__"]),
        ])
    func roundTrip(text: String, segments: [String]) throws {
        let path = try FieldPath(text)
        expectEqual(path.segments, segments)
        expectEqual(path.description, text)
        try expectEqual(FieldPath(segments: segments), path)
    }

    @Test(arguments: [
        "", ".", "a.", ".a", "a..b", "a-b", "1a", "é", "`a", "`a`b", "`a\\", "``", "a.``", "__x__", "a.__name__",
        "a b",
        String(repeating: "x", count: 1501),
    ])
    func `Malformed paths are refused`(text: String) {
        #expect(throws: RequestError.self) { try FieldPath(text) }
    }

    private static let regularExpressions =
        #"Unquoted property paths must match regex ([a-zA-Z_][a-zA-Z_0-9]*), and quoted property paths must "#
        + #"match regex (`(?:[^`\\]|(?:\\.))+`)"#

    @Test(arguments: [
        ("", "Invalid empty property path string."),
        ("a-b", "Invalid property path \"a-b\". \(regularExpressions)"),
        ("a..b", "Invalid property path \"a..b\". \(regularExpressions)"),
        ("`a", "Invalid property path \"`a\". \(regularExpressions)"),
        ("``", "Invalid property path \"``\". \(regularExpressions)"),
        ("a.__x__", "Invalid reserved name in field path __x__"),
        (String(repeating: "x", count: 1501), "property path is longer than 1500 bytes."),
        (Array(repeating: "a", count: 21).joined(separator: "."), "paths must have at most 20 elements"),
        (String(repeating: "x", count: 5000), "property path is longer than 1500 bytes."),
    ])
    func `Refusals are in the cloud's words`(text: String, message: String) {
        #expect(throws: RequestError.invalidArgument(message)) { try FieldPath(text) }
    }

    @Test
    func `Prefixes and order go by segments`() throws {
        let a = try FieldPath("a")
        let ab = try FieldPath("a.b")
        expect(a.isPrefix(of: ab))
        expect(a.isPrefix(of: a))
        expect(!ab.isPrefix(of: a))
        expect(a < ab)
        try expect(ab < FieldPath("`a!`"))
        expectEqual(ab.parent, a)
        expectNil(a.parent)
    }
}
