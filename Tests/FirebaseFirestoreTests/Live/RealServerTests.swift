// The SDK and the lower-level client against a server process, and against stores in this process.

import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct RealServerTests {
    private let directory = TemporaryDirectory("client-live")

    /// - Parameter port: that of a server which has ended; nil for a new one.
    private func start(port: Int? = nil) throws -> ServerProcess { try ServerProcess(data: directory.path, port: port) }

    @Test(arguments: TestBackend.allCases)
    func `Documents are written, merged, updated and deleted as the rules say`(backend: TestBackend) async throws {
        let database = try backend.start()
        let firestore = TestFirestore.make(host: database.host, project: "live")
        let document = firestore.document("books/b1")
        try await document.setData(["title": "A", "nested": ["a": 1, "b": 2], "tags": ["x"]])
        try await document.setData(["nested": ["b": 3, "c": 4]], merge: true)
        try await document.updateData([
            "tags": FieldValue.arrayUnion(["y", "x"]), "nested.a": FieldValue.delete(),
            "n": FieldValue.increment(Int64(5)),
            "at": FieldValue.serverTimestamp(),
        ])
        let data = try #require(try await document.getDocument().data())
        expect(data["title"] as? String == "A")
        expect(data["nested"] as? [String: Int] == ["b": 3, "c": 4])
        expect(data["tags"] as? [String] == ["x", "y"])
        expect(data["n"] as? Int == 5)
        expect(data["at"] is Timestamp)
        do {
            try await firestore.document("books/none").updateData(["a": 1])
            Issue.record("no error")
        } catch FirestoreErrorCode.notFound {
        }
        try await document.delete()
        try await expect(!document.getDocument().exists)
        try await firestore.terminate()
        expect(database.stop())
    }

    @Test(arguments: TestBackend.allCases)
    func `Queries filter, order, page and find groups`(backend: TestBackend) async throws {
        let database = try backend.start()
        let firestore = TestFirestore.make(host: database.host, project: "live")
        let batch = firestore.batch()
        for number in 0..<20 {
            batch.setData(
                ["n": number, "even": number % 2 == 0, "tags": ["t\(number % 3)"]],
                forDocument: firestore.document("shelves/s\(number % 2)/books/b\(number)"))
        }
        try await batch.commit()
        func numbers(_ query: Query) async throws -> [Int] {
            try await query.getDocuments().documents.compactMap { $0.get("n") as? Int }
        }
        let shelf = firestore.collection("shelves/s0/books")
        let group = firestore.collectionGroup("books")
        try await expectEqual(numbers(shelf.whereField("n", isGreaterThan: 13).order(by: "n")), [14, 16, 18])
        try await expectEqual(
            numbers(group.whereField("tags", arrayContains: "t1").order(by: "n").limit(to: 3)), [1, 4, 7])
        try await expectEqual(numbers(group.order(by: "n", descending: true).limit(to: 2)), [19, 18])
        try await expectEqual(numbers(group.order(by: "n").limit(toLast: 2)), [18, 19])
        try await expectEqual(numbers(group.whereField("n", in: [3, 5, 50]).order(by: "n")), [3, 5])
        let tags: [Any] = [["t1"], ["t0", "t2"]]
        try await expectEqual(numbers(group.whereField("tags", in: tags).order(by: "n")), [1, 4, 7, 10, 13, 16, 19])
        let others = group.whereField("tags", notIn: [["t1"], ["t2"]])
        try await expectEqual(numbers(others.order(by: "n").limit(to: 2)), [0, 3])
        let page = try await group.order(by: "n").limit(to: 5).getDocuments()
        let last = try #require(page.documents.last)
        try await expectEqual(numbers(group.order(by: "n").start(afterDocument: last).limit(to: 2)), [5, 6])
        try await expectEqual(numbers(group.order(by: "n").start(at: [3]).end(before: [6])), [3, 4, 5])
        let either = Filter.orFilter([.whereField("n", isEqualTo: 1), .whereField("n", isGreaterOrEqualTo: 19)])
        try await expectEqual(numbers(group.whereFilter(either)).sorted(), [1, 19])
        try await expectEqual(numbers(shelf.whereField(.documentID(), isEqualTo: "b4")), [4])
        let totals = try await group.aggregate([.count(), .sum("n"), .average("n")]).getAggregation(source: .server)
        expectEqual(totals.count, 20)
        expect(totals.get(.sum("n")) as? Int == 190)
        expect(totals.get(.average("n")) as? Double == 9.5)
        try await firestore.terminate()
        expect(database.stop())
    }

    @Test
    func `A listener that has other documents than it should lists them again`() async throws {
        let server = try start()
        let database = try DatabaseName(project: "live")
        let client = try HearthClient(.init(address: "127.0.0.1:\(server.port)"))
        var writes = CommitWrites(database: database)
        for id in ["a", "b"] { writes.set("\(database.documentsRoot)/c/\(id)", fields: []) }
        _ = try await client.commit(writes)
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let events = Mutex<[WatchEvent]>([])
        var last: WatchedSnapshot? {
            events.withLock { if case .snapshot(let snapshot)? = $0.last { snapshot } else { nil } }
        }
        let stream = client.makeWatchStream(in: database) { output in
            if case .step(let step) = output { events.withLock { $0 += step.events.map(\.event) } }
        }
        stream.add(1, .query(parent: database.documentsRoot, query))
        try await eventually("the first snapshot") { last != nil }
        let token = try #require(last?.token)
        client.close(stream)
        // As a cache would that has lost one document, and has one that was never there.
        let known = ["a", "x", "y"].map { id in
            (UTF8Text("\(database.documentsRoot)/c/\(id)"), TimestampValue(microseconds: 1))
        }
        events.withLock { $0 = [] }
        let again = client.makeWatchStream(in: database) { output in
            if case .step(let step) = output { events.withLock { $0 += step.events.map(\.event) } }
        }
        again.add(
            1, .query(parent: database.documentsRoot, query),
            resume: .init(place: .token(token), documents: Dictionary(uniqueKeysWithValues: known)))
        try await eventually("a snapshot, or the end") {
            events.withLock { events in
                events.contains { if case .mismatch = $0 { false } else { true } }
            }
        }
        let changes = try #require(last?.changes)
        expectEqual(
            Set(changes.keys), Set(["a", "b", "x", "y"].map { "\(database.documentsRoot)/c/\($0)" }))
        client.close(again)
        await client.close()
        expectEqual(server.stop(), 0)
    }

    @Test(arguments: TestBackend.allCases)
    func `A batch that fails writes nothing`(backend: TestBackend) async throws {
        let database = try backend.start()
        let firestore = TestFirestore.make(host: database.host, project: "live")
        let batch = firestore.batch().setData(["a": 1], forDocument: firestore.document("c/new"))
            .updateData(["a": 1], forDocument: firestore.document("c/missing"))
        do {
            try await batch.commit()
            Issue.record("no error")
        } catch FirestoreErrorCode.notFound {
        }
        try await expect(!firestore.document("c/new").getDocument().exists)
        try await firestore.terminate()
        expect(database.stop())
    }

    @Test
    func `disableNetwork as the first call is before the writes that an earlier instance has left in the cache`()
        async throws
    {
        let caches = TemporaryDirectory("disabled-first")
        let server = try start()
        let host = "\(server.host):\(server.port)"
        func make() -> Firestore { TestFirestore.make(host: host, project: "p", cache: caches.path(of: "cache")) }
        let observer = TestFirestore.make(host: host, project: "p")
        for usesCompletion in [false, true] {
            let name = "c\(usesCompletion)/d"
            var firestore = make()
            try await firestore.disableNetwork()
            firestore.document(name).setData(["n": 1], completion: nil)
            try await firestore.terminate()

            firestore = make()
            if usesCompletion {
                firestore.disableNetwork(completion: nil)
                // What opens the cache and begins to send.
                firestore.document(name).updateData(["n": 2], completion: nil)
            } else {
                try await firestore.disableNetwork()
            }
            try await expect(firestore.document(name).getDocument(source: .cache).exists)
            try await expect(!observer.document(name).getDocument(source: .server).exists)
            try await firestore.enableNetwork()
            try await firestore.waitForPendingWrites()
            try await expect(observer.document(name).getDocument(source: .server).exists)
            try await firestore.terminate()
        }
        try await observer.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test(arguments: TestBackend.allCases)
    func `Listing, paging and streams give every document once`(backend: TestBackend) async throws {
        let live = try backend.start()
        let settings = FirestoreSettings()
        settings.host = live.host
        let client = try HearthClient(HearthClient.Configuration(settings))
        let database = try DatabaseName(project: "live")
        let root = database.documentsRoot
        for start in stride(from: 0, to: 2000, by: 500) {
            var writes = CommitWrites(database: database)
            for number in start..<start + 500 {
                writes.set(
                    "\(root)/many/d\(String(format: "%05d", number))",
                    fields: [0x12, 7, 0x0a, 1, 0x61, 0x12, 2, 0x10, 5])
            }
            let response = try await client.commit(writes)
            expectEqual(response.writeResults.count, 500)
        }
        var streamed: [String] = []
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "many")])
        for try await document in client.queryStream(RunQueryRequest(parent: root, query: query)) {
            streamed.append(document.name)
        }
        expectEqual(streamed.count, 2000)
        expectEqual(streamed, streamed.sorted())
        var listed: [String] = []
        var token = ""
        repeat {
            let page = try await client.listDocuments(
                ListDocumentsRequest(parent: root, collectionID: "many", pageSize: 300, pageToken: token))
            listed += page.documents.map(\.name)
            token = page.nextPageToken
        } while !token.isEmpty
        expectEqual(listed, streamed)
        let ids = try await client.listCollectionIds(ListCollectionIdsRequest(parent: root))
        expectEqual(ids.collectionIDs, ["many"])
        let reply = try await client.batchGet(
            BatchGetDocumentsRequest(database: database.description, documents: [streamed[7], "\(root)/many/none"]))
        expectEqual(reply.results.count, 2)
        expect(reply.results.first { $0.name == streamed[7] }?.content != nil)
        await client.close()
        expect(live.stop())
    }

    @Test(arguments: TestBackend.allCases)
    func `A write does not overtake one that waits at the server for a transaction`(backend: TestBackend) async throws {
        let live = try backend.start()
        let firestore = TestFirestore.make(host: live.host, project: "live")
        let settings = FirestoreSettings()
        settings.host = live.host
        let client = try HearthClient(HearthClient.Configuration(settings))
        let database = try DatabaseName(project: "live")
        try await firestore.document("c/locked").setData(["n": 0])
        let transaction = try await client.beginTransaction(
            database: database, options: .readWrite(retryTransaction: [], concurrency: .pessimistic))
        _ = try await client.batchGet(
            BatchGetDocumentsRequest(
                database: database.description, documents: ["\(database.documentsRoot)/c/locked"],
                consistency: .transaction(transaction)))
        let batch = firestore.batch()
        batch.setData(["n": 1], forDocument: firestore.document("c/locked"))
        batch.setData(["n": 1], forDocument: firestore.document("c/both"))
        batch.commit(completion: nil)
        firestore.document("c/both").setData(["n": 2], completion: nil)
        // What comes after these on the connection, and after that to the commit thread, comes when both are there.
        _ = try await firestore.document("c/other").getDocument(source: .server)
        var other = CommitWrites(database: database)
        other.delete("\(database.documentsRoot)/c/other")
        try await client.commit(other)
        try await client.rollback(database: database, transaction: transaction)
        try await firestore.waitForPendingWrites()
        try await expect(firestore.document("c/locked").getDocument(source: .server).get("n") as? Int == 1)
        try await expect(firestore.document("c/both").getDocument(source: .server).get("n") as? Int == 2)
        await client.close()
        try await firestore.terminate()
        expect(live.stop())
    }

    @Test
    func `Increments survive kill -9 and restarts: each acknowledged or retried commit counts once`() async throws {
        var server = try start()
        let port = server.port
        let database = try DatabaseName(project: "live")
        let name = "\(database.documentsRoot)/counters/c"
        let client = try HearthClient(.init(address: "127.0.0.1:\(port)"))
        let tasks = 8
        let rounds = 3
        for _ in 0..<rounds {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<tasks {
                    group.addTask {
                        for _ in 0..<25 {
                            var writes = CommitWrites(database: database)
                            var increment = ByteBuffer()
                            increment.withLengthPrefix(field: 3) { $0.appendField(2, int64: 1) }
                            writes.set(
                                name, fields: [], mask: [],
                                transforms: [EncodedTransform(path: "n", operation: increment.copyBytes())])
                            try await client.commit(writes)
                        }
                    }
                }
                // In the middle of the commits the server dies and comes back on the same port.
                server.kill()
                server = try start(port: port)
                try await group.waitForAll()
            }
        }
        let document = try #require(try await client.getDocument(name))
        let path = try DocumentModel.FieldPath(segments: ["n"])
        let value = try #require(VisibleDocument(document).encodedValue(at: path))
        try expectEqual(Value(wire: value.bytes.span.bytes), .integer(Int64(tasks * rounds * 25)))
        await client.close()
        expectEqual(server.stop(), 0)
    }
}
