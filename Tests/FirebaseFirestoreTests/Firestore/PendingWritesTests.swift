// The ledger of unacknowledged writes.

import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct PendingWritesTests {
    private let root = "projects/p/databases/d/documents"

    @Test
    func `A write touches its document and the collections with the id of its parent, and no others`() {
        let writes = PendingWrites()
        let name = "\(root)/users/u1/tasks/t1"
        #expect(writes.begin(documents: [name], byteCount: 10))
        #expect(writes.hasWrites(to: .document(.init(name))))
        #expect(writes.hasWrites(to: .collection("tasks")))
        #expect(!writes.hasWrites(to: .collection("users")))
        #expect(!writes.hasWrites(to: .document(.init("\(root)/users/u1"))))
        writes.finish(documents: [name], byteCount: 10)
        #expect(!writes.hasWrites(to: .document(.init(name))))
        #expect(!writes.hasWrites(to: .collection("tasks")))
    }

    @Test
    func `Ids that are the same text in other bytes are different places`() {
        let writes = PendingWrites()
        #expect(writes.begin(documents: ["\(root)/\u{e9}/d"], byteCount: 1))
        #expect(writes.hasWrites(to: .collection("\u{e9}")) && !writes.hasWrites(to: .collection("e\u{301}")))
    }

    @Test
    func `A place is touched until the last of its writes is settled, whichever that is`() {
        let writes = PendingWrites()
        let names = ["\(root)/a/b", "\(root)/a/c"]
        for name in names { #expect(writes.begin(documents: [name], byteCount: 1)) }
        writes.finish(documents: [names[1]], byteCount: 1)
        #expect(writes.hasWrites(to: .collection("a")) && writes.count == 1)
        writes.finish(documents: [names[0]], byteCount: 1)
        #expect(!writes.hasWrites(to: .collection("a")) && writes.count == 0)
    }

    @Test
    func `The bytes of unacknowledged writes are bounded, but one write always fits`() {
        let writes = PendingWrites(bytesMax: 100)
        #expect(writes.begin(documents: [], byteCount: 1000))
        #expect(!writes.begin(documents: [], byteCount: 1))
        writes.finish(documents: [], byteCount: 1000)
        #expect(writes.begin(documents: [], byteCount: 60))
        #expect(!writes.begin(documents: [], byteCount: 60))
    }
}
