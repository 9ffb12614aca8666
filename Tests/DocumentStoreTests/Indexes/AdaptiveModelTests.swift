// Random writes, queries, declarations, changes of the mode, restarts and crashes: every query returns what the naive
// evaluator returns, now and in the past, and entries and documents agree.

import DocumentModel
import StoreTestSupport
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct AdaptiveModelTests {
    /// Admits index steps now and then, and nothing once it is closed.
    private final class HousekeepingGate: Sendable {
        private let state: Mutex<(random: SeededGenerator, isOpen: Bool)>

        init(seed: UInt64) { state = Mutex((SeededGenerator(seed: seed), true)) }

        func admits(_ task: HousekeepingTask) -> Bool {
            state.withLock { state in
                if !state.isOpen { return false }
                return task == .indexStep ? state.random.oneIn(2) : true
            }
        }

        func close() { state.withLock { $0.isOpen = false } }
    }

    private static func configure(
        _ configuration: inout StoreConfiguration, _ mode: AutomaticIndexes, _ gate: HousekeepingGate
    ) {
        configuration.automaticIndexes = mode
        configuration.adaptiveIndexes.documentsDemanded = 5
        configuration.adaptiveIndexes.unusedMilliseconds = 60_000
        configuration.adaptiveIndexes.indexesPerGroupMax = 4
        configuration.adaptiveIndexes.indexesPerDatabaseMax = 6
        configuration.engine.retentionMicroseconds = 1 << 42
        configuration.admitsHousekeeping = { gate.admits($0) }
    }

    @Test(arguments: CaseShare.of(UInt64(4000)..<4010, 3))
    func `Queries return the same while indexes come and go`(seed: UInt64) async throws {
        var random = RandomQueries(seed: seed)
        random.isLong = seed % 2 == 0
        let modes: [AutomaticIndexes] = [.adaptive, .adaptive, .adaptive, .on, .off]
        var gate = HousekeepingGate(seed: seed)
        var mode = random.random.generator.pick(modes)
        var model = try IndexedModel { Self.configure(&$0, mode, gate) }
        var made: UInt64 = 0
        var used = 0
        for round in 0..<8 {
            for _ in 0..<2 {
                try await model.replace(with: random.documents(), random: &random)
                model.past.append((model.harness.clock.nowMicroseconds, model.documents))
                model.harness.clock.advance(milliseconds: 1)
                if random.random.generator.oneIn(4) { try await model.declare(random.declaration()) }
                for number in 0..<60 {
                    let place = "seed \(seed), round \(round), mode \(mode)"
                    used += try Self.compare(model, &random, place)
                    model.harness.clock.advance(milliseconds: UInt64(random.random.generator.below(3_000)))
                    model.harness.store.noticeTime()
                    // Writes let the commit thread keep pace with the queries: it does what is due between two of them.
                    if number % 3 == 0 { try await model.harness.commit([.delete("other/nothing")]) }
                }
                // It makes what the last queries have asked for.
                for _ in 0..<10 {
                    model.harness.clock.advance(milliseconds: 1_000)
                    model.harness.store.noticeTime()
                    try await model.harness.commit([.delete("other/nothing")])
                }
            }
            try expectEqual(StoreCheck.run(model.harness.store).problems, [], "seed \(seed), round \(round)")
            made += model.harness.store.statistics.adaptiveIndexes.made
            if random.random.generator.oneIn(2) { try model.harness.store.checkpoint() }
            // The next process: after a crash, or after a close.
            gate.close()
            try await model.harness.commit([.delete("other/nothing")])
            mode = random.random.generator.pick(modes)
            gate = HousekeepingGate(seed: seed &+ UInt64(round) &* 1_000)
            let (documents, past) = (model.documents, model.past)
            let next = try model.harness.crashed { [mode, gate] in Self.configure(&$0, mode, gate) }
            try expectEqual(StoreCheck.run(next.store).problems, [], "seed \(seed), after round \(round)")
            model.harness.store.close()
            model = IndexedModel(next)
            (model.documents, model.past) = (documents, past)
        }
        try model.harness.finish()
        print("seed \(seed): \(made) indexes made, \(used) queries used them")
        expect(made > 0 && used > 0, "seed \(seed)")
    }

    /// Compares a random query with the naive evaluator, now and in the past.
    /// - Returns: 1 if the query went through an index.
    private static func compare(_ model: IndexedModel, _ random: inout RandomQueries, _ place: String) throws -> Int {
        let (query, parent) = random.query()
        var options = QueryOptions()
        options.candidatesPerStep = random.random.generator.pick([1, 3, 1000])
        options.sortBufferBytes = random.random.generator.pick([1, 700, 1 << 20])
        let pageSize = random.random.generator.pick([1, 2, 1000])
        let (found, tree, _, _) = try model.run(query, parent: parent, options: options, pageSize: pageSize)
        let expected = NaiveQuery.results(query, parent: parent, of: Array(model.documents.values))
        expect(
            found.map(\.path) == expected.map(\.path) && found.map(\.fields) == expected.map(\.fields),
            "\(place), plan:\n\(tree)\nfound \(found.map(\.path)), not \(expected.map(\.path))")
        var bare = query
        bare.select = nil
        try expectEqual(
            model.count(bare, parent: parent).count,
            Int64(NaiveQuery.results(bare, parent: parent, of: Array(model.documents.values)).count),
            "\(place), count of plan:\n\(tree)")
        if let (found, expected) = try model.randomTotals(query, parent: parent, &random) {
            expectEqual(found, expected, "\(place), totals of:\n\(tree)")
        }
        let then = random.random.generator.pick(model.past)
        let (before, plan, _, _) = try model.run(
            query, parent: parent, options: options, pageSize: pageSize,
            at: .time(TimestampValue(microseconds: Int64(then.microseconds))))
        let old = NaiveQuery.results(query, parent: parent, of: Array(then.documents.values))
        expectEqual(before.map(\.path), old.map(\.path), "\(place), in the past:\n\(plan)")
        return tree.contains("IndexScan") ? 1 : 0
    }
}
