// What the query builder sends, and what it refuses.

import Basics
import DocumentModel
import Foundation
import HearthClient
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct QueryBuilderTests {
    private let firestore = TestFirestore.detached()
    private var books: CollectionReference { firestore.collection("books") }

    private func encoded(_ value: Value) -> EncodedValue {
        var writer = ByteBuffer()
        value.encode(into: &writer)
        return EncodedValue(canonical: writer.copyBytes())
    }

    private func path(_ segments: String...) throws -> DocumentModel.FieldPath {
        try DocumentModel.FieldPath(segments: segments)
    }

    @Test
    func `A collection is a query for all of its documents`() {
        expectEqual(
            books.definition.structuredQuery(), StructuredQuery(from: [CollectionSelector(collectionID: "books")]))
        expectEqual(books, firestore.collection("/books/"))
        expect(books != firestore.collection("authors"))
        expect(firestore.collectionGroup("books") != books)
    }

    @Test
    func `Filters, orders and limits arrive as they were given`() throws {
        let query = books.whereField("a.b", isEqualTo: 1).whereField("c", arrayContainsAny: ["x", "y"])
            .order(by: "d", descending: true).limit(to: 3).definition.structuredQuery()
        expectEqual(
            query.filter,
            .and([
                .field(try path("a", "b"), .equal, encoded(.integer(1))),
                .field(try path("c"), .arrayContainsAny, encoded(.array([.string("x"), .string("y")]))),
            ]))
        expectEqual(query.orderBy, [Order(field: try path("d"), direction: .descending)])
        expectEqual(query.limit, 3)
    }

    @Test
    func `Every operator of the API is the server's`() {
        let built: [(FieldOperator, Query)] = [
            (.lessThan, books.whereField("f", isLessThan: 1)),
            (.lessThanOrEqual, books.whereField("f", isLessThanOrEqualTo: 1)),
            (.greaterThan, books.whereField("f", isGreaterThan: 1)),
            (.greaterThanOrEqual, books.whereField("f", isGreaterThanOrEqualTo: 1)),
            (.equal, books.whereField("f", isEqualTo: 1)),
            (.notEqual, books.whereField("f", isNotEqualTo: 1)),
            (.arrayContains, books.whereField("f", arrayContains: 1)),
            (.arrayContainsAny, books.whereField("f", arrayContainsAny: [1])),
            (.isIn, books.whereField("f", in: [1])),
            (.notIn, books.whereField("f", notIn: [1])),
        ]
        for (relation, query) in built {
            guard case .field(_, let found, _) = query.definition.filters.first else {
                Issue.record("no field filter for \(relation)")
                continue
            }
            expectEqual(found, relation)
        }
    }

    @Test
    func `The lists of in and notIn may hold arrays, typed or not, one inside another`() throws {
        let field = try path("f")
        let expected = encoded(.array([.array([.string("a")]), .array([.string("b"), .integer(1)])]))
        let typed = encoded(.array([.array([.string("a")]), .array([.string("b")])]))
        let untyped: [Any] = [["a"], ["b", 1] as [Any]]
        expectEqual(books.whereField("f", in: untyped).definition.filters, [.field(field, .isIn, expected)])
        expectEqual(books.whereField("f", notIn: untyped).definition.filters, [.field(field, .notIn, expected)])
        expectEqual(books.whereField("f", in: [["a"], ["b"]]).definition.filters, [.field(field, .isIn, typed)])
        let excluding = books.whereField(FieldPath(["f"]), notIn: [["a"], ["b"]])
        expectEqual(excluding.definition.filters, [.field(field, .notIn, typed)])
        let filter = Filter.whereField("f", in: [["a"], ["b"]])
        expectEqual(books.whereFilter(filter).definition.filters, [.field(field, .isIn, typed)])
        // Deeper ones the server checks, as with the Apple SDK.
        let deep = encoded(.array([.array([.array([.integer(1)])])]))
        expectEqual(books.whereField("f", in: [[[1]]]).definition.filters, [.field(field, .isIn, deep)])
    }

    @Test
    func `Other operands may not hold an array in an array`() {
        for relation in [ComparisonOperator.equal, .lessThan, .arrayContains, .arrayContainsAny] {
            #expect(throws: RuleViolation("Nested arrays are not supported.")) {
                try OperandRules.filter(
                    FieldPath(["f"]), relation, [["a"], ["b"]], query: books.definition, firestore: firestore)
            }
        }
    }

    @Test
    func `Every value that the Apple SDK takes as an operand is taken`() {
        let nothing: Int? = nil
        let values: [Any] = [
            NSNull(), nothing as Any, Optional(5) as Any, Optional("s") as Any, "s", NSString(string: "s"), true,
            NSNumber(value: true), Int8(1), Int16(1), Int32(1), Int64(1), 1, UInt8(1), UInt16(1), UInt32(1), UInt64(1),
            UInt(1), Float(1), 1.5, CGFloat(1.5), Decimal(1.5), NSDecimalNumber(value: 1.5), NSNumber(value: 7), Date(),
            NSDate(), Timestamp(),
            Data([1]), NSData(), GeoPoint(latitude: 1, longitude: 2), firestore.document("c/d"), VectorValue([1]),
            [1, 2], ["a", 1] as [Any], NSArray(array: [1]), ["a": 1], ["a": [1]] as [AnyHashable: Any],
            NSDictionary(dictionary: ["a": 1]),
        ]
        for value in values {
            #expect(throws: Never.self, "\(type(of: value))") { try QueryValues.encode(value, firestore: firestore) }
            #expect(throws: Never.self, "\(type(of: value))") {
                try QueryValues.encode([value], firestore: firestore, allowsNestedArrays: true)
            }
        }
    }

    @Test
    func `null and NaN are tested for by unary filters`() throws {
        let field = try path("f")
        expectEqual(books.whereField("f", isEqualTo: NSNull()).definition.filters, [.unary(field, .isNull)])
        expectEqual(books.whereField("f", isNotEqualTo: NSNull()).definition.filters, [.unary(field, .isNotNull)])
        expectEqual(books.whereField("f", isEqualTo: Double.nan).definition.filters, [.unary(field, .isNaN)])
        expectEqual(books.whereField("f", isNotEqualTo: Double.nan).definition.filters, [.unary(field, .isNotNaN)])
    }

    @Test
    func `Composite filters nest, empty ones vanish`() throws {
        let either = FirebaseFirestore.Filter.orFilter([
            .whereField("a", isEqualTo: 1), .andFilter([.whereField("b", isGreaterOrEqualTo: 2), .andFilter([])]),
        ])
        let query = books.whereFilter(either)
        expectEqual(
            query.definition.filters,
            [
                .or([
                    .field(try path("a"), .equal, encoded(.integer(1))),
                    .field(try path("b"), .greaterThanOrEqual, encoded(.integer(2))),
                ])
            ])
        expectEqual(books.whereFilter(.orFilter([])), books)
    }

    @Test
    func `A document id stands for the document's name`() throws {
        let root = firestore.documentsRoot
        let byID = books.whereField(.documentID(), isEqualTo: "b1").definition.filters
        expectEqual(byID, [.field(.documentName, .equal, QueryValues.reference("\(root)/books/b1"))])
        let group = firestore.collectionGroup("books").whereField(.documentID(), in: ["a/b/books/c"]).definition.filters
        expectEqual(
            group, [.field(.documentName, .isIn, QueryValues.array([QueryValues.reference("\(root)/a/b/books/c")]))])
        let reference = books.document("b2")
        expectEqual(
            books.whereField(.documentID(), isLessThan: reference).definition.filters,
            [.field(.documentName, .lessThan, QueryValues.reference(reference.name))])
    }

    @Test
    func `The effective order adds inequality fields by name, then the document's name, in the last direction`() throws
    {
        let query = books.whereField("z", isGreaterThan: 1).whereField("b", isNotEqualTo: 2)
            .whereField("k", isEqualTo: 3).order(by: "m", descending: true)
        expectEqual(query.definition.effectiveOrders.map(\.field.description), ["m", "b", "z", "__name__"])
        expect(query.definition.effectiveOrders.allSatisfy { $0.direction == .descending })
    }

    @Test
    func `limit(toLast:) asks for the first ones of the reversed order, with the cursors swapped`() throws {
        let query = books.order(by: "a").start(at: [1]).end(before: [5]).limit(toLast: 2).definition
        expect(query.isReversed)
        let sent = query.structuredQuery()
        expectEqual(sent.orderBy.map(\.direction), [.descending, .descending])
        expectEqual(sent.startAt, Cursor(values: [encoded(.integer(5))], before: false))
        expectEqual(sent.endAt, Cursor(values: [encoded(.integer(1))], before: false))
        expectEqual(sent.limit, 2)
    }

    @Test
    func `The last cursor of a side wins, and says on which side of its position it stands`() {
        let query = books.order(by: "a").order(by: "b")
        expectEqual(
            query.start(at: [1]).start(after: [2]).definition.startAt,
            Cursor(values: [encoded(.integer(2))], before: false))
        expectEqual(query.start(at: [1, 2]).definition.startAt?.before, true)
        expectEqual(query.end(before: [1]).definition.endAt?.before, true)
        expectEqual(query.end(at: [1]).definition.endAt?.before, false)
    }

    @Test
    func `A document as cursor gives its values in the whole effective order`() throws {
        let fields: [UInt8] = [0x12, 0x07, 0x0a, 0x01, 0x61, 0x12, 0x02, 0x10, 0x05]
        let reference = books.document("b1")
        let time = TimestampValue(seconds: 0, nanoseconds: 0)
        let snapshot = DocumentSnapshot(
            reference: reference,
            stored: VisibleDocument(StoredDocument(fields: fields, createTime: time, updateTime: time)))
        let query = books.order(by: "a").start(afterDocument: snapshot).definition.structuredQuery()
        expectEqual(
            query.startAt, Cursor(values: [encoded(.integer(5)), QueryValues.reference(reference.name)], before: false))
        expectEqual(query.orderBy.map(\.field.description), ["a", "__name__"])
        #expect(throws: RuleViolation.self) {
            try CursorRules.document(snapshot, before: true)
                .cursor(for: books.order(by: "missing").definition, firestore: firestore)
        }
        #expect(throws: RuleViolation.self) {
            try CursorRules.document(DocumentSnapshot(reference: reference, stored: nil), before: true)
                .cursor(for: books.definition, firestore: firestore)
        }
    }

    private func violation(of build: () throws(RuleViolation) -> Void) -> String? {
        do {
            try build()
            return nil
        } catch {
            return error.message
        }
    }

    @Test(arguments: [
        (ComparisonOperator.notIn, ComparisonOperator.isIn), (.notIn, .arrayContainsAny), (.notIn, .notEqual),
        (.isIn, .notIn), (.arrayContainsAny, .notIn), (.notEqual, .notIn),
    ])
    func `Filters that may not meet are refused in either order`(
        second: ComparisonOperator, first: ComparisonOperator
    ) throws {
        let field = try path("f")
        var query = books.definition
        query.filters = [.field(field, first.wire, encoded(.array([.integer(1)])))]
        expectEqual(
            violation { () throws(RuleViolation) in
                _ = try QueryRules.adding(.field(field, second.wire, encoded(.integer(1))), to: query)
            }, "Invalid Query. You cannot use '\(second.name)' filters with '\(first.name)' filters.")
    }

    @Test
    func `There is one notEqual and one notIn at most, also inside composite filters`() throws {
        let field = try path("f")
        let filter = DocumentModel.Filter.field(field, .notEqual, encoded(.integer(1)))
        expectEqual(
            violation { () throws(RuleViolation) in
                _ = try QueryRules.adding(.or([filter, .unary(field, .isNotNull)]), to: books.definition)
            }, "Invalid Query. You cannot use more than one 'notEqual' filter.")
    }

    @Test(arguments: [
        (ComparisonOperator.isIn, 0), (.notIn, 0), (.arrayContainsAny, 0),
    ])
    func `Operands are checked`(relation: ComparisonOperator, count: Int) {
        expectEqual(
            violation { () throws(RuleViolation) in
                _ = try OperandRules.filter(
                    FieldPath(["f"]), relation, [Any](), query: books.definition, firestore: firestore)
            }, "Invalid Query. A non-empty array is required for '\(relation.name)' filters.")
    }

    @Test
    func `Document ids as operands are checked`() {
        let collection = books.definition
        let group = firestore.collectionGroup("books").definition
        func check(_ relation: ComparisonOperator, _ operand: Any, _ query: QueryDescription) -> String? {
            violation { () throws(RuleViolation) in
                _ = try OperandRules.filter(.documentID(), relation, operand, query: query, firestore: firestore)
            }
        }
        expectEqual(check(.equal, "", collection)?.contains("it was an empty string"), true)
        expectEqual(check(.equal, "a/b", collection)?.contains("contains a '/' character"), true)
        expectEqual(check(.equal, "a/b/c", group)?.contains("odd number of segments (3)"), true)
        expectEqual(check(.equal, 5, collection)?.contains("valid string or DocumentReference"), true)
        expectEqual(check(.arrayContains, "a", collection)?.contains("document IDs are not arrays"), true)
        expectEqual(check(.isIn, ["a", "b/c"], collection)?.contains("contains a '/' character"), true)
        expectNil(check(.equal, "a/b", group))
    }

    @Test
    func `Limits are positive, orders come before cursors, cursors are not longer than the orders`() throws {
        let query = books.definition
        expectEqual(
            violation { () throws(RuleViolation) in _ = try QueryRules.limiting(query, to: 0, side: .first) },
            "Invalid Query. Query limit (0) is invalid. Limit must be positive.")
        let started = books.order(by: "a").start(at: [1]).definition
        expectEqual(
            violation { () throws(RuleViolation) in
                _ = try QueryRules.adding(Order(field: .documentName), to: started)
            }?.contains("starting point"), true)
        expectEqual(
            violation { () throws(RuleViolation) in
                _ = try CursorRules.values([1, 2], before: true).cursor(for: started, firestore: firestore)
            }?.contains("more values than"), true)
        expectEqual(
            violation { () throws(RuleViolation) in
                try QueryRules.checkExecutable(books.limit(toLast: 1).definition)
            }?.contains("at least one OrderBy"), true)
    }

    @Test
    func `A document of another database is refused`() {
        let other = TestFirestore.detached().document("a/b")
        #expect(throws: RuleViolation.self) { try firestore.checkOwns(other) }
        #expect(throws: Never.self) { try firestore.checkOwns(firestore.document("a/b")) }
    }
}
