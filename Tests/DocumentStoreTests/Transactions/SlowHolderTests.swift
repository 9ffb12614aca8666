// Transactions that keep others waiting: for how long, and what ends it.

import Basics
import DocumentModel
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct SlowHolderTests {
    /// A commit that was submitted and may be incomplete.
    private final class Submitted: Sendable {
        private let result = Mutex<Result<CommitResult, RequestError>?>(nil)

        init(_ harness: StoreHarness, _ writes: [StepWrite], _ transaction: TransactionIdentifier? = nil) throws {
            harness.store.commit(CommitRequest(writes: try harness.list(writes), transaction: transaction)) {
                [self] outcome in
                result.withLock { $0 = outcome }
            }
        }

        var isAnswered: Bool { result.withLock { $0 != nil } }

        var failure: StatusCode? {
            if case .failure(let error)? = result.withLock({ $0 }) { error.code } else { nil }
        }
    }

    /// A transaction that has its turn at a document: the retry of one that was aborted.
    private func turn(_ harness: StoreHarness, at path: String) async throws -> TransactionIdentifier {
        let first = try await harness.begin()
        _ = try harness.get(path, .transaction(first))
        try await harness.commit([.increment(path, field: "n", by: 1)])
        try await expectEqual(harness.failure([.set(path, fields(9))], transaction: first)?.code, .aborted)
        return try await harness.retry(first)
    }

    /// Returns when everything submitted before has been decided or parked.
    private func settle(_ harness: StoreHarness) async throws {
        harness.store.noticeTime()
        try await harness.commit([.set("elsewhere/x", fields(Int64.random(in: 0...Int64.max)))])
        try await harness.commit([.set("elsewhere/x", fields(Int64.random(in: 0...Int64.max)))])
    }

    /// Lets time go by in small steps, in which a client reads in its transaction.
    private func advance(
        _ harness: StoreHarness, milliseconds: UInt64, busy: TransactionIdentifier, reading path: String = "busy/x"
    ) async throws {
        for _ in 0..<(milliseconds / 100) {
            harness.clock.advance(milliseconds: 100)
            _ = try harness.get(path, .transaction(busy))
            try await settle(harness)
        }
    }

    @Test
    func `However busy it is, a retry keeps its turn for three seconds and no longer`() async throws {
        let harness = try StoreHarness()
        let holder = try await turn(harness, at: "c/a")
        let plain = try Submitted(harness, [.set("c/a", fields(5))])
        try await settle(harness)
        try await advance(harness, milliseconds: 2_800, busy: holder)
        expect(!plain.isAnswered)
        try await advance(harness, milliseconds: 300, busy: holder)
        expect(plain.isAnswered)
        // Its turn is over, so nobody else waits.
        let next = try Submitted(harness, [.set("c/a", fields(6))])
        try await settle(harness)
        expect(next.isAnswered)
        // It had not read the document, so it may still commit.
        try await harness.commit([.set("c/b", fields(1))], transaction: holder)
        try harness.finish()
    }

    @Test(arguments: [true, false])
    func `A retry that can only be aborted loses its turn`(byQuery: Bool) async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("d/b", fields(1))])
        let holder = try await turn(harness, at: "c/a")
        if byQuery {
            _ = try harness.ids("d", .all, .transaction(holder))
        } else {
            _ = try harness.get("d/b", .transaction(holder))
        }
        let plain = try Submitted(harness, [.set("c/a", fields(5))])
        try await settle(harness)
        try await advance(harness, milliseconds: 200, busy: holder)
        expect(!plain.isAnswered)
        // What it has read changes.
        try await harness.commit([byQuery ? .set("d/new", fields(1)) : .set("d/b", fields(2))])
        try await advance(harness, milliseconds: 100, busy: holder)
        expect(plain.isAnswered)
        try await expectEqual(harness.failure([.set("c/b", fields(1))], transaction: holder)?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `A commit that waits for one turn after the other proceeds at the bound of waits`() async throws {
        let harness = try StoreHarness { $0.lockWaitMilliseconds = 4_000 }
        let first = try await turn(harness, at: "c/a")
        let plain = try Submitted(harness, [.set("c/a", fields(5)), .set("c/b", fields(5))])
        try await settle(harness)
        try await advance(harness, milliseconds: 2_000, busy: first)
        let second = try await turn(harness, at: "c/b")
        expect(!plain.isAnswered)
        // The first turn ends after 3 s, the second after 5 s.
        for step in 1...21 {
            expectEqual(plain.isAnswered, step > 20)
            _ = try harness.get("busy/x", .transaction(second))
            try await advance(harness, milliseconds: 100, busy: first)
        }
        try harness.finish()
    }

    @Test(arguments: [true, false])
    func `The transaction that has blocked a commit for the longest time loses its locks`(isTransaction: Bool)
        async throws
    {
        let harness = try StoreHarness()
        let options = TransactionOptions.readWrite(retryTransaction: [], concurrency: .pessimistic)
        let holder = try await harness.begin(options)
        let name = Array(harness.name("c/a").utf8)
        try await withCheckedContinuation { continuation in
            harness.store.lock(holder, [name]) { continuation.resume(returning: $0) }
        }.get()
        _ = try harness.get("c/a", .transaction(holder))
        let writer = isTransaction ? try await harness.begin(options) : nil
        let waiting = try Submitted(harness, [.set("c/a", fields(5))], writer)
        try await settle(harness)
        try await advance(harness, milliseconds: 14_900, busy: holder)
        expect(!waiting.isAnswered)
        try await advance(harness, milliseconds: 200, busy: holder)
        expect(waiting.isAnswered)
        expectEqual(waiting.failure, isTransaction ? .aborted : nil)
        // Nobody else waits for it.
        let next = try Submitted(harness, [.set("c/a", fields(6))])
        try await settle(harness)
        expect(next.isAnswered)
        try await expectEqual(harness.failure([.set("c/b", fields(1))], transaction: holder)?.code, .aborted)
        try harness.finish()
    }
}
