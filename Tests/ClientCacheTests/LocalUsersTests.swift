// The pending writes of several users of a program.

import Basics
import ClientCache
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct LocalUsersTests: LocalStoreFixture {
    let directory = TemporaryDirectory("local-users")

    private func number(_ store: LocalStore, _ id: String) throws -> Int64? {
        Self.number(try store.state(of: Self.name(id)))
    }

    private func write(_ store: LocalStore, _ id: String, _ edit: LocalEdit, _ sequence: UInt64) throws -> UInt64 {
        try store.enqueue(Self.request([(id, edit)]), identity: Self.identity(sequence)).number
    }

    @Test
    func `Each user sees the pending writes of this user, and the documents of all`() throws {
        let store = try Self.open()
        _ = try store.use(user: "ada")
        _ = try store.apply([Self.found("a", 1, at: 10)])
        _ = try write(store, "a", .add(5), 1)
        _ = try write(store, "b", .set(7), 2)
        let changes = try store.use(user: "bob")
        expectEqual(Set(changes.map(\.name)), [Self.name("a"), Self.name("b")])
        try expectEqual(number(store, "a"), 1)
        try expectNil(number(store, "b"))
        try expectEqual(store.state(of: Self.name("a")).document?.hasPendingWrites, false)
        expect(store.isQueueEmpty && store.allBatches.map(\.user) == ["ada", "ada"])
        _ = try write(store, "a", .set(100), 3)
        _ = try store.apply([Self.found("a", 2, at: 20)])
        try expectEqual(number(store, "a"), 100)
        _ = try store.use(user: "ada")
        try expectEqual(number(store, "a"), 6)
        try expectEqual(number(store, "b"), 7)
        try expect(store.staleOverlays().isEmpty)
        _ = try store.use(user: "")
        try expectEqual(number(store, "a"), 2)
        try expect(store.use(user: "").isEmpty)
    }

    @Test
    func `Users whose identifiers are the same text in other bytes are different users`() throws {
        let store = try Self.open(directory.path)
        _ = try store.use(user: "\u{e9}")
        _ = try write(store, "a", .set(1), 1)
        _ = try store.use(user: "e\u{301}")
        try expectNil(number(store, "a"))
        store.close()
        let again = try Self.open(directory.path)
        expect(again.isQueueEmpty && again.allBatches.count == 1)
        _ = try again.use(user: "\u{e9}")
        try expectEqual(number(again, "a"), 1)
        again.close()
    }

    @Test
    func `Writes from before the user is known are that user's`() throws {
        let store = try Self.open(directory.path)
        _ = try write(store, "a", .set(1), 1)
        expect(!store.isUserKnown)
        _ = try store.use(user: "ada")
        expect(store.isUserKnown)
        try expectEqual(number(store, "a"), 1)
        _ = try write(store, "a", .add(1), 2)
        _ = try store.use(user: "bob")
        try expectNil(number(store, "a"))
        store.close()
        let again = try Self.open(directory.path)
        expect(again.user == "bob" && again.isQueueEmpty)
        expectEqual(again.allBatches.map(\.user), ["ada", "ada"])
        // A write of a new process, whose user is another than that of the last one.
        let number = try write(again, "a", .add(10), 3)
        expectEqual(number, 3)
        try expectEqual(self.number(again, "a"), 10)
        _ = try again.use(user: "ada")
        try expectEqual(self.number(again, "a"), 12)
        expectEqual(again.queue.map(\.number), [1, 2, 3])
        expectEqual(again.allBatches.map(\.user), ["ada", "ada", "ada"])
        try expect(again.staleOverlays().isEmpty)
        again.close()
    }

    @Test
    func `An increment from before the user is known adds to the pending ones of that user`() throws {
        let store = try Self.open(directory.path)
        _ = try store.use(user: "ada")
        _ = try store.apply([Self.found("a", 1, at: 10)])
        _ = try write(store, "a", .add(1), 1)
        _ = try store.use(user: "bob")
        store.close()
        for _ in 0..<2 {
            let again = try Self.open(directory.path)
            if again.user == "bob" { _ = try write(again, "a", .add(10), 2) }
            _ = try again.use(user: "ada")
            try expectEqual(number(again, "a"), 12)
            again.close()
        }
    }

    @Test
    func `The first user who is known changes the documents of other writes only`() throws {
        let store = try Self.open(directory.path)
        _ = try store.use(user: "ada")
        _ = try write(store, "a", .set(1), 1)
        _ = try write(store, "b", .set(1), 2)
        store.close()
        let again = try Self.open(directory.path)
        _ = try write(again, "b", .add(1), 3)
        _ = try write(again, "c", .set(1), 4)
        let changes = try again.use(user: "bob")
        expectEqual(changes.map(\.name).sorted(), ["a", "b"].map(Self.name))
        try expectEqual(["a", "b", "c"].map { try number(again, $0) }, [nil, 1, 1])
        try expect(again.staleOverlays().isEmpty)
        again.close()
    }

    @Test(arguments: ["ada", "bob"])
    func `Writes of processes that end before their user is known are those of the first user who is known`(
        user: String
    ) throws {
        let earlier = try Self.open(directory.path)
        _ = try earlier.use(user: "ada")
        earlier.close()
        for (sequence, id) in [(1 as UInt64, "a"), (2, "b")] {
            let store = try Self.open(directory.path)
            _ = try write(store, id, .set(5), sequence)
            try expect(number(store, "a") == 5 && !store.isUserKnown)
            store.close()
        }
        var store = try Self.open(directory.path)
        try expect(number(store, "a") == 5 && number(store, "b") == 5)
        _ = try store.use(user: user)
        try expect(number(store, "a") == 5 && number(store, "b") == 5)
        expectEqual(store.queue.map(\.user), [user, user])
        store.close()
        // From then on nobody else gets them.
        store = try Self.open(directory.path)
        _ = try store.use(user: "eve")
        try expect(number(store, "a") == nil && number(store, "b") == nil)
        expect(store.isQueueEmpty && store.allBatches.map(\.user) == [user, user])
        store.close()
    }

    @Test
    func `A change of the user may be larger than a commit of the engine`() throws {
        let store = try Self.open()
        _ = try store.use(user: "ada")
        let text = Value.string(String(repeating: "x", count: 1_000_000))
        guard case .found(let fields, _, _) = Self.found("", ["text": text], at: 1).content else { return }
        // A log record has 128 MiB at most.
        for id in 0..<140 {
            var writes = CommitWrites(database: Self.database)
            writes.set(Self.name("d\(id)"), fields: fields)
            _ = try store.enqueue(writes.request(), identity: Self.identity(UInt64(id)))
        }
        try expectEqual(store.use(user: "bob").count, 140)
        try expectEqual(store.state(of: Self.name("d0")), .unknown)
        try expectEqual(store.use(user: "ada").count, 140)
        try expectEqual(store.state(of: Self.name("d139")).document?.hasPendingWrites, true)
    }

    @Test
    func `A user claims no write that gets the number of an earlier one, of another process`() throws {
        for (sequence, user) in [(1 as UInt64, "ada"), (2, "bob")] {
            let earlier = try Self.open(directory.path)
            let number = try write(earlier, "a", .set(1), sequence)
            earlier.close()
            let store = try Self.open(directory.path)
            try expectEqual(self.number(store, "a"), 1)
            _ = try store.use(user: user)
            expectEqual(store.queue.map(\.user), [user])
            _ = try store.reject(number)
            store.close()
        }
    }

    @Test
    func `A reply to a write of another user removes it, and changes nothing that is seen`() throws {
        let store = try Self.open(directory.path)
        _ = try store.use(user: "ada")
        let first = try write(store, "a", .set(1), 1)
        _ = try write(store, "a", .set(2), 2)
        _ = try store.use(user: "bob")
        _ = try write(store, "a", .set(3), 3)
        let result = [WriteResult(updateMicroseconds: 20)]
        let settled = try store.settle([
            BatchReply(first, .acknowledged(results: result, commitMicroseconds: 20))
        ])
        expect(settled.changes.isEmpty)
        try expectEqual(number(store, "a"), 3)
        expectEqual(store.allBatches.map(\.number), [2, 3])
        store.close()
        let again = try Self.open(directory.path)
        expectEqual(again.allBatches.map(\.number), [2, 3])
        _ = try again.use(user: "ada")
        try expectEqual(number(again, "a"), 2)
        again.close()
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `After any switches each document has the server's state with the user's writes`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var configuration = LocalStore.Configuration(database: Self.database)
        if seed == 1 { configuration.directory = directory.path }
        // One document for each commit of a change.
        if seed == 2 { configuration.commitBytesMax = 1 }
        let store = try LocalStore(configuration) { _ in }
        var sequence: UInt64 = 0
        for round in 0..<400 {
            let id = ["a", "b", "c"][Int(random.next() % 3)]
            switch random.next() % 6 {
            case 0: _ = try store.use(user: ["", "ada", "bob"][Int(random.next() % 3)])
            case 1: _ = try store.apply([Self.found(id, Int64(round), at: UInt64(round + 1) * 10)])
            case 2:
                guard let oldest = store.allBatches.first?.number else { continue }
                _ = try store.settle([BatchReply(oldest, .rejected)])
            case 3:
                sequence += 1
                _ = try write(store, id, .delete, sequence)
            default:
                sequence += 1
                _ = try write(store, id, random.next() % 2 == 0 ? .set(Int64(round)) : .add(3), sequence)
            }
            try expect(store.staleOverlays().isEmpty, "seed \(seed), round \(round)")
            expect(store.queue.allSatisfy { $0.user == store.user } || !store.isUserKnown)
        }
        store.close()
    }
}
