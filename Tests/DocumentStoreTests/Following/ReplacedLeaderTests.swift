// A server of a cluster whose lease has ended, until its store is closed: another one may lead, and commit.

import Basics
import DocumentModel
import Glibc
import Storage
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct ReplacedLeaderTests {
    private let lease = Monitor(true)

    /// A store that has followed and leads now.
    private func leader() async throws -> StoreHarness {
        let harness = try StoreHarness { [lease] configuration in
            configuration.leader = "another server"
            configuration.holdsLease = { lease.withLock { $0 } }
        }
        harness.store.lead(above: 0)
        try await harness.commit([.set("c/x", ["n": 1])])
        return harness
    }

    private func code(_ body: () async throws -> Void) async throws -> StatusCode? {
        do { try await body() } catch let error as RequestError { return error.code }
        return nil
    }

    @Test(arguments: [false, true])
    func `It answers no read of the newest state`(knowsSuccessor: Bool) async throws {
        let harness = try await leader()
        try expectEqual(harness.integer("c/x"), 1)
        _ = try await harness.begin(.readOnly(readTime: nil))
        lease.update { $0 = false }
        if knowsSuccessor { harness.store.follow(leader: "successor:1") }
        try await expectEqual(code { _ = try harness.get("c/x") }, .unavailable)
        try await expectEqual(code { _ = try await harness.begin(.readOnly(readTime: nil)) }, .unavailable)
        expectEqual(harness.store.strictReadRefusal?.code, .unavailable)
        try harness.finish()
    }

    @Test
    func `It reports nothing that the log need not take`() async throws {
        let harness = try await leader()
        try await expectNil(harness.failure([.delete("c/none")]))
        try await expectEqual(harness.failure([.set("c/x", ["n": 2], .exists(false))])?.code, .alreadyExists)
        lease.update { $0 = false }
        // A successor may have made the document that is missing here, and deleted the one that is here.
        try await expectEqual(harness.failure([.delete("c/none")])?.code, .unavailable)
        try await expectEqual(harness.failure([.set("c/x", ["n": 2], .exists(false))])?.code, .unavailable)
        // What changes something is decided by the log.
        try await expectNil(harness.failure([.set("c/x", ["n": 2])]))
        lease.update { $0 = true }
        try expectEqual(harness.integer("c/x"), 2)
        try harness.finish()
    }

    @Test
    func `It hands out and reads no time of its successor`() async throws {
        let harness = try await leader()
        let store = harness.store
        let published = store.publishedVersion.microseconds
        let later = store.currentReadTime + 5_000_000
        lease.update { $0 = false }
        store.follow(leader: "successor:1")
        let outcome = Monitor<Result<Void, RequestError>?>(nil)
        store.whenVisible(later) { result in outcome.update { $0 = result } }
        expectNil(outcome.withLock { $0 })
        expect(store.currentReadTime < later)
        let after = TimestampValue(microseconds: Int64(later))
        try expect(store.mustWait(for: .time(after)))
        // What was visible stays so.
        let visible = Monitor<Result<Void, RequestError>?>(nil)
        store.whenVisible(published) { result in visible.update { $0 = result } }
        try visible.wait { $0 }.get()
        let before = TimestampValue(microseconds: Int64(published))
        try expectEqual(harness.integer("c/x", "n", .time(before)), 1)
        try harness.finish()
        #expect(throws: RequestError.self) { try outcome.wait { $0 }.get() }
    }

    @Test
    func `A source that steps down gives out no time at which its replica may commit`() async throws {
        let harness = try StoreHarness()
        let store = harness.store
        try await harness.commit([.set("c/x", ["n": 1])])
        harness.clock.advance(milliseconds: 1_000)
        let given = store.currentReadTime
        func stepDown(for successor: UInt64) throws -> UInt64 {
            let outcome = Monitor<Result<CommitVersion, RequestError>?>(nil)
            store.stepDown(for: successor) { result in outcome.update { $0 = result } }
            return try outcome.wait { $0 }.get().microseconds
        }
        let last = try stepDown(for: 7)
        expect(last > given && store.publishedVersion.microseconds == last)
        // The replica commits from here on.
        harness.clock.advance(milliseconds: 60_000)
        expectEqual(store.currentReadTime, last)
        try expectEqual(stepDown(for: 7), last)
        for other: UInt64 in [0, 8] {
            let refusal = #expect(throws: RequestError.self) { try stepDown(for: other) }
            expectEqual(refusal?.code, .failedPrecondition)
        }
        let transaction = try await harness.begin(.readOnly(readTime: nil))
        expectEqual(transaction.readTime, TimestampValue(microseconds: Int64(last)))
        try expect(store.mustWait(for: .time(TimestampValue(microseconds: Int64(last) + 1))))
        try expectEqual(harness.integer("c/x"), 1)
        try await expectEqual(harness.failure([.set("c/x", ["n": 2])])?.code, .failedPrecondition)
        try harness.finish()
    }

    @Test(.needsFiles)
    func `A source that cannot make its last commit continues to take writes`() async throws {
        let fault = FaultSwitch()
        let harness = try StoreHarness {
            $0.engine.logSegmentBytes = 32 << 10
            $0.engine.logSpareSegmentsMax = 0
            $0.engine.fault = { fault.check($0) }
        }
        let store = harness.store
        let names = (0..<2_000).map { "c/\($0)" }
        for start in stride(from: 0, to: names.count, by: 500) {
            try await harness.commit(names[start..<start + 500].map { .set($0, ["n": 1]) })
        }
        // Deletes take what is left of the log, and its reserve.
        fault.fail(.allocateSegment, .commitRun, with: ENOSPC)
        var left = names[...]
        var refusal: RequestError?
        while refusal == nil, let name = left.popFirst() { refusal = try await harness.failure([.delete(name)]) }
        expectEqual(refusal?.code, .resourceExhausted)
        let outcome = Monitor<Result<CommitVersion, RequestError>?>(nil)
        store.stepDown(for: 7) { result in outcome.update { $0 = result } }
        let failure = #expect(throws: RequestError.self) { try outcome.wait { $0 }.get() }
        expectEqual(failure?.code, .resourceExhausted)

        fault.heal()
        // The engine looks for space again now and then.
        try await eventually("it takes writes") { try await harness.failure([.set("c/x", ["n": 2])]) == nil }
        harness.clock.advance(milliseconds: 1_000)
        expect(store.currentReadTime > store.publishedVersion.microseconds)
        try expectEqual(harness.integer("c/x"), 2)
        try harness.finish()
    }
}
