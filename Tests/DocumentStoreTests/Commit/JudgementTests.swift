// Commits that were judged before their turn: they stand only if what the judgement rested on is unchanged.

import Basics
import DocumentModel
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct JudgementTests {
    private static let refusal = RequestError(.permissionDenied, "Missing or insufficient permissions.")

    /// What becomes of a document between the judgement and the commit.
    enum Change: CaseIterable {
        case none, changed, rewritten, deleted, recreated, other
    }

    // MARK: Requests

    private func request(
        _ harness: StoreHarness, _ writes: [StepWrite] = [.set("c/target", fields(1))], basis: CommitBasis? = nil,
        refusal: RequestError? = nil, transaction: TransactionIdentifier? = nil, identifier: RequestIdentifier? = nil
    ) throws -> CommitRequest {
        CommitRequest(
            writes: try harness.list(writes), transaction: transaction, identifier: identifier, basis: basis,
            refusal: refusal)
    }

    private func failure(_ harness: StoreHarness, _ request: CommitRequest) async -> RequestError? {
        switch await harness.outcome(request) {
        case .success: nil
        case .failure(let error): error
        }
    }

    /// A judgement that has seen documents with their versions.
    private func basis(_ harness: StoreHarness, seen paths: [String]) throws -> CommitBasis {
        var basis = CommitBasis()
        for path in paths {
            let version = try harness.get(path)?.updateMicroseconds ?? 0
            basis.note(Array(path.utf8).byteSpan, version: version)
        }
        return basis
    }

    /// A judgement that has seen whether documents exist.
    private func basis(_ harness: StoreHarness, existing paths: [String]) throws -> CommitBasis {
        var basis = CommitBasis()
        for path in paths { basis.note(Array(path.utf8).byteSpan, exists: try harness.get(path) != nil) }
        return basis
    }

    private func apply(_ change: Change, to path: String, _ harness: StoreHarness) async throws {
        switch change {
        case .none: break
        case .changed: try await harness.commit([.set(path, fields(2))])
        // A write without effect leaves the version.
        case .rewritten: try await harness.commit([.set(path, fields(1))])
        case .deleted: try await harness.commit([.delete(path)])
        case .recreated:
            try await harness.commit([.delete(path)])
            try await harness.commit([.set(path, fields(1))])
        case .other: try await harness.commit([.set(path + "x", fields(2))])
        }
    }

    // MARK: The basis

    @Test(arguments: Change.allCases)
    func `A commit stands if the versions that were seen are the newest`(change: Change) async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("users/alice", fields(1)), .set("users/bob", fields(1))])
        let seen = try basis(harness, seen: ["users/bob", "users/alice", "users/nobody"])
        try await apply(change, to: "users/alice", harness)
        let stands = [.none, .rewritten, .other].contains(change)
        let failure = await failure(harness, try request(harness, basis: seen))
        expectEqual(failure, stands ? nil : .judgementOutdated)
        expect(failure.map(\.isJudgementOutdated) ?? true)
        try expectEqual(harness.integer("c/target"), stands ? 1 : nil)
        try harness.finish()
    }

    @Test(arguments: Change.allCases)
    func `Where only the existence was seen, changes of the content do not matter`(change: Change) async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("users/alice", fields(1))])
        let seen = try basis(harness, existing: ["users/alice", "users/nobody"])
        try await apply(change, to: "users/alice", harness)
        let failure = await failure(harness, try request(harness, basis: seen))
        expectEqual(failure, change == .deleted ? .judgementOutdated : nil)
        try harness.finish()
    }

    @Test(arguments: [true, false])
    func `A document that was missing and is created`(seesVersion: Bool) async throws {
        let harness = try StoreHarness()
        // The first commit creates the database.
        let paths = ["users/alice"]
        let seen = seesVersion ? try basis(harness, seen: paths) : try basis(harness, existing: paths)
        await expectNil(failure(harness, try request(harness, basis: seen)))
        try await harness.commit([.set("users/alice", fields(1))])
        await expectEqual(failure(harness, try request(harness, basis: seen)), .judgementOutdated)
        try await harness.commit([.delete("users/alice")])
        await expectNil(failure(harness, try request(harness, basis: seen)))
        try harness.finish()
    }

    @Test
    func `The version counts if both it and the existence were seen, and two states never stand`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("users/alice", fields(1))])
        let path = Array("users/alice".utf8)
        let version = try #require(try harness.get("users/alice")).updateMicroseconds
        var (before, after, contradiction, twoVersions) = (CommitBasis(), CommitBasis(), CommitBasis(), CommitBasis())
        before.note(path.byteSpan, version: version)
        before.note(path.byteSpan, exists: true)
        after.note(path.byteSpan, exists: true)
        after.note(path.byteSpan, version: version)
        contradiction.note(path.byteSpan, exists: false)
        contradiction.note(path.byteSpan, version: version)
        twoVersions.note(path.byteSpan, version: version - 1)
        twoVersions.note(path.byteSpan, version: version)
        for basis in [before, after] { await expectNil(failure(harness, try request(harness, basis: basis))) }
        for basis in [contradiction, twoVersions] {
            await expectEqual(failure(harness, try request(harness, basis: basis)), .judgementOutdated)
        }
        try await harness.commit([.set("users/alice", fields(2))])
        for basis in [before, after, contradiction, twoVersions] {
            await expectEqual(failure(harness, try request(harness, basis: basis)), .judgementOutdated)
        }
        try harness.finish()
    }

    @Test
    func `Many documents, and paths that name none`() async throws {
        let harness = try StoreHarness()
        let paths = (0..<200).map { "users/\($0)" }
        try await harness.commit(paths.map { .set($0, fields(1)) })
        let odd = ["", "/", "users", "/users", "users/" + String(repeating: "é", count: 700) + "/x"]
        let seen = try basis(harness, seen: paths + paths)
        var all = seen
        for path in odd { all.note(Array(path.utf8).byteSpan, exists: false) }
        await expectNil(failure(harness, try request(harness, basis: all)))
        for index in [0, 77, 199] {
            try await harness.commit([.set(paths[index], fields(2))])
            await expectEqual(failure(harness, try request(harness, basis: seen)), .judgementOutdated)
            let again = try basis(harness, seen: paths)
            await expectNil(failure(harness, try request(harness, basis: again)))
        }
        let one = try request(harness, basis: CommitBasis())
        let many = QueuedRequest.commit(QueuedCommit(try request(harness, basis: seen)) { _ in })
        let few = QueuedRequest.commit(QueuedCommit(one) { _ in })
        expect(many.byteCount > few.byteCount + paths.reduce(0) { $0 + $1.utf8.count })
        try harness.finish()
    }

    @Test
    func `A commit of the same group that was decided before counts`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("users/alice", fields(1))])
        let seen = try basis(harness, seen: ["users/alice"])
        let groups = harness.store.statistics.groups
        // The commit thread waits in the reply to the first; the two that follow are then taken together.
        let gate = Monitor((isReached: false, isOpen: false))
        harness.store.commit(try request(harness, [.set("c/first", fields(1))])) { _ in
            gate.update { $0.isReached = true }
            gate.wait { $0.isOpen ? () : nil }
        }
        gate.wait { $0.isReached ? () : nil }
        harness.store.commit(try request(harness, [.set("users/alice", fields(2))])) { _ in }
        async let judged = failure(harness, try request(harness, basis: seen))
        try await eventually("both wait") { harness.store.statistics.requestsQueued == 2 }
        gate.update { $0.isOpen = true }
        try await expectEqual(judged, .judgementOutdated)
        expectEqual(harness.store.statistics.groups, groups + 2)
        try harness.finish()
    }

    @Test
    func `What is judged is of the request's database`() async throws {
        let harness = try StoreHarness()
        let other = try DatabaseName(project: "p", database: "other")
        try await harness.commit([.set("users/alice", fields(1))])
        var seen = CommitBasis()
        seen.note(Array("users/alice".utf8).byteSpan, exists: false)
        let writes = try harness.list([.set("c/target", fields(1))], in: other)
        await expectNil(failure(harness, CommitRequest(writes: writes, basis: seen)))
        await expectEqual(failure(harness, try request(harness, basis: seen)), .judgementOutdated)
        try harness.finish()
    }

    // MARK: Refusals and repetitions

    @Test(arguments: [true, false])
    func `A repetition gets its first result, whatever its judgement is`(isRefused: Bool) async throws {
        let harness = try StoreHarness()
        let identifier = RequestIdentifier(sessionHigh: 7, sessionLow: 1, sequence: 1, oldestPending: 1)
        var outdated = CommitBasis()
        outdated.note(Array("users/alice".utf8).byteSpan, exists: true)
        let repetition = try request(
            harness, basis: outdated, refusal: isRefused ? Self.refusal : nil, identifier: identifier)
        // Before there is a first result, nothing is remembered.
        let expected = isRefused ? Self.refusal : .judgementOutdated
        for _ in 0..<2 { await expectEqual(failure(harness, repetition), expected) }
        let first = await harness.outcome(try request(harness, identifier: identifier))
        try await expectEqual(harness.outcome(repetition).get(), first.get())
        try expectEqual(harness.integer("c/target"), 1)
        try harness.finish()
    }

    @Test(arguments: [true, false])
    func `A batch write is refused, or outdated, as a whole`(isRefused: Bool) async throws {
        let harness = try StoreHarness()
        var outdated = CommitBasis()
        outdated.note(Array("users/alice".utf8).byteSpan, exists: !isRefused)
        let batch = try request(
            harness, [.set("c/a", fields(1)), .set("c/b", fields(1))], basis: outdated,
            refusal: isRefused ? Self.refusal : nil)
        let result = await withCheckedContinuation { continuation in
            harness.store.batchWrite(batch) { continuation.resume(returning: $0) }
        }
        #expect(throws: isRefused ? Self.refusal : .judgementOutdated) { try result.get() }
        try expectNil(harness.get("c/a"))
        var allowed = batch
        allowed.refusal = nil
        allowed.basis = try basis(harness, existing: ["users/alice"])
        let written = await withCheckedContinuation { [allowed] continuation in
            harness.store.batchWrite(allowed) { continuation.resume(returning: $0) }
        }
        try expectEqual(written.get().outcomes.count, 2)
        try harness.finish()
    }

    // MARK: Transactions

    /// A commit without a transaction.
    private final class Waiter: Sendable {
        let result = Mutex<Result<CommitResult, RequestError>?>(nil)
        var isAnswered: Bool { result.withLock { $0 != nil } }
    }

    /// A transaction that has read and locked `c/a`.
    private func lockingTransaction(_ harness: StoreHarness) async throws -> TransactionIdentifier {
        try await harness.commit([.set("c/a", fields(1)), .set("users/alice", fields(1))])
        let transaction = try await harness.begin(.readWrite(retryTransaction: [], concurrency: .pessimistic))
        try await withCheckedContinuation { continuation in
            harness.store.lock(transaction, [Array(harness.name("c/a").utf8)]) { continuation.resume(returning: $0) }
        }.get()
        try expectEqual(harness.integer("c/a", "n", .transaction(transaction)), 1)
        return transaction
    }

    /// A write to `c/a` without a transaction.
    private func plainWrite(_ harness: StoreHarness) throws -> Waiter {
        let waiter = Waiter()
        harness.store.commit(try request(harness, [.set("c/a", fields(7))])) { result in
            waiter.result.withLock { $0 = result }
        }
        return waiter
    }

    @Test
    func `After an outdated judgement the transaction and its locks last, and it commits`() async throws {
        let harness = try StoreHarness()
        let transaction = try await lockingTransaction(harness)
        let seen = try basis(harness, seen: ["users/alice"])
        try await harness.commit([.set("users/alice", fields(2))])
        let waiter = try plainWrite(harness)
        for _ in 0..<2 {
            let outdated = try request(harness, [.set("c/a", fields(5))], basis: seen, transaction: transaction)
            await expectEqual(failure(harness, outdated), .judgementOutdated)
            try await harness.commit([.set("elsewhere/x", fields(0))])
            expect(!waiter.isAnswered)
        }
        let again = try request(
            harness, [.set("c/a", fields(5))], basis: try basis(harness, seen: ["users/alice"]),
            transaction: transaction)
        await expectNil(failure(harness, again))
        try await eventually("the waiting write is done") { waiter.isAnswered }
        try expectEqual(harness.integer("c/a"), 7)
        expectEqual(harness.store.statistics.transactionsAborted, 0)
        try harness.finish()
    }

    @Test
    func `A refusal ends the transaction and its locks`() async throws {
        let harness = try StoreHarness()
        let transaction = try await lockingTransaction(harness)
        let waiter = try plainWrite(harness)
        let refused = try request(
            harness, [.set("c/a", fields(5))], refusal: Self.refusal, transaction: transaction)
        await expectEqual(failure(harness, refused), Self.refusal)
        try await eventually("the waiting write is done") { waiter.isAnswered }
        try expectEqual(harness.integer("c/a"), 7)
        expectEqual(harness.store.statistics.transactionsOpen, 0)
        let again = try request(harness, [.set("c/a", fields(5))], transaction: transaction)
        await expectEqual(failure(harness, again), .unknownTransaction)
        try harness.finish()
    }

    @Test
    func `An optimistic transaction whose judgement was outdated is still validated`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1)), .set("users/alice", fields(1))])
        let transaction = try await harness.begin()
        try expectEqual(harness.integer("c/a", "n", .transaction(transaction)), 1)
        let seen = try basis(harness, seen: ["users/alice"])
        try await harness.commit([.set("users/alice", fields(2)), .set("c/a", fields(2))])
        let outdated = try request(harness, basis: seen, transaction: transaction)
        await expectEqual(failure(harness, outdated), .judgementOutdated)
        let again = try request(
            harness, basis: try basis(harness, seen: ["users/alice"]), transaction: transaction)
        await expectEqual(failure(harness, again), .contention)
        try harness.finish()
    }
}
