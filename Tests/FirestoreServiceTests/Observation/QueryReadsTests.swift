// What queries have read, by their form.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import FirestoreService

@Suite(.timeLimit(.minutes(20)))
struct QueryReadsTests {
    private static let database = try? DatabaseName("projects/p/databases/(default)")

    private func query(_ collection: String, _ value: Int64, field: String = "n") throws -> StructuredQuery {
        StructuredQuery(
            from: [CollectionSelector(collectionID: collection)],
            filter: .and([
                .field(try FieldPath(field), .equal, EncodedValue(.integer(value))),
                .or([
                    .field(try FieldPath("tags"), .arrayContains, EncodedValue(.integer(value))),
                    .unary(try FieldPath("x"), .isNull),
                ]),
            ]), orderBy: [Order(field: try FieldPath("n"), direction: .descending)], limit: Int32(value))
    }

    @Test
    func `Queries that differ in values and ids alone are one form`() throws {
        let database = try #require(Self.database)
        let reads = QueryReads()
        for (user, documents) in [("ada", 3), ("bob", 4)] {
            let parent = "\(database.documentsRoot)/users/\(user)"
            reads.form(of: try query("books", Int64(documents)), below: parent, in: database).note(documents: documents)
        }
        let cost = try #require(reads.costs.first)
        expectEqual(reads.costs.count, 1)
        expect((cost.documents, cost.runs) == (7, 2))
        expectEqual(
            cost.form,
            """
            users/*/books --where 'n == ?' --where 'tags array-contains ? or x IS_NULL' --order-by n:desc --limit ?
            """)
        let other = try query("books", 1)
        reads.form(of: other, below: database.documentsRoot, in: database).note(documents: 1)
        reads.form(of: other, [Aggregation(.count(upTo: 5))], below: database.documentsRoot, in: database)
            .note(documents: 1)
        expectEqual(reads.costs.count, 3)
    }

    @Test
    func `A full table drops the form that has read least, and keeps its numbers among the others`() throws {
        let database = try #require(Self.database)
        let reads = QueryReads()
        let count = QueryReads.formsMax + 50
        for number in 1...count {
            let query = try query("books", 1, field: "f\(number)")
            reads.form(of: query, below: database.documentsRoot, in: database).note(documents: count - number + 10)
        }
        let costs = reads.costs
        expectEqual(costs.count, QueryReads.formsMax + 1)
        expectEqual(costs.map(\.documents).reduce(0, +), UInt64((10..<(count + 10)).reduce(0, +)))
        expectEqual(costs.map(\.runs).reduce(0, +), UInt64(count))
        expect(costs.contains { $0.form.contains("'f1 == ?'") })
        let others = try #require(costs.first { $0.form.isEmpty })
        expectEqual(others.runs, 50)
    }

    @Test
    func `A count forgets what is older than an hour`() {
        var count = HourlyCount()
        let minute: UInt64 = 60_000
        let start: UInt64 = 1_000 * minute
        count.add(5, at: start)
        count.add(7, at: start + 30 * minute)
        expectEqual(count.total(at: start + 54 * minute), 12)
        expectEqual(count.total(at: start + 61 * minute), 7)
        count.add(1, at: start + 80 * minute)
        expectEqual(count.total(at: start + 80 * minute), 8)
        expectEqual(count.total(at: start + 200 * minute), 0)
        count.add(2, at: start + 10_000 * minute)
        expectEqual(count.total(at: start + 10_000 * minute), 2)
    }
}
