// The ledger of unacknowledged writes.

import Basics
import Synchronization
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct PendingWritesTests {
    private let root = "projects/p/databases/d/documents"

    /// Counts how often a wait ended.
    private final class Counter: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func bump() { count.withLock { $0 += 1 } }
    }

    @Test
    func `Reads wait for writes to the same document and for queries over the same collection id, not for others`()
        throws
    {
        let writes = PendingWrites()
        let name = "\(root)/users/u1/tasks/t1"
        let number = try #require(writes.begin(documents: [name], byteCount: 10))
        #expect(writes.mustWait(for: .document(UTF8Text(name))))
        #expect(writes.mustWait(for: .collection("tasks")))
        #expect(!writes.mustWait(for: .collection("users")))
        #expect(!writes.mustWait(for: .document("\(root)/users/u1")))
        writes.finish(number, documents: [name], byteCount: 10)
        #expect(!writes.mustWait(for: .document(UTF8Text(name))))
        #expect(!writes.mustWait(for: .collection("tasks")))
    }

    @Test
    func `Ids that are the same text in other bytes are different places`() throws {
        let writes = PendingWrites()
        _ = try #require(writes.begin(documents: ["\(root)/\u{e9}/d"], byteCount: 1))
        #expect(writes.mustWait(for: .collection("\u{e9}")) && !writes.mustWait(for: .collection("e\u{301}")))
    }

    @Test
    func `A waiter continues when the last write before it is settled, whatever is written later`() throws {
        let writes = PendingWrites()
        let name = "\(root)/a/b"
        let first = try #require(writes.begin(documents: [name], byteCount: 1))
        let second = try #require(writes.begin(documents: [name], byteCount: 1))
        let counter = Counter()
        writes.whenSettled(.document(UTF8Text(name))) { counter.bump() }
        let third = try #require(writes.begin(documents: [name], byteCount: 1))
        writes.finish(second, documents: [name], byteCount: 1)
        #expect(counter.value == 0, "the first write is not settled")
        writes.finish(first, documents: [name], byteCount: 1)
        #expect(counter.value == 1)
        #expect(writes.mustWait(for: .document(UTF8Text(name))), "the third write came later")
        writes.finish(third, documents: [name], byteCount: 1)
        #expect(counter.value == 1)
    }

    @Test
    func `Without writes a wait ends at once`() {
        let writes = PendingWrites()
        let counter = Counter()
        #expect(writes.whenAllSettled { _ in counter.bump() } == nil)
        #expect(writes.whenSettled(.collection("a")) { counter.bump() } == nil)
        #expect(counter.value == 2)
    }

    @Test
    func `Waiting for all covers writes that reads need not wait for`() throws {
        let writes = PendingWrites()
        let number = try #require(writes.begin(documents: [], byteCount: 1))
        let counter = Counter()
        writes.whenAllSettled { _ in counter.bump() }
        #expect(counter.value == 0)
        writes.finish(number, documents: [], byteCount: 1)
        #expect(counter.value == 1)
    }

    @Test
    func `A waiter that is cancelled continues once`() throws {
        let writes = PendingWrites()
        let number = try #require(writes.begin(documents: [], byteCount: 1))
        let counter = Counter()
        let waiter = try #require(writes.whenAllSettled { _ in counter.bump() })
        writes.stopWaiting(waiter)
        writes.stopWaiting(waiter)
        writes.finish(number, documents: [], byteCount: 1)
        #expect(counter.value == 1)
    }

    @Test
    func `The end of the client ends waits, which learn whether writes are unsettled`() throws {
        let writes = PendingWrites()
        let number = try #require(writes.begin(documents: [], byteCount: 1))
        let outcomes = Mutex<[Bool]>([])
        let note = { @Sendable (isSettled: Bool) in outcomes.withLock { $0.append(isSettled) } }
        writes.whenAllSettled(note)
        writes.abandon()
        #expect(outcomes.withLock { $0 } == [false])
        #expect(writes.whenAllSettled(note) == nil)
        #expect(outcomes.withLock { $0 } == [false, false])
        writes.finish(number, documents: [], byteCount: 1)
        writes.whenAllSettled(note)
        #expect(outcomes.withLock { $0 } == [false, false, true])
    }

    @Test
    func `The bytes of unacknowledged writes are bounded, but one write always fits`() throws {
        let writes = PendingWrites(bytesMax: 100)
        let large = try #require(writes.begin(documents: [], byteCount: 1000))
        #expect(writes.begin(documents: [], byteCount: 1) == nil)
        writes.finish(large, documents: [], byteCount: 1000)
        #expect(writes.begin(documents: [], byteCount: 60) != nil)
        #expect(writes.begin(documents: [], byteCount: 60) == nil)
    }
}
