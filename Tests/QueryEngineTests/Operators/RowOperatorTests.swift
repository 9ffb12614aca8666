// Operators over rows of an array: filter, sort, limit, projection, totals.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct RowOperatorTests {
    private static let documents = numbered(40) {
        ["n": .integer($0), "m": .integer($0 * 7 % 40), "half": .integer($0 % 2)]
    }

    private func plan(_ commands: String...) throws -> QueryPlan {
        var script = QueryCommands()
        for command in ["query c"] + commands { try script.read(command) }
        return try StoreTestSupport.plan(script.query, parent: script.parent, options: script.options)
    }

    @Test(arguments: Paging.all)
    func `RowFilter gives out the rows that match`(paging: Paging) throws {
        let plan = try plan("where half == 1 and n > 30")
        let filter = RowFilter(ArrayRows(Self.documents), plan.matcher, comparesCursors: false)
        let given = try rows(of: filter, over: try MemorySource([]), paging)
        expectEqual(given.ids, ["d031", "d033", "d035", "d037", "d039"])
        expectEqual(given.work.documents, 40)
        expectEqual(filter.tree.description, "Filter half == 1 AND n > 30\n└─ Rows")
    }

    @Test(arguments: Paging.all)
    func `RowFilter without a condition passes rows on, and compares cursors on request`(paging: Paging) throws {
        let all = RowFilter(ArrayRows(Self.documents), nil, comparesCursors: false)
        try expectEqual(rows(of: all, over: try MemorySource([]), paging).ids, Self.documents.map(\.id))
        expectEqual(all.tree.description, "Rows")
        let plan = try plan("order n", "start-at 37")
        for (compares, count) in [(true, 3), (false, 40)] {
            let filter = RowFilter(ArrayRows(Self.documents), plan.matcher, comparesCursors: compares)
            try expectEqual(rows(of: filter, over: try MemorySource([]), paging).documents.count, count)
        }
    }

    @Test(arguments: Paging.all)
    func `Limit skips the offset and stops at the limit`(paging: Paging) throws {
        let source = try MemorySource([])
        let cases = [(0, 3, 0..<3), (5, 2, 5..<7), (38, 5, 38..<40), (50, 5, 40..<40), (0, 0, 0..<0)]
        for (offset, count, expected) in cases {
            let limit = Limit(ArrayRows(Self.documents), offset: offset, limit: count, orders: nil)
            let given = try rows(of: limit, over: source, paging)
            expectEqual(given.ids, Self.documents[expected].map(\.id))
            expect(given.work.documents <= offset + count, "nothing is read after the last row")
        }
        let unlimited = Limit(ArrayRows(Self.documents), offset: 1, limit: nil, orders: nil)
        try expectEqual(rows(of: unlimited, over: source, paging).documents.count, 39)
        expectEqual(unlimited.tree.description, "Offset 1\n└─ Rows")
        expectEqual(
            Limit(ArrayRows([]), offset: 2, limit: 3, orders: nil).tree.description, "Limit 3, offset 2\n└─ Rows")
    }

    @Test
    func `Limit counts what it skipped and returned, also on another input`() throws {
        var limit = Limit(ArrayRows(Self.documents), offset: 3, limit: 5, orders: nil)
        var work = StepWork(budget: 5)
        let source = try MemorySource([])
        try limit.next(from: source, &work) { _ in .more }
        expect((limit.skipped, limit.returned, limit.wanted) == (3, 2, 3))
        let continued = Limit(ArrayRows(Self.documents), continuing: limit)
        try expectEqual(rows(of: continued, over: source).ids, ["d000", "d001", "d002"])
    }

    @Test(arguments: Paging.all)
    func `Project copies the fields asked for`(paging: Paging) throws {
        let selection = FieldSelection([try FieldPath("n"), try FieldPath("missing")])
        let project = Project(ArrayRows(Array(Self.documents.prefix(3))), selection)
        let given = try rows(of: project, over: try MemorySource([]), paging)
        expectEqual(given.documents.map(\.fields), [["n": 0], ["n": 1], ["n": 2]])
        expectEqual(project.tree.description, "Project missing, n\n└─ Rows")
    }

    @Test(arguments: Paging.all)
    func `Sort gives out the first rows in order, in as many passes as its memory needs`(paging: Paging) throws {
        let source = try MemorySource([])
        let orders = [Order(field: try FieldPath("m"), direction: .descending), Order(field: .documentName)]
        let sorted = Self.documents.sorted { left, right in
            let (left, right) = (left.fields["m"], right.fields["m"])
            guard case .integer(let left)? = left, case .integer(let right)? = right else { return false }
            return left > right
        }
        for bytes in [1, 1_000, 1 << 20] {
            for wanted in [1, 7, 40, Int.max] {
                let sort = Sort(
                    ArrayRows(Self.documents), by: .orders(orders), wanted: wanted, keeping: nil, bytesMax: bytes)
                let given = try rows(of: sort, over: source, paging)
                expectEqual(given.ids, sorted.prefix(wanted).map(\.id))
                // One pass, unless the rows wanted do not fit.
                if bytes == 1 << 20 { expectEqual(given.work.documents, 40) }
                if bytes == 1 { expectEqual(given.work.documents, 40 * min(wanted, 40)) }
            }
        }
        let late = Sort(
            ArrayRows(Self.documents), by: .orders(orders), wanted: .max, keeping: nil, bytesMax: 1_000,
            after: sortKey(of: sorted[9], orders))
        try expectEqual(rows(of: late, over: source, paging).ids, sorted.dropFirst(10).map(\.id))
    }

    private func sortKey(of document: TestDocument, _ orders: [Order]) -> [UInt8] {
        var key = ByteBuffer()
        _ = SortKey.append(
            path: Array(document.path.utf8).byteSpan, fields: document.fields.documentBytes.byteSpan, order: orders,
            into: &key)
        return key.copyBytes()
    }

    @Test
    func `Sort keeps the fields that are returned, and leaves out rows that lack an ordered field`() throws {
        let order = [Order(field: try FieldPath("n"), direction: .descending)]
        let sort = Sort(
            ArrayRows([TestDocument(path: "c/x", fields: ["m": 1])] + Self.documents.prefix(2)), by: .orders(order),
            wanted: .max, keeping: FieldSelection([try FieldPath("half")]), bytesMax: 1 << 20)
        let given = try rows(of: sort, over: try MemorySource([]))
        expectEqual(given.ids, ["d001", "d000"])
        expectEqual(given.documents.map(\.fields), [["half": 1], ["half": 0]])
        expectEqual(sort.tree.description, "Sort by (n DESC)\n└─ Rows")
    }

    @Test(arguments: Paging.all)
    func `Sort by distance gives out the nearest vectors`(paging: Paging) throws {
        let documents =
            numbered(20) { ["v": .vector([Double($0), 0])] } + [TestDocument(path: "c/none", fields: ["n": 1])]
        let plan = try plan("nearest v euclidean vector(7.25, 0) limit 3 as distance")
        guard case .nearest(let search) = plan.strategy else { throw ScriptError("not a search for neighbours") }
        let sort = Sort(
            ArrayRows(documents), by: .nearest(search), wanted: search.limit, keeping: nil, bytesMax: 1 << 20)
        let given = try rows(of: sort, over: try MemorySource([]), paging)
        expectEqual(given.ids, ["d007", "d008", "d006"])
        expectEqual(given.documents[0].fields["distance"], .double(0.25))
    }
}
