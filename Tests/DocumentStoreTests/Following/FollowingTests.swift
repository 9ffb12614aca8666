// A follower has the keys, values and versions of its leader, and derives the same hash from each record.

import Basics
import DocumentModel
import Indexing
import Storage
import StoreTestSupport
import Synchronization
import TestSupport
import Testing
import TextAnalysis

@testable import DocumentStore
@testable import StoreFormat

@Suite(.timeLimit(.minutes(20)), .needsFiles)
struct FollowingTests {
    /// The hashes of what a store has derived from each record.
    private final class Derived: Sendable {
        private let hashes = Mutex<[UInt64: UInt64]>([:])

        func note(_ version: CommitVersion, _ hash: UInt64) {
            hashes.withLock { $0[version.microseconds] = hash }
        }

        var all: [UInt64: UInt64] { hashes.withLock { $0 } }
    }

    /// Everything that a store has at a version.
    ///
    /// - Parameter first: the first key space. Those before `documents` have no history: reads may return later values.
    static func entries(
        _ store: DocumentStore, at version: UInt64?, from first: KeySpace = .meta
    ) throws -> [String] {
        let reader = try store.engine.makeReader()
        let snapshot = try reader.snapshot(at: version.map { CommitVersion(microseconds: $0) })
        let lower = [first.rawValue]
        var cursor = try snapshot.cursor(from: lower.byteSpan)
        var entries: [String] = []
        while try cursor.next() {
            let (key, value) = ([UInt8](copying: cursor.key), [UInt8](copying: cursor.value))
            entries.append("\(key) = \(value) at \(cursor.version)")
        }
        return entries
    }

    /// A leader that is restarted now and then, and its follower.
    private final class Pair {
        var leader: StoreHarness
        let follower: StoreHarness
        let derived = (leader: Derived(), follower: Derived())
        var generator: SeededGenerator
        private var sequences: [UInt64: UInt64] = [:]
        var versions: [UInt64] = []

        /// - Parameter libraries: those of the follower.
        init(seed: UInt64, libraries: @escaping @Sendable () -> TextLibraries = { .system }) throws {
            generator = SeededGenerator(seed: seed)
            let clock = SteppedClock()
            let (here, there) = derived
            leader = try StoreHarness(clock: clock) {
                $0.engine.memtableBytesMax = 64 << 20
                $0.engine.logKeptBytes = 64 << 20
                $0.sessionsMax = 5
                $0.sessionIdleMilliseconds = 60_000
                $0.onDerived = { here.note($0, $1) }
            }
            follower = try StoreHarness(clock: clock) {
                $0.leader = "leader:1"
                $0.textLibraries = libraries
                $0.onDerived = { there.note($0, $1) }
            }
        }

        func step() async throws {
            switch generator.below(14) {
            case 0:
                leader.clock.advance(milliseconds: UInt64(generator.below(20_000)))
                leader.store.noticeTime()
            case 1 where generator.oneIn(3): leader = try leader.reopened()
            case 2: try await declare()
            default: try await commit()
            }
        }

        private func commit() async throws {
            let writes = (0...generator.below(4)).map { _ -> StepWrite in
                let path = generator.pick(["a", "b", "a/1/s"]) + "/\(generator.below(6))"
                switch generator.below(5) {
                case 0: return .delete(path)
                case 1: return .increment(path, field: "n", by: 1)
                default: return .set(path, ["n": .integer(Int64(generator.below(9))), "m": ["x": .string("\(path)")]])
                }
            }
            let name = try DatabaseName(project: "p", database: generator.oneIn(8) ? "other" : "(default)")
            let request = CommitRequest(writes: try leader.list(writes, in: name), identifier: identifier())
            if let result = try? await leader.outcome(request).get() { versions.append(result.commitMicroseconds) }
        }

        /// Of a client that sends several commits at once, so that the oldest that it waits for goes back and forth.
        private func identifier() -> RequestIdentifier? {
            if generator.oneIn(4) { return nil }
            let session = UInt64(generator.below(7))
            let sequence = (sequences[session] ?? 0) + 1
            sequences[session] = sequence
            let pending = min(UInt64(generator.below(5)), sequence - 1)
            return RequestIdentifier(
                sessionHigh: session, sessionLow: 1, sequence: sequence, oldestPending: sequence - pending)
        }

        private func declare() async throws {
            let field = generator.pick(["n", "m.x"])
            let wanted = IndexDeclaration(
                fieldOverrides: [FieldOverride(collectionID: "a", field: try FieldPath(field), indexes: [])])
            let (store, database) = (leader.store, leader.database)
            try await withCheckedContinuation { continuation in
                store.declareIndexes(wanted, in: database) { continuation.resume(returning: $0) }
            }.get()
        }

        /// Brings the follower to where the leader is.
        /// - Parameter change: changes the bytes of records on their way.
        func catchUp(changing change: (inout [UInt8]) -> Void = { _ in }) async throws {
            let closed = leader.store.currentReadTime
            let records = try leader.store.records(after: follower.store.publishedVersion)
            var batch = FollowedRecords()
            while try records.next() {
                var bytes = [UInt8](copying: records.record)
                change(&bytes)
                batch.append(bytes.byteSpan, version: records.version)
            }
            let (store, sent) = (follower.store, batch)
            try await withCheckedContinuation { continuation in
                store.follow(sent) { continuation.resume(returning: $0) }
            }.get()
            follower.store.closeTimes(through: closed)
        }
    }

    @Test(arguments: CaseShare.of(UInt64(40)..<46, 2))
    func `A follower derives what its leader derives, over restarts of the leader`(seed: UInt64) async throws {
        let pair = try Pair(seed: seed)
        for step in 0..<220 {
            try await pair.step()
            if step % 40 == 39 { try await pair.catchUp() }
        }
        try await pair.leader.commit([.set("end/x", ["n": 1])])
        try await pair.catchUp()
        let (live, replica) = (pair.leader.store, pair.follower.store)
        expectEqual(replica.publishedVersion, live.publishedVersion)
        let last = live.publishedVersion.microseconds
        let (expected, found) = try (Self.entries(live, at: last), Self.entries(replica, at: last))
        expect(expected.count > 50)
        expectEqual(found, expected, "seed \(seed)")
        for version in pair.versions.suffix(30) {
            let then = try Self.entries(live, at: version, from: .documents)
            try expectEqual(Self.entries(replica, at: version, from: .documents), then)
        }
        let (here, there) = (pair.derived.leader.all, pair.derived.follower.all)
        expect(there.count > 100)
        for (version, hash) in there { expectEqual(here[version], hash, "seed \(seed), at version \(version)") }
        try pair.follower.finish()
        try pair.leader.finish()
    }

    @Test
    func `The state of a follower whose clock is late is not younger than the last time that was closed`() throws {
        let clock = SteppedClock()
        let follower = try StoreHarness(clock: clock) { $0.leader = "leader:1" }
        let time = clock.nowMicroseconds + 1_000_000
        clock.advance(milliseconds: 1_000)
        follower.store.closeTimes(through: time)
        expectEqual(follower.store.lagMicroseconds, 0)
        clock.stepBack(milliseconds: 3_600_000)
        // The same time again changes nothing.
        clock.advance(milliseconds: 10_000)
        follower.store.closeTimes(through: time)
        clock.advance(milliseconds: 20_000)
        expectEqual(follower.store.lagMicroseconds, 30_000_000)
        follower.store.closeTimes(through: time + 1)
        expectEqual(follower.store.lagMicroseconds, 0)
        try follower.finish()
    }

    @Test
    func `A difference between leader and follower is found by the hash of what they derived`() async throws {
        let pair = try Pair(seed: 3)
        let (leader, follower) = (pair.leader.store.replication.derived, pair.follower.store.replication.derived)
        try await pair.leader.commit([.set("c/a", ["s": .string("before anybody follows")])])
        leader.want(1)
        try await pair.leader.commit([.set("c/a", ["s": .string("xxxx")])])
        try await pair.catchUp()
        expectEqual(leader.entries(after: 0, through: .max).count, 1)
        expectNil(follower.difference(from: leader.entries(after: 0, through: .max)))
        try await pair.leader.commit([.set("c/b", ["s": .string("xxxx")])])
        let differs = pair.leader.store.publishedVersion.microseconds
        try await pair.catchUp { record in
            guard let start = record.firstIndex(of: UInt8(ascii: "x")) else { return }
            record[start] = UInt8(ascii: "y")
        }
        try await pair.leader.commit([.set("c/b", ["s": .string("zz")])])
        try await pair.catchUp()
        let entries = leader.entries(after: 0, through: .max)
        expectEqual(entries.count, 3)
        expectEqual(follower.difference(from: entries), differs)
    }

    @Test(arguments: CaseShare.of(UInt64(50)..<54, 2))
    func `Leader and follower derive the same in each key space, and a difference is named`(seed: UInt64) async throws {
        let pair = try Pair(seed: seed)
        let (leader, follower) = (pair.leader.store.replication, pair.follower.store.replication)
        leader.derivedSpaces.want()
        follower.derivedSpaces.want()
        try await pair.leader.commit([.set("a/0", ["n": 0])])
        let first = pair.leader.store.publishedVersion.microseconds
        for number in 0..<80 { try await pair.leader.commit([.set("a/\(number % 7)", ["n": .integer(Int64(number))])]) }
        try await pair.catchUp()
        let last = pair.leader.store.publishedVersion.microseconds
        let middle = first + (last - first) / 2
        for (start, end) in [(first, middle), (middle + 1, last), (first, last)] {
            let hashes = leader.derivedSpaces.group(from: start, through: end)
            expect(hashes.count > 9)
            expectEqual(follower.derivedSpaces.group(from: start, through: end), hashes, "seed \(seed)")
        }
        expect(leader.derivedSpaces.group(from: 0, through: last).isEmpty)
        try await pair.leader.commit([.set("a/1", ["n": .string("xxxx")])])
        try await pair.catchUp { record in
            guard let start = record.firstIndex(of: UInt8(ascii: "x")) else { return }
            record[start] = UInt8(ascii: "y")
        }
        let end = pair.leader.store.publishedVersion.microseconds
        let (here, there) = (
            leader.derivedSpaces.group(from: last + 1, through: end),
            follower.derivedSpaces.group(from: last + 1, through: end)
        )
        expectEqual(DerivedSpaces.difference(here, there), "documents")
        expectNil(DerivedSpaces.difference(here, here))
        expectNil(DerivedSpaces.difference(here, []))
    }

    @Test
    func `A follower with other text libraries neither compares nor uses what depends on them`() async throws {
        let pair = try Pair(seed: 4) { .missing("the library of this test") }
        let (leader, follower) = (pair.leader.store, pair.follower.store)
        leader.replication.derived.want(1)
        leader.replication.derivedSpaces.want()
        follower.replication.derivedSpaces.want()
        let search = IndexShape.SearchPart(texts: [try FieldPath("t")])
        let model = IndexedModel(pair.leader)
        try await model.declare([IndexShape(collectionID: "c", isGroup: false, parts: [], search: search)])
        try await model.waitForIndexes()
        try await pair.catchUp()
        let before = leader.publishedVersion.microseconds
        try await pair.leader.commit([.set("c/a", ["t": "some words"])])
        try await pair.catchUp()
        let entries = leader.replication.derived.entries(after: before, through: .max)
        expectEqual(entries.count, 1)
        expectNil(follower.replication.derived.difference(from: entries))
        let end = leader.publishedVersion.microseconds
        let here = leader.replication.derivedSpaces.group(from: before + 1, through: end)
        let there = follower.replication.derivedSpaces.group(from: before + 1, through: end)
        expect(here.count > 9)
        expectNil(DerivedSpaces.difference(here, there))
        for (harness, count) in [(pair.leader, 1), (pair.follower, 0)] {
            let reader = harness.store.makeReader()
            let source = try StoreSource(reader, at: try harness.readPoint(reader, .latest), filter: nil)
            expectEqual(source.searchIndexes(of: Array("c".utf8)).count, count)
        }
    }

    @Test
    func `A follower refuses writes, and can be read up to the times that its leader has closed`() async throws {
        let pair = try Pair(seed: 1)
        try await pair.leader.commit([.set("c/a", fields(1))])
        try await pair.catchUp()
        let refusal = try #require(try await pair.follower.failure([.set("c/a", fields(2))]))
        expectEqual(refusal.code, .failedPrecondition)
        expect(refusal.message.contains("leader:1"))
        try expectEqual(pair.follower.get("c/a")?.fields, fields(1))

        // A time that the leader has not closed is waited for.
        pair.leader.clock.advance(milliseconds: 1_000)
        let time = pair.leader.clock.nowMicroseconds
        let selector = ReadSelector.time(TimestampValue(microseconds: Int64(time)))
        try expect(pair.follower.store.mustWait(for: selector))
        expect(pair.follower.store.currentReadTime < time)
        let isReady = SharedFlag()
        pair.follower.store.prepareRead(selector, locking: []) { _ in isReady.set() }
        expect(!isReady.isSet)
        try await pair.catchUp()
        expect(pair.follower.store.currentReadTime >= time)
        expect(isReady.isSet)
        try expect(!pair.follower.store.mustWait(for: selector))
        try pair.follower.finish()
        try pair.leader.finish()
    }

    @Test
    func `Subscribers of a follower get the changes of the leader`() async throws {
        let pair = try Pair(seed: 2)
        try await pair.leader.commit([.set("c/a", fields(1))])
        try await pair.catchUp()
        let isWoken = SharedFlag()
        let subscription = pair.follower.store.subscribeToChanges { isWoken.set() }
        let start = pair.follower.store.currentReadTime
        pair.leader.clock.advance(milliseconds: 5)
        try await pair.leader.commit([.set("c/a", fields(2)), .delete("c/b"), .set("c/d", fields(3))])
        try await pair.catchUp()
        try await eventually("the subscriber is woken") { isWoken.isSet }
        let batches = try #require(
            subscription.changes(after: start, through: pair.follower.store.currentReadTime))
        var seen: [String] = []
        for batch in batches {
            batch.forEachChange(after: start, through: .max) {
                seen.append("\(String(repairingUTF8: $0.path)) \($0.existedBefore) \($0.existsAfter)")
            }
        }
        expectEqual(seen, ["c/a true true", "c/d false true"])
        try pair.follower.finish()
        try pair.leader.finish()
    }

    @Test
    func `A record that cannot be read is refused, and leaves the follower as it was`() async throws {
        let pair = try Pair(seed: 3)
        try await pair.leader.commit([.set("c/a", fields(1))])
        try await pair.catchUp()
        let before = pair.follower.store.publishedVersion
        var batch = FollowedRecords()
        let unknown: [UInt8] = [99, 1, 2]
        batch.append(unknown.byteSpan, version: CommitVersion(microseconds: before.microseconds + 10))
        let (store, sent) = (pair.follower.store, batch)
        let outcome = await withCheckedContinuation { continuation in
            store.follow(sent) { continuation.resume(returning: $0) }
        }
        #expect(throws: RequestError.self) { try outcome.get() }
        expectEqual(pair.follower.store.publishedVersion, before)
        try await pair.leader.commit([.set("c/a", fields(2))])
        try await pair.catchUp()
        try expectEqual(pair.follower.get("c/a")?.fields, fields(2))
        try pair.follower.finish()
        try pair.leader.finish()
    }
}
