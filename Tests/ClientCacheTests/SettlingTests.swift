// Replies of the server to pending batches: what they cost, and documents of which the cache knows a part only.

import Basics
import ClientCache
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct SettlingTests: LocalStoreFixture {
    private let directory = TemporaryDirectory("settling")

    /// Adds batches that add 1 to a document each.
    private static func enqueue(_ count: Int, to store: LocalStore, mustExist: Bool = false) throws -> [UInt64] {
        try (1...count).map { number in
            let request = request([("a", .add(1))], mustExist: mustExist)
            return try store.enqueue(request, identity: identity(UInt64(number))).number
        }
    }

    /// The reply to the batch that made the document's number a value.
    private static func reply(_ number: UInt64, value: Int64) -> BatchReply {
        let time = UInt64(value) + 10
        let result = WriteResult(updateMicroseconds: time, transformResults: [EncodedValue(.integer(value))])
        return BatchReply(number, .acknowledged(results: [result], commitMicroseconds: time))
    }

    /// Runs `body`.
    ///
    /// - Returns: how many times a batch was applied to a document meanwhile.
    private static func applications(_ store: LocalStore, _ body: () throws -> Void) rethrows -> Int {
        let before = store.appliedBatchCount
        try body()
        return store.appliedBatchCount - before
    }

    @Test
    func `Acknowledged merges into a document that the cache does not know are not applied again and again`() throws {
        let store = try Self.open()
        let numbers = try Self.enqueue(500, to: store)
        let applied = try Self.applications(store) {
            for (index, number) in numbers.enumerated() {
                _ = try store.settle([Self.reply(number, value: Int64(index + 1))])
                expectEqual(Self.number(try store.state(of: Self.name("a"))), 500)
            }
        }
        expect(applied <= 500, "one batch for each acknowledgement")
    }

    @Test(arguments: [false, true])
    func `A group of replies applies the remaining batches of a document once`(hasRejection: Bool) throws {
        let store = try Self.open()
        // Updates of a document that the cache does not know have no effect here, so nothing can be predicted.
        let numbers = try Self.enqueue(500, to: store, mustExist: true)
        for group in 0..<5 {
            var replies = (group * 100..<group * 100 + 100).map { Self.reply(numbers[$0], value: Int64($0 + 1)) }
            if hasRejection { replies[50] = BatchReply(replies[50].number, .rejected) }
            let applied = try Self.applications(store) {
                let settled = try store.settle(replies + replies)
                expectEqual(settled.changes.count, 1)
                expectEqual(settled.acknowledgedNames, [Self.name("a")])
            }
            expect(applied <= 400 - group * 100)
            try expectEqual(store.staleOverlays(), [])
        }
        expect(store.isQueueEmpty)
        try expectEqual(store.state(of: Self.name("a")), .unknown)
    }

    @Test
    func `Replies about many bytes of documents are taken in parts, each reply once`() throws {
        var configuration = LocalStore.Configuration(database: Self.database)
        configuration.commitBytesMax = 200
        let store = try LocalStore(configuration) { _ in }
        let ids = (0..<20).map { "d\($0)" }
        var replies = try ids.enumerated().map { index, id in
            let request = Self.request([(id, .set(1)), (id, .add(1))])
            let number = try store.enqueue(request, identity: Self.identity(UInt64(index))).number
            let results = [1, 2].map { value in
                WriteResult(updateMicroseconds: 50, transformResults: value == 2 ? [EncodedValue(.integer(2))] : [])
            }
            return BatchReply(number, .acknowledged(results: results, commitMicroseconds: 50))
        }
        var changed: [String] = []
        var commits = 0
        while !replies.isEmpty {
            let settled = try store.settle(replies)
            try #require(settled.replyCount > 0)
            expectEqual(settled.changes.count, settled.replyCount)
            replies.removeFirst(settled.replyCount)
            changed += settled.changes.map(\.name)
            commits += 1
            expectEqual(store.queue.map(\.number), replies.map(\.number))
            try expectEqual(store.staleOverlays(), [])
        }
        expect(commits > 2 && commits < ids.count, "\(commits) commits")
        expectEqual(changed, ids.map(Self.name))
        try expectEqual(Self.results(store, try Self.plan()), [Int64](repeating: 2, count: ids.count))
    }

    @Test
    func `An acknowledged merge into an unknown document stays visible; any state of the server replaces it`() throws {
        let path = directory.path(of: "partial")
        var store = try Self.open(path)
        let numbers = try Self.enqueue(2, to: store)
        _ = try store.settle([Self.reply(numbers[0], value: 1)])
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 2)
        store.close()
        store = try Self.open(path)
        expectEqual(Self.number(try store.state(of: Self.name("a"))), 2)
        try expectEqual(store.staleOverlays(), [])
        _ = try store.settle([Self.reply(numbers[1], value: 2)])
        let partial = try #require(try store.state(of: Self.name("a")).document)
        expectEqual(Self.number(.found(partial)), 2)
        expect(partial.isPartial && partial.isProvisional && !partial.hasPendingWrites)
        store.close()
        store = try Self.open(path)
        // A read that began before the commits has the whole document.
        _ = try store.apply([Self.found("a", 7, at: 5)])
        let whole = try #require(try store.state(of: Self.name("a")).document)
        expectEqual(Self.number(.found(whole)), 7)
        expect(!whole.isPartial)
        store.close()
    }

    @Test
    func `A set makes a document whole again, a deletion makes it missing`() throws {
        let store = try Self.open()
        var numbers = try Self.enqueue(1, to: store)
        numbers.append(try store.enqueue(Self.request([("a", .set(5))]), identity: Self.identity(2)).number)
        _ = try store.settle([Self.reply(numbers[0], value: 1), Self.reply(numbers[1], value: 5)])
        try expectEqual(store.state(of: Self.name("a")).document?.isPartial, false)
        let last = try store.enqueue(Self.request([("a", .delete)]), identity: Self.identity(3)).number
        _ = try store.settle([Self.reply(last, value: 6)])
        try expectEqual(store.state(of: Self.name("a")), .missing(microseconds: 16, isProvisional: true))
    }
}
