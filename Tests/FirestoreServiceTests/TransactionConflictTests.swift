// Every method that reads in a transaction against a write of what it would have returned.

import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import Indexing
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct TransactionConflictTests {
    /// What was there before the read. Each case has another collection id and another field, which are new.
    enum Prior: CaseIterable {
        case nothing, fieldNeverSeen, noMatch, matchDeleted
    }

    /// Queries for documents in which the field is 1; the document written has these fields too.
    private static func queries(_ field: FieldPath, of id: String) throws -> [(name: String, query: StructuredQuery)] {
        let one = EncodedValue(.integer(1))
        let other = try FieldPath("other")
        func filtered(_ filter: Filter?, _ orders: [FieldPath] = [], isGroup: Bool) -> StructuredQuery {
            var query = StructuredQuery(from: [CollectionSelector(collectionID: id, allDescendants: isGroup)])
            query.filter = filter
            query.orderBy = orders.map { Order(field: $0) }
            return query
        }
        var queries: [(name: String, query: StructuredQuery)] = []
        for isGroup in [false, true] {
            func add(_ name: String, _ filter: Filter?, _ orders: [FieldPath] = []) {
                queries.append(
                    (name + (isGroup ? " in a group" : ""), filtered(filter, orders, isGroup: isGroup)))
            }
            add("everything", nil)
            add("==", .field(field, .equal, one))
            add("in", .field(field, .isIn, EncodedValue(.array([.integer(1), .integer(7)]))))
            add(">=", .field(field, .greaterThanOrEqual, one))
            add("!=", .field(field, .notEqual, EncodedValue(.integer(5))))
            add("not-in", .field(field, .notIn, EncodedValue(.array([.integer(5)]))))
            add("array-contains", .field(other, .arrayContains, one))
            add("array-contains-any", .field(other, .arrayContainsAny, EncodedValue(.array([.integer(1)]))))
            add("order", nil, [field])
            add("order after a filter", .field(field, .equal, one), [other])
            add("and", .and([.field(field, .equal, one), .unary(other, .isNotNull)]))
            add("or", .or([.field(field, .equal, one), .field(other, .equal, one)]))
            var limited = filtered(.field(field, .equal, one), isGroup: isGroup)
            (limited.limit, limited.offset) = (3, 0)
            queries.append(("limit" + (isGroup ? " in a group" : ""), limited))
            var nearest = filtered(nil, isGroup: isGroup)
            nearest.findNearest = FindNearest(
                vectorField: try FieldPath("v"), queryVector: EncodedValue(.vector([1, 0])),
                distanceMeasure: .euclidean, limit: 3)
            queries.append(("nearest" + (isGroup ? " in a group" : ""), nearest))
        }
        return queries
    }

    /// The reads of a collection, each by the method that makes it.
    private static func reads(
        _ field: String, of id: String
    ) throws -> [(name: String, read: (Harness, ReadConsistency) -> TestAnswer)] {
        var reads: [(name: String, read: (Harness, ReadConsistency) -> TestAnswer)] = [
            ("get", { $0.call(.getDocument, GetDocumentRequest(name: Harness.name("\(id)/new"), consistency: $1)) }),
            (
                "batch get",
                {
                    $0.call(
                        .batchGetDocuments,
                        BatchGetDocumentsRequest(
                            database: Harness.database, documents: [Harness.name("\(id)/new")], consistency: $1))
                }
            ),
        ]
        for (name, order, showMissing) in [
            ("list", "", false), ("list missing", "", true), ("list in order", field, false),
        ] {
            reads.append(
                (
                    name,
                    {
                        $0.call(
                            .listDocuments,
                            ListDocumentsRequest(
                                parent: Harness.root, collectionID: id, orderBy: order, consistency: $1,
                                showMissing: showMissing))
                    }
                ))
        }
        let path = try FieldPath(field)
        for (name, query) in try queries(path, of: id) {
            reads.append(
                (
                    "query \(name)",
                    { $0.call(.runQuery, RunQueryRequest(parent: Harness.root, query: query, consistency: $1)) }
                ))
            if query.findNearest != nil { continue }
            var aggregations: [(String, Aggregation.Operation)] = [
                ("count", .count(upTo: nil)), ("count up to 2", .count(upTo: 2)),
            ]
            if name.hasPrefix("everything") || name.hasPrefix("==") {
                aggregations += [("sum", .sum(path)), ("average", .average(path))]
            }
            for (total, operation) in aggregations {
                let aggregation = StructuredAggregationQuery(query: query, aggregations: [Aggregation(operation)])
                reads.append(
                    (
                        "\(total) of \(name)",
                        {
                            $0.call(
                                .runAggregationQuery,
                                RunAggregationQueryRequest(parent: Harness.root, query: aggregation, consistency: $1))
                        }
                    ))
            }
        }
        return reads
    }

    @Test(
        arguments: [AutomaticIndexes.on, .off, .adaptive],
        [TransactionOptions.ConcurrencyMode.optimistic, .pessimistic])
    func `A read of what is written before the commit aborts it, whatever was there before`(
        indexes: AutomaticIndexes, mode: TransactionOptions.ConcurrencyMode
    ) throws {
        let harness = try Harness {
            $0.automaticIndexes = indexes
            // Validation alone decides, and no write waits.
            $0.shareLocksMax = 0
        }
        var number = 0
        let kinds = CaseShare.of(try Self.reads("f", of: "g").indices, 25)
        for prior in Prior.allCases {
            for kind in kinds {
                number += 1
                let (id, field) = ("g\(number)", "f\(number)")
                let (name, read) = try Self.reads(field, of: id)[kind]
                let match =
                    Harness.field(field, .integer(1))
                    + Harness.fields(["other": .array([.integer(1)]), "v": .vector([1, 1])])
                switch prior {
                case .nothing: break
                case .fieldNeverSeen: try harness.set(["\(id)/old": Harness.fields(["x": .integer(1)])])
                case .noMatch: try harness.set(["\(id)/old": Harness.field(field, .integer(5))])
                case .matchDeleted:
                    try harness.set(["\(id)/new": match])
                    try harness.delete("\(id)/new")
                }
                let transaction = try harness.begin(.readWrite(retryTransaction: [], concurrency: mode))
                let answer = read(harness, .transaction(transaction))
                expect(answer.isOK || answer.status == .notFound, "\(name), \(prior): \(answer.text)")
                try harness.set(["\(id)/new": match])
                var writes = try harness.emptyWrites()
                try Harness.name("results/\(number)").withUTF8Span { try writes.update($0, fields: match.span.bytes) }
                expectEqual(harness.tryCommit(writes, transaction: transaction).status, .aborted, "\(name), \(prior)")
            }
        }
    }
}
