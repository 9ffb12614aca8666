// Reads at a time whose commits are on their way to the disk.

import Basics
import DocumentModel
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20))) struct ReadWaitTests {
    private final class Ground: Sendable {
        /// Stands between staging and publishing a group.
        let gate = Gate(isOpen: true)
        let harness: StoreHarness
        private let committed = Mutex(0)

        init() throws {
            let gate = gate
            harness = try StoreHarness {
                $0.engine.fault = {
                    if $0 == .syncLog { gate.pass() }
                    return 0
                }
            }
        }

        /// Submits a commit of a new document, and returns when it is staged.
        func stage(_ path: String, _ number: Int64) throws {
            gate.close()
            let writes = try harness.list([.set(path, fields(number))])
            harness.store.commit(CommitRequest(writes: writes)) { [self] result in
                #expect(throws: Never.self) { try result.get() }
                committed.withLock { $0 += 1 }
            }
            try gate.waitUntilReached()
            harness.clock.advance(milliseconds: 1)
        }

        func publish(_ count: Int) throws {
            gate.open()
            try waitUntil("the commit is published") { committed.withLock { $0 == count } }
        }

        var now: ReadSelector { .time(TimestampValue(microseconds: Int64(harness.clock.nowMicroseconds))) }
    }

    @Test
    func `A read at the present waits for the commit in flight, and then sees it`() throws {
        let ground = try Ground()
        let store = ground.harness.store
        try expect(!store.mustWait(for: ground.now))
        try ground.stage("c/a", 1)
        let now = ground.now
        try expect(store.mustWait(for: now))
        #expect(throws: RequestError.self) { try store.makeReader().readPoint(now, in: ground.harness.database) }
        let outcome = Box<Void>()
        store.prepareRead(now, locking: []) { outcome.set($0) }
        expectNil(outcome.value)
        try ground.publish(1)
        try waitUntil("the read is ready") { outcome.value != nil }
        try outcome.value?.get()
        try expectEqual(ground.harness.integer("c/a", "n", now), 1)
        try ground.harness.finish()
    }

    @Test
    func `A read-only transaction at the present begins when the commit in flight is published`() throws {
        let ground = try Ground()
        let store = ground.harness.store
        try ground.stage("c/a", 1)
        guard case .time(let time) = ground.now else { return }
        let outcome = Box<TransactionIdentifier>()
        store.beginTransaction(in: ground.harness.database, options: .readOnly(readTime: time)) { outcome.set($0) }
        // Without a time it reads what is published, and waits for nothing.
        let immediate = Box<TransactionIdentifier>()
        store.beginTransaction(in: ground.harness.database, options: .readOnly(readTime: nil)) { immediate.set($0) }
        expect(immediate.value != nil)
        expectNil(outcome.value)
        try ground.publish(1)
        try waitUntil("the transaction has begun") { outcome.value != nil }
        let transaction = try #require(try outcome.value?.get())
        try expectEqual(ground.harness.integer("c/a", "n", .transaction(transaction)), 1)
        let earlier = try #require(try immediate.value?.get())
        try expectNil(ground.harness.get("c/a", .transaction(earlier)))
        try ground.harness.finish()
    }

    @Test
    func `A read waits for five seconds at most`() throws {
        let ground = try Ground()
        let store = ground.harness.store
        try ground.stage("c/a", 1)
        let outcome = Box<Void>()
        store.prepareRead(ground.now, locking: []) { outcome.set($0) }
        ground.harness.clock.advance(milliseconds: 4_999)
        store.endExpiredWaits()
        expectNil(outcome.value)
        ground.harness.clock.advance(milliseconds: 1)
        store.endExpiredWaits()
        let error = #expect(throws: RequestError.self) { try outcome.value?.get() }
        expectEqual(error?.code, .unavailable)
        try ground.publish(1)
        try ground.harness.finish()
    }
}

/// The result that a completion gets.
private final class Box<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, RequestError>?>(nil)

    var value: Result<Value, RequestError>? { result.withLock(\.self) }

    func set(_ result: Result<Value, RequestError>) { self.result.withLock { $0 = result } }
}
