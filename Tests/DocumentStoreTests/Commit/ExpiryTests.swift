// Expired documents, with a clock that the test sets.

import Basics
import DocumentModel
import Glibc
import MemoryEngine
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct ExpiryTests {
    private static let intervalMilliseconds: UInt64 = 60_000

    private static func harness(_ configure: (inout StoreConfiguration) -> Void = { _ in }) throws -> StoreHarness {
        try StoreHarness(database: "d") {
            $0.expiryIntervalMilliseconds = intervalMilliseconds
            configure(&$0)
        }
    }

    private static func expiring(_ collection: String, _ path: String) throws -> FieldOverride {
        FieldOverride(collectionID: collection, field: try FieldPath(path), indexes: [], expires: true)
    }

    /// Documents that the store has deleted for their age, once everything asked for before is done.
    private static func expired(_ harness: StoreHarness) async throws -> UInt64 {
        // Two commits without effect: the second is taken up after the turn of the first has ended.
        for _ in 0..<2 { try await harness.commit([.delete("nothing/x")]) }
        return harness.store.statistics.documentsExpired
    }

    /// Lets a round begin, and waits until so many documents have been deleted.
    private static func round(_ harness: StoreHarness, until count: UInt64) async throws {
        harness.clock.advance(milliseconds: intervalMilliseconds)
        harness.store.noticeTime()
        try await eventually("\(count) documents are deleted") { harness.store.statistics.documentsExpired >= count }
    }

    @Test
    func `An expired document is deleted, and no other is`() async throws {
        let harness = try Self.harness()
        let model = IndexedModel(harness)
        try await model.declare(IndexDeclaration(fieldOverrides: [try Self.expiring("s", "m.until")]))
        try await model.waitForIndexes()
        let now = Int64(harness.clock.nowMicroseconds)
        func time(_ seconds: Int64) -> MapValue {
            ["m": .map(["until": .timestamp(TimestampValue(microseconds: now + seconds * 1_000_000))])]
        }
        let longID = String(repeating: "long", count: 100)
        let committed = try await harness.result(committing: [
            .set("s/past", time(-1)), .set("s/soon", time(50)), .set("s/late", time(500)),
            .set("a/b/s/below", time(50)),
            .set("s/number", ["m": .map(["until": 5])]), .set("s/text", ["m": .map(["until": "1970"])]),
            .set("s/null", ["m": .map(["until": .null])]), .set("s/without", [:]),
            .set("s/outside", ["until": .timestamp(TimestampValue(microseconds: 0))]),
            .set("t/other", time(-1)), .set("s/\(longID)", time(-2)),
        ])
        let readTime = TimestampValue(microseconds: Int64(committed.commitMicroseconds))
        try await Self.round(harness, until: 4)
        try await expectEqual(Self.expired(harness), 4)
        try expectEqual(harness.ids("s"), ["late", "null", "number", "outside", "text", "without"])
        try expect(harness.ids("a/b/s") == [] && harness.ids("t") == ["other"])
        // They were deleted, not undone.
        try expect(harness.get("s/past", .time(readTime)) != nil)
        // Put off before its time: it stays. Brought forward: it goes.
        try await harness.commit([.set("s/late", time(5_000)), .set("s/number", time(-5))])
        harness.clock.advance(milliseconds: 1_000_000)
        try await Self.round(harness, until: 5)
        try await expectEqual(Self.expired(harness), 5)
        try expectEqual(harness.ids("s"), ["late", "null", "outside", "text", "without"])
        try harness.finish()
    }

    @Test
    func `A clock set back keeps documents until it has caught up`() async throws {
        let harness = try Self.harness()
        let model = IndexedModel(harness)
        try await model.declare(IndexDeclaration(fieldOverrides: [try Self.expiring("s", "until")]))
        try await model.waitForIndexes()
        let time = TimestampValue(microseconds: Int64(harness.clock.nowMicroseconds) + 10_000_000)
        let epoch = TimestampValue(microseconds: 0)
        try await harness.commit([
            .set("s/x", ["until": .timestamp(time)]), .set("s/y", ["until": .timestamp(epoch)]),
        ])
        harness.clock.stepBack(milliseconds: 3_600_000)
        try await Self.round(harness, until: 1)
        try await expectEqual(Self.expired(harness), 1)
        try expectEqual(harness.ids("s"), ["x"])
        harness.clock.advance(milliseconds: 3_600_000)
        try await Self.round(harness, until: 2)
        try expectEqual(harness.ids("s"), [])
        try harness.finish()
    }

    @Test
    func `A clock that is ahead for less than an hour deletes nothing that has not expired`() async throws {
        let harness = try Self.harness()
        let model = IndexedModel(harness)
        try await model.declare(IndexDeclaration(fieldOverrides: [try Self.expiring("s", "until")]))
        try await model.waitForIndexes()
        let now = Int64(harness.clock.nowMicroseconds)
        func until(_ seconds: Int64) -> MapValue {
            ["until": .timestamp(TimestampValue(microseconds: now + seconds * 1_000_000))]
        }
        try await harness.commit([.set("s/x", until(10)), .set("s/y", until(7_200)), .set("s/z", until(100_000))])
        let day: UInt64 = 86_400_000
        harness.clock.stepForward(milliseconds: day)
        try await Self.round(harness, until: 1)
        try await expectEqual(Self.expired(harness), 1)
        try expectEqual(harness.ids("s"), ["y", "z"])
        harness.clock.stepBack(milliseconds: day)
        for _ in 0..<119 { harness.clock.advance(milliseconds: Self.intervalMilliseconds) }
        try await Self.round(harness, until: 2)
        try await expectEqual(Self.expired(harness), 2)
        try expectEqual(harness.ids("s"), ["z"])
        try harness.finish()
    }

    @Test
    func `Each round deletes what has expired, also what lies before what earlier rounds deleted`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let harness = try Self.harness()
        let model = IndexedModel(harness)
        try await model.declare(IndexDeclaration(fieldOverrides: [try Self.expiring("s", "until")]))
        try await model.waitForIndexes()
        var times: [String: Int64] = [:]
        var expired: UInt64 = 0
        for _ in 0..<60 {
            for _ in 0..<Int.random(in: 0...12, using: &random) {
                let path = "s/d\(Int.random(in: 0..<40, using: &random))"
                let now = Int64(harness.clock.nowMicroseconds)
                let time = now + Int64.random(in: -400...200, using: &random) * 1_000_000
                try await harness.commit([.set(path, ["until": .timestamp(TimestampValue(microseconds: time))])])
                times[path] = time
            }
            if Bool.random(using: &random) { harness.clock.stepBack(milliseconds: 30_000) }
            let end = Int64(harness.clock.nowMicroseconds) + Int64(Self.intervalMilliseconds) * 1_000
            let gone = times.filter { $0.value <= end }.map(\.key)
            expired += UInt64(gone.count)
            for path in gone { times[path] = nil }
            try await Self.round(harness, until: expired)
            try await expectEqual(Self.expired(harness), expired)
            try expectEqual(harness.ids("s"), times.keys.map { String($0.dropFirst(2)) }.sorted())
        }
        try harness.finish()
    }

    @Test
    func `A look begins at the first entry that the one before has met, or at one that was put before it`() throws {
        let shape = IndexShape(
            collectionID: "c", isGroup: true, parts: [IndexShape.Part(field: try FieldPath("f"), kind: .ascending)])
        let index = DeclaredIndex(number: 7, database: 1, shape: shape, state: IndexState(phase: .complete))
        let begins = EntryBegins()
        func begin() -> UInt8 { begins.beginLook(at: index, lowest: [10])[0] }
        func put(_ key: UInt8) { begins.notePut([key].byteSpan, in: index) }
        put(11)
        expectEqual(begin(), 10)
        begins.endLook(at: index, begin: [50])
        put(60)
        expectEqual(begin(), 50)
        // The look is past them, and has not met them.
        put(30)
        put(40)
        begins.endLook(at: index, begin: [90])
        expectEqual(begin(), 30)
        begins.endLook(at: index, begin: [90])
        put(20)
        expectEqual(begin(), 20)
        // Another index may have the number now.
        begins.forget(index)
        begins.endLook(at: index, begin: [90])
        expectEqual(begin(), 10)
    }

    @Test
    func `Many go in batches; what a crash leaves goes after it`() async throws {
        let harness = try Self.harness { $0.admitsHousekeeping = atMost(3, .expiry) }
        var old: [StepWrite] = []
        for number in 0..<2_000 {
            old.append(.set("s/d\(number)", ["until": .timestamp(TimestampValue(microseconds: Int64(number)))]))
        }
        try await harness.commit(old)
        let model = IndexedModel(harness)
        try await model.declare(IndexDeclaration(fieldOverrides: [try Self.expiring("s", "until")]))
        try await model.waitForIndexes()
        let batches = UInt64(3 * ExpirySweep.documentsPerBatch)
        try await Self.round(harness, until: batches)
        try await expectEqual(Self.expired(harness), batches)
        // The oldest first.
        try expect(harness.get("s/d\(batches - 1)") == nil && harness.get("s/d\(batches)") != nil)
        let crashed = try harness.crashed { $0.admitsHousekeeping = { _ in true } }
        try await Self.round(crashed, until: 2_000 - batches)
        try expectEqual(crashed.ids("s"), [])
        try crashed.finish()
        try harness.finish()
    }

    @Test(.needsFiles)
    func `A round ends when a batch fails, and the next one deletes what is left`() async throws {
        let fault = FaultSwitch()
        let harness = try Self.harness {
            $0.engine.logSegmentBytes = 64 << 10
            $0.engine.logSpareSegmentsMax = 0
            // No space is kept for deletes.
            $0.engine.diskReserveBytes = 0
            $0.engine.fault = { fault.check($0) }
        }
        let expired = MapValue(["until": .timestamp(TimestampValue(microseconds: 1))])
        for start in stride(from: 0, to: 1_024, by: 128) {
            try await harness.commit((start..<start + 128).map { .set("s/d\($0)", expired) })
        }
        // Nothing but deletes is accepted once a checkpoint has failed: deletes of these fill the log.
        let names = (0..<400).map { "t/\($0)" + String(repeating: "n", count: 1_400) }
        for start in stride(from: 0, to: names.count, by: 20) {
            try await harness.commit(names[start..<start + 20].map { .set($0, [:]) })
        }
        let model = IndexedModel(harness)
        try await model.declare(IndexDeclaration(fieldOverrides: [try Self.expiring("s", "until")]))
        try await model.waitForIndexes()
        fault.fail(.allocateSegment, .commitRun, with: ENOSPC)
        var deleted = 0
        while try await harness.failure([.delete(names[deleted])]) == nil { deleted += 1 }
        harness.clock.advance(milliseconds: Self.intervalMilliseconds)
        harness.store.noticeTime()
        func failures() -> UInt64 { harness.store.counters.expiryFailures.load(ordering: .relaxed) }
        try await eventually("a batch fails") { failures() > 0 }
        // Each has the thread look for work.
        for _ in 0..<50 {
            harness.store.noticeTime()
            try await expect(harness.failure([.delete(names[deleted])]) != nil)
        }
        expectEqual(failures(), 1)
        fault.heal()
        try await eventually("there is room") { try await harness.failure([.delete(names[deleted])]) == nil }
        try await Self.round(harness, until: 1_024)
        try expectEqual(harness.ids("s"), [])
        try harness.finish()
    }

    @Test
    func `While others write, batches keep a distance`() throws {
        var sweep = ExpirySweep(intervalMilliseconds: 1_000)
        expect(sweep.isDue(nowMilliseconds: 0, isIdle: false))
        let harness = try Self.harness()
        let field = try FieldPath("f")
        var states = IndexStates()
        states.groups.set(
            GroupFields(
                database: 1, collectionID: "c",
                overrides: [FieldOverride(collectionID: "c", field: field, indexes: nil, expires: true)], previous: [],
                begun: 0, state: IndexState(phase: .complete)))
        let databases = DatabaseDirectory(maximum: 10)
        databases.markStored(harness.database, number: 1, version: 1)
        let shape = IndexShape(
            collectionID: "c", isGroup: true, parts: [IndexShape.Part(field: field, kind: .ascending)])
        // An index that is being built is not gone over: it may lack documents, and none is the oldest.
        let index = DeclaredIndex(number: 1, database: 1, shape: shape, state: IndexState(phase: .building))
        states.declared.set(index, index.state)
        try expect(!Self.findsBatch(&sweep, states, databases))
        expect(!sweep.isInProgress && !sweep.isDue(nowMilliseconds: 999, isIdle: true))
        states.declared.set(index, IndexState(phase: .complete))
        sweep.begin(states, nowMilliseconds: 1_000, nowMicroseconds: 5)
        expect(sweep.isInProgress && sweep.isDue(nowMilliseconds: 1_000, isIdle: false))
        try harness.finish()
    }

    /// Whether a sweep over a store without documents finds a batch, in a round that is begun unless one is under way.
    private static func findsBatch(
        _ sweep: inout ExpirySweep, _ states: IndexStates, _ databases: DatabaseDirectory
    ) throws -> Bool {
        let engine = try StorageEngine.open(directory: "", volume: MemoryVolume()) { _, _, _, _ in }
        sweep.begin(states, nowMilliseconds: 0, nowMicroseconds: 5)
        let batch = try sweep.nextBatch(
            engine.makeWriter().latest, states, EntryBegins(), databases, nowMilliseconds: 0, nowMicroseconds: 5)
        return batch != nil
    }

    @Test
    func `A look for expired documents goes over a part of the groups whose documents expire`() throws {
        let databases = DatabaseDirectory(maximum: 10)
        databases.markStored(try DatabaseName(project: "p", database: "d"), number: 1, version: 1)
        let count = 20_000
        var states = IndexStates()
        for number in 1...count {
            let id = "c\(number)"
            let expiring = try Self.expiring(id, "until")
            states.groups.set(
                GroupFields(
                    database: 1, collectionID: id, overrides: [expiring], previous: [], begun: 0,
                    state: IndexState(phase: .complete)))
            let index = DeclaredIndex(
                number: UInt64(number), database: 1, shape: expiring.shapes[0], state: IndexState(phase: .complete))
            states.declared.set(index, index.state)
        }
        var sweep = ExpirySweep(intervalMilliseconds: 1_000)
        var looks = 0
        repeat {
            try expect(!Self.findsBatch(&sweep, states, databases))
            looks += 1
        } while sweep.isInProgress
        expect(looks >= count / ExpirySweep.partsPerBatch && looks <= 2 * count / ExpirySweep.partsPerBatch)
    }

    /// A store whose transactions lock what they read, with documents that expire.
    private static func lockingStore(_ interval: UInt64) async throws -> (StoreHarness, IndexedModel) {
        let harness = try Self.harness {
            $0.concurrencyMode = .pessimistic
            $0.expiryIntervalMilliseconds = interval
        }
        let model = IndexedModel(harness)
        try await model.declare(IndexDeclaration(fieldOverrides: [try Self.expiring("s", "until")]))
        try await model.waitForIndexes()
        return (harness, model)
    }

    /// A transaction that has read a document, and holds it locked.
    private static func lock(_ path: String, _ harness: StoreHarness) async throws -> TransactionIdentifier {
        let transaction = try await harness.begin()
        try await withCheckedContinuation { continuation in
            harness.store.lock(transaction, [Array(harness.name(path).utf8)]) { continuation.resume(returning: $0) }
        }.get()
        try expect(harness.get(path, .transaction(transaction)) != nil)
        return transaction
    }

    @Test
    func `A document that a transaction holds locked goes after its end, unless it has changed`() async throws {
        let interval: UInt64 = 1_000
        let (harness, _) = try await Self.lockingStore(interval)
        let past = MapValue([("until", .timestamp(TimestampValue(microseconds: 1)))])
        try await harness.commit([.set("s/kept", past)])
        let transaction = try await Self.lock("s/kept", harness)
        harness.clock.advance(milliseconds: interval)
        try await expectEqual(Self.expired(harness), 0)
        // The delete waits for the lock; the holder's commit removes the expiry time.
        try await harness.commit([.set("s/kept", ["n": 1])], transaction: transaction)
        try await expectEqual(Self.expired(harness), 0)
        try expectEqual(harness.integer("s/kept"), 1)
        try await harness.commit([.set("s/kept", past)])
        try await Self.round(harness, until: 1)
        try harness.finish()
    }

    /// Holds up the second batch of the first round, and all steps of indexes from then on. Thread-safe.
    private final class HeldRound: Sendable {
        private struct State {
            var batches = 0
            var isReleased = false
        }

        private let state = Monitor(State())

        func admits(_ task: HousekeepingTask) -> Bool {
            switch task {
            case .expiry:
                let isSecond = state.withLock { state in
                    state.batches += 1
                    return state.batches == 2
                }
                if isSecond { state.wait { $0.isReleased ? () : nil } }
                return true
            case .indexStep: return state.withLock { $0.batches < 2 }
            default: return true
            }
        }

        func waitUntilHeld() throws { try waitUntil("a batch is held up") { state.withLock { $0.batches >= 2 } } }
        func release() { state.update { $0.isReleased = true } }
    }

    /// A store with 2,000 expired documents, whose round is held up at its second batch.
    private static func storeInRound(_ held: HeldRound) async throws -> StoreHarness {
        let harness = try Self.harness { $0.admitsHousekeeping = held.admits }
        let old = (0..<2_000).map { number in
            StepWrite.set("s/d\(number)", ["until": .timestamp(TimestampValue(microseconds: Int64(number)))])
        }
        try await harness.commit(old)
        let model = IndexedModel(harness)
        try await model.declare(IndexDeclaration(fieldOverrides: [try Self.expiring("s", "until")]))
        try await model.waitForIndexes()
        harness.clock.advance(milliseconds: intervalMilliseconds)
        harness.store.noticeTime()
        try held.waitUntilHeld()
        return harness
    }

    @Test
    func `A round ends when its policy is removed`() async throws {
        let held = HeldRound()
        let harness = try await Self.storeInRound(held)
        let isDeclared = Monitor(false)
        harness.store.declareIndexes(IndexDeclaration(), in: harness.database) { _ in
            isDeclared.update { $0 = true }
        }
        held.release()
        try await eventually("the policy is removed") { isDeclared.withLock { $0 } }
        // The batch that had begun, and no further one, though the entries are still there.
        try await expectEqual(Self.expired(harness), UInt64(2 * ExpirySweep.documentsPerBatch))
        try expectEqual(harness.ids("s").count, 2_000 - 2 * ExpirySweep.documentsPerBatch)
        try harness.finish()
    }

    @Test
    func `A round ends when the clock is set back`() async throws {
        let held = HeldRound()
        let harness = try await Self.storeInRound(held)
        harness.clock.stepBack(milliseconds: 3_600_000)
        held.release()
        try await expectEqual(Self.expired(harness), UInt64(ExpirySweep.documentsPerBatch))
        try await Self.round(harness, until: 2_000)
        try harness.finish()
    }

    @Test
    func `A batch that waits for a lock while the policy is removed deletes nothing`() async throws {
        let interval: UInt64 = 1_000
        let (harness, model) = try await Self.lockingStore(interval)
        try await harness.commit([.set("s/kept", ["until": .timestamp(TimestampValue(microseconds: 1))])])
        let transaction = try await Self.lock("s/kept", harness)
        harness.clock.advance(milliseconds: interval)
        try await expectEqual(Self.expired(harness), 0)
        try await model.declare(IndexDeclaration())
        harness.store.rollback(transaction)
        try await expectEqual(Self.expired(harness), 0)
        try expect(harness.get("s/kept") != nil)
        expectEqual(harness.store.statistics.housekeepingFailures, 0)
        try harness.finish()
    }

    @Test
    func `Without ttl, or with an interval of 0, nothing is deleted`() async throws {
        for interval in [UInt64(0), Self.intervalMilliseconds] {
            let harness = try Self.harness { $0.expiryIntervalMilliseconds = interval }
            let model = IndexedModel(harness)
            let field = try FieldPath("until")
            try await model.declare(
                IndexDeclaration(fieldOverrides: [
                    FieldOverride(collectionID: "s", field: field, indexes: [.groupAscending], expires: interval == 0)
                ]))
            try await model.waitForIndexes()
            try await harness.commit([.set("s/x", ["until": .timestamp(TimestampValue(microseconds: 0))])])
            harness.clock.advance(milliseconds: 10 * Self.intervalMilliseconds)
            try await expectEqual(Self.expired(harness), 0)
            try expectEqual(harness.ids("s"), ["x"])
            try harness.finish()
        }
    }
}
