// Queries of the local store: collection groups, and the order of pending server timestamps.

import Basics
import ClientCache
import DocumentModel
import QueryEngine
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct LocalQueryTests: LocalStoreFixture {
    private static let at = try! FieldPath("at")

    private static func time(_ seconds: Int64) -> Value {
        .timestamp(TimestampValue(microseconds: seconds * 1_000_000))
    }

    private static func order(_ direction: SortDirection) -> Order { Order(field: at, direction: direction) }

    /// The ids of the results.
    private static func ids(_ store: LocalStore, _ query: StructuredQuery) throws -> [String] {
        let plan = try QueryPlan(query, parent: Array(database.documentsRoot.utf8).byteSpan)
        return try names(store, plan).map { String($0.split(separator: "/").last!) }
    }

    private static func query(
        _ filter: DocumentModel.Filter? = nil, by order: Order? = nil, startAt: DocumentModel.Cursor? = nil,
        limit: Int32? = nil
    ) -> StructuredQuery {
        StructuredQuery(
            from: [CollectionSelector(collectionID: "c")], filter: filter, orderBy: order.map { [$0] } ?? [],
            startAt: startAt, limit: limit)
    }

    private static func filter(_ operation: FieldOperator, _ value: Value) throws -> DocumentModel.Filter {
        .field(at, operation, EncodedValue(value))
    }

    /// Two timestamps, one of them in the future, a string, a number, and two pending ones.
    private static func timestamps() throws -> LocalStore {
        let store = try open()
        let values: [(String, Value)] = [
            ("old", time(1_000)), ("future", time(95_617_584_000)), ("text", .string("x")), ("number", .integer(1)),
            ("first", time(2_000)),
        ]
        _ = try store.apply(values.map { found($0.0, ["at": $0.1], at: 10) })
        _ = try store.enqueue(request([("first", .stamp)]), identity: identity(1))
        _ = try store.enqueue(request([("second", .stamp)]), identity: identity(2))
        return store
    }

    @Test
    func `Pending server timestamps sort after all timestamps and before strings, in the order of their writes`() throws
    {
        let store = try Self.timestamps()
        let expected = ["number", "old", "future", "first", "second", "text"]
        try expectEqual(Self.ids(store, Self.query(by: Self.order(.ascending))), expected)
        try expectEqual(Self.ids(store, Self.query(by: Self.order(.descending))), expected.reversed())
        try expectEqual(
            Self.ids(store, Self.query(by: Self.order(.descending), limit: 3)), ["text", "second", "first"])
        let cursor = DocumentModel.Cursor(values: [EncodedValue(Self.time(1_500))], before: true)
        try expectEqual(
            Self.ids(store, Self.query(by: Self.order(.ascending), startAt: cursor)),
            ["future", "first", "second", "text"])
        // What the program reads is the local time.
        let document = try #require(try store.state(of: Self.name("second")).document)
        guard case .timestamp? = Self.value(Self.at, document.fields) else {
            Issue.record("the estimate is not a timestamp")
            return
        }
    }

    @Test
    func `A pending server timestamp is equal to no timestamp and in no range of timestamps, but differs from all`()
        throws
    {
        let store = try Self.timestamps()
        try expectEqual(Self.ids(store, Self.query(try Self.filter(.greaterThan, Self.time(0)))), ["old", "future"])
        try expectEqual(
            Set(Self.ids(store, Self.query(try Self.filter(.notEqual, Self.time(1_000))))),
            ["future", "first", "second", "text", "number"])
        let document = try #require(try store.state(of: Self.name("second")).document)
        let estimate = try #require(Self.value(Self.at, document.fields))
        try expectEqual(Self.ids(store, Self.query(try Self.filter(.equal, estimate))), [])
    }

    @Test
    func `A pending timestamp inside a map, a restart, and the acknowledged value`() throws {
        let directory = TemporaryDirectory("local-query")
        let path = directory.path(of: "cache")
        var store = try Self.open(path)
        let number = try store.enqueue(Self.request([("a", .stamp)]), identity: Self.identity(1)).number
        _ = try store.apply([Self.found("b", ["at": Self.time(5)], at: 10)])
        store.close()
        store = try Self.open(path)
        try expectEqual(Self.ids(store, Self.query(by: Self.order(.ascending))), ["b", "a"])
        try expectEqual(store.staleOverlays(), [])
        let result = WriteResult(updateMicroseconds: 20, transformResults: [EncodedValue(Self.time(1))])
        _ = try store.acknowledge(number, results: [result], commitMicroseconds: 20)
        try expectEqual(Self.ids(store, Self.query(by: Self.order(.ascending))), ["a", "b"])
        store.close()
    }

    @Test
    func `A collection group has the cached documents of all its collections`() throws {
        let store = try Self.open()
        let names = ["c/x", "p/1/c/y", "p/2/c/z", "p/2/other/w"]
        _ = try store.apply(
            names.enumerated().map { number, path in
                RemoteUpdate(
                    name: "\(Self.database.documentsRoot)/\(path)",
                    content: .found(fields: Self.fields(Int64(number)), createMicroseconds: 1, updateMicroseconds: 1))
            })
        var query = Self.query()
        query.from = [CollectionSelector(collectionID: "c", allDescendants: true)]
        try expectEqual(Self.ids(store, query), ["x", "y", "z"])
        query.filter = .field(try FieldPath("n"), .greaterThan, EncodedValue(.integer(0)))
        try expectEqual(Self.ids(store, query), ["y", "z"])
        query.orderBy = [Order(field: try FieldPath("n"), direction: .descending)]
        try expectEqual(Self.ids(store, query), ["z", "y"])
        query.filter = .field(try FieldPath("n"), .equal, EncodedValue(.integer(0)))
        try expectEqual(Self.ids(store, query), ["x"])
    }
}
