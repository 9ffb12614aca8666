// A client's store whose disk is full.

import Basics
import ClientCache
import DocumentModel
import FirestoreMessages
import Foundation
import QueryEngine
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct FullStoreTests: LocalStoreFixture {
    /// A store with a disk that can be full.
    private struct Disk {
        private final class Switch: Sendable {
            let isFull = Atomic(false)
            /// How often there is room although the disk is full.
            let left = Atomic(0)

            var hasRoom: Bool { !isFull.load(ordering: .relaxed) || left.subtract(1, ordering: .relaxed).oldValue > 0 }
        }

        private let disk = Switch()
        private let directory = TemporaryDirectory("full-store")
        let store: LocalStore

        init(commitBytesMax: Int? = nil, bytesMax: Int? = nil) throws {
            var configuration = LocalStore.Configuration(
                database: FullStoreTests.database, directory: directory.path(of: "cache"), bytesMax: bytesMax)
            if let commitBytesMax { configuration.commitBytesMax = commitBytesMax }
            configuration.fault = { [disk] operation in
                let needsRoom = [.allocateSegment, .allocateRun, .writeRun].contains(operation)
                return needsRoom && !disk.hasRoom ? ENOSPC : 0
            }
            store = try LocalStore(configuration) { _ in }
        }

        /// - Parameter count: how often there is room before the disk is full.
        func setFull(_ isFull: Bool, after count: Int = 0) {
            disk.left.store(count, ordering: .relaxed)
            disk.isFull.store(isFull, ordering: .relaxed)
        }

        /// Uses targets until there is no room for another one, after ``fill()``.
        func fillWithTargets() throws {
            let error = #expect(throws: RequestError.self) {
                for number in 0..<1_000_000 {
                    _ = try store.use(target: [UInt8(number & 255), UInt8(number >> 8 & 255)])
                }
            }
            expectEqual(error?.code, .resourceExhausted)
        }

        func reopened() throws -> LocalStore {
            store.close()
            return try FullStoreTests.open(directory.path(of: "cache"))
        }

        /// Writes documents until there is no room for another one.
        ///
        /// - Returns: the numbers of the batches, four at least.
        func fill() throws -> [UInt64] {
            var batches: [UInt64] = []
            let text = Value.string(String(repeating: "x", count: 100_000))
            guard case .found(let fields, _, _) = FullStoreTests.found("", ["text": text], at: 1).content else {
                return []
            }
            let error = #expect(throws: RequestError.self) {
                while true {
                    setFull(batches.count > 3)
                    var writes = CommitWrites(database: FullStoreTests.database)
                    writes.set(FullStoreTests.name("a\(batches.count)"), fields: fields)
                    let identity = FullStoreTests.identity(UInt64(batches.count))
                    batches.append(try store.enqueue(writes.request(), identity: identity).number)
                    try #require(batches.count < 100)
                }
            }
            expectEqual(error?.code, .resourceExhausted)
            return batches
        }
    }

    private func isPending(_ store: LocalStore) throws -> Bool? {
        try store.state(of: Self.name("a0")).document?.hasPendingWrites
    }

    @Test
    func `Replies that find no room on the disk change nothing, and are taken later`() async throws {
        let disk = try Disk()
        let store = disk.store
        _ = try store.use(user: "ada")
        let other = try store.enqueue(Self.request([("other", .set(1))]), identity: Self.identity(99)).number
        _ = try store.use(user: "bob")
        let batches = try disk.fill()
        let replies = ([other] + batches).map { number in
            let result = WriteResult(updateMicroseconds: number + 10)
            return BatchReply(number, .acknowledged(results: [result], commitMicroseconds: number + 10))
        }
        let refusal = #expect(throws: RequestError.self) { try store.settle(replies) }
        expectEqual(refusal?.code, .resourceExhausted)
        expect(store.allBatches.map(\.number) == [other] + batches && store.queue.map(\.number) == batches)
        try expect(store.staleOverlays().isEmpty && isPending(store) == true)
        disk.setFull(false)
        try await eventually("there is room again") { (try? store.settle(replies)) != nil }
        try expect(store.allBatches.isEmpty && isPending(store) == false)
        let again = try disk.reopened()
        try expect(again.allBatches.isEmpty && isPending(again) == false)
        again.close()
    }

    @Test(arguments: ["", String(repeating: "ada", count: 100)])
    func `A user whose writes find no room on the disk is not known, and becomes known later`(user: String) async throws
    {
        let disk = try Disk()
        let store = disk.store
        // Before the user is known.
        let batches = try disk.fill()
        // What a user claims is smaller than a document.
        try disk.fillWithTargets()
        let refusal = #expect(throws: RequestError.self) { try store.use(user: user) }
        expectEqual(refusal?.code, .resourceExhausted)
        expect(!store.isUserKnown && store.queue.map(\.number) == batches)
        try expect(store.staleOverlays().isEmpty && isPending(store) == true)
        disk.setFull(false)
        try await eventually("there is room again") { (try? store.use(user: user)) != nil }
        expect(store.isUserKnown && store.queue.map(\.user) == batches.map { _ in user })
        let again = try disk.reopened()
        _ = try again.use(user: "eve")
        try expect(again.isQueueEmpty && isPending(again) == nil)
        expectEqual(again.allBatches.map(\.user), batches.map { _ in user })
        again.close()
    }

    /// A store of 20 documents of the server that ada and bob have changed, in which a change of the user to ada has
    /// found room for some of them.
    private func interrupted(_ disk: Disk) throws -> [LocalChange] {
        let store = disk.store
        let text = String(repeating: "x", count: 100_000)
        for id in 0..<20 where id % 2 == 0 { _ = try store.apply([Self.found("d\(id)", 0, at: 10)]) }
        for user in ["ada", "bob"] {
            _ = try store.use(user: user)
            // Documents that one of them changes, or both.
            for id in 0..<20 where id % 3 != (user == "ada" ? 0 : 1) {
                let fields: [String: Value] = ["n": .integer(user == "ada" ? 1 : 2), "text": .string(text)]
                guard case .found(let encoded, _, _) = Self.found("", fields, at: 1).content else { continue }
                var writes = CommitWrites(database: Self.database)
                writes.set(Self.name("d\(id)"), fields: encoded)
                _ = try store.enqueue(writes.request(), identity: Self.identity(store.nextBatchNumber))
            }
        }
        disk.setFull(true, after: 1)
        var changes: [LocalChange] = []
        let error = #expect(throws: RequestError.self) { try store.use(user: "ada", changing: &changes) }
        expectEqual(error?.code, .resourceExhausted)
        expect(!changes.isEmpty && changes.count < 20)
        return changes
    }

    /// What documents show of the store of ``interrupted(_:)``.
    ///
    /// - Parameter user: 1 for ada, 2 for bob.
    private func expectWrites(of user: Int64, _ store: LocalStore) throws {
        try expectEqual(store.staleOverlays(), [])
        for id in 0..<20 {
            let state = try store.state(of: Self.name("d\(id)"))
            let isOwn = id % 3 != Int(user) - 1
            expectEqual(state.document?.hasPendingWrites ?? false, isOwn, "d\(id)")
            expectEqual(Self.number(state), isOwn ? user : id % 2 == 0 ? 0 : nil, "d\(id)")
        }
        let pending = (0..<20).filter { $0 % 3 != Int(user) - 1 }
        expect(store.queue.count == pending.count && store.allBatches.count == 26)
    }

    @Test(arguments: ["ada", "bob"])
    func `A change of the user that finds room for some documents comes to its end later`(user: String) async throws {
        let disk = try Disk(commitBytesMax: 200_000)
        let store = disk.store
        let changes = try interrupted(disk)
        for change in changes { try expectEqual(store.state(of: change.name), change.state) }
        // The server's state of documents, changed or not, is known all the same.
        #expect(throws: RequestError.self) {
            try store.enqueue(Self.request([("d0", .set(9))]), identity: Self.identity(99))
        }
        disk.setFull(false)
        try await eventually("there is room again") { (try? store.use(user: user)) != nil }
        try expectWrites(of: user == "ada" ? 1 : 2, store)
        let again = try disk.reopened()
        expectEqual(again.user, user)
        try expectWrites(of: user == "ada" ? 1 : 2, again)
        again.close()
    }

    @Test
    func `A crash in the middle of a change of the user loses no write, and the change comes to its end`() throws {
        let disk = try Disk(commitBytesMax: 200_000)
        _ = try interrupted(disk)
        let again = try disk.reopened()
        expectEqual(again.user, "ada")
        try expectWrites(of: 1, again)
        _ = try again.use(user: "bob")
        try expectWrites(of: 2, again)
        again.close()
    }

    @Test
    func `What the server sends and replies in the middle of a change of the user is kept`() async throws {
        let disk = try Disk(commitBytesMax: 200_000)
        let store = disk.store
        _ = try interrupted(disk)
        disk.setFull(false)
        try await eventually("there is room again") {
            (try? store.apply((0..<20).map { Self.found("d\($0)", 7, at: 20) })) != nil
        }
        var replies = store.allBatches.map { BatchReply($0.number, .rejected) }
        try await eventually("the replies are taken") {
            replies.removeFirst((try? store.settle(replies))?.replyCount ?? 0)
            return replies.isEmpty
        }
        expectEqual(store.allBatches.count, 0)
        try await eventually("there is room again") { (try? store.use(user: "ada")) != nil }
        let again = try disk.reopened()
        for id in 0..<20 {
            let state = try again.state(of: Self.name("d\(id)"))
            expect(Self.number(state) == 7 && state.document?.hasPendingWrites == false)
        }
        again.close()
    }

    /// A store in which something that changes 20 large documents has found room for some of them.
    ///
    /// - Parameter change: gets a store that has a batch for one of the documents, how often its disk shall have room,
    ///   and a batch for all of them. Returns whether there was room for some.
    private func interrupted(_ change: (Disk, _ room: Int, _ batch: [UInt8]) throws -> Bool) throws -> Disk {
        let text = Value.string(String(repeating: "x", count: 100_000))
        for room in 1..<100 {
            let disk = try Disk(commitBytesMax: 200_000)
            let store = disk.store
            _ = try store.apply((0..<20).map { Self.found("d\($0)", ["n": .integer(1), "text": text], at: 10) })
            _ = try store.enqueue(Self.request([("d3", .add(10))]), identity: Self.identity(1))
            if try change(disk, room, Self.request((0..<20).map { ("d\($0)", .add(100)) })) { return disk }
            store.close()
        }
        throw RequestError(.internal, "no room was enough for some documents")
    }

    /// Adds a batch to such a store.
    private func interruptedBatch() throws -> (Disk, [LocalChange]) {
        var changes: [LocalChange] = []
        let disk = try interrupted { disk, room, batch in
            disk.setFull(true, after: room)
            do throws(RequestError) {
                changes = try disk.store.enqueue(batch, identity: Self.identity(2)).changes
            } catch {
                expect(error.code == .resourceExhausted && disk.store.queue.count == 1 && !disk.store.isUnshown)
                return false
            }
            return true
        }
        expect(!changes.isEmpty && changes.count < 20 && disk.store.isUnshown)
        for change in changes { try expectEqual(disk.store.state(of: change.name), change.state) }
        #expect(throws: RequestError.self) {
            try disk.store.enqueue(Self.request([("d0", .set(9))]), identity: Self.identity(3))
        }
        return (disk, changes)
    }

    /// All documents show the batches of ``interruptedBatch()``.
    private func expectBatch(_ store: LocalStore) throws {
        try expect(store.staleOverlays() == [] && store.queue.count == 2 && !store.isUnshown)
        for id in 0..<20 {
            let state = try store.state(of: Self.name("d\(id)"))
            expect(Self.number(state) == (id == 3 ? 111 : 101) && state.document?.hasPendingWrites == true, "d\(id)")
        }
    }

    @Test
    func `A batch that finds room for some of its documents is kept, and changes the others later`() async throws {
        var (disk, changes) = try interruptedBatch()
        disk.setFull(false)
        try await eventually("there is room again") { (try? disk.store.showRest(changing: &changes)) != nil }
        expectEqual(Set(changes.map(\.name)).count, 20)
        try expectBatch(disk.store)
        let again = try disk.reopened()
        try expectBatch(again)
        again.close()
    }

    @Test
    func `A crash in the middle of a large batch loses nothing of it`() throws {
        let (disk, _) = try interruptedBatch()
        let again = try disk.reopened()
        try expectBatch(again)
        _ = try again.settle(again.queue.map { BatchReply($0.number, .rejected) })
        for id in 0..<20 { try expectEqual(Self.number(again.state(of: Self.name("d\(id)"))), 1) }
        again.close()
    }

    @Test(arguments: [false, true], [false, true])
    func `A reply to a large batch that finds room for some documents is taken later`(
        isRejected: Bool, crashes: Bool
    ) async throws {
        let disk = try interrupted { disk, room, batch in
            _ = try disk.store.enqueue(batch, identity: Self.identity(2))
            disk.setFull(true, after: room)
            #expect(throws: RequestError.self) { try disk.store.settle([reply(1), reply(2)]) }
            expectEqual(disk.store.queue.count, 2)
            return disk.store.isUnshown
        }
        func reply(_ number: UInt64) -> BatchReply {
            let results = [WriteResult](repeating: WriteResult(updateMicroseconds: 18 + number), count: 20)
            return BatchReply(
                number, isRejected ? .rejected : .acknowledged(results: results, commitMicroseconds: 18 + number))
        }
        disk.setFull(false)
        let store = crashes ? try disk.reopened() : disk.store
        if crashes { try expectBatch(store) }
        var replies = [reply(1), reply(2)]
        try await eventually("the replies are taken") {
            replies.removeFirst((try? store.settle(replies))?.replyCount ?? 0)
            return replies.isEmpty
        }
        try expect(store.staleOverlays() == [] && store.isQueueEmpty && !store.isUnshown)
        for id in 0..<20 {
            let state = try store.state(of: Self.name("d\(id)"))
            expectEqual(Self.number(state), isRejected ? 1 : id == 3 ? 111 : 101, "d\(id)")
            expectEqual(state.document?.hasPendingWrites, false)
        }
        store.close()
    }

    @Test
    func `A bundle that a full disk has interrupted is loaded as a whole later`() async throws {
        let text = Value.string(String(repeating: "x", count: 100_000))
        var bundle = LocalBundle(id: "b", createMicroseconds: 20)
        for id in 0..<40 {
            let update = Self.found("d\(id)", ["n": .integer(1), "text": text], at: 10)
            bundle.documents[UTF8Text(update.name)] = update.content
        }
        var disk = try Disk()
        var changes: [LocalChange] = []
        var room = 0
        try await eventually("a part of the bundle is loaded") {
            // A file that a new store makes at the same time may take the room. If it is a checkpoint, the store
            // refuses everything until there is room for all of it.
            disk.store.close()
            disk = try Disk(commitBytesMax: 200_000)
            room = room % 8 + 1
            disk.setFull(true, after: room)
            changes = []
            do throws(RequestError) {
                try disk.store.load(bundle, changing: &changes)
            } catch {
                expectEqual(error.code, .resourceExhausted)
            }
            return !changes.isEmpty && changes.count < 40
        }
        for change in changes { try expectEqual(disk.store.state(of: change.name), change.state) }
        let again = try disk.reopened()
        try expectNil(again.bundleCreateMicroseconds("b"))
        try expectEqual(again.load(bundle).count, 40 - changes.count)
        try expectEqual(again.bundleCreateMicroseconds("b"), 20)
        for id in 0..<40 { try expectEqual(Self.number(again.state(of: Self.name("d\(id)"))), 1) }
        again.close()
    }

    @Test
    func `A query has its results although there is no room for the index that it lacks`() throws {
        let disk = try Disk()
        let store = disk.store
        let documents = (0..<300).map { Self.found("d\($0)", Int64($0), at: 10) }
        _ = try store.apply(documents)
        store.createsIndexes = true
        _ = try disk.fill()
        // A record of a target is smaller than that of an index.
        try disk.fillWithTargets()
        let query = StructuredQuery(
            from: [CollectionSelector(collectionID: "c")],
            filter: .field(try FieldPath("n"), .equal, EncodedValue(.integer(7))))
        let plan = try QueryPlan(query, parent: Array(Self.database.documentsRoot.utf8).byteSpan)
        try expectEqual(Self.names(store, plan), [Self.name("d7")])
        expect(!store.hasIndexWork, "there is no room for it")
        disk.setFull(false)
    }

    @Test
    func `An index whose entries find no room is built later, and counts each document once`() async throws {
        let disk = try Disk()
        let store = disk.store
        _ = try store.apply((0..<300).map { Self.found("d\($0)", Int64($0), at: 10) })
        try store.setIndexes([
            LocalIndexDefinition(collectionID: "c", field: try FieldPath("n"), isOfElements: false)
        ])
        let pending = try disk.fill().count
        try disk.fillWithTargets()
        for _ in 0..<3 {
            let error = #expect(throws: RequestError.self) { try store.stepIndexes() }
            expectEqual(error?.code, .resourceExhausted)
        }
        disk.setFull(false)
        try await eventually("there is room again") { (try? store.stepIndexes()) != nil }
        expect(!store.hasIndexWork && store.completeIndexes == ["c (n)"])
        try expectEqual(store.expectedDocumentCount(), 300 + pending)
        try expectEqual(store.readEntryByteCount(), store.entryByteCount)
    }

    @Test
    func `Of many documents those before a commit that finds no room are stored, and the target is as before`()
        async throws
    {
        let disk = try Disk(commitBytesMax: 200_000)
        let store = disk.store
        let text = Value.string(String(repeating: "x", count: 100_000))
        let updates = (0..<100).map { Self.found("d\($0)", ["text": text], at: 10) }
        let target = try store.use(target: [1])
        var update = TargetUpdate(id: target.id, token: [7], snapshotMicroseconds: 10)
        update.added = updates.map(\.name)
        disk.setFull(true, after: 2)
        var changes: [LocalChange] = []
        let error = #expect(throws: RequestError.self) {
            try store.apply(updates, targets: [update], changing: &changes)
        }
        expectEqual(error?.code, .resourceExhausted)
        expect(!changes.isEmpty && changes.count < updates.count)
        for update in updates {
            let isStored = try store.state(of: update.name).document != nil
            expectEqual(changes.contains { $0.name == update.name }, isStored)
        }
        try expect(store.stored(target: [1])?.hasResult == false && store.documents(of: target.id).times.isEmpty)
        disk.setFull(false)
        try await eventually("there is room again") {
            (try? store.apply(updates, targets: [update], changing: &changes)) != nil
        }
        expectEqual(changes.map(\.name), updates.map(\.name), "each one once")
        try expect(store.stored(target: [1])?.hasResult == true && store.documents(of: target.id).times.count == 100)
    }

    @Test
    func `A target that finds no room when it is used again is collected later as one that is not in use`() async throws
    {
        let disk = try Disk(bytesMax: 1)
        let store = disk.store
        let canonical = Array("a query".utf8)
        let target = try store.use(target: canonical)
        var update = TargetUpdate(id: target.id, token: [7], snapshotMicroseconds: 10)
        update.added = [Self.name("d")]
        _ = try store.apply([Self.found("d", 1, at: 10)], targets: [update])
        try store.release(target: canonical)
        _ = try disk.fill()
        try disk.fillWithTargets()
        #expect(throws: RequestError.self) { try store.use(target: canonical) }
        disk.setFull(false)
        try await eventually("there is room again") { (try? store.collectGarbage()) != nil }
        try expectNil(store.stored(target: canonical))
        try expectEqual(store.state(of: Self.name("d")), .unknown)
    }
}
