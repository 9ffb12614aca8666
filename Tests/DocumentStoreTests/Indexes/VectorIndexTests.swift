// Nearest neighbours through declared indexes that end with a vector, against the naive evaluator.

import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct VectorIndexTests {
    @Test(arguments: CaseShare.of(UInt64(3000)..<3004, 2))
    func `They find the documents that meet the filter and have a vector of the dimension, while documents come and go`(
        seed: UInt64
    ) async throws {
        var random = RandomQueries(seed: seed)
        var model = try IndexedModel()
        var used = 0
        for round in 0..<4 {
            try await model.replace(with: random.documents(), random: &random)
            try await model.declare(IndexDeclaration(indexes: random.vectorShapes()))
            let documents = random.documents()
            try await model.replace(with: documents, random: &random)
            try await model.waitForIndexes()
            if round == 2 { try model.harness.store.checkpoint() }
            for _ in 0..<60 {
                var query = random.unorderedQuery()
                let expected = NaiveQuery.results(query, parent: "", of: documents).compactMap { document in
                    Self.distance(of: document).map { (path: document.path, distance: $0) }
                }
                query.findNearest = FindNearest(
                    vectorField: Self.field, queryVector: EncodedValue(.vector(Self.target)),
                    distanceMeasure: .euclidean,
                    limit: 1_000)
                var options = QueryOptions()
                options.candidatesPerStep = random.random.generator.pick([1, 3, 1_000])
                let (found, tree, _, _) = try model.run(query, parent: "", options: options, pageSize: 2)
                expectEqual(
                    found.map { Self.distance(of: $0) }, expected.map(\.distance).sorted(),
                    "seed \(seed), plan:\n\(tree)")
                expectEqual(Set(found.map(\.path)), Set(expected.map(\.path)), "seed \(seed), plan:\n\(tree)")
                if tree.contains("VECTOR<2>") { used += 1 }
            }
        }
        expect(used > 0, "seed \(seed): no search went through an index with a vector")
        let crashed = try model.harness.crashed()
        try crashed.finish()
        try model.harness.finish()
    }

    @Test
    func `They find documents whose ids are too long for a key`() async throws {
        let model = try IndexedModel()
        let ids = RandomQueries.longIDs + ["a", "z"]
        try await model.harness.commit(ids.map { .set("c/\($0)", ["a": 1, "b": .vector([1, 2])]) })
        let vector = IndexShape.VectorPart(field: Self.field, dimension: 2)
        let part = IndexShape.Part(field: RandomQueries.fields[0], kind: .ascending)
        for isGroup in [false, true] {
            try await model.declare([
                IndexShape(collectionID: "c", isGroup: isGroup, parts: [], vector: vector),
                IndexShape(collectionID: "c", isGroup: isGroup, parts: [part], vector: vector),
            ])
            try await model.waitForIndexes()
            let numbers = EncodedValue(.array([.integer(1), .integer(2)]))
            for filter in [nil, Filter.field(part.field, .isIn, numbers)] {
                let query = StructuredQuery(
                    from: [CollectionSelector(collectionID: "c", allDescendants: isGroup)], filter: filter,
                    findNearest: FindNearest(
                        vectorField: Self.field, queryVector: EncodedValue(.vector(Self.target)),
                        distanceMeasure: .euclidean, limit: 10))
                let (found, tree, _, _) = try model.run(query, parent: "", options: QueryOptions(), pageSize: 2)
                expectEqual(found.map(\.path), ids.sorted().map { "c/\($0)" })
                expect(tree.contains("VECTOR<2>"), "plan:\n\(tree)")
            }
        }
        try model.harness.finish()
    }

    fileprivate static let field = RandomQueries.fields[1]
    fileprivate static let target = [0.5, 0.25]

    /// Nil for a document without a vector of two dimensions.
    private static func distance(of document: TestDocument) -> Double? {
        guard let vector = NaiveQuery.value(field, document)?.vectorElements, vector.count == 2 else { return nil }
        let squares = zip(vector, target).map { ($0 - $1) * ($0 - $1) }
        return (squares[0] + squares[1]).squareRoot()
    }
}

extension RandomQueries {
    /// Shapes that all end with the vector.
    fileprivate mutating func vectorShapes() -> [IndexShape] {
        var shapes: [IndexShape] = []
        for _ in 0..<6 {
            let parts = Self.fields.shuffled(using: &random.generator).prefix(random.generator.below(2)).map {
                IndexShape.Part(
                    field: $0, kind: random.generator.pick([.ascending, .ascending, .descending, .contains]))
            }
            let vector = IndexShape.VectorPart(
                field: VectorIndexTests.field, dimension: random.generator.pick([2, 2, 2, 3]))
            let shape = IndexShape(
                collectionID: random.generator.pick(["c", "d"]), isGroup: random.generator.oneIn(2), parts: parts,
                vector: vector)
            if !shapes.contains(shape) { shapes.append(shape) }
        }
        return shapes
    }

    /// A query with at most one condition, and without an order.
    fileprivate mutating func unorderedQuery() -> StructuredQuery {
        let id = random.generator.pick(["c", "d"])
        var query = StructuredQuery(from: [
            CollectionSelector(collectionID: id, allDescendants: random.generator.oneIn(2))
        ])
        let field = random.generator.pick(Self.fields)
        switch random.generator.below(4) {
        case 0: query.filter = .field(field, .equal, EncodedValue(.integer(Int64(random.generator.below(4)))))
        case 1:
            query.filter = .field(field, .greaterThanOrEqual, EncodedValue(.integer(Int64(random.generator.below(4)))))
        case 2: query.filter = .field(field, .arrayContains, EncodedValue(.integer(Int64(random.generator.below(4)))))
        default: break
        }
        return query
    }
}
