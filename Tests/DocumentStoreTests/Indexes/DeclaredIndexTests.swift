// Declared indexes: built while commits go on, over crashes; queries through them against the naive evaluator.

import DocumentModel
import TestSupport
import Testing

@testable import DocumentStore

@Suite("Declared indexes")
struct DeclaredIndexTests {
    @Test(
        "Random queries over random declared indexes return what the naive evaluator returns",
        arguments: 2000..<2008 as Range<UInt64>)
    func sameResults(seed: UInt64) async throws {
        var random = RandomQueries(seed: seed)
        random.isLong = seed % 2 == 0
        var model = try IndexedModel()
        var used = 0
        for round in 0..<5 {
            let documents = random.documents()
            try await model.replace(with: documents, random: &random)
            // Now and then a part of the documents is written while the indexes are built.
            if round != 2 { try await model.declare(random.shapes()) }
            let more = random.documents()
            try await model.replace(with: more, random: &random)
            try await model.waitForIndexes()
            if round == 3 { try model.harness.store.checkpoint() }
            for _ in 0..<60 {
                let (query, parent) = random.query()
                var options = QueryOptions()
                options.candidatesPerStep = random.random.generator.pick([1, 3, 1000])
                options.sortBufferBytes = random.random.generator.pick([1, 700, 1 << 20])
                let pageSize = random.random.generator.pick([1, 2, 1000])
                let (found, tree, _, _) = try model.run(query, parent: parent, options: options, pageSize: pageSize)
                let expected = NaiveQuery.results(query, parent: parent, of: more)
                #expect(
                    found.map(\.path) == expected.map(\.path) && found.map(\.fields) == expected.map(\.fields),
                    "seed \(seed), round \(round), plan:\n\(tree)\nfound \(found.map(\.path)), not \(expected.map(\.path))")
                let (count, _) = try model.count(query, parent: parent)
                #expect(count == Int64(expected.count), "seed \(seed), round \(round), count of plan:\n\(tree)")
                if model.shapes.contains(where: { tree.contains($0.properties) }) { used += 1 }
            }
        }
        #expect(used > 0, "seed \(seed): no query went through a declared index")
        let crashed = try model.harness.crashed()
        try crashed.finish()
        try model.harness.finish()
    }

    @Test("An index that is being built goes on after a crash, and is dropped when it is no longer wanted")
    func resumes() async throws {
        var random = RandomQueries(seed: 7)
        // One step sets the new store's state; four more of 512 documents.
        var model = try IndexedModel { $0.indexStepsMaximum = 5 }
        var documents: [TestDocument] = []
        for number in 0..<3_000 {
            documents.append(TestDocument(path: "c/d\(number)", fields: ["a": .integer(Int64(number % 7)), "b": .integer(Int64(number))]))
        }
        try await model.replace(with: documents, random: &random)
        let parts = [
            IndexShape.Part(field: try FieldPath("a"), kind: .ascending),
            IndexShape.Part(field: try FieldPath("b"), kind: .descending),
        ]
        let shape = IndexShape(collectionID: "c", isGroup: false, parts: parts)
        try await model.declare([shape])
        // The state at opening, that of a new store, the declaration, four steps.
        while model.harness.store.indexState.changes < 7 { try await Task.sleep(for: .milliseconds(5)) }
        #expect(model.harness.store.declaredIndexes(in: model.harness.database).map(\.state) == ["BUILDING"])
        try await model.harness.commit([.set("c/d2900", ["a": 3, "b": 9_999]), .delete("c/d3")])
        let crashed = try model.harness.crashed { $0.indexStepsMaximum = .max }
        while crashed.store.declaredIndexes(in: crashed.database).contains(where: { $0.state != "READY" }) {
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(crashed.store.declaredIndexes(in: crashed.database).map(\.shape) == [shape])
        model.harness.store.close()
        model = IndexedModel(crashed)
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        query.filter = .field(try FieldPath("a"), .equal, EncodedValue(.integer(3)))
        query.orderBy = [Order(field: try FieldPath("b"), direction: .descending)]
        query.limit = 5
        let (found, tree, scanned, _) = try model.run(query, parent: "", options: QueryOptions(), pageSize: 100)
        #expect(found.map(\.path) == ["c/d2900", "c/d2999", "c/d2992", "c/d2985", "c/d2978"])
        #expect(scanned == 5, "\(tree)")
        try await model.declare([])
        while !model.harness.store.declaredIndexes(in: model.harness.database).isEmpty {
            try await Task.sleep(for: .milliseconds(5))
        }
        try model.harness.finish()
    }
}

extension IndexedModel {
    /// The declared indexes.
    var shapes: [IndexShape] { harness.store.declaredIndexes(in: harness.database).map(\.shape) }

    func declare(_ shapes: [IndexShape]) async throws {
        let harness = harness
        try await withCheckedContinuation { continuation in
            harness.store.declareIndexes(shapes, in: harness.database) { continuation.resume(returning: $0) }
        }.get()
    }

    func waitForIndexes() async throws {
        while harness.store.declaredIndexes(in: harness.database).contains(where: { $0.state != "READY" }) {
            try await Task.sleep(for: .milliseconds(2))
        }
    }
}

extension RandomQueries {
    /// Shapes over the fields that queries use.
    mutating func shapes() -> [IndexShape] {
        var shapes: [IndexShape] = []
        for _ in 0..<12 {
            let isGroup = random.generator.oneIn(2)
            let fields = Self.fields.shuffled(using: &random.generator).prefix((isGroup ? 1 : 2) + random.generator.below(2))
            var hasArray = false
            let parts = fields.map { field -> IndexShape.Part in
                let isArray = !hasArray && random.generator.oneIn(6)
                if isArray { hasArray = true }
                return IndexShape.Part(
                    field: field, kind: isArray ? .contains : random.generator.oneIn(2) ? .ascending : .descending)
            }
            let shape = IndexShape(collectionID: random.generator.pick(["c", "d"]), isGroup: isGroup, parts: Array(parts))
            if !shapes.contains(shape) { shapes.append(shape) }
        }
        return shapes
    }
}
