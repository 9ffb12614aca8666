// Declared indexes: built while commits continue, over crashes; queries through them against the naive evaluator.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct DeclaredIndexTests {
    @Test(arguments: CaseShare.of(UInt64(2000)..<2008, 3))
    func `Random queries over random declared indexes return the naive evaluator's results, now and in the past`(
        seed: UInt64
    ) async throws {
        var random = RandomQueries(seed: seed)
        random.isLong = seed % 2 == 0
        var model = try IndexedModel()
        var used = 0
        for round in 0..<5 {
            let documents = random.documents()
            try await model.replace(with: documents, random: &random)
            // Now and then a part of the documents is written while the indexes are built.
            if round != 2 { try await model.declare(random.declaration()) }
            let more = random.documents()
            try await model.replace(with: more, random: &random)
            model.past.append((model.harness.clock.nowMicroseconds, model.documents))
            model.harness.clock.advance(milliseconds: 1)
            if round == 3 { try model.harness.store.checkpoint() }
            for number in 0..<60 {
                if number == 10 { try await model.waitForIndexes() }
                let (query, parent) = random.query()
                var options = QueryOptions()
                options.candidatesPerStep = random.random.generator.pick([1, 3, 1000])
                options.sortBufferBytes = random.random.generator.pick([1, 700, 1 << 20])
                let pageSize = random.random.generator.pick([1, 2, 1000])
                let (found, tree, _, _) = try model.run(query, parent: parent, options: options, pageSize: pageSize)
                let expected = NaiveQuery.results(query, parent: parent, of: more)
                expect(
                    found.map(\.path) == expected.map(\.path) && found.map(\.fields) == expected.map(\.fields),
                    """
                    seed \(seed), round \(round), plan:
                    \(tree)
                    found \(found.map(\.path)), not \(expected.map(\.path))
                    """)
                let (count, _) = try model.count(query, parent: parent)
                expectEqual(count, Int64(expected.count), "seed \(seed), round \(round), count of plan:\n\(tree)")
                if let (found, expected) = try model.randomTotals(query, parent: parent, &random) {
                    expectEqual(found, expected, "seed \(seed), round \(round), totals of:\n\(tree)")
                }
                if model.shapes.contains(where: { tree.contains($0.properties) }) { used += 1 }
                let then = random.random.generator.pick(model.past)
                let (before, plan, _, _) = try model.run(
                    query, parent: parent, options: options, pageSize: pageSize,
                    at: .time(TimestampValue(microseconds: Int64(then.microseconds))))
                let old = NaiveQuery.results(query, parent: parent, of: Array(then.documents.values))
                expectEqual(before.map(\.path), old.map(\.path), "seed \(seed), round \(round), in the past:\n\(plan)")
            }
        }
        expect(used > 0, "seed \(seed): no query went through a declared index")
        let crashed = try model.harness.crashed()
        try crashed.finish()
        try model.harness.finish()
    }

    @Test
    func `A count over a group has the documents that meet an alternative without the field of the index`()
        async throws
    {
        let model = try IndexedModel()
        let field = try FieldPath("t")
        try await model.declare([
            IndexShape(collectionID: "c", isGroup: true, parts: [IndexShape.Part(field: field, kind: .ascending)])
        ])
        try await model.harness.commit([
            .set("c/1", ["t": [5]]), .set("c/2", ["b": 2]), .set("c/2/c/3", [:]), .set("d/z/c/1", ["t": [7]]),
        ])
        try await model.waitForIndexes()
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "c", allDescendants: true)])
        query.filter = .or([
            .field(field, .arrayContains, EncodedValue(.integer(7))),
            .field(.documentName, .lessThan, EncodedValue(.reference("\(testRoot)/c/3"))),
        ])
        try expectEqual(model.count(query, parent: "").count, 4)
        try model.harness.finish()
    }

    @Test
    func `An index that is being built continues after a crash, and is dropped when it is no longer wanted`()
        async throws
    {
        var random = RandomQueries(seed: 7)
        // One step sets the new store's state; four more of 512 documents.
        var model = try IndexedModel { $0.admitsHousekeeping = atMost(5, .indexStep) }
        var documents: [TestDocument] = []
        for number in 0..<3_000 {
            documents.append(
                TestDocument(
                    path: "c/d\(number)", fields: ["a": .integer(Int64(number % 7)), "b": .integer(Int64(number))]))
        }
        try await model.replace(with: documents, random: &random)
        let parts = [
            IndexShape.Part(field: try FieldPath("a"), kind: .ascending),
            IndexShape.Part(field: try FieldPath("b"), kind: .descending),
        ]
        let shape = IndexShape(collectionID: "c", isGroup: false, parts: parts)
        try await model.declare([shape])
        // The state at opening, that of a new store, the declaration, four steps.
        try await eventually("four steps are done") { model.harness.store.indexState.changes >= 7 }
        expectEqual(model.harness.store.declaredIndexes(in: model.harness.database).map(\.state), [.building])
        // 952 documents are to be visited.
        try model.harness.store.checkpoint()
        let left = model.harness.store.indexWorkLeft(in: model.harness.database)
        expect((700...1_200).contains(left), "\(left)")
        try await model.harness.commit([.set("c/d2900", ["a": 3, "b": 9_999]), .delete("c/d3")])
        let crashed = try model.harness.crashed { $0.admitsHousekeeping = { _ in true } }
        try await eventually("the index is ready after the crash") {
            crashed.store.declaredIndexes(in: crashed.database).allSatisfy { $0.state == .ready }
        }
        expectEqual(crashed.store.declaredIndexes(in: crashed.database).map(\.shape), [shape])
        expectEqual(crashed.store.indexWorkLeft(in: crashed.database), 0)
        // Entries of 2,999 documents, with a few that are superseded.
        try crashed.store.checkpoint()
        let size = try #require(crashed.store.indexListing(in: crashed.database).first?.size)
        expect((2_900...3_150).contains(size.entries) && size.bytes > 2_999 * 10, "\(size)")
        expectEqual(crashed.store.indexSizes.declared, size)
        model.harness.store.close()
        model = IndexedModel(crashed)
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        query.filter = .field(try FieldPath("a"), .equal, EncodedValue(.integer(3)))
        query.orderBy = [Order(field: try FieldPath("b"), direction: .descending)]
        query.limit = 5
        let (found, tree, scanned, _) = try model.run(query, parent: "", options: QueryOptions(), pageSize: 100)
        expectEqual(found.map(\.path), ["c/d2900", "c/d2999", "c/d2992", "c/d2985", "c/d2978"])
        expectEqual(scanned, 5, "\(tree)")
        try await model.declare([])
        try await eventually("the index is removed") {
            model.harness.store.declaredIndexes(in: model.harness.database).isEmpty
        }
        try model.harness.finish()
    }

    @Test
    func `Overrides of fields are applied in steps that continue after a crash, and lifted again`() async throws {
        var random = RandomQueries(seed: 8)
        // One step sets the new store's state.
        var model = try IndexedModel { $0.admitsHousekeeping = atMost(3, .indexStep) }
        var documents: [TestDocument] = []
        for number in 0..<3_000 {
            let fields: MapValue = [
                "a": .integer(Int64(number % 7)), "m": .map(["x": .integer(Int64(number)), "y": .array([1, 2])]),
            ]
            documents.append(TestDocument(path: "c/d\(number)", fields: fields))
        }
        try await model.replace(with: documents, random: &random)
        let entriesBefore = try StoreCheck.run(model.harness.store).indexEntries
        // a, m, m.x, m.y, two elements of m.y. Exempt: m, m.y and its elements; kept: a, m.x.
        expectEqual(entriesBefore, 6 * 3_000)
        let wanted = IndexDeclaration(fieldOverrides: [
            FieldOverride(collectionID: "c", field: try FieldPath("m"), indexes: []),
            FieldOverride(collectionID: "c", field: try FieldPath("m.x"), indexes: [.descending]),
        ])
        try await model.declare(wanted)
        try await eventually("two steps are done") { model.harness.store.indexState.changes >= 5 }
        expectEqual(model.listing, ["BUILDING", "BUILDING"])
        // What the walk has passed and what it has not: changed, removed, added.
        try await model.harness.commit([
            .set("c/d0", ["a": 1, "m": .map(["y": .array([3])])]),
            .set("c/d2999", ["m": .map(["x": 9, "y": .array([3])])]),
            .delete("c/d1"), .delete("c/d2998"), .set("c/e", ["m": .map(["x": 4, "y": 5])]),
        ])
        try expectEqual(StoreCheck.run(model.harness.store).problems, [])
        let crashed = try model.harness.crashed()
        try expectEqual(StoreCheck.run(crashed.store).problems, [])
        try crashed.finish()
        let resumed = try model.harness.crashed { $0.admitsHousekeeping = { _ in true } }
        model.harness.store.close()
        model = IndexedModel(resumed)
        try await model.waitForIndexes()
        expectEqual(model.listing, ["READY", "READY"])
        let report = try StoreCheck.run(model.harness.store)
        // a and m.x of all but the two removed; d0 lost m.x, d2999 lost a, e has m.x.
        expect(report.problems == [] && report.indexEntries == 2 * 2_998 - 2 + 1, "\(report.problems)")
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        query.filter = .field(try FieldPath("m.y"), .arrayContains, EncodedValue(.integer(3)))
        let (found, tree, _, entries) = try model.run(query, parent: "", options: QueryOptions(), pageSize: 100)
        expect(found.map(\.path) == ["c/d0", "c/d2999"] && entries == 0, "\(tree)")
        try await model.declare(IndexDeclaration())
        try await model.waitForIndexes()
        expectEqual(model.listing, [])
        let (again, plan, scanned, _) = try model.run(query, parent: "", options: QueryOptions(), pageSize: 100)
        expect(again.map(\.path) == ["c/d0", "c/d2999"] && scanned == 2, "\(plan)")
        try model.harness.finish()
    }

    @Test
    func `An exempt field takes no room in a document's limit of entries`() async throws {
        let model = try IndexedModel { $0.indexEntriesPerDocumentMax = 100 }
        let large: MapValue = ["list": .array((0..<200).map { .integer(Int64($0)) }), "a": 1]
        try await expectEqual(model.harness.failure([.set("c/x", large)])?.code, .invalidArgument)
        try await model.declare(
            IndexDeclaration(fieldOverrides: [
                FieldOverride(collectionID: "c", field: try FieldPath("list"), indexes: [.ascending])
            ]))
        try await expectNil(model.harness.failure([.set("c/x", large)]))
        try await expectEqual(model.harness.failure([.set("d/x", large)])?.code, .invalidArgument)
        try await model.waitForIndexes()
        try model.harness.finish()
    }

    @Test
    func `Entries of declared indexes take room in a document's limit of entries; deletes do not`() async throws {
        let model = try IndexedModel { $0.indexEntriesPerDocumentMax = 100 }
        let (field, a) = (try FieldPath("list"), try FieldPath("a"))
        func index(_ collection: String, isGroup: Bool) -> IndexShape {
            let parts = [IndexShape.Part(field: field, kind: .contains), IndexShape.Part(field: a, kind: .ascending)]
            return IndexShape(collectionID: collection, isGroup: isGroup, parts: parts)
        }
        func list(_ elements: Int) -> Value { .array((0..<elements).map { .integer(Int64($0)) }) }
        func document(_ elements: Int) -> MapValue { ["list": list(elements), "a": 1] }
        // Before it is indexed, and exempt from the automatic indexes.
        let exemption = FieldOverride(collectionID: "c", field: field, indexes: [.ascending])
        try await model.declare(IndexDeclaration(fieldOverrides: [exemption]))
        try await model.harness.commit([.set("c/old", document(80))])
        try await model.declare(
            IndexDeclaration(
                indexes: [index("c", isGroup: false), index("c", isGroup: true), index("other", isGroup: false)],
                fieldOverrides: [exemption]))
        // Two values, and each element twice.
        try await expectNil(model.harness.failure([.set("c/x", document(49))]))
        for elements in [50, 80] {
            let refused = try await model.harness.failure([.set("c/x", document(elements))])
            expectEqual(refused?.code, .invalidArgument)
        }
        let message = try await model.harness.failure([.set("c/x", document(60))])?.message ?? ""
        expect(message.contains("this one would have 122: 60 of the index {"), "\(message)")
        // Without the other field there is no entry.
        try await expectNil(model.harness.failure([.set("c/y", ["list": list(90)])]))
        try await model.waitForIndexes()
        // One from before may become smaller, and change in other fields.
        var old = document(80)
        old["a"] = 2
        try await expectNil(model.harness.failure([.set("c/old", old)]))
        try await expectNil(model.harness.failure([.set("c/old", document(70))]))
        try await expectEqual(model.harness.failure([.set("c/old", document(71))])?.code, .invalidArgument)
        try await expectNil(model.harness.failure([.delete("c/old")]))
        try model.harness.finish()
    }

    @Test
    func `A declaration that makes no sense is refused and changes nothing`() async throws {
        let model = try IndexedModel()
        let field = try FieldPath("f")
        let refused: [[FieldOverride]] = [
            [
                FieldOverride(collectionID: "c", field: field, indexes: []),
                FieldOverride(collectionID: "c", field: field, indexes: [.ascending]),
            ],
            [FieldOverride(collectionID: "c", field: nil, indexes: nil, expires: true)],
            [
                FieldOverride(collectionID: "c", field: field, indexes: nil, expires: true),
                FieldOverride(collectionID: "c", field: try FieldPath("g"), indexes: nil, expires: true),
            ],
            [FieldOverride(collectionID: "c/d", field: field, indexes: [])],
            [FieldOverride(collectionID: "c", field: .documentName, indexes: [])],
            (0...IndexDeclaration.entriesMax).map {
                FieldOverride(collectionID: "c\($0)", field: field, indexes: [])
            },
        ]
        for overrides in refused {
            let error = await #expect(throws: RequestError.self) {
                try await model.declare(IndexDeclaration(fieldOverrides: overrides))
            }
            expectEqual(error?.code, .invalidArgument)
        }
        expectEqual(model.listing, [])
        try model.harness.finish()
    }
}

extension IndexedModel {
    /// The declared indexes.
    var shapes: [IndexShape] { harness.store.declaredIndexes(in: harness.database).map(\.shape) }

    /// The states of what is declared.
    var listing: [String] { harness.store.indexListing(in: harness.database).map(\.state.rawValue) }

    func declare(_ shapes: [IndexShape]) async throws {
        try await declare(IndexDeclaration(indexes: shapes))
    }

    func declare(_ wanted: IndexDeclaration) async throws {
        let harness = harness
        try await withCheckedContinuation { continuation in
            harness.store.declareIndexes(wanted, in: harness.database) { continuation.resume(returning: $0) }
        }.get()
    }

    func waitForIndexes() async throws {
        try await eventually("every index is ready") {
            harness.store.indexListing(in: harness.database).allSatisfy { $0.state == .ready }
        }
    }
}

extension RandomQueries {
    /// Indexes, and now and then overrides of some fields, of a map, or of all others.
    mutating func declaration() -> IndexDeclaration {
        var declaration = IndexDeclaration(indexes: shapes())
        if random.generator.oneIn(4) { return declaration }
        for id in ["c", "d"] {
            for field in Self.fields + [try! FieldPath("m"), nil] where random.generator.oneIn(3) {
                var modes = FieldOverride.Modes()
                for mode in [FieldOverride.Modes.ascending, .descending, .contains] where random.generator.oneIn(3) {
                    modes.insert(mode)
                }
                if field != nil, random.generator.oneIn(5) { modes.insert(.groupDescending) }
                declaration.fieldOverrides.append(FieldOverride(collectionID: id, field: field, indexes: modes))
            }
        }
        return declaration
    }

    /// Shapes over the fields that queries use.
    mutating func shapes() -> [IndexShape] {
        var shapes: [IndexShape] = []
        for _ in 0..<12 {
            let isGroup = random.generator.oneIn(2)
            let fields = Self.fields.shuffled(using: &random.generator).prefix(
                (isGroup ? 1 : 2) + random.generator.below(2))
            var hasArray = false
            let parts = fields.map { field -> IndexShape.Part in
                let isArray = !hasArray && random.generator.oneIn(6)
                if isArray { hasArray = true }
                return IndexShape.Part(
                    field: field, kind: isArray ? .contains : random.generator.oneIn(2) ? .ascending : .descending)
            }
            let shape = IndexShape(
                collectionID: random.generator.pick(["c", "d"]), isGroup: isGroup, parts: Array(parts),
                reversesName: random.generator.oneIn(5))
            if !shapes.contains(shape) { shapes.append(shape) }
        }
        return shapes
    }
}
