// Every kind of read against one write: a transaction may not commit if its read would now come out otherwise.
//
// The state before is random: nothing at all, other collections only, collections whose documents are gone, or
// documents that match or do not. The write is made to fit the query where one can be found that does.

import Basics
import DocumentModel
import Indexing
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct ReadConflictTests {
    enum Kind: CaseIterable {
        case get, list, listMissing, collectionIDs, query, count, boundedCount, totals, nearest
    }

    /// One read, which gives the same text as long as it comes out the same.
    private struct Read {
        let kind: Kind
        let path: String
        let query: StructuredQuery
        let parent: String
        let pageSize: Int
        let options: QueryOptions

        init(_ kind: Kind, _ random: inout RandomQueries) throws {
            self.kind = kind
            path = random.random.generator.pick(RandomQueries.collections)
            var (query, parent) = random.query()
            query.select = nil
            switch kind {
            case .totals:
                query.from = [CollectionSelector(collectionID: "c", allDescendants: random.random.generator.oneIn(2))]
                (query.orderBy, query.startAt, query.endAt, parent) = ([], nil, nil, "")
                // Conditions on names and totals exclude each other.
                while let filter = query.filter, filter.usesName { query.filter = random.filter(namesOnly: false) }
            case .nearest:
                query = StructuredQuery(
                    from: [CollectionSelector(collectionID: "c", allDescendants: random.random.generator.oneIn(2))])
                query.findNearest = FindNearest(
                    vectorField: try FieldPath("t"), queryVector: EncodedValue(.vector([1, 0])),
                    distanceMeasure: .euclidean, limit: 3)
                parent = ""
            case .collectionIDs: parent = random.random.generator.pick(["", "c/1", "d/z"])
            default: break
            }
            (self.query, self.parent) = (query, parent)
            pageSize = random.random.generator.pick([1, 1000])
            var options = QueryOptions()
            options.candidatesPerStep = random.random.generator.pick([1, 1000])
            options.sortBufferBytes = random.random.generator.pick([700, 1 << 20])
            self.options = options
        }

        func result(in model: IndexedModel, _ selector: ReadSelector) throws -> String {
            let harness = model.harness
            switch kind {
            case .get: return "\(String(describing: try harness.get(path + "/1", selector)?.updateMicroseconds))"
            case .list, .listMissing: return try listing(harness, selector)
            case .collectionIDs:
                let reader = harness.store.makeReader()
                return try reader.collectionIDs(
                    below: parent.isEmpty ? nil : DocumentPath(harness.name(parent)), after: nil, limit: pageSize,
                    at: harness.readPoint(reader, selector)
                ).joined(separator: " ")
            case .query, .nearest:
                return try model.run(query, parent: parent, options: options, pageSize: pageSize, at: selector)
                    .documents.map { "\($0.path) \($0.fields)" }.joined(separator: "\n")
            case .count: return try total(harness, [Aggregation(.count(upTo: nil))], selector)
            case .boundedCount: return try total(harness, [Aggregation(.count(upTo: 2))], selector)
            case .totals:
                return try total(
                    harness, [Aggregation(.sum(try FieldPath("a"))), Aggregation(.average(try FieldPath("b")))],
                    selector)
            }
        }

        private func listing(_ harness: StoreHarness, _ selector: ReadSelector) throws -> String {
            let reader = harness.store.makeReader()
            var lines: [String] = []
            try reader.listDocuments(
                in: CollectionPath(harness.name(path)), showMissing: kind == .listMissing,
                at: harness.readPoint(reader, selector)
            ) { (id, document) throws(RequestError) in
                lines.append("\(String(repairingUTF8: id)) \(document?.updateMicroseconds ?? 0)")
                return lines.count < pageSize ? .more : .stop
            }
            return lines.joined(separator: "\n")
        }

        private func total(
            _ harness: StoreHarness, _ aggregations: [Aggregation], _ selector: ReadSelector
        ) throws -> String {
            let root = Array((parent.isEmpty ? harness.database.documentsRoot : harness.name(parent)).utf8)
            var run = try AggregationExecution(
                StructuredAggregationQuery(query: query, aggregations: aggregations), parent: root.byteSpan,
                options: options)
            let reader = harness.store.makeReader()
            let point = try harness.readPoint(reader, selector)
            while try run.next(from: reader.source(at: point, matching: run.plan.matcher)) != .finished {}
            return try run.result.map { "\(try Value(wire: $0.value.span))" }.joined(separator: " ")
        }

        /// A write that is likely to change the result.
        func write(_ random: inout RandomQueries, to documents: [TestDocument]) -> StepWrite {
            switch kind {
            case .get: return .set(path + "/1", ["a": 1])
            case .list, .listMissing: return .set(path + "/" + random.random.generator.pick(["1", "0/x/1"]), ["a": 1])
            case .nearest: return .set("c/1/c/new", ["t": .vector([1, 1])])
            default: break
            }
            let before = NaiveQuery.results(query, parent: parent, of: documents)
            for _ in 0..<20 {
                for var document in random.documents() {
                    if let filter = query.filter { document.fields.meet(filter) }
                    let others = documents.filter { $0.path != document.path }
                    let after = NaiveQuery.results(query, parent: parent, of: others + [document])
                    if after.map(\.path) != before.map(\.path) { return .set(document.path, document.fields) }
                }
            }
            return .set(
                random.random.generator.pick(RandomQueries.collections) + "/1", ["a": 1, "t": .vector([1, 1])])
        }
    }

    /// A state and how it came about.
    private func prepare(_ model: inout IndexedModel, _ random: inout RandomQueries) async throws -> [TestDocument] {
        let documents = random.documents()
        switch random.random.generator.below(4) {
        case 0: return []
        case 1:
            try await model.replace(
                with: documents.filter { $0.collection.hasSuffix("d") }, random: &random)
        case 2:
            try await model.replace(with: documents, random: &random)
            try await model.replace(with: [], random: &random)
        default: try await model.replace(with: documents, random: &random)
        }
        return Array(model.documents.values)
    }

    private static let modes = [TransactionOptions.ConcurrencyMode.optimistic, .pessimistic].flatMap { mode in
        [AutomaticIndexes.on, .off, .adaptive].map { (indexes: $0, mode: mode) }
    }

    @Test(arguments: CaseShare.of(modes, 3))
    func `A read that would come out otherwise aborts the commit`(
        indexes: AutomaticIndexes, mode: TransactionOptions.ConcurrencyMode
    ) async throws {
        let seed: UInt64 = (indexes == .on ? 1 : indexes == .off ? 2 : 3) + (mode == .optimistic ? 0 : 10)
        var random = RandomQueries(seed: seed)
        var (conflicts, others) = (0, 0)
        for round in 0..<40 {
            let isRingSmall = round % 4 == 3
            var model = try IndexedModel {
                $0.automaticIndexes = indexes
                // Validation alone decides, and no write waits.
                $0.shareLocksMax = 0
                if isRingSmall { $0.recentChangesMax = 2 }
            }
            let documents = try await prepare(&model, &random)
            // Few, because each leaves collections and fields that were there once.
            for kind in Kind.allCases.shuffled(using: &random.random.generator).prefix(2) {
                let read = try Read(kind, &random)
                let transaction = try await model.harness.begin(
                    .readWrite(retryTransaction: [], concurrency: mode))
                let before = try read.result(in: model, .transaction(transaction))
                let write = read.write(&random, to: documents)
                try await model.harness.commit([write])
                for other in 0..<(isRingSmall ? 4 : 0) {
                    try await model.harness.commit([.set("zz/\(other)", fields(1))])
                }
                let after = try read.result(in: model, .latest)
                let failure = try await model.harness.failure([.set("zz/r", fields(1))], transaction: transaction)
                if before != after {
                    conflicts += 1
                    expectEqual(
                        failure?.code, .aborted,
                        """
                        seed \(seed), round \(round): \(kind) of \(read.path) or \(read.query) below \(read.parent), \
                        then \(write):
                        \(before)
                        then
                        \(after)
                        """)
                } else if failure == nil {
                    others += 1
                }
                // Back to the state before.
                if case .set(let path, _, _) = write {
                    let old = documents.first { $0.path == path }
                    try await model.harness.commit([old.map { .set(path, $0.fields) } ?? .delete(path)])
                }
                try await model.harness.commit((0..<4).map { .delete("zz/\($0)") })
            }
            try model.harness.finish()
        }
        expect(conflicts > 12 && others > 5, "seed \(seed): \(conflicts) and \(others)")
    }
}

extension Filter {
    fileprivate var usesName: Bool {
        switch self {
        case .and(let parts), .or(let parts): parts.contains(where: \.usesName)
        case .unary(let path, _), .field(let path, _, _): path.isDocumentName
        }
    }
}

extension MapValue {
    /// Gives fields the operands that a filter names.
    fileprivate mutating func meet(_ filter: Filter) {
        switch filter {
        case .and(let parts), .or(let parts): for part in parts { meet(part) }
        case .unary: break
        case .field(let path, let operation, let operand):
            guard path.segments.count == 1, !path.isDocumentName, operation != .notIn,
                var value = try? Value(wire: operand.span)
            else { return }
            if operation == .isIn, case .array(let values) = value { value = values.first ?? .null }
            if case .array = value { return }
            self[path.segments[0]] = operation == .arrayContains ? .array([value]) : value
        }
    }
}
