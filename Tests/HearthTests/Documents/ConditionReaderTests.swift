// Conditions as people write them: fields, operators, values, and text that is not a condition.

import Basics
import DocumentModel
import FirestoreService
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20))) struct ConditionReaderTests {
    private static func read(_ text: String, collection: String? = "books") throws -> DocumentModel.Filter {
        try ConditionReader(database: try DatabaseName(project: "p"), collection: collection).read(text)
    }

    private static func filter(
        _ field: String, _ meaning: FieldOperator, _ value: Value
    ) throws -> DocumentModel.Filter {
        .field(try DocumentModel.FieldPath(field), meaning, EncodedValue(value))
    }

    @Test(arguments: [
        ("a == 1", FieldOperator.equal), ("a=1", .equal), ("a==1", .equal), ("a != 1", .notEqual),
        ("a<1", .lessThan),
        ("  a   <=   1  ", .lessThanOrEqual), ("a>1", .greaterThan), ("a >=1", .greaterThanOrEqual),
        ("a array-contains 1", .arrayContains),
    ])
    func `Every operator is read, with spaces or without beside signs`(text: String, meaning: FieldOperator) throws {
        try expectEqual(Self.read(text), Self.filter("a", meaning, .integer(1)))
    }

    @Test(arguments: [
        ("1", Value.integer(1)), ("-1", .integer(-1)), ("1.5", .double(1.5)), ("1e3", .double(1_000)),
        ("true", .boolean(true)),
        ("\"1\"", .string("1")), ("Joyce", .string("Joyce")), ("two words", .string("two words")),
        ("-", .string("-")),
        ("1.2.3", .string("1.2.3")), ("truely", .string("truely")), ("Infinity", .double(.infinity)),
        ("-Infinity", .double(-.infinity)), ("{\"a\":[1]}", .map(["a": .array([.integer(1)])])),
        ("[1]", .array([.integer(1)])),
        ("2020-01-01T00:00:00Z", .timestamp(TimestampValue(seconds: 1_577_836_800, nanoseconds: 0))),
        ("2020-01-01", .string("2020-01-01")),
        ("/users/ada", .reference("projects/p/databases/(default)/documents/users/ada")),
        ("\"/users/ada\"", .string("/users/ada")), ("{\"$bytes\":\"aGk=\"}", .bytes(Array("hi".utf8))),
    ])
    func `A value is JSON, a time, a document, or text that needs no quotes`(text: String, value: Value) throws {
        try expectEqual(Self.read("a == \(text)"), Self.filter("a", .equal, value))
    }

    @Test func `Lists are JSON or have commas`() throws {
        let list = Value.array([.integer(1), .string("x y"), .boolean(true)])
        try expectEqual(Self.read("a in 1, x y ,true"), Self.filter("a", .isIn, list))
        try expectEqual(Self.read("a in [1, \"x y\", true]"), Self.filter("a", .isIn, list))
        try expectEqual(Self.read("a not-in 1"), Self.filter("a", .notIn, .array([.integer(1)])))
        let words = Value.array([.string("x"), .string("y")])
        try expectEqual(Self.read("a array-contains-any x,y"), Self.filter("a", .arrayContainsAny, words))
    }

    @Test func `Null and NaN have their own operators`() throws {
        let field = try DocumentModel.FieldPath("a")
        try expectEqual(Self.read("a == null"), .unary(field, .isNull))
        try expectEqual(Self.read("a != null"), .unary(field, .isNotNull))
        try expectEqual(Self.read("a = NaN"), .unary(field, .isNaN))
        try expectEqual(Self.read("a != NaN"), .unary(field, .isNotNaN))
        try expectEqual(Self.read("a < null"), Self.filter("a", .lessThan, .null))
    }

    @Test func `A mark that begins a quoted name does not hide the backtick`() throws {
        let name = "\u{301}a = , b"
        let quoted = "`\(name)`"
        let (field, c) = (try DocumentModel.FieldPath(quoted), try DocumentModel.FieldPath("c"))
        try expectEqual(Self.read("\(quoted)=1"), Self.filter(quoted, .equal, .integer(1)))
        try expectEqual(PathWords.fields("\(quoted),c", of: "--select"), [field, c])
        try expectEqual(PathWords.orders("\(quoted):desc").first, Order(field: field, direction: .descending))
        let orders = try OrderText.parse(" \(quoted)  DESC , c asc,d")
        expectEqual(orders.map(\.field), [field, c, try DocumentModel.FieldPath("d"), .documentName])
        expectEqual(orders.map(\.direction), [.descending, .ascending, .ascending, .ascending])
        let spaces = try DocumentModel.FieldPath("`a  b`")
        try expectEqual(OrderText.parse("`a  b` desc").first, Order(field: spaces, direction: .descending))
    }

    @Test func `A field may be nested, or quoted with backticks`() throws {
        try expectEqual(Self.read("a.b.c == 1"), Self.filter("a.b.c", .equal, .integer(1)))
        try expectEqual(Self.read("`x == y`.b == 1"), Self.filter("`x == y`.b", .equal, .integer(1)))
        try expectEqual(Self.read("`a\\`b` = 1"), Self.filter("`a\\`b`", .equal, .integer(1)))
    }

    @Test func `A name is an id of the collection, a path, or a full name`() throws {
        let root = "projects/p/databases/(default)/documents"
        let other = "projects/q/databases/d/documents/a/b"
        let cases: [(String, FieldOperator, Value)] = [
            ("__name__ >= m", .greaterThanOrEqual, .reference("\(root)/books/m")),
            ("__name__ = a/b", .equal, .reference("\(root)/a/b")),
            ("__name__ = projects/x", .equal, .reference("\(root)/projects/x")),
            ("__name__ = \(other)", .equal, .reference(other)),
            ("__name__ in x,y", .isIn, .array([.reference("\(root)/books/x"), .reference("\(root)/books/y")])),
        ]
        for (text, meaning, value) in cases {
            try expectEqual(Self.read(text), Self.filter("__name__", meaning, value), "\(text)")
        }
        #expect(throws: UsageError.self) { try Self.read("__name__ = x", collection: nil) }
    }

    @Test(arguments: [
        ("", "is not a condition"), ("a", "is not a condition"), ("a ==", "is not a condition"),
        ("== 1", "is not a condition"), ("a == ", "is not a condition"), ("`a == 1", "is not a condition"),
        ("a like x", "is not an operator"), ("a =< 1", "is not an operator"),
        ("a === 1", "is not an operator"), ("a <> 1", "is not an operator"), ("a == \"x", "is invalid"),
        (
            "a == {",
            "is invalid"
        ),
        ("a == [1", "is invalid"), ("a == 99999999999999999999", "is invalid"),
        (
            "a in \"x",
            "is invalid"
        ),
        ("a == /users", "is not the path of a document"), ("a == {\"$bytes\":1}", "is invalid"),
        // Members of the object that a value is read in.
        ("a == \"x\",\"b\":\"y\"", "more than one value"), ("a == \"x\",\"__name__\":\"y\"", "more than one value"),
        ("a == \"x\",\"value\":\"y\"", "is invalid"), ("a == {}}{", "is invalid"),
    ])
    func `Text that is not a condition is refused with a reason`(text: String, reason: String) {
        let error = #expect(throws: UsageError.self) { try Self.read(text) }
        expectEqual(error?.message.contains(reason), true, "\(error?.message ?? "")")
    }
}
