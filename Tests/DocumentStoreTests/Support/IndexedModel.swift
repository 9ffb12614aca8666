// A store and the documents that it must hold, for tests that query it.

import Basics
import DocumentModel
import StoreFormat
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import QueryEngine

/// The documents of a database as a test knows them, and a store that holds the same.
struct IndexedModel {
    let harness: StoreHarness
    var documents: [String: TestDocument] = [:]
    /// The state at some times of the past.
    var past: [(microseconds: UInt64, documents: [String: TestDocument])] = []

    init(_ configure: (inout StoreConfiguration) -> Void = { _ in }) throws {
        harness = try StoreHarness(database: "d", configure: configure)
    }

    init(_ harness: StoreHarness) { self.harness = harness }

    /// The same documents in a directory from before there were lists of groups. This model's store is closed.
    func withoutLists() throws -> IndexedModel {
        var keys = [GroupKey.marker]
        let lower = GroupKey.marker + [0]
        let upper = [GroupKey.marker[0], GroupKey.marker[1] + 1]
        do {
            let snapshot = try harness.store.engine.makeReader().snapshot()
            var cursor = try snapshot.cursor(from: lower.byteSpan, to: upper.byteSpan)
            while try cursor.next() { keys.append([UInt8](copying: cursor.key)) }
        }
        try #require(keys.count > 1)
        expectNil(harness.store.close())
        let directory = try harness.copy { batch in
            for key in keys { batch.delete(key: key.byteSpan) }
        }
        return IndexedModel(try StoreHarness(in: directory, clock: harness.clock, database: "d"))
    }

    /// Makes the store hold these documents and no others, in commits of several writes.
    mutating func replace(with next: [TestDocument], random: inout RandomQueries) async throws {
        var writes: [StepWrite] = []
        let kept = Set(next.map(\.path))
        for path in documents.keys.sorted() where !kept.contains(path) { writes.append(.delete(path)) }
        for document in next where documents[document.path]?.fields != document.fields {
            // A document written twice in one commit, now and then.
            if random.random.generator.oneIn(8) { writes.append(.set(document.path, ["a": 1, "b": [1, 2]])) }
            if random.random.generator.oneIn(16) { writes.append(.delete(document.path)) }
            writes.append(.set(document.path, document.fields))
        }
        if writes.isEmpty { return }
        harness.clock.advance(milliseconds: 1)
        if random.random.generator.oneIn(2) {
            try await harness.commit(writes)
        } else {
            for write in writes { try await harness.commit([write]) }
        }
        documents = Dictionary(uniqueKeysWithValues: next.map { ($0.path, $0) })
        harness.clock.advance(milliseconds: 1)
    }

    /// Steps in which every query over the documents of a test ends.
    private static let stepsMax = 100_000

    /// What a query returns, a page at a time.
    func run(
        _ query: StructuredQuery, parent: String, options: QueryOptions, pageSize: Int,
        at selector: ReadSelector = .latest
    ) throws -> (documents: [TestDocument], tree: String, scanned: Int, entries: Int) {
        let run = try finish(query, parent: parent, options: options, pageSize: pageSize, at: selector)
        return (run.documents, run.tree, run.scanned, run.entries)
    }

    /// A query that has ended.
    private struct FinishedQuery {
        let documents: [TestDocument]
        let tree: String
        let scanned: Int
        let entries: Int
        let steps: Int
    }

    private func finish(
        _ query: StructuredQuery, parent: String, options: QueryOptions, pageSize: Int, at selector: ReadSelector
    ) throws -> FinishedQuery {
        let root = Array((parent.isEmpty ? harness.database.documentsRoot : harness.name(parent)).utf8)
        let plan = try QueryPlan(query, parent: root.byteSpan, options: options)
        let reader = harness.store.makeReader()
        let point = try harness.readPoint(reader, selector)
        var run = QueryExecution(plan)
        var found: [TestDocument] = []
        for step in 1...Self.stepsMax {
            var room = pageSize
            let source = try reader.source(at: point, matching: plan.matcher)
            let progress = try run.next(from: source) { (result) throws(RequestError) in
                found.append(try TestDocument(result))
                room -= 1
                return room > 0 ? .more : .full
            }
            if progress == .finished {
                return FinishedQuery(
                    documents: found, tree: run.tree, scanned: run.scannedDocuments, entries: run.scannedEntries,
                    steps: step)
            }
        }
        throw RequestError(.internal, "the query does not end, plan:\n\(run.tree)")
    }

    /// The paths of a query's results, and how many steps it takes.
    func steps(of query: StructuredQuery, options: QueryOptions) throws -> (found: [String], count: Int) {
        let run = try finish(query, parent: "", options: options, pageSize: .max, at: .latest)
        return (run.documents.map(\.path), run.steps)
    }

    func count(
        _ query: StructuredQuery, parent: String, upTo: Int64? = nil, at selector: ReadSelector = .latest
    ) throws -> (count: Int64?, scanned: Int) {
        let (totals, scanned) = try aggregate(query, [.count(upTo: upTo)], parent: parent, at: selector)
        guard case .integer(let count)? = totals.first else { return (nil, 0) }
        return (count, scanned)
    }

    /// Totals of a query's results, one for each operation.
    func totals(
        _ query: StructuredQuery, _ operations: [Aggregation.Operation], parent: String,
        at selector: ReadSelector = .latest
    ) throws -> [Value] {
        try aggregate(query, operations, parent: parent, at: selector).totals
    }

    /// Random totals of a query's results, and what they must be; nil if the order of names forbids them.
    func randomTotals(
        _ query: StructuredQuery, parent: String, _ random: inout RandomQueries
    ) throws -> (found: [Value], expected: [Value])? {
        var query = query
        query.select = nil
        let operations: [Aggregation.Operation] = [
            .count(upTo: random.random.generator.oneIn(3) ? 3 : nil),
            .sum(random.random.generator.pick(RandomQueries.fields)),
            .average(random.random.generator.pick(RandomQueries.fields)),
        ]
        do {
            let found = try totals(query, operations, parent: parent)
            return (found, NaiveQuery.totals(query, operations, parent: parent, of: Array(documents.values)))
        } catch let error as RequestError where error.code == .invalidArgument {
            return nil
        }
    }

    private func aggregate(
        _ query: StructuredQuery, _ operations: [Aggregation.Operation], parent: String, at selector: ReadSelector
    ) throws -> (totals: [Value], scanned: Int) {
        let root = Array((parent.isEmpty ? harness.database.documentsRoot : harness.name(parent)).utf8)
        var run = try AggregationExecution(
            StructuredAggregationQuery(query: query, aggregations: operations.map { Aggregation($0) }),
            parent: root.byteSpan)
        let reader = harness.store.makeReader()
        let source = try reader.source(at: try harness.readPoint(reader, selector))
        while try run.next(from: source) != .finished {}
        let totals = try run.result.map { total in
            let encoded = total.value
            return try Value(wire: encoded.span)
        }
        return (totals, run.scannedDocuments)
    }
}

extension TestDocument {
    /// The document of a row, without its times.
    init(_ row: borrowing QueryRow) throws(RequestError) {
        do throws(InvalidDocument) {
            self.init(path: String(repairingUTF8: row.path), fields: try MapValue(documentBytes: row.fields))
        } catch {
            throw RequestError(error)
        }
    }
}
