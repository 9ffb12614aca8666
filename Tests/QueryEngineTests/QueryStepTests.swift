// What a query does between two pauses, as the number of its pauses.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct QueryStepTests {
    /// Documents of about 70 KB.
    private static let documents = numbered(40) { number in
        var fields = MapValue((0..<5_000).map { ("f\(10_000 + $0)", .integer(Int64($0))) })
        fields["n"] = .integer(number)
        fields["list"] = .array([.integer(number)])
        return fields
    }

    private func steps(_ query: StructuredQuery, isIndexed: Bool = false) throws -> (ids: [String], count: Int) {
        let plan = try StoreTestSupport.plan(query)
        let source = try MemorySource(Self.documents, isIndexed: isIndexed)
        let (documents, run) = try results(of: plan, over: source)
        return (documents.map(\.id), run.calls)
    }

    private func query(_ filter: Filter?, orderBy orders: [Order] = []) -> StructuredQuery {
        StructuredQuery(from: [CollectionSelector(collectionID: "c")], filter: filter, orderBy: orders)
    }

    private func equals(_ field: String, _ value: Int) throws -> Filter {
        .field(try FieldPath(field), .equal, EncodedValue(.integer(Int64(value))))
    }

    @Test
    func `Many conditions on large documents take many steps`() throws {
        let all = Self.documents.map(\.id)
        let few = try steps(query(try equals("f14000", 4_000)))
        expect(few.ids == all && few.count < 3, "\(few.count) steps")
        let conditions = try (4_900..<4_998).map { try equals("f\(10_000 + $0)", $0) }
        let conjunction = try steps(query(.and(conditions)))
        expect(conjunction.ids == all && conjunction.count > 10, "\(conjunction.count) steps")
        // Thirty alternatives of three conditions.
        let alternatives = try (0..<30).map { start in
            Filter.and(try (0..<3).map { try equals("f\(14_999 - 3 * start - $0)", start == 29 ? 4_912 - $0 : 0) })
        }
        let disjunction = try steps(query(.or(alternatives)))
        expect(disjunction.ids == all && disjunction.count > 10, "\(disjunction.count) steps")
    }

    @Test
    func `Lists with many members, and many orders, take many steps`() throws {
        let members = Value.array((0..<30).map { .integer($0 == 29 ? 7 : -1 - Int64($0)) })
        let listed = try steps(query(.field(try FieldPath("list"), .arrayContainsAny, EncodedValue(members))))
        expect(listed.ids == ["d007"] && listed.count > 5, "\(listed.count) steps")
        let orders = try (0..<90).map { Order(field: try FieldPath("f\(14_900 + $0)")) }
        let ordered = try steps(query(nil, orderBy: orders))
        expect(ordered.ids == Self.documents.map(\.id) && ordered.count > 10, "\(ordered.count) steps")
    }

    /// A condition that every document meets.
    private struct AnyDocument: DocumentCondition {
        func holds(path: RawSpan, fields: RawSpan) -> Bool { true }
    }

    @Test
    func `A further condition, which may be costly, takes many steps`() throws {
        let source = try MemorySource(numbered(400) { ["n": .integer($0)] })
        let root = Array(testRoot.utf8)
        func steps(_ condition: AnyDocument?) throws -> Int {
            let plan = try QueryPlan(query(nil), parent: root.byteSpan, condition: condition)
            let (documents, run) = try results(of: plan, over: source)
            expectEqual(documents.count, 400)
            return run.calls
        }
        let (without, with) = (try steps(nil), try steps(AnyDocument()))
        expect(without < 3 && with > 8, "\(without) and \(with) steps")
    }

    @Test
    func `A document that an earlier part of an access has given out costs as much as the first time`() throws {
        let plan = try StoreTestSupport.plan(query(try equals("f10001", 1)))
        let source = try MemorySource(Self.documents, isIndexed: true)
        let part = try #require(try AccessPlanner.choose(plan, source)?.parts.first)
        // What the part is for has been given out.
        var fetched = Fetch(
            part.entries, in: plan.matcher.scope, readsDocuments: true,
            FetchCheck(alternatives: part.disjuncts, earlier: part.disjuncts), orders: [])
        var count = 0
        while !fetched.isFinished {
            var work = StepWork(budget: 100)
            try fetched.next(from: source, &work) { _ in .more }
            count += 1
        }
        expect(count > 10, "\(count) steps")
    }
}
