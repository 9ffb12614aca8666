// Queries with a limit in transactions: a document after the last result may change.

import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct LimitedReadTests {
    /// How the first three of ten documents, by n, are found.
    enum Way: CaseIterable {
        case index, sort, scan, group, descending
    }

    @Test(
        arguments: Way.allCases,
        [
            ("a result changes", true), ("a result leaves", true), ("one comes in between", true),
            ("one comes before it that was after it", true), ("an equal one comes before the last", true),
            ("a result moves after it", true), ("one far after it changes", false), ("one far after it leaves", false),
            ("one comes after it", false), ("an equal one comes after the last", false),
            ("one without the field comes", false),
        ])
    func `A change before the last result aborts, one after it does not`(way: Way, change: (String, isConflict: Bool))
        async throws
    {
        let model = try IndexedModel { $0.automaticIndexes = way != .sort && way != .scan ? .on : .off }
        let harness = model.harness
        // Downwards everything is mirrored.
        let sign: Int64 = way == .descending ? -1 : 1
        func document(_ number: Int64) -> MapValue { ["n": .integer(sign * number), "kind": "x"] }
        try await harness.commit((1...10).map { .set("c/d\($0)", document(Int64($0))) })
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "c", allDescendants: way == .group)])
        query.orderBy = [Order(field: try FieldPath("n"), direction: way == .descending ? .descending : .ascending)]
        query.limit = 2
        query.offset = 1
        if way == .sort { query.filter = .field(try FieldPath("kind"), .equal, EncodedValue(.string("x"))) }
        let transaction = try await harness.begin()
        let (found, _, _, _) = try model.run(
            query, parent: "", options: QueryOptions(), pageSize: 1, at: .transaction(transaction))
        expectEqual(found.map(\.path), ["c/d2", "c/d3"])
        let (before, after) = way == .descending ? ("d4", "d2") : ("d2x", "d4x")
        let writes: [StepWrite] =
            switch change.0 {
            case "a result changes": [.set("c/d3", ["n": .integer(sign * 3), "kind": "x", "more": 1])]
            case "a result leaves": [.delete("c/d1")]
            case "one comes in between": [.set("c/new", ["n": .double(Double(sign) * 2.5), "kind": "x"])]
            case "one comes before it that was after it": [.set("c/d9", document(0))]
            case "an equal one comes before the last": [.set("c/\(before)", document(3))]
            case "a result moves after it": [.set("c/d2", document(20))]
            case "one far after it changes": [.set("c/d9", document(8))]
            case "one far after it leaves": [.delete("c/d9")]
            case "one comes after it": [.set("c/new", document(5))]
            case "an equal one comes after the last": [.set("c/\(way == .descending ? "d2x" : after)", document(3))]
            default: [.set("c/new", ["kind": "x"])]
            }
        try await harness.commit(writes)
        let failure = try await harness.failure([.set("result/r", fields(1))], transaction: transaction)
        expectEqual(failure?.code, change.isConflict ? .aborted : nil)
        try harness.finish()
    }

    @Test(arguments: 50..<54 as Range<UInt64>)
    func `A transaction whose query would come out otherwise is aborted`(seed: UInt64) async throws {
        var random = RandomQueries(seed: seed)
        var model = try IndexedModel()
        var (conflicts, others) = (0, 0)
        for round in 0..<160 {
            let documents = random.documents()
            try await model.replace(with: documents, random: &random)
            var (query, parent) = random.query()
            query.limit = Int32(1 + random.random.generator.below(4))
            query.offset = Int32(random.random.generator.below(3))
            query.select = nil
            let transaction = try await model.harness.begin()
            var options = QueryOptions()
            options.candidatesPerStep = random.random.generator.pick([1, 1000])
            options.sortBufferBytes = random.random.generator.pick([700, 1 << 20])
            let (found, tree, _, _) = try model.run(
                query, parent: parent, options: options, pageSize: random.random.generator.pick([1, 1000]),
                at: .transaction(transaction))
            // A few documents change.
            var changed = documents
            let other = random.documents()
            if let index = changed.indices.randomElement(using: &random.random.generator),
                random.random.generator.oneIn(2)
            {
                changed.remove(at: index)
            }
            for new in other.shuffled(using: &random.random.generator).prefix(4) {
                changed.removeAll { $0.path == new.path }
                changed.append(new)
            }
            try await model.replace(with: changed, random: &random)
            let now = NaiveQuery.results(query, parent: parent, of: changed)
            let failure = try await model.harness.failure([.delete("zz/r")], transaction: transaction)
            if now.map(\.path) != found.map(\.path) || now.map(\.fields) != found.map(\.fields) {
                conflicts += 1
                expectEqual(
                    failure?.code, .aborted,
                    "seed \(seed), round \(round):\n\(tree)\n\(found.map(\.path)), then \(now.map(\.path))")
            } else if failure == nil {
                others += 1
            }
        }
        expect(conflicts > 3 && others > 3, "seed \(seed): \(conflicts) and \(others)")
        try model.harness.finish()
    }
}
