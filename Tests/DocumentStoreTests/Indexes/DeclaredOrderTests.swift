// Orders through declared indexes against the naive evaluator: the values that are held, those that are ordered by, and
// the cursors are chosen so that keys are cut at different places, begin alike, or end an interval.

import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct DeclaredOrderTests {
    @Test(arguments: CaseShare.of(UInt64(5000)..<5006, 2))
    func `Held values of any length, ranges down to the least value and cursors by name keep the order`(
        seed: UInt64
    ) async throws {
        var queries = OrderedQueries(seed: seed)
        var model = try IndexedModel()
        try await model.declare(OrderedQueries.shapes)
        var used = 0
        for round in 0..<3 {
            let documents = queries.documents()
            try await model.replace(with: documents, random: &queries.random)
            try await model.waitForIndexes()
            for _ in 0..<150 {
                let query = queries.query(documents)
                var options = QueryOptions()
                options.candidatesPerStep = queries.random.random.generator.pick([1, 3, 1000])
                let (found, tree, _, _) = try model.run(
                    query, parent: "", options: options,
                    pageSize: queries.random.random.generator.pick([1, 2, 1000]))
                let expected = NaiveQuery.results(query, parent: "", of: documents)
                expectEqual(
                    found.map(\.path), expected.map(\.path),
                    """
                    seed \(seed), round \(round), order \(query.orderBy.map(\.description)), plan:
                    \(tree)
                    found \(found.map(\.path)), not \(expected.map(\.path))
                    """)
                if OrderedQueries.shapes.contains(where: { tree.contains($0.properties) }) { used += 1 }
            }
        }
        expect(used > 20, "seed \(seed): \(used) queries went through a declared index")
        try model.harness.finish()
    }
}

/// Documents with fields `h` and `g`, which queries hold, and `o`, which they order by.
private struct OrderedQueries {
    var random: RandomQueries

    private static let (h, g, o) = (try! FieldPath("h"), try! FieldPath("g"), try! FieldPath("o"))
    private static let held: [Value] = [1, "x", .string(String(repeating: "h", count: 90)), true]
    private static let ids = ["a", "b", "m", "z", "é", "\u{1}", "__id7__"]

    /// Long ones that begin alike, so that they differ after or before the end of a key, and the least of some types.
    private static let ordered: [Value] =
        ["", "a", "\u{0}", .bytes([]), .bytes([0]), false, true, 1, .null]
        + [100, 130, 190, 217, 240].flatMap { count -> [Value] in
            let text = String(repeating: "o", count: count)
            return [.string(text), .string(text + "a"), .string(text + "z")]
        }

    static let shapes: [IndexShape] = {
        let (up, down) = (IndexShape.Part.Kind.ascending, IndexShape.Part.Kind.descending)
        let parts: [([(FieldPath, IndexShape.Part.Kind)], Bool)] = [
            ([(h, up), (o, up)], false), ([(g, up), (o, up)], false), ([(h, up), (o, down)], false),
            ([(o, up)], true), ([(o, down)], true), ([(h, up), (o, down)], true),
        ]
        return parts.map { parts, reversesName in
            IndexShape(
                collectionID: "c", isGroup: false,
                parts: parts.map { IndexShape.Part(field: $0.0, kind: $0.1) }, reversesName: reversesName)
        }
    }()

    init(seed: UInt64) { random = RandomQueries(seed: seed) }

    private mutating func pick<Element>(_ list: [Element]) -> Element { random.random.generator.pick(list) }
    private mutating func oneIn(_ count: Int) -> Bool { random.random.generator.oneIn(count) }

    mutating func documents() -> [TestDocument] {
        var documents: [TestDocument] = []
        for first in Self.ids {
            for second in Self.ids where !oneIn(4) && !(first + second).hasPrefix("__id7__") {
                var fields: MapValue = ["h": pick(Self.held), "g": pick(Self.held)]
                if !oneIn(10) { fields["o"] = pick(Self.ordered) }
                documents.append(TestDocument(path: "c/\(first)\(second)", fields: fields))
            }
        }
        return documents
    }

    mutating func query(_ documents: [TestDocument]) -> StructuredQuery {
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        var conditions: [Filter] = []
        switch random.random.generator.below(4) {
        case 0: conditions.append(.field(Self.h, .equal, EncodedValue(pick(Self.held))))
        case 1: conditions.append(.field(Self.h, .isIn, EncodedValue(.array([pick(Self.held), pick(Self.held)]))))
        case 2:
            conditions.append(.field(Self.h, .equal, EncodedValue(pick(Self.held))))
            conditions.append(.field(Self.g, .equal, EncodedValue(pick(Self.held))))
        default: break
        }
        if oneIn(3) {
            let range: [FieldOperator] = [.lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual]
            conditions.append(.field(Self.o, pick(range), EncodedValue(pick(Self.ordered))))
        }
        if !conditions.isEmpty { query.filter = .and(conditions) }
        let direction = pick([SortDirection.ascending, .descending])
        query.orderBy = [Order(field: Self.o, direction: direction)]
        if oneIn(2) {
            query.orderBy.append(Order(field: .documentName, direction: pick([.ascending, .descending])))
        }
        if oneIn(3) { query.startAt = cursor(documents, query) }
        if oneIn(3) { query.endAt = cursor(documents, query) }
        if oneIn(4) { query.limit = Int32(1 + random.random.generator.below(8)) }
        return query
    }

    private mutating func cursor(_ documents: [TestDocument], _ query: StructuredQuery) -> Cursor {
        let document = pick(documents)
        var values = [EncodedValue(document.fields["o"] ?? .null)]
        if query.orderBy.count == 2 { values.append(EncodedValue(.reference("\(testRoot)/\(document.path)"))) }
        return Cursor(values: values, before: oneIn(2))
    }
}
