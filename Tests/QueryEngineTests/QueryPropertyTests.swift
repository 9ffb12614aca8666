// Random queries over random documents: the executor against the naive evaluator.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct QueryPropertyTests {
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `Random queries return what the naive evaluator returns`(seed: UInt64) throws {
        var random = RandomQueries(seed: seed)
        for round in 0..<30 {
            let all = random.documents()
            let isDeleted = all.map { _ in round % 3 > 0 && random.random.generator.pick([true, false]) }
            let documents = zip(all, isDeleted).filter { !$1 }.map(\.0)
            let deleted = zip(all, isDeleted).filter(\.1).map(\.0)
            let (query, parent) = random.query()
            var options = QueryOptions()
            // Small bounds, so that pages, steps and passes are crossed.
            options.candidatesPerStep = random.random.generator.pick([1, 3, 1000])
            options.sortBufferBytes = random.random.generator.pick([1, 700, 1 << 20])
            let plan = try plan(query, parent: parent.isEmpty ? testRoot : "\(testRoot)/\(parent)", options: options)
            let pageSize = random.random.generator.pick([1, 2, 1000])
            let expected = NaiveQuery.results(query, parent: parent, of: documents)
            for isIndexed in [false, true] {
                let source = try MemorySource(
                    documents, emptyCollections: ["c/1/empty", "c/7/c"] + deleted.map(\.collection),
                    isIndexed: isIndexed, deleted: deleted, listsGroups: round % 2 == 0)
                let (found, run) = try results(of: plan, over: source, pageSize: pageSize)
                expectEqual(found, expected, "seed \(seed), round \(round), plan:\n\(run.tree)")
                expect(run.skipped <= Int(query.offset))
            }
        }
    }

    @Test(arguments: 500..<508 as Range<UInt64>)
    func `A query whose operators are measured returns the same`(seed: UInt64) throws {
        var random = RandomQueries(seed: seed)
        for round in 0..<30 {
            let documents = random.documents()
            let (query, parent) = random.query()
            var options = QueryOptions()
            options.candidatesPerStep = random.random.generator.pick([1, 3, 1000])
            options.sortBufferBytes = random.random.generator.pick([1, 700, 1 << 20])
            options.measuresOperators = true
            let plan = try plan(query, parent: parent.isEmpty ? testRoot : "\(testRoot)/\(parent)", options: options)
            let expected = NaiveQuery.results(query, parent: parent, of: documents)
            for isIndexed in [false, true] {
                var source = try MemorySource(documents, isIndexed: isIndexed)
                source.waits = SourceWaits(seed: seed &* 1_000 &+ UInt64(round), oneIn: 5)
                let (found, run) = try results(
                    of: plan, over: source, pageSize: random.random.generator.pick([1, 2, 1000]))
                let place = "seed \(seed), round \(round), plan:\n\(run.tree)"
                expectEqual(found, expected, "\(place)")
                if plan.limit == 0 { continue }
                expect(run.lines.allSatisfy { $0.figures != nil }, "\(place)")
                expectEqual(run.lines.first?.figures?.rows, found.count, "\(place)")
            }
        }
    }

    @Test(arguments: 400..<424 as Range<UInt64>)
    func `Queries that must wait for their source return each result once`(seed: UInt64) throws {
        var random = RandomQueries(seed: seed)
        var waitCount = 0
        for round in 0..<30 {
            let documents = random.documents()
            let (query, parent) = random.query()
            var options = QueryOptions()
            options.candidatesPerStep = random.random.generator.pick([1, 3, 1000])
            options.sortBufferBytes = random.random.generator.pick([1, 700, 1 << 20])
            let plan = try plan(query, parent: parent.isEmpty ? testRoot : "\(testRoot)/\(parent)", options: options)
            let pageSize = random.random.generator.pick([1, 2, 1000])
            let expected = NaiveQuery.results(query, parent: parent, of: documents)
            for isIndexed in [false, true] {
                var source = try MemorySource(
                    documents, emptyCollections: ["c/1/empty", "c/7/c"], isIndexed: isIndexed)
                let waits = SourceWaits(
                    seed: seed &* 1_000 &+ UInt64(round), oneIn: random.random.generator.pick([1, 2, 5]))
                source.waits = waits
                let (found, run) = try results(of: plan, over: source, pageSize: pageSize)
                expectEqual(found, expected, "seed \(seed), round \(round), plan:\n\(run.tree)")
                expect(run.skipped <= Int(query.offset))
                waitCount += waits.count
            }
        }
        expect(waitCount > 0)
    }

    @Test(arguments: 100..<112 as Range<UInt64>)
    func `A matcher accepts exactly the results without offset and limit`(seed: UInt64) throws {
        var random = RandomQueries(seed: seed)
        for round in 0..<30 {
            let documents = random.documents()
            var (query, parent) = random.query()
            query.offset = 0
            query.limit = nil
            query.select = nil
            let plan = try plan(query, parent: parent.isEmpty ? testRoot : "\(testRoot)/\(parent)")
            let accepted = documents.filter { document in
                let path = Array(document.path.utf8)
                let bytes = document.fields.documentBytes
                return plan.matcher.matches(path: path.byteSpan, fields: bytes.byteSpan)
            }
            let expected = NaiveQuery.results(query, parent: parent, of: documents)
            expectEqual(
                Set(accepted.map(\.path)), Set(expected.map(\.path)), "seed \(seed), round \(round), plan:\n\(plan)")
        }
    }

    @Test(arguments: 200..<206 as Range<UInt64>)
    func `Counts are the number of results, whatever the bound`(seed: UInt64) throws {
        var random = RandomQueries(seed: seed)
        for round in 0..<40 {
            let documents = random.documents()
            let (query, parent) = random.query()
            let upTo: Int64? = random.random.generator.oneIn(2) ? Int64(1 + random.random.generator.below(5)) : nil
            let root = Array((parent.isEmpty ? testRoot : "\(testRoot)/\(parent)").utf8)
            var run = try AggregationExecution(
                StructuredAggregationQuery(query: query, aggregations: [Aggregation(.count(upTo: upTo))]),
                parent: root.byteSpan)
            var source = try MemorySource(documents)
            let waits = SourceWaits(seed: seed, oneIn: 3)
            source.waits = waits
            while true {
                do throws(RequestError) {
                    if try run.next(from: source) == .finished { break }
                } catch {
                    guard error.isPending else { throw error }
                    waits.proceed()
                }
            }
            let number = Int64(NaiveQuery.results(query, parent: parent, of: documents).count)
            let expected = EncodedValue(.integer(min(number, upTo ?? .max)))
            expectEqual(run.result[0].value, expected, "seed \(seed), round \(round), plan:\n\(run.plan)")
        }
    }

    @Test(arguments: 300..<308 as Range<UInt64>)
    func `Damaged queries are refused or run, never trap`(seed: UInt64) throws {
        var random = RandomQueries(seed: seed)
        let documents = random.documents()
        for _ in 0..<150 {
            var writer = ByteBuffer()
            var (query, _) = random.query()
            if random.random.generator.oneIn(6) {
                query.findNearest = FindNearest(
                    vectorField: RandomQueries.fields[0], queryVector: EncodedValue(.vector([1, 2])),
                    distanceMeasure: .cosine, limit: 3, distanceResultField: "a.b")
            }
            query.encode(into: &writer)
            var bytes = writer.copyBytes()
            for _ in 0..<1 + random.random.generator.below(3) where !bytes.isEmpty {
                let position = random.random.generator.below(bytes.count)
                switch random.random.generator.below(3) {
                case 0: bytes[position] ^= 1 << UInt8(random.random.generator.below(8))
                case 1 where bytes.count > 1: bytes.remove(at: position)
                default: bytes.insert(UInt8(random.random.generator.below(256)), at: position)
                }
            }
            do {
                let damaged = try StructuredQuery(wire: bytes.byteSpan)
                let plan = try plan(damaged)
                let (found, _) = try results(of: plan, over: try MemorySource(documents))
                expect(found.count <= documents.count, "seed \(seed)")
                expect(!plan.description.isEmpty)
            } catch let error as RequestError {
                expectEqual(error.code, .invalidArgument, "seed \(seed): \(error)")
            }
        }
    }
}
