// Random queries over a store with indexes: the planner's choices against the naive evaluator.

import Basics
import DocumentModel
import Storage
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

/// The documents of a database as a test knows them, and a store that holds the same.
struct IndexedModel {
    let harness: StoreHarness
    var documents: [String: TestDocument] = [:]
    /// The state at some times of the past.
    var past: [(microseconds: UInt64, documents: [String: TestDocument])] = []

    init(_ configure: (inout StoreConfiguration) -> Void = { _ in }) throws {
        harness = try StoreHarness(database: "d", configure: configure)
    }

    init(_ harness: StoreHarness) { self.harness = harness }

    /// Makes the store hold these documents and no others, in commits of several writes.
    mutating func replace(with next: [TestDocument], random: inout RandomQueries) async throws {
        var writes: [StepWrite] = []
        let kept = Set(next.map(\.path))
        for path in documents.keys.sorted() where !kept.contains(path) { writes.append(.delete(path)) }
        for document in next where documents[document.path]?.fields != document.fields {
            // A document written twice in one commit, now and then.
            if random.random.generator.oneIn(8) { writes.append(.set(document.path, ["a": 1, "b": [1, 2]])) }
            if random.random.generator.oneIn(16) { writes.append(.delete(document.path)) }
            writes.append(.set(document.path, document.fields))
        }
        if writes.isEmpty { return }
        harness.clock.advance(milliseconds: 1)
        if random.random.generator.oneIn(2) {
            try await harness.commit(writes)
        } else {
            for write in writes { try await harness.commit([write]) }
        }
        documents = Dictionary(uniqueKeysWithValues: next.map { ($0.path, $0) })
        harness.clock.advance(milliseconds: 1)
    }

    /// What a query returns, a page at a time.
    func run(
        _ query: StructuredQuery, parent: String, options: QueryOptions, pageSize: Int,
        at selector: ReadSelector = .latest
    ) throws -> (documents: [TestDocument], tree: String, scanned: Int, entries: Int) {
        let root = Array((parent.isEmpty ? harness.database.documentsRoot : harness.name(parent)).utf8)
        let plan = try QueryPlan(query, parent: root.byteSpan, options: options)
        let reader = harness.store.makeReader()
        let point = try harness.readPoint(reader, selector)
        var run = QueryExecution(plan)
        var found: [TestDocument] = []
        while true {
            var room = pageSize
            let source = try reader.source(at: point, matching: plan.matcher)
            let progress = try run.next(from: source) { (result) throws(RequestError) in
                do throws(InvalidDocument) {
                    found.append(
                        TestDocument(
                            path: String(repairingUTF8: result.path), fields: try MapValue(documentBytes: result.fields)
                        ))
                } catch {
                    throw RequestError(error)
                }
                room -= 1
                return room > 0 ? .more : .full
            }
            if progress == .finished { return (found, run.tree, run.scannedDocuments, run.scannedEntries) }
        }
    }

    func count(
        _ query: StructuredQuery, parent: String, upTo: Int64? = nil, at selector: ReadSelector = .latest
    ) throws -> (count: Int64?, scanned: Int) {
        let (totals, scanned) = try aggregate(query, [.count(upTo: upTo)], parent: parent, at: selector)
        guard case .integer(let count)? = totals.first else { return (nil, 0) }
        return (count, scanned)
    }

    /// Totals of a query's results, one for each operation.
    func totals(
        _ query: StructuredQuery, _ operations: [Aggregation.Operation], parent: String,
        at selector: ReadSelector = .latest
    ) throws -> [Value] {
        try aggregate(query, operations, parent: parent, at: selector).totals
    }

    private func aggregate(
        _ query: StructuredQuery, _ operations: [Aggregation.Operation], parent: String, at selector: ReadSelector
    ) throws -> (totals: [Value], scanned: Int) {
        let root = Array((parent.isEmpty ? harness.database.documentsRoot : harness.name(parent)).utf8)
        var run = try AggregationExecution(
            StructuredAggregationQuery(query: query, aggregations: operations.map { Aggregation($0) }),
            parent: root.byteSpan)
        let reader = harness.store.makeReader()
        let source = try reader.source(at: try harness.readPoint(reader, selector))
        while try run.next(from: source) != .finished {}
        let totals = try run.result.map { total in
            let encoded = total.value
            return try Value(wire: encoded.span)
        }
        return (totals, run.scannedDocuments)
    }
}

@Suite(.timeLimit(.minutes(20)))
struct IndexedQueryTests {
    @Test(arguments: CaseShare.of(UInt64(1000)..<1008, 3))
    func `Random queries return what the naive evaluator returns, now and in the past`(seed: UInt64) async throws {
        var random = RandomQueries(seed: seed)
        random.isLong = seed % 2 == 0
        var model = try IndexedModel()
        for round in 0..<5 {
            let documents = random.documents()
            try await model.replace(with: documents, random: &random)
            if round == 3 { try model.harness.store.checkpoint() }
            let time = model.harness.clock.nowMicroseconds
            model.harness.clock.advance(milliseconds: 1)
            for _ in 0..<50 {
                var (query, parent) = random.query()
                var options = QueryOptions()
                options.candidatesPerStep = random.random.generator.pick([1, 3, 1000])
                options.sortBufferBytes = random.random.generator.pick([1, 700, 1 << 20])
                let pageSize = random.random.generator.pick([1, 2, 1000])
                let (found, tree, _, _) = try model.run(query, parent: parent, options: options, pageSize: pageSize)
                let expected = NaiveQuery.results(query, parent: parent, of: documents)
                #expect(
                    found.map(\.path) == expected.map(\.path) && found.map(\.fields) == expected.map(\.fields),
                    """
                    seed \(seed), round \(round), plan:
                    \(tree)
                    found \(found.map(\.path)), not \(expected.map(\.path))
                    """)
                query.select = nil
                let bare = NaiveQuery.results(query, parent: parent, of: documents)
                let (count, _) = try model.count(query, parent: parent)
                #expect(count == Int64(bare.count), "seed \(seed), round \(round), count of plan:\n\(tree)")
                if let then = model.past.randomElement(using: &random.random.generator) {
                    let old = Array(then.documents.values)
                    let (found, tree, _, _) = try model.run(
                        query, parent: parent, options: options, pageSize: pageSize,
                        at: .time(TimestampValue(microseconds: Int64(then.microseconds))))
                    let expected = NaiveQuery.results(query, parent: parent, of: old)
                    #expect(
                        found.map(\.path) == expected.map(\.path), "seed \(seed), round \(round), in the past:\n\(tree)"
                    )
                }
            }
            model.past.append((time, model.documents))
        }
        let crashed = try model.harness.crashed()
        try crashed.finish()
        try model.harness.finish()
    }

    @Test(arguments: [false, true])
    func `Groups of collections inside each other come in the order of values and names`(isDeclared: Bool) async throws
    {
        var random = RandomQueries(seed: isDeclared ? 31 : 32)
        var model = try IndexedModel()
        let field = try FieldPath("a")
        if isDeclared {
            try await model.declare([
                IndexShape(collectionID: "c", isGroup: true, parts: [IndexShape.Part(field: field, kind: .ascending)])
            ])
        }
        let long = String(repeating: "x", count: 230)
        let collections = ["c", "c/1/c", "c/1/c/2/c", "d/z/c", "c/\(long)/c", "c/1/e"]
        let ids = ["1", "2", "10", "__id5__", "z", long, long + "y"]
        let values: [Value] = [
            1, 2.5, "x", .string(long), .string(long + "z"), .array([1]), .map(["x": .integer(1)]),
        ]
        var united = 0
        for round in 0..<4 {
            var documents: [TestDocument] = []
            for collection in collections {
                // Without the long ones merges are not given up half-way.
                let isShort = round % 2 == 0
                for id in ids where !random.random.generator.oneIn(4) && !(isShort && id.count > 10) {
                    let value = isShort ? random.random.generator.pick([1, 2.5]) : random.random.generator.pick(values)
                    documents.append(TestDocument(path: "\(collection)/\(id)", fields: ["a": value]))
                }
            }
            documents.sort { pathOrder($0.path, $1.path) < 0 }
            try await model.replace(with: documents, random: &random)
            try await model.waitForIndexes()
            for number in 0..<40 {
                var query = StructuredQuery(from: [CollectionSelector(collectionID: "c", allDescendants: true)])
                let direction = random.random.generator.pick([SortDirection.ascending, .descending])
                if number % 3 == 0 {
                    query.filter = .field(field, .equal, EncodedValue(random.random.generator.pick(values)))
                } else {
                    query.orderBy = [Order(field: field, direction: direction)]
                }
                if number % 3 == 2 {
                    let start = random.random.generator.pick(documents)
                    query.orderBy.append(Order(field: .documentName, direction: direction))
                    query.startAt = Cursor(
                        values: [
                            EncodedValue(start.fields["a"] ?? .null),
                            EncodedValue(.reference("\(testRoot)/\(start.path)")),
                        ],
                        before: random.random.generator.oneIn(2))
                }
                if random.random.generator.oneIn(2) { query.limit = Int32(random.random.generator.below(8)) }
                var options = QueryOptions()
                options.candidatesPerStep = random.random.generator.pick([2, 1000])
                let (found, tree, _, _) = try model.run(
                    query, parent: "", options: options, pageSize: random.random.generator.pick([1, 2, 1000]))
                let expected = NaiveQuery.results(query, parent: "", of: documents)
                #expect(
                    found.map(\.path) == expected.map(\.path),
                    "round \(round):\n\(tree)\n\(found.map(\.path))\n\(expected.map(\.path))")
                if tree.contains(isDeclared ? "IndexScan (a ASC" : "Union of") { united += 1 }
            }
        }
        #expect(united > 20, "\(united) queries ran as a scan in order")
        try model.harness.finish()
    }
}
