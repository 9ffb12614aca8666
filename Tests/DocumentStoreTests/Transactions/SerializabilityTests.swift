// Random concurrent transactions against a plain dictionary: what each has read must be true of one state.
//
// Clients run transactions of both modes side by side with plain writes. They read documents, queries, limited queries
// and counts, write what depends on it, or nothing. The commits that wrote, in the order of their times, give the
// states of the database. A transaction that wrote must have read the state just before its own commit. One that wrote
// nothing must have read some state between its first read and its commit: so a phantom between two queries, or reads
// before and after a lost lock, are found also where nothing was written.

import Basics
import DocumentModel
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)), .inSimulations)
struct SerializabilityTests {
    /// What a transaction has seen.
    private enum Seen: Sendable, Equatable {
        case document(Int, value: Int64?)
        /// Ids of the documents of a kind, in the order of `n`, up to a limit.
        case query(kind: Int64, limit: Int?, ids: [Int])
        case count(kind: Int64, Int64)
    }

    private struct Change: Sendable {
        var id: Int
        /// Nil deletes.
        var fields: Row?
    }

    private struct Row: Sendable, Equatable {
        var kind: Int64
        var n: Int64

        var map: MapValue { ["kind": .integer(kind), "n": .integer(n)] }
    }

    /// A commit that succeeded.
    private struct Done: Sendable {
        var description: String
        var seen: [Seen]
        var changes: [Change]
        /// The latest commit that completed before the first read.
        var after: UInt64
        var time: UInt64
    }

    private typealias State = [Int: Row]

    private static func holds(_ seen: Seen, in state: State) -> Bool {
        switch seen {
        case .document(let id, let value): return state[id]?.n == value
        case .query(let kind, let limit, let ids):
            let matching = state.filter { $0.value.kind == kind }.sorted { ($0.value.n, $0.key) < ($1.value.n, $1.key) }
            return Array(matching.map(\.key).prefix(limit ?? .max)) == ids
        case .count(let kind, let count): return Int64(state.values.count { $0.kind == kind }) == count
        }
    }

    // MARK: Clients

    private final class Client: Sendable {
        static let documents = 8
        let harness: StoreHarness
        let done: Collected<Done>
        let latest: Atomic<UInt64>

        init(_ harness: StoreHarness) {
            self.harness = harness
            done = Collected()
            latest = Atomic(0)
        }

        private func path(_ id: Int) -> String { "c/\(id)" }

        private func write(_ change: Change) -> StepWrite {
            if let row = change.fields { .set(path(change.id), row.map) } else { .delete(path(change.id)) }
        }

        func change(_ generator: inout SeededGenerator) -> Change {
            let row = Row(kind: Int64(generator.below(2)), n: Int64(generator.below(1_000_000)))
            return Change(id: generator.below(Self.documents), fields: generator.oneIn(4) ? nil : row)
        }

        /// Commits and takes note of a success.
        /// - Returns: whether it succeeded.
        func commit(
            _ changes: [Change], _ seen: [Seen] = [], after: UInt64 = 0, _ transaction: TransactionIdentifier? = nil,
            _ description: String = "plain"
        ) async throws -> Bool {
            switch await harness.outcome(
                CommitRequest(writes: try harness.list(changes.map(write)), transaction: transaction))
            {
            case .success(let result):
                let time = result.commitMicroseconds
                done.append(Done(description: description, seen: seen, changes: changes, after: after, time: time))
                latest.max(time, ordering: .sequentiallyConsistent)
                return true
            case .failure(let error):
                expectEqual(error.code, .aborted, "\(error)")
                return false
            }
        }

        private func lock(_ transaction: TransactionIdentifier, _ paths: [String]) async throws {
            guard harness.store.readsLock(in: transaction) else { return }
            try await withCheckedContinuation { continuation in
                harness.store.lock(transaction, paths.map { Array(harness.name($0).utf8) }) {
                    continuation.resume(returning: $0)
                }
            }.get()
        }

        func read(_ generator: inout SeededGenerator, _ transaction: TransactionIdentifier) async throws -> Seen {
            if generator.oneIn(2) {
                let id = generator.below(Self.documents)
                try await lock(transaction, [path(id)])
                return .document(id, value: try harness.integer(path(id), "n", .transaction(transaction)))
            }
            try await lock(transaction, [])
            let kind = Int64(generator.below(2))
            var query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
            query.filter = .field(try FieldPath("kind"), .equal, EncodedValue(.integer(kind)))
            if generator.oneIn(3) {
                let root = Array(harness.database.documentsRoot.utf8)
                var run = try AggregationExecution(
                    StructuredAggregationQuery(query: query, aggregations: [Aggregation(.count(upTo: nil))]),
                    parent: root.byteSpan)
                let reader = harness.store.makeReader()
                let source = try reader.source(
                    at: try reader.readPoint(.transaction(transaction), in: harness.database),
                    matching: run.plan.matcher)
                while try run.next(from: source) != .finished {}
                let total = run.result[0].value
                guard case .integer(let count) = try Value(wire: total.span) else {
                    throw RequestError.unknownTransaction
                }
                return .count(kind: kind, count)
            }
            query.orderBy = [Order(field: try FieldPath("n"), direction: .ascending)]
            if generator.oneIn(2) { query.limit = 2 }
            let found = try IndexedModel(harness).run(
                query, parent: "", options: QueryOptions(), pageSize: 10, at: .transaction(transaction))
            return .query(
                kind: kind, limit: query.limit.map(Int.init),
                ids: found.documents.map { Int($0.path.dropFirst(2)) ?? -1 })
        }

        /// One transaction, retried a few times.
        func transact(_ generator: inout SeededGenerator) async throws {
            let mode = generator.pick([TransactionOptions.ConcurrencyMode.optimistic, .pessimistic])
            let reads = 1 + generator.below(4)
            let changes = generator.oneIn(2) ? [] : (0...generator.below(2)).map { _ in change(&generator) }
            var first: [UInt8] = []
            for _ in 0..<6 {
                let after = latest.load(ordering: .sequentiallyConsistent)
                let transaction = try await harness.begin(.readWrite(retryTransaction: first, concurrency: mode))
                if first.isEmpty { first = transaction.bytes }
                var seen: [Seen] = []
                for _ in 0..<reads {
                    seen.append(try await read(&generator, transaction))
                    await Task.yield()
                }
                let description = "\(mode) \(transaction.number)"
                if try await commit(changes, seen, after: after, transaction, description) { return }
            }
        }
    }

    // MARK: The serializability check

    private static func verify(_ done: [Done]) -> (readOnly: Int, failures: [String]) {
        let writers = done.filter { !$0.changes.isEmpty }.sorted { $0.time < $1.time }
        var states: [(time: UInt64, state: State)] = [(0, [:])]
        var failures: [String] = []
        for commit in writers {
            var state = states[states.count - 1].state
            for seen in commit.seen where !holds(seen, in: state) {
                failures.append("\(commit) read \(seen), not \(state)")
            }
            for change in commit.changes { state[change.id] = change.fields }
            states.append((commit.time, state))
        }
        let readers = done.filter(\.changes.isEmpty)
        for reader in readers {
            // The last state of before its first read, and all up to its commit.
            let start = states.lastIndex { $0.time <= reader.after } ?? 0
            let isTrue = states[start...].contains { moment in
                moment.time <= reader.time && reader.seen.allSatisfy { holds($0, in: moment.state) }
            }
            if !isTrue { failures.append("\(reader) read no state") }
        }
        return (readers.count, failures)
    }

    @Test(arguments: 0..<4 as Range<UInt64>, [true, false])
    func `Whatever runs side by side, each transaction has read one state, also if it wrote nothing`(
        seed: UInt64, isIndexed: Bool
    ) async throws {
        let harness = try StoreHarness {
            $0.clock = SystemClock()
            $0.automaticIndexes = isIndexed ? .on : .off
            // Locks that lapse at once, or are never there, test what validation alone is worth.
            if seed % 4 == 1 { $0.lockIdleMilliseconds = 0 }
            if seed % 4 == 2 { $0.shareLocksMax = 0 }
            if seed % 4 == 3 { $0.recentChangesMax = 4 }
        }
        let client = Client(harness)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    var generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(number))
                    for _ in 0..<40 {
                        if generator.oneIn(3) {
                            try await expect(client.commit([client.change(&generator)]))
                        } else {
                            try await client.transact(&generator)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let (readOnly, failures) = Self.verify(client.done.all)
        expectEqual(failures, [], "seed \(seed)")
        expect(readOnly > 20)
        try harness.finish()
    }

    @Test
    func `The judge finds a phantom, a lost update and reads of two states`() {
        let (one, two) = (Row(kind: 0, n: 1), Row(kind: 0, n: 2))
        let writes = [
            Done(description: "w", seen: [], changes: [Change(id: 1, fields: one)], after: 0, time: 10),
            Done(description: "w", seen: [], changes: [Change(id: 2, fields: two)], after: 10, time: 20),
        ]
        func failures(_ seen: [Seen], _ changes: [Change] = []) -> Int {
            Self.verify(writes + [Done(description: "t", seen: seen, changes: changes, after: 10, time: 30)]).failures
                .count
        }
        let (before, after) = (Seen.query(kind: 0, limit: nil, ids: [1]), Seen.query(kind: 0, limit: nil, ids: [1, 2]))
        expectEqual(failures([before]), 0)
        expectEqual(failures([after, .count(kind: 0, 2)]), 0)
        expectEqual(failures([before, after]), 1)
        expectEqual(failures([before, .document(2, value: 2)]), 1)
        expectEqual(failures([before], [Change(id: 3, fields: one)]), 1)
        expectEqual(failures([after], [Change(id: 3, fields: one)]), 0)
        // Older than what was acknowledged before it began.
        expectEqual(failures([.document(1, value: nil)]), 1)
    }
}
