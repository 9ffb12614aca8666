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
        #expect(writes.whenSettled(.collection("a")) { counter.bump() } == nil)
        #expect(counter.value == 1)
    }

    @Test
    func `A waiter that is cancelled continues once`() throws {
        let writes = PendingWrites()
        let names = ["\(root)/a/b"]
        let number = try #require(writes.begin(documents: names, byteCount: 1))
        let counter = Counter()
        let waiter = try #require(writes.whenSettled(.collection("a")) { counter.bump() })
        writes.stopWaiting(waiter)
        writes.stopWaiting(waiter)
        writes.finish(number, documents: names, byteCount: 1)
        #expect(counter.value == 1)
    }

    @Test
    func `The end of the client ends waits, and there are none after it`() throws {
        let writes = PendingWrites()
        _ = try #require(writes.begin(documents: ["\(root)/a/b"], byteCount: 1))
        let counter = Counter()
        writes.whenSettled(.collection("a")) { counter.bump() }
        #expect(counter.value == 0)
        writes.abandon()
        #expect(counter.value == 1)
        #expect(writes.whenSettled(.collection("a")) { counter.bump() } == nil)
        #expect(counter.value == 2)
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
