// A commit that is sent again is applied once, also after a crash.

import Basics
import DocumentModel
import Storage
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct RepeatedRequestTests {
    private func request(_ sequence: UInt64, oldest: UInt64? = nil, session: UInt64 = 77) -> RequestIdentifier {
        RequestIdentifier(
            sessionHigh: session, sessionLow: 1, sequence: sequence, oldestPending: oldest ?? sequence)
    }

    @Test
    func `The repetition gets the first answer and changes nothing`() async throws {
        let harness = try StoreHarness()
        let first = try await harness.result(committing: [.increment("c/a", field: "n", by: 1)], identifier: request(1))
        let again = try await harness.result(committing: [.increment("c/a", field: "n", by: 1)], identifier: request(1))
        expectEqual(again, first)
        try expectEqual(harness.integer("c/a"), 1)
        expectEqual(harness.store.statistics.repeatsAnswered, 1)
        try harness.finish()
    }

    @Test
    func `Both in flight at once: applied once`() async throws {
        let harness = try StoreHarness()
        async let one: CommitResult = harness.result(
            committing: [.increment("c/a", field: "n", by: 1)], identifier: request(1))
        async let two: CommitResult = harness.result(
            committing: [.increment("c/a", field: "n", by: 1)], identifier: request(1))
        try await expectEqual(one, two)
        try expectEqual(harness.integer("c/a"), 1)
        try harness.finish()
    }

    @Test(arguments: [
        (false, false), (false, true), (true, false), (true, true),
    ])
    func `After a crash or a clean restart, with and without a checkpoint between`(isClean: Bool, hasCheckpoint: Bool)
        async throws
    {
        let harness = try StoreHarness()
        let first = try await harness.result(
            committing: [.increment("c/a", field: "n", by: 1), .delete("c/none"), .set("c/b", fields(1))],
            identifier: request(1))
        let second = try await harness.result(committing: [.delete("c/gone")], identifier: request(2, oldest: 1))
        let batch = try await harness.batch(
            [.set("c/x", fields(1), .exists(true)), .set("c/y", fields(1))], identifier: request(3, oldest: 1))
        if hasCheckpoint { try harness.store.checkpoint() }
        // Others, so that there is something after the checkpoint.
        try await harness.commit([.set("c/z", fields(1))])
        let again = isClean ? try harness.reopened() : try harness.crashed()
        try await expectEqual(
            again.result(
                committing: [.increment("c/a", field: "n", by: 1), .delete("c/none"), .set("c/b", fields(1))],
                identifier: request(1)), first)
        // Between the two attempts the document was created that the first one did not find: still nothing happens.
        try await again.commit([.set("c/gone", fields(5))])
        try await expectEqual(again.result(committing: [.delete("c/gone")], identifier: request(2, oldest: 1)), second)
        try expectEqual(again.integer("c/gone"), 5)
        let repeated = try await again.batch(
            [.set("c/x", fields(1), .exists(true)), .set("c/y", fields(1))], identifier: request(3, oldest: 1))
        expectEqual(repeated.commitMicroseconds, batch.commitMicroseconds)
        expectEqual(repeated.outcomes.count, 2)
        try expectEqual(again.integer("c/a"), 1)
        try again.finish()
        if !isClean { try harness.finish() }
    }

    @Test
    func `A failed commit is not remembered: its repetition is decided again`() async throws {
        let harness = try StoreHarness()
        await #expect(throws: RequestError.self) {
            try await harness.commit([.set("c/a", fields(1), .exists(true))], identifier: request(1))
        }
        try await harness.commit([.set("c/a", fields(1))])
        try await harness.commit([.set("c/a", fields(2), .exists(true))], identifier: request(1))
        try expectEqual(harness.integer("c/a"), 2)
        try harness.finish()
    }

    @Test
    func `A repeated commit of a transaction gets its first answer, be it a result or an abortion`() async throws {
        let harness = try StoreHarness()
        let (one, two) = (try await harness.begin(), try await harness.begin())
        for transaction in [one, two] { _ = try harness.get("c/a", .transaction(transaction)) }
        let first = try await harness.result(
            committing: [.set("c/a", fields(1))], transaction: one, identifier: request(1))
        try await expectEqual(
            harness.result(committing: [.set("c/a", fields(1))], transaction: one, identifier: request(1)), first)
        let list = try harness.list([.set("c/a", fields(2))])
        for _ in 0..<2 {
            let outcome = await harness.outcome(CommitRequest(writes: list, transaction: two, identifier: request(2)))
            guard case .failure(let error) = outcome else {
                Issue.record("should have been aborted")
                continue
            }
            expectEqual(error.code, .aborted)
        }
        try harness.finish()
    }

    @Test
    func `Sessions that are silent for ten minutes are forgotten, also on disk`() async throws {
        let harness = try StoreHarness()
        for session in UInt64(1)...20 {
            try await harness.commit([.set("c/a", fields(Int64(session)))], identifier: request(1, session: session))
        }
        try expectEqual(StoreCheck.run(harness.store).rememberedResults, 20)
        harness.clock.advance(milliseconds: 600_000)
        try await harness.commit([.set("c/a", fields(0))], identifier: request(1, session: 99))
        harness.clock.advance(milliseconds: 2_000)
        try await harness.commit([.set("c/a", fields(1))])
        try await harness.commit([.set("c/a", fields(2))])
        try expectEqual(StoreCheck.run(harness.store).rememberedResults, 1)
        try harness.finish()
    }
}

/// Commits that name the one of their writer before them.
@Suite(.timeLimit(.minutes(20)))
struct RequestAfterAnotherTests {
    private func request(_ sequence: UInt64, oldest: UInt64 = 1, session: UInt64 = 77) -> RequestIdentifier {
        RequestIdentifier(sessionHigh: session, sessionLow: 1, sequence: sequence, oldestPending: oldest)
    }

    private func outcome(
        _ harness: StoreHarness, _ writes: [StepWrite], _ identifier: RequestIdentifier, after: RequestIdentifier?
    ) async throws -> Result<CommitResult, RequestError> {
        await harness.outcome(
            CommitRequest(writes: try harness.list(writes), identifier: identifier, predecessor: after))
    }

    @Test
    func `A commit is refused unless the one before it was applied`() async throws {
        let harness = try StoreHarness()
        // The first one fails.
        let first = try await outcome(harness, [.set("c/a", fields(1), .exists(true))], request(1), after: nil)
        #expect(throws: RequestError.self) { try first.get() }
        let early = try await outcome(harness, [.set("c/a", fields(2))], request(2), after: request(1))
        #expect(throws: RequestError.outOfOrder) { try early.get() }
        try expectNil(harness.integer("c/a"))
        _ = try await outcome(harness, [.set("c/a", fields(1))], request(1), after: nil).get()
        _ = try await outcome(harness, [.set("c/a", fields(2))], request(2), after: request(1)).get()
        // In another session of the writer.
        _ = try await outcome(
            harness, [.set("c/a", fields(3))], request(1, session: 78), after: request(2)
        ).get()
        try expectEqual(harness.integer("c/a"), 3)
        try harness.finish()
    }

    @Test(arguments: [false, true])
    func `What was applied is known after a crash, and a repetition does not need the one before it`(hasAnswer: Bool)
        async throws
    {
        let harness = try StoreHarness()
        _ = try await outcome(harness, [.set("c/a", fields(1))], request(1), after: nil).get()
        let second = try await outcome(harness, [.set("c/a", fields(2))], request(2), after: request(1)).get()
        let again = try harness.crashed()
        if hasAnswer { _ = try await outcome(again, [.set("c/b", fields(1))], request(3, oldest: 3), after: nil).get() }
        let after = request(hasAnswer ? 2 : 1)
        let fourth = request(4, oldest: hasAnswer ? 3 : 1)
        _ = try await outcome(again, [.set("c/a", fields(4))], fourth, after: after).get()
        if !hasAnswer {
            let repeated = try await outcome(again, [.set("c/a", fields(2))], request(2), after: request(9)).get()
            expectEqual(repeated, second)
        }
        try expectEqual(again.integer("c/a"), 4)
        try again.finish()
    }
}
