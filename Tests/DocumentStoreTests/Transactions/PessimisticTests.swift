// Pessimistic transactions: who waits for whom, who wins, and that every wait ends.

import Basics
import DocumentModel
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)), .inSimulations)
struct PessimisticTests {
    /// A commit that was submitted and may be incomplete.
    private final class Submitted: Sendable {
        private let result = Mutex<Result<CommitResult, RequestError>?>(nil)

        init(_ harness: StoreHarness, _ writes: [StepWrite], _ transaction: TransactionIdentifier? = nil) throws {
            let list = try harness.list(writes)
            harness.store.commit(CommitRequest(writes: list, transaction: transaction)) { [self] outcome in
                result.withLock { $0 = outcome }
            }
        }

        var isAnswered: Bool { result.withLock { $0 != nil } }

        /// The failure, or nil when it succeeded; waits for the answer.
        func failure() async -> StatusCode? {
            do { try await eventually("a commit is complete") { isAnswered } } catch { Issue.record(error) }
            switch result.withLock({ $0 }) {
            case .success: return nil
            case .failure(let error): return error.code
            case nil: return .unknown
            }
        }
    }

    private func begin(_ harness: StoreHarness, retrying: TransactionIdentifier? = nil) async throws
        -> TransactionIdentifier
    {
        try await harness.begin(.readWrite(retryTransaction: retrying?.bytes ?? [], concurrency: .pessimistic))
    }

    private func read(
        _ harness: StoreHarness, _ path: String, _ transaction: TransactionIdentifier
    ) async throws -> Int64? {
        try await lock(harness, [path], transaction)
        return try harness.integer(path, "n", .transaction(transaction))
    }

    private func lock(_ harness: StoreHarness, _ paths: [String], _ transaction: TransactionIdentifier) async throws {
        expect(harness.store.readsLock(in: transaction))
        try await withCheckedContinuation { continuation in
            harness.store.lock(transaction, paths.map { Array(harness.name($0).utf8) }) {
                continuation.resume(returning: $0)
            }
        }.get()
    }

    /// Returns when everything submitted before has been decided or parked.
    private func settle(_ harness: StoreHarness) async throws {
        try await harness.commit([.set("elsewhere/x", fields(0))])
    }

    @Test(arguments: ["c/a", "c/missing"])
    func `A plain write waits for a reader of the document, found or missing`(path: String) async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let transaction = try await begin(harness)
        let seen = try await read(harness, path, transaction)
        let plain = try Submitted(harness, [.set(path, fields(7))])
        try await settle(harness)
        expect(!plain.isAnswered)
        try expectEqual(harness.integer(path), seen)
        try await harness.commit([.set(path, fields(2))], transaction: transaction)
        await expectNil(plain.failure())
        try expectEqual(harness.integer(path), 7)
        try harness.finish()
    }

    @Test
    func `After a rollback the writers proceed`() async throws {
        let harness = try StoreHarness()
        let transaction = try await begin(harness)
        _ = try await read(harness, "c/a", transaction)
        let plain = try Submitted(harness, [.set("c/a", fields(7))])
        try await settle(harness)
        expect(!plain.isAnswered)
        harness.store.rollback(transaction)
        await expectNil(plain.failure())
        try harness.finish()
    }

    @Test
    func `A query locks what it returns and nothing else`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1)), .set("c/b", fields(2))])
        let transaction = try await begin(harness)
        try await lock(harness, [], transaction)
        let onlyOnes: DocumentFilter = { _, bytes in (try? MapValue(documentBytes: bytes))?["n"] == .integer(1) }
        _ = try harness.ids("c", .all, .transaction(transaction), matching: onlyOnes)
        let met = try Submitted(harness, [.set("c/a", fields(5))])
        let unmet = try Submitted(harness, [.set("c/b", fields(5))])
        await expectNil(unmet.failure())
        expect(!met.isAnswered)
        try await harness.commit([.set("d/x", fields(1))], transaction: transaction)
        await expectNil(met.failure())
        try harness.finish()
    }

    @Test(arguments: [true, false])
    func `Of two that read and write one document the older wins in either order`(olderFirst: Bool) async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let (older, younger) = (try await begin(harness), try await begin(harness))
        _ = try await read(harness, "c/a", older)
        _ = try await read(harness, "c/a", younger)
        let order = olderFirst ? [older, younger] : [younger, older]
        let commits = try order.map { try Submitted(harness, [.set("c/a", fields(Int64($0.number)))], $0) }
        let outcomes = [await commits[0].failure(), await commits[1].failure()]
        expectEqual(outcomes, olderFirst ? [nil, .aborted] : [.aborted, nil])
        try expectEqual(harness.integer("c/a"), Int64(older.number))
        try harness.finish()
    }

    @Test
    func `Three that wait for each other in a cycle: the youngest is aborted, the others commit`() async throws {
        let harness = try StoreHarness()
        var transactions: [TransactionIdentifier] = []
        for name in ["a", "b", "c"] {
            let transaction = try await begin(harness)
            _ = try await read(harness, "c/\(name)", transaction)
            transactions.append(transaction)
        }
        let commits = try zip(transactions, ["b", "c", "a"]).map { transaction, name in
            try Submitted(harness, [.set("c/\(name)", fields(1))], transaction)
        }
        await expectEqual(commits[2].failure(), .aborted)
        await expectNil(commits[0].failure())
        await expectNil(commits[1].failure())
        try harness.finish()
    }

    @Test
    func `A waiting writer goes before readers that come later, which then see what it wrote`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let first = try await begin(harness)
        _ = try await read(harness, "c/a", first)
        let plain = try Submitted(harness, [.set("c/a", fields(2))])
        try await settle(harness)
        let second = try await begin(harness)
        async let seen = read(harness, "c/a", second)
        try await settle(harness)
        expect(!plain.isAnswered)
        try await harness.commit([], transaction: first)
        try await expectEqual(seen, 2)
        try await harness.commit([.set("c/a", fields(3))], transaction: second)
        await expectNil(plain.failure())
        try expectEqual(harness.integer("c/a"), 3)
        try harness.finish()
    }

    @Test
    func `Each read sees the newest state, and what it saw cannot change`() async throws {
        let harness = try StoreHarness()
        let transaction = try await begin(harness)
        try await expectNil(read(harness, "c/a", transaction))
        try await harness.commit([.set("c/b", fields(5))])
        try await expectEqual(read(harness, "c/b", transaction), 5)
        try await harness.commit([.set("c/x", fields(1))], transaction: transaction)
        try harness.finish()
    }

    @Test
    func `A phantom still aborts`() async throws {
        let harness = try StoreHarness()
        let transaction = try await begin(harness)
        try await lock(harness, [], transaction)
        _ = try harness.ids("c", .all, .transaction(transaction))
        try await harness.commit([.set("c/new", fields(5))])
        try await expectEqual(harness.failure([.set("d/x", fields(1))], transaction: transaction)?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `Without writes a phantom between two queries aborts too`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let transaction = try await begin(harness)
        try await lock(harness, [], transaction)
        try expectEqual(harness.ids("c", .all, .transaction(transaction)), ["a"])
        try await harness.commit([.set("c/new", fields(5))])
        try await lock(harness, [], transaction)
        _ = try harness.ids("c", .all, .transaction(transaction))
        try await expectEqual(harness.failure([], transaction: transaction)?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `Without writes, reads before and after a lost lock do not commit`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1)), .set("c/b", fields(1))])
        let transaction = try await begin(harness)
        try await expectEqual(read(harness, "c/a", transaction), 1)
        let plain = try Submitted(harness, [.set("c/a", fields(2)), .set("c/b", fields(2))])
        try await settle(harness)
        harness.clock.advance(milliseconds: 11_000)
        harness.store.noticeTime()
        await expectNil(plain.failure())
        try await expectEqual(read(harness, "c/b", transaction), 2)
        try await expectEqual(harness.failure([], transaction: transaction)?.code, .aborted)
        try harness.finish()
    }

    @Test(arguments: [false, true])
    func `A document that was missing, then there, then missing again is a conflict`(writes: Bool) async throws {
        // No locks: a writer need not wait for the reader.
        let harness = try StoreHarness { $0.shareLocksMax = 0 }
        try await harness.commit([.set("c/b", fields(1))])
        let transaction = try await begin(harness)
        try await expectNil(read(harness, "c/a", transaction))
        try await harness.commit([.set("c/a", fields(2))])
        try await expectEqual(read(harness, "c/a", transaction), 2)
        try await harness.commit([.delete("c/a")])
        let failure = try await harness.failure(writes ? [.set("c/c", fields(3))] : [], transaction: transaction)
        expectEqual(failure?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `Reads of one state commit without writes, whatever has changed since`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let transaction = try await begin(harness)
        try await lock(harness, [], transaction)
        _ = try harness.ids("c", .all, .transaction(transaction))
        try await harness.commit([.set("c/new", fields(5))])
        try await harness.commit([], transaction: transaction)
        // Nor do two reads that nothing has changed in between.
        let second = try await begin(harness)
        try await expectEqual(read(harness, "c/a", second), 1)
        try await expectEqual(read(harness, "c/new", second), 5)
        try await harness.commit([.set("d/x", fields(1))])
        try await expectEqual(read(harness, "d/x", second), 1)
        try await harness.commit([], transaction: second)
        try harness.finish()
    }

    @Test
    func `An expired transaction holds no locks, also those that were asked for before its end`() async throws {
        let harness = try StoreHarness()
        let transaction = try await begin(harness)
        _ = try await read(harness, "c/a", transaction)
        try await settle(harness)
        expect(harness.store.statistics.lockBytes > 0)
        harness.clock.advance(milliseconds: 61_000)
        try await eventually("the locks are gone") {
            harness.store.noticeTime()
            try await settle(harness)
            return harness.store.statistics.lockBytes == 0
        }
        harness.store.submit(
            .lock(LockRequest(ticket: transaction.number, age: 1, keys: [1], mayWait: true) { _ in }))
        try await settle(harness)
        try await settle(harness)
        expectEqual(harness.store.statistics.lockBytes, 0)
        try harness.finish()
    }

    @Test
    func `Locks of a silent reader lapse: the writer proceeds, the reader is aborted`() async throws {
        let harness = try StoreHarness()
        let transaction = try await begin(harness)
        _ = try await read(harness, "c/a", transaction)
        let plain = try Submitted(harness, [.set("c/a", fields(2))])
        try await settle(harness)
        expect(!plain.isAnswered)
        var advanced: UInt64 = 0
        try await eventually("the plain commit proceeds") {
            // Beyond the locks' time, and not near the transaction's own.
            if advanced < 11_000 {
                harness.clock.advance(milliseconds: 500)
                advanced += 500
            }
            harness.store.noticeTime()
            return plain.isAnswered
        }
        await expectNil(plain.failure())
        try await expectEqual(harness.failure([.set("c/b", fields(1))], transaction: transaction)?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `A reader that stays busy: after the longest wait a transaction is aborted and a plain write proceeds`()
        async throws
    {
        let harness = try StoreHarness()
        let reader = try await begin(harness)
        _ = try await read(harness, "c/a", reader)
        let other = try await begin(harness)
        let commit = try Submitted(harness, [.set("c/a", fields(1))], other)
        let plain = try Submitted(harness, [.set("c/a", fields(2))])
        try await settle(harness)
        expect(!commit.isAnswered && !plain.isAnswered)
        var advanced: UInt64 = 0
        try await eventually("both commits are complete") {
            if advanced < 20_000 {
                harness.clock.advance(milliseconds: 500)
                advanced += 500
            }
            _ = try harness.get("c/z", .transaction(reader))
            harness.store.noticeTime()
            return plain.isAnswered && commit.isAnswered
        }
        await expectEqual(commit.failure(), .aborted)
        await expectNil(plain.failure())
        try await expectEqual(harness.failure([.set("c/b", fields(1))], transaction: reader)?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `A retry begins after the older transaction that won its deadlock has ended`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let older = try await begin(harness)
        let younger = try await begin(harness)
        let slow = try await begin(harness)
        for transaction in [older, younger, slow] { try await expectEqual(read(harness, "c/a", transaction), 1) }
        let winner = try Submitted(harness, [.set("c/a", fields(2))], older)
        // Each of the two waits for the other's lock; the older one also waits for the slow one's.
        let loser = try await harness.failure([.set("c/a", fields(3))], transaction: younger)
        expectEqual(loser?.code, .aborted)
        let begun = Mutex<TransactionIdentifier?>(nil)
        harness.store.beginTransaction(
            in: harness.database,
            options: .readWrite(retryTransaction: younger.bytes, concurrency: .pessimistic)
        ) { result in
            begun.withLock { $0 = try? result.get() }
        }
        try await settle(harness)
        expect(!winner.isAnswered)
        expectNil(begun.withLock { $0 })
        harness.store.rollback(slow)
        await expectNil(winner.failure())
        try await eventually("the retry has begun") { begun.withLock { $0 != nil } }
        let retry = try #require(begun.withLock { $0 })
        try await expectEqual(read(harness, "c/a", retry), 2)
        try await harness.commit([.set("c/a", fields(3))], transaction: retry)
        try harness.finish()
    }

    @Test(arguments: [TransactionOptions.ConcurrencyMode.optimistic, .pessimistic], [4, 32])
    func `N clients that increment one document all finish within five attempts, naming their first attempt each time`(
        mode: TransactionOptions.ConcurrencyMode, clients: Int
    ) async throws {
        let harness = try StoreHarness {
            $0.clock = SystemClock()
            // A busy machine may let a holder sleep for longer than it is usually granted.
            $0.turnIdleMilliseconds = 60_000
            $0.turnMilliseconds = 60_000
            $0.turnWaitMilliseconds = 60_000
            $0.lockIdleMilliseconds = 60_000
            $0.lockWaitMilliseconds = 60_000
        }
        try await harness.commit([.set("c/counter", fields(0))])
        let each = 10
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<clients {
                group.addTask {
                    for _ in 0..<each {
                        var first: [UInt8] = []
                        for attempt in 1... {
                            let transaction = try await harness.begin(
                                .readWrite(retryTransaction: first, concurrency: mode))
                            if first.isEmpty { first = transaction.bytes }
                            if mode == .pessimistic { try await lock(harness, ["c/counter"], transaction) }
                            let value = try #require(try harness.integer("c/counter", "n", .transaction(transaction)))
                            let failure = try await harness.failure(
                                [.set("c/counter", fields(value + 1))], transaction: transaction)
                            if failure == nil { break }
                            expectEqual(failure?.code, .aborted)
                            expect(attempt < 5)
                            if attempt >= 5 { return }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        try expectEqual(harness.integer("c/counter"), Int64(clients * each))
        try harness.finish()
    }
}
