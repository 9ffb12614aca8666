// Rules that read what is not in memory: commits and listeners wait beside their loop, which serves others.

import AuthorizationTestSupport
import Basics
import DocumentModel
import EngineTestSupport
import FirestoreMessages
import FirestoreService
import MemoryEngine
import ServiceTestSupport
import Storage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ColdRulesTests {
    private static let rules = """
        function ok() { return get(/databases/$(database)/documents/members/$(request.auth.uid)).data.ok; }
        match /notes/{id} { allow read, write: if ok(); }
        match /open/{id} { allow read, write; }
        """

    private let coldKeys = HeldColdKeys(containing: "members")

    private func store() throws -> GuardedStore {
        let store = try GuardedStore(Self.rules) { configuration in
            configuration.volume = MemoryVolume(replaysRecords: true)
            configuration.engine.coldKeys = coldKeys
        }
        try store.set("members/alice", ["ok": .boolean(true)])
        try store.set("members/bob", ["ok": .boolean(false)])
        try store.set("notes/a", ["n": .integer(1)])
        return store
    }

    /// Does what other threads have handed over to the loop.
    private func runLoop(_ store: GuardedStore) {
        let hasRun = Monitor(false)
        store.harness.loop.loop.execute { hasRun.update { $0 = true } }
        expect(store.harness.loop.run { hasRun.withLock { $0 } })
    }

    private func commit(_ store: GuardedStore, _ path: String, as uid: String = "alice") throws -> TestCall {
        let connection = TestCall(
            loop: store.harness.loop, method: .commit, authorization: TestAuthorization.user(uid))
        try commit(store, path, 1, over: connection)
        return connection
    }

    private func commit(_ store: GuardedStore, _ path: String, _ n: Int64, over connection: TestCall) throws {
        var writes = WriteList(database: try DatabaseName(Harness.database))
        try writes.set(path, Harness.fields(["n": .integer(n)]))
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request(transaction: []))
        store.harness.service.begin(connection, writer.copyBytes())
    }

    @Test
    func `A commit waits beside its loop for what its rules read`() throws {
        let store = try store()
        coldKeys.hold()
        let allowed = try commit(store, "notes/new")
        let denied = try commit(store, "notes/new", as: "bob")
        try coldKeys.waitUntilReached()
        try expectEqual(store.commit { try $0.set("open/a", Harness.fields(["n": .integer(1)])) }, .ok)
        expectEqual(store.get("open/a"), .ok)
        expect(allowed.answer.status == nil && denied.answer.status == nil)
        coldKeys.release()
        expect(store.harness.loop.run { allowed.answer.status != nil && denied.answer.status != nil })
        expect(allowed.answer.isOK, "\(allowed.answer.text)")
        expectEqual(denied.answer.status, .permissionDenied)
        try expectEqual(store.count("notes/new", "n"), 1)
    }

    @Test
    func `The commits of a connection keep their order while the rules of the first one wait`() throws {
        let store = try store()
        coldKeys.hold()
        let connection = try commit(store, "notes/a")
        try coldKeys.waitUntilReached()
        // The second waits for the first one, the third for its rules as well.
        try commit(store, "open/a", 2, over: connection)
        try commit(store, "notes/a", 3, over: connection)
        expectEqual(store.get("open/a"), .notFound)
        coldKeys.release()
        expect(store.harness.loop.run { connection.answer.status != nil })
        // A commit after them.
        try store.set("open/later", ["n": .integer(0)])
        try expectEqual(store.count("notes/a", "n"), 3)
        try expectEqual(store.count("open/a", "n"), 2)
    }

    @Test
    func `A commit whose rules read what cannot be read fails with the reason`() throws {
        let store = try store()
        coldKeys.hold()
        let commit = try commit(store, "notes/new")
        try coldKeys.waitUntilReached()
        coldKeys.release(.failure(StorageError(.corrupt, "a page is damaged")))
        expect(store.harness.loop.run { commit.answer.status != nil })
        expectEqual(commit.answer.status, .dataLoss)
    }

    @Test(arguments: [FirestoreMessages.Method.runQuery, .batchGetDocuments, .runAggregationQuery])
    func `A read that begins a transaction is made again in it`(method: FirestoreMessages.Method) throws {
        let store = try store()
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "notes")])
        let begins = ReadConsistency.newTransaction(.readWrite)
        let request =
            switch method {
            case .batchGetDocuments:
                BatchGetDocumentsRequest(
                    database: Harness.database, documents: [Harness.name("notes/a")], consistency: begins
                ).encodedBytes()
            case .runAggregationQuery:
                RunAggregationQueryRequest(
                    parent: Harness.root,
                    query: StructuredAggregationQuery(
                        query: query, aggregations: [Aggregation(.count(upTo: nil))]), consistency: begins
                ).encodedBytes()
            default: RunQueryRequest(parent: Harness.root, query: query, consistency: begins).encodedBytes()
            }
        coldKeys.hold()
        let calls = ["alice", "bob"].map { uid in
            TestCall(loop: store.harness.loop, method: method, authorization: TestAuthorization.user(uid))
        }
        for call in calls { store.harness.service.begin(call, request) }
        runLoop(store)
        try coldKeys.waitUntilReached()
        expectEqual(store.harness.store.statistics.transactionsOpen, 2)
        coldKeys.release()
        expect(store.harness.loop.run { calls.allSatisfy { $0.answer.status != nil } })
        expect(calls[0].answer.isOK, "\(calls[0].answer.text)")
        expectEqual(calls[1].answer.status, .permissionDenied)
        // That of the denied read has ended.
        expectEqual(store.harness.store.statistics.transactionsOpen, 1)
    }

    /// - Parameters:
    ///   - mode: of the transaction: a pessimistic one waits for its locks first.
    ///   - isCancelled: whether the call ends while it waits; else the page cannot be read.
    @Test(arguments: [TransactionOptions.ConcurrencyMode.optimistic, .pessimistic], [true, false])
    func `A read that ends while its rules wait ends the transaction that it has begun`(
        mode: TransactionOptions.ConcurrencyMode, isCancelled: Bool
    ) throws {
        let store = try store()
        let begins = ReadConsistency.newTransaction(.readWrite(retryTransaction: [], concurrency: mode))
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "notes")])
        let requests: [(FirestoreMessages.Method, [UInt8])] = [
            (.runQuery, RunQueryRequest(parent: Harness.root, query: query, consistency: begins).encodedBytes()),
            (
                .batchGetDocuments,
                BatchGetDocumentsRequest(
                    database: Harness.database, documents: [Harness.name("notes/a")], consistency: begins
                ).encodedBytes()
            ),
        ]
        for (method, request) in requests {
            coldKeys.hold()
            let call = TestCall(
                loop: store.harness.loop, method: method, authorization: TestAuthorization.user("alice"))
            store.harness.service.begin(call, request)
            try waitUntil("the rules wait") {
                runLoop(store)
                return coldKeys.isReached
            }
            expectEqual(store.harness.store.statistics.transactionsOpen, 1)
            if isCancelled {
                call.cancel()
                coldKeys.release()
            } else {
                coldKeys.release(.failure(StorageError(.corrupt, "a page is damaged")))
            }
            try waitUntil("the transaction of \(method) has ended") {
                runLoop(store)
                return store.harness.store.statistics.transactionsOpen == 0
            }
            expectEqual(call.answer.status, isCancelled ? .cancelled : .dataLoss)
        }
    }

    @Test
    func `A listener waits beside its loop for what its rules read`() throws {
        let store = try store()
        coldKeys.hold()
        let listeners = ["alice", "bob"].map { uid in
            let call = TestCall(loop: store.harness.loop, method: .listen, authorization: TestAuthorization.user(uid))
            let query = StructuredQuery(from: [CollectionSelector(collectionID: "notes")])
            let target = ListenTarget(.query(parent: Harness.root, query), id: 1)
            store.harness.service.begin(
                call, ListenRequest(database: Harness.database, .add(target)).encodedBytes())
            return call
        }
        try coldKeys.waitUntilReached()
        expectEqual(store.get("open/none"), .notFound)
        expect(listeners.allSatisfy { !kinds($0).contains(.current) && !kinds($0).contains(.remove) })
        coldKeys.release()
        expect(store.harness.loop.run { kinds(listeners[0]).contains(.current) })
        expect(store.harness.loop.run { kinds(listeners[1]).contains(.remove) })
        expect(!kinds(listeners[0]).contains(.remove) && !kinds(listeners[1]).contains(.current))
    }

    @Test
    func `A target whose rules read what cannot be read is judged again by reads that wait`() throws {
        let store = try store()
        coldKeys.hold()
        let call = TestCall(loop: store.harness.loop, method: .listen, authorization: TestAuthorization.user("alice"))
        let target = ListenTarget(.documents([Harness.name("notes/a")]), id: 1)
        store.harness.service.begin(call, ListenRequest(database: Harness.database, .add(target)).encodedBytes())
        try coldKeys.waitUntilReached()
        coldKeys.release(.failure(StorageError(.corrupt, "a page is damaged")))
        // The engine in memory can read it all the same.
        expect(store.harness.loop.run { kinds(call).contains(.current) })
    }

    private func kinds(_ listener: TestCall) -> [ListenResponse.TargetChange.Kind] {
        listener.answer.messages.compactMap { message in
            guard case .targetChange(let change)? = try? ListenResponse(wire: message.byteSpan) else { return nil }
            return change.kind
        }
    }
}
