// Random queries over a store with indexes: the planner's choices against the naive evaluator.

import Basics
import DocumentModel
import Storage
import StoreFormat
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

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
                expect(
                    found.map(\.path) == expected.map(\.path) && found.map(\.fields) == expected.map(\.fields),
                    """
                    seed \(seed), round \(round), plan:
                    \(tree)
                    found \(found.map(\.path)), not \(expected.map(\.path))
                    """)
                if let (found, expected) = try model.randomTotals(query, parent: parent, &random) {
                    expectEqual(found, expected, "seed \(seed), round \(round), totals of:\n\(tree)")
                }
                query.select = nil
                let bare = NaiveQuery.results(query, parent: parent, of: documents)
                let (count, _) = try model.count(query, parent: parent)
                expectEqual(count, Int64(bare.count), "seed \(seed), round \(round), count of plan:\n\(tree)")
                if let then = model.past.randomElement(using: &random.random.generator) {
                    let old = Array(then.documents.values)
                    let (found, tree, _, _) = try model.run(
                        query, parent: parent, options: options, pageSize: pageSize,
                        at: .time(TimestampValue(microseconds: Int64(then.microseconds))))
                    let expected = NaiveQuery.results(query, parent: parent, of: old)
                    expectEqual(
                        found.map(\.path), expected.map(\.path), "seed \(seed), round \(round), in the past:\n\(tree)")
                }
            }
            model.past.append((time, model.documents))
        }
        let crashed = try model.harness.crashed()
        try crashed.finish()
        try model.harness.finish()
    }

    @Test(arguments: [false, true])
    func `A step of a query passes few deleted documents`(isCheckpointed: Bool) async throws {
        let model = try IndexedModel()
        let names = (1_000..<1_200).map { "c/\($0)" }
        try await model.harness.commit((names + ["c/0", "c/9"]).map { .set($0, ["n": 1]) })
        if isCheckpointed { try model.harness.store.checkpoint() }
        try await model.harness.commit(names.map { .delete($0) })
        if isCheckpointed { try model.harness.store.checkpoint() }
        for field in ["__name__", "n"] {
            for direction in [SortDirection.ascending, .descending] {
                let query = StructuredQuery(
                    from: [CollectionSelector(collectionID: "c")],
                    orderBy: [Order(field: try FieldPath(field), direction: direction)])
                var options = QueryOptions()
                options.candidatesPerStep = 5
                let (found, steps) = try model.steps(of: query, options: options)
                expectEqual(found, direction == .ascending ? ["c/0", "c/9"] : ["c/9", "c/0"])
                expect(steps >= 10)
            }
        }
        try model.harness.finish()
    }

    @Test(.needsFiles, arguments: [false, true])
    func `Groups are found in their lists, and without lists in the catalogue`(areListed: Bool) async throws {
        var model = try IndexedModel()
        let long = String(repeating: "x", count: 230)
        try await model.harness.commit([.set("c/1/g/1", ["a": 1]), .set("d/1", [:]), .set("e/\(long)/g/1", [:])])
        if !areListed { model = try model.withoutLists() }
        func found(_ id: String, below parent: String = "", at selector: ReadSelector = .latest) throws -> [String] {
            let query = StructuredQuery(from: [CollectionSelector(collectionID: id, allDescendants: true)])
            return try model.run(query, parent: parent, options: QueryOptions(), pageSize: 1, at: selector).documents
                .map(\.path)
        }
        try expectEqual(found("g", below: "c/1"), ["c/1/g/1"])
        try expectEqual(found("g"), ["c/1/g/1", "e/\(long)/g/1"])
        try expectEqual(found("h"), [])
        model.harness.clock.advance(milliseconds: 1)
        let before = model.harness.clock.nowMicroseconds
        model.harness.clock.advance(milliseconds: 1)
        try await model.harness.commit([.set("b/1/g/2", [:]), .set("d/1/h/2", [:]), .delete("c/1/g/1")])
        try await model.harness.commit([.set("b/1/g/3", [:])])
        try expectEqual(found("g"), ["b/1/g/2", "b/1/g/3", "e/\(long)/g/1"])
        try expectEqual(found("h"), ["d/1/h/2"])
        let then = ReadSelector.time(TimestampValue(microseconds: Int64(before)))
        try expectEqual(found("g", at: then), ["c/1/g/1", "e/\(long)/g/1"])
        try expectEqual(found("h", at: then), [])
        try expectEqual(found("g", below: "b/1"), ["b/1/g/2", "b/1/g/3"])
        let crashed = try model.harness.crashed()
        let all = StructuredQuery(from: [CollectionSelector(collectionID: "g", allDescendants: true)])
        let reopened = IndexedModel(crashed)
        try expectEqual(
            reopened.run(all, parent: "", options: QueryOptions(), pageSize: 1, at: then).documents.count, 2)
        try expectEqual(reopened.count(all, parent: "").count, 3)
        try crashed.finish()
        try model.harness.finish()
    }

    @Test func `A step of a group passes few collections, and a step of its count`() async throws {
        let model = try IndexedModel()
        // Two commits of collections that are empty afterwards.
        let paths = (0..<5_000).map { "c/\($0)/g/1" }
        for part in [paths[..<2_500], paths[2_500...]] { try await model.harness.commit(part.map { .set($0, [:]) }) }
        let group = StructuredQuery(from: [CollectionSelector(collectionID: "g", allDescendants: true)])
        let aggregation = StructuredAggregationQuery(
            query: group, aggregations: [Aggregation(.count(upTo: nil))])
        let root = Array(model.harness.database.documentsRoot.utf8)
        do {
            var counted = try AggregationExecution(aggregation, parent: root.byteSpan)
            let reader = model.harness.store.makeReader()
            let source = try reader.source(at: try model.harness.readPoint(reader, .latest))
            try expectEqual(counted.next(from: source), .paused)
            try expectEqual(counted.next(from: source), .finished)
            expectEqual(counted.result.first?.value, EncodedValue(.integer(5_000)))
            expect(counted.tree.contains("CatalogueCount"))
        }
        for part in [paths[..<2_500], paths[2_500...]] { try await model.harness.commit(part.map { .delete($0) }) }
        var options = QueryOptions()
        options.candidatesPerStep = 100
        let (found, steps) = try model.steps(of: group, options: options)
        expectEqual(found, [])
        expect(steps >= 50)
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
                expectEqual(
                    found.map(\.path), expected.map(\.path),
                    "round \(round):\n\(tree)\n\(found.map(\.path))\n\(expected.map(\.path))")
                if tree.contains(isDeclared ? "IndexScan (a ASC" : "Union of") { united += 1 }
            }
        }
        expect(united > 20, "\(united) queries ran as a scan in order")
        try model.harness.finish()
    }
}
