// One applier for live commits and recovery: a store that replays its log from the start has the keys that the live
// store has.

import Basics
import DocumentModel
import Storage
import StoreTestSupport
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import StoreFormat

@Suite(.timeLimit(.minutes(20)))
struct ReplayTests {
    /// A key with its value and the version that wrote it.
    private struct Entry: Equatable, CustomStringConvertible {
        var key: [UInt8]
        var value: [UInt8]
        var version: UInt64

        var description: String { "\(key) = \(value) at \(version)" }
    }

    /// A store that does all kinds of commits, and never a checkpoint.
    private final class Ground {
        let harness: StoreHarness
        let isSteady: SharedFlag
        var random: RandomQueries
        var versions: [UInt64] = []
        var numbered: [(request: CommitRequest, isBatch: Bool, result: BatchWriteResult)] = []
        private var sequences: [UInt64: UInt64] = [:]

        init(seed: UInt64) throws {
            random = RandomQueries(seed: seed)
            random.isLong = seed % 2 == 0
            let isSteady = SharedFlag()
            self.isSteady = isSteady
            harness = try StoreHarness(database: "d") {
                $0.engine.memtableBytesMax = 64 << 20
                $0.engine.logSegmentBytes = 1 << 20
                $0.expiryIntervalMilliseconds = 5_000
                $0.sessionIdleMilliseconds = 60_000
                $0.sessionsMax = 7
                $0.admitsHousekeeping = { _ in !isSteady.isSet }
            }
        }

        func step() async throws {
            switch random.random.generator.below(12) {
            case 0..<6: try await commit(isBatch: false)
            case 6..<8: try await commit(isBatch: true)
            case 8: try await declare()
            case 9: try await again()
            default:
                harness.clock.advance(milliseconds: UInt64(random.random.generator.below(20_000)))
                harness.store.noticeTime()
            }
        }

        private func writes() throws -> [StepWrite] {
            let old = TimestampValue(microseconds: 5)
            var paths: [String] = []
            return random.documents().prefix(12).flatMap { document -> [StepWrite] in
                paths.append(document.path)
                let path = random.random.generator.oneIn(3) ? random.random.generator.pick(paths) : document.path
                switch random.random.generator.below(12) {
                case 0: return [.delete(path)]
                case 1: return [.increment(path, field: "a", by: 1)]
                case 2:
                    return [.merge(path, document.fields, mask: ["a", "m.x"]), .merge(path, ["b": 1], mask: ["b"])]
                case 3: return [.set(path, document.fields), .delete(path)]
                case 4: return [.delete(path), .set(path, document.fields)]
                case 5: return [.set(path, ["until": .timestamp(old), "a": 1])]
                case 6 where random.random.generator.oneIn(4): return [.verify(path, .exists(true))]
                case 7 where random.random.generator.oneIn(4): return [.set(path, document.fields, .exists(false))]
                default: return [.set(path, document.fields)]
                }
            }
        }

        private func identifier() -> RequestIdentifier? {
            if random.random.generator.oneIn(3) { return nil }
            let session = UInt64(random.random.generator.below(9))
            let sequence = (sequences[session] ?? 0) + 1
            sequences[session] = sequence
            let pending = UInt64(random.random.generator.below(4))
            return RequestIdentifier(
                sessionHigh: session, sessionLow: 1, sequence: sequence,
                oldestPending: max(sequence, pending) - pending)
        }

        private func commit(isBatch: Bool) async throws {
            var writes = try writes()
            var paths: Set<String> = []
            // A batch writes no document twice.
            if isBatch { writes.removeAll { !paths.insert($0.path).inserted } }
            let other = random.random.generator.oneIn(8) ? random.random.generator.below(5) : nil
            let database = try other.map { try DatabaseName(project: "p", database: "other-\($0)") }
            let request = CommitRequest(writes: try harness.list(writes, in: database), identifier: identifier())
            guard let result = await send(request, isBatch: isBatch) else { return }
            versions.append(result.commitMicroseconds)
            if request.identifier != nil { numbered.append((request, isBatch, result)) }
        }

        /// A request that has been committed is sent again.
        private func again() async throws {
            guard let (request, isBatch, result) = numbered.last else { return }
            let second = try #require(await send(request, isBatch: isBatch))
            let wasForgotten = second.commitMicroseconds != result.commitMicroseconds
            if wasForgotten { versions.append(second.commitMicroseconds) }
        }

        func send(_ request: CommitRequest, isBatch: Bool, to other: StoreHarness? = nil) async -> BatchWriteResult? {
            let harness = other ?? harness
            if isBatch {
                let store = harness.store
                return await withCheckedContinuation { continuation in
                    store.batchWrite(request) { continuation.resume(returning: try? $0.get()) }
                }
            }
            guard let result = try? await harness.outcome(request).get() else { return nil }
            return BatchWriteResult(
                commitMicroseconds: result.commitMicroseconds, outcomes: result.writeResults.map { .success($0) })
        }

        private func declare() async throws {
            var wanted = random.declaration()
            wanted.fieldOverrides.removeAll { $0.field?.segments.first == "until" }
            wanted.fieldOverrides.append(
                FieldOverride(collectionID: "c", field: try FieldPath("until"), indexes: [], expires: true))
            let store = harness.store
            let database = harness.database
            try await withCheckedContinuation { continuation in
                store.declareIndexes(wanted, in: database) { continuation.resume(returning: $0) }
            }.get()
        }

        /// Ends housekeeping, and waits until everything staged is durable.
        func settle() async throws {
            isSteady.set()
            try await harness.commit([.delete("nothing/x")])
        }
    }

    /// Everything that a store has at a version.
    private static func entries(_ harness: StoreHarness, at version: UInt64?) throws -> [Entry] {
        let reader = try harness.store.engine.makeReader()
        let snapshot = try reader.snapshot(at: version.map { CommitVersion(microseconds: $0) })
        var cursor = try snapshot.cursor()
        var entries: [Entry] = []
        while try cursor.next() {
            entries.append(
                Entry(
                    key: [UInt8](copying: cursor.key), value: [UInt8](copying: cursor.value),
                    version: cursor.version.microseconds))
        }
        return entries
    }

    @Test(arguments: CaseShare.of(UInt64(900)..<906, 3))
    func `Replaying the log from its start gives the keys, values and versions of the commits, and the same answers`(
        seed: UInt64
    ) async throws {
        let ground = try Ground(seed: seed)
        for _ in 0..<160 { try await ground.step() }
        try await ground.settle()
        let live = ground.harness
        expectEqual(live.store.statistics.engine.checkpoints, 0)
        expectEqual(live.store.statistics.housekeepingFailures, 0)
        // It replays the log, and does no housekeeping, which would change more.
        let replayed = try live.crashed { $0.admitsHousekeeping = { _ in false } }
        let (expected, found) = try (Self.entries(live, at: nil), Self.entries(replayed, at: nil))
        expect(expected.count > 100)
        if found != expected {
            let pair = zip(found, expected).first { $0 != $1 }.map { "\($0), not \($1)" } ?? ""
            Issue.record("seed \(seed): \(found.count) entries, not \(expected.count); the first other one: \(pair)")
        }
        // Nothing is in runs yet, so keys without history have their versions too.
        for version in ground.versions {
            let then = try Self.entries(live, at: version)
            let again = try Self.entries(replayed, at: version)
            expectEqual(then, again, "seed \(seed), at version \(version)")
        }
        // Both remember the same results of the same requests.
        var remembered = 0
        for (request, isBatch, result) in ground.numbered {
            let here = await ground.send(request, isBatch: isBatch)
            let there = await ground.send(request, isBatch: isBatch, to: replayed)
            guard here?.commitMicroseconds == result.commitMicroseconds else {
                expect(there?.commitMicroseconds != result.commitMicroseconds)
                continue
            }
            remembered += 1
            expectEqual(there?.commitMicroseconds, result.commitMicroseconds)
            expectEqual(there.map { "\($0.outcomes)" }, here.map { "\($0.outcomes)" })
        }
        expect(remembered > 0)
        try replayed.finish()
        try live.finish()
    }

    @Test(.needsFiles)
    func `A failed step of housekeeping is counted, named and tried again`() async throws {
        let fault = FaultSwitch()
        let harness = try StoreHarness { $0.engine.fault = { fault.check($0) } }
        try await harness.commit([.set("c/a", fields(1))])
        fault.fail(.syncLog, with: 5)
        try await expectEqual(harness.failure([.set("c/a", fields(2))])?.code, .unavailable)
        expectEqual(harness.store.statistics.housekeepingFailures, 0)
        for round in 1...2 {
            harness.clock.advance(milliseconds: 100_000)
            // A read time far above the last version, which is to be noted.
            try expect(harness.get("c/a") != nil)
            harness.store.noticeTime()
            try await eventually("failure \(round) is counted") {
                harness.store.statistics.housekeepingFailures >= UInt64(round)
            }
        }
        expectEqual(harness.store.housekeepingFailures.last?.hasPrefix("clockNote: "), true)
        expect(harness.store.close() != nil)
    }
}

extension StepWrite {
    fileprivate var path: String {
        switch self {
        case .set(let path, _, _), .merge(let path, _, _, _), .increment(let path, _, _), .delete(let path, _),
            .verify(let path, _):
            path
        }
    }
}
