// Queries that are read page by page while documents, indexes and files change.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct InFlightQueryTests {
    /// A query between two of its pages.
    private final class InFlight {
        let expected: [TestDocument]
        private(set) var found: [TestDocument] = []
        private let plan: QueryPlan
        private let point: ReadPoint
        private let pageSize: Int
        private var run: QueryExecution

        init(_ model: IndexedModel, _ reader: StoreReader, _ random: inout RandomQueries) throws {
            let (query, parent) = random.query()
            var options = QueryOptions()
            options.candidatesPerStep = random.random.generator.pick([1, 3, 1000])
            options.sortBufferBytes = random.random.generator.pick([1, 700, 1 << 20])
            pageSize = random.random.generator.pick([1, 1, 2, 5])
            let harness = model.harness
            let root = Array((parent.isEmpty ? harness.database.documentsRoot : harness.name(parent)).utf8)
            plan = try QueryPlan(query, parent: root.byteSpan, options: options)
            run = QueryExecution(plan)
            point = try harness.readPoint(reader, .latest)
            expected = NaiveQuery.results(query, parent: parent, of: Array(model.documents.values))
        }

        /// Reads a page.
        /// - Returns: whether it was the last one.
        func next(_ reader: StoreReader) throws -> Bool {
            var room = pageSize
            let source = try reader.source(at: point, matching: plan.matcher)
            let progress = try run.next(from: source) { (row) throws(RequestError) in
                found.append(try TestDocument(row))
                room -= 1
                return room > 0 ? .more : .full
            }
            return progress == .finished
        }

        var tree: String { run.tree }
    }

    @Test(arguments: CaseShare.of(UInt64(6_000)..<6_012, 4))
    func `A query returns one state, whatever changes between its pages`(seed: UInt64) async throws {
        var random = RandomQueries(seed: seed)
        random.isLong = seed % 2 == 0
        var model = try IndexedModel {
            $0.automaticIndexes = seed % 3 == 0 ? .adaptive : .on
            $0.adaptiveIndexes.documentsDemanded = 5
            $0.adaptiveIndexes.unusedMilliseconds = 20_000
            $0.adaptiveIndexes.indexesPerGroupMax = 2
            $0.engine.retentionMicroseconds = 1 << 42
        }
        let reader = model.harness.store.makeReader()
        var open: [InFlight] = []
        var through = 0
        func compare(_ query: InFlight, _ step: Int) {
            if query.tree.contains("Index") { through += 1 }
            expect(
                query.found.map(\.path) == query.expected.map(\.path)
                    && query.found.map(\.fields) == query.expected.map(\.fields),
                """
                seed \(seed), step \(step), plan:
                \(query.tree)
                found \(query.found.map(\.path)), not \(query.expected.map(\.path))
                """)
        }
        for step in 0..<500 {
            switch random.random.generator.below(14) {
            case 0: try await model.declare(random.declaration())
            case 1: try await model.replace(with: random.documents(), random: &random)
            case 2: if random.random.generator.oneIn(3) { try model.harness.store.checkpoint() }
            case 3:
                model.harness.clock.advance(milliseconds: 1_000)
                model.harness.store.noticeTime()
                try await model.harness.commit([.delete("other/nothing")])
            case 4...6 where open.count < 16:
                open.append(try InFlight(model, reader, &random))
            default:
                guard !open.isEmpty else { continue }
                let position = random.random.generator.below(open.count)
                if try open[position].next(reader) { compare(open.remove(at: position), step) }
            }
        }
        for query in open {
            while try !query.next(reader) {}
            compare(query, 500)
        }
        // Indexes on demand are built beside the queries: none may be there in time.
        if seed % 3 != 0 { expect(through > 0, "seed \(seed): no query went through an index") }
        reader.releaseSnapshots()
        try model.harness.finish()
    }
}
