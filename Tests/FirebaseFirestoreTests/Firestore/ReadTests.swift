// Reads, snapshots and what they decode to.

import ClientTestSupport
import DocumentModel
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct ReadTests {
    private struct Book: Codable, Equatable {
        @DocumentID var id: String?
        var title: String
        var pages: Int
    }

    private let scripted: ScriptedFirestore
    private var firestore: Firestore { scripted.firestore }
    private var books: CollectionReference { firestore.collection("books") }

    init() throws { scripted = try ScriptedFirestore() }

    @Test
    func `Values come back as the SDK's types`() async throws {
        let book = books.document("b1")
        try await book.setData([
            "i": 5, "d": 1.5, "b": true, "s": "x", "n": NSNull(), "t": Timestamp(seconds: 7, nanoseconds: 0),
            "a": [1, 2], "m": ["k": "v"], "r": books.document("b2"), "g": GeoPoint(latitude: 1, longitude: 2),
            "y": Data([1, 2]),
        ])
        let snapshot = try await book.getDocument()
        let data = try #require(snapshot.data())
        expect(snapshot.exists)
        expect(data["i"] as? Int64 == 5)
        expect(data["i"] is NSNumber)
        expect(data["d"] as? Double == 1.5)
        expect(data["b"] as? Bool == true)
        expect(data["n"] is NSNull)
        expect(data["t"] as? Timestamp == Timestamp(seconds: 7, nanoseconds: 0))
        expect(data["a"] as? [Int] == [1, 2])
        expect(snapshot.get("m.k") as? String == "v")
        expect(snapshot["s"] as? String == "x")
        expect(snapshot.get(FieldPath(["m", "k"])) as? String == "v")
        expectNil(snapshot.get("nothing"))
        expect(data["r"] as? DocumentReference == books.document("b2"))
        expect(data["g"] as? GeoPoint == GeoPoint(latitude: 1, longitude: 2))
        expect(data["y"] as? Data == Data([1, 2]))
        expect(!snapshot.metadata.isFromCache)
        try await firestore.terminate()
    }

    @Test
    func `Equal snapshots have equal hashes, whenever the document was written`() async throws {
        let book = books.document("b1")
        var snapshots: [DocumentSnapshot] = []
        for title in ["Ulysses", "Dubliners", "Ulysses"] {
            try await book.setData(["title": title])
            snapshots.append(try await book.getDocument())
        }
        expect(snapshots[0] == snapshots[2] && snapshots[0] != snapshots[1])
        expectEqual(snapshots[0].hash, snapshots[2].hash)
        expectEqual(Set(snapshots).count, 2)
        try await firestore.terminate()
    }

    @Test
    func `A missing document is a snapshot that does not exist, and decodes only as an optional`() async throws {
        let snapshot = try await books.document("none").getDocument()
        expect(!snapshot.exists)
        expectNil(snapshot.data())
        expectNil(snapshot.get("a"))
        try expectNil(snapshot.data(as: Book?.self))
        #expect(throws: DecodingError.self) { try snapshot.data(as: Book.self) }
        try await firestore.terminate()
    }

    @Test
    func `Codable values come back with their id, in every form of the call`() async throws {
        try await books.document("b1").setData(["title": "Ulysses", "pages": 730])
        let book = try await books.document("b1").getDocument(as: Book.self)
        expectEqual(book, Book(id: "b1", title: "Ulysses", pages: 730))
        let reference = books.document("b1")
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Book, any Error>, Never>) in
            reference.getDocument(as: Book.self) { continuation.resume(returning: $0) }
        }
        try expectEqual(result.get().id, "b1")
        await #expect(throws: DecodingError.self) {
            _ = try await self.books.document("none").getDocument(as: Book.self)
        }
        try await firestore.terminate()
    }

    @Test
    func `A query gives its documents in order, all of them added`() async throws {
        for id in ["b", "a", "c"] { try await books.document(id).setData(["title": id, "pages": 1]) }
        let found = try await books.getDocuments()
        expectEqual(found.documents.map(\.documentID), ["a", "b", "c"])
        expectEqual(found.count, 3)
        expect(!found.isEmpty)
        expectEqual(found.documentChanges.map(\.type), [.added, .added, .added])
        expectEqual(found.documentChanges.map(\.newIndex), [0, 1, 2])
        expectEqual(found.documentChanges[0].oldIndex, UInt(NSNotFound))
        let books = try found.documents.map { try $0.data(as: Book.self) }
        expectEqual(books.map(\.title), ["a", "b", "c"])
        let other = try await self.books.getDocuments()
        expectEqual(other, found)
        try await firestore.terminate()
    }

    @Test
    func `limit(toLast:) results come in the query's order`() async throws {
        for id in ["a", "b"] { try await books.document(id).setData(["title": id]) }
        // The scripted server answers in name order, as if that were the reversed order.
        let found = try await books.order(by: "title").limit(toLast: 2).getDocuments()
        expectEqual(found.documents.map(\.documentID), ["b", "a"])
        expectEqual(scripted.database.queries[0].orderBy.map(\.direction), [.descending, .descending])
        try await firestore.terminate()
    }

    @Test
    func `A cache that has nothing: documents are unavailable, queries empty`() async throws {
        do {
            _ = try await books.document("b1").getDocument(source: .cache)
            Issue.record("no error")
        } catch FirestoreErrorCode.unavailable {
        }
        let found = try await books.getDocuments(source: .cache)
        expect(found.isEmpty)
        expect(scripted.server.calls.isEmpty)
    }

    @Test
    func `A server that cannot be reached: an unknown document is .unavailable, a query has an empty result`()
        async throws
    {
        scripted.server.cut()
        do {
            _ = try await books.document("b1").getDocument()
            Issue.record("no error")
        } catch FirestoreErrorCode.unavailable {
        }
        let found = try await books.getDocuments()
        expect(found.isEmpty)
        expect(found.metadata.isFromCache)
        try await firestore.terminate()
    }

    @Test
    func `With the network disabled reads come from the cache, and from the server when it is enabled`() async throws {
        try await books.document("b1").setData(["title": "x"])
        try await firestore.disableNetwork()
        for source in [FirestoreSource.default, .cache] {
            let cached = try await books.document("b1").getDocument(source: source)
            expect(cached.get("title") as? String == "x")
            expect(cached.metadata.isFromCache)
        }
        do {
            _ = try await books.document("b1").getDocument(source: .server)
            Issue.record("no error")
        } catch FirestoreErrorCode.unavailable {
        }
        try await firestore.enableNetwork()
        let snapshot = try await books.document("b1").getDocument()
        expect(snapshot.exists)
        expect(!snapshot.metadata.isFromCache)
        try await firestore.terminate()
    }

    @Test
    func `A file of authorities that cannot be read makes calls fail instead of sending in the clear`() async throws {
        let settings = firestore.settings
        settings.certificateAuthorities = "/no/such/file.pem"
        firestore.settings = settings
        do {
            _ = try await books.document("b1").getDocument()
            Issue.record("no error")
        } catch FirestoreErrorCode.invalidArgument {
        }
        expect(scripted.server.calls.isEmpty)
    }

    @Test
    func `Totals do not wait for pending writes while the network is disabled`() async throws {
        try await firestore.disableNetwork()
        books.document("b1").setData(["title": "x"], completion: nil)
        expectEqual(firestore.pendingWrites.count, 1)
        let hasBegun = Mutex(false)
        firestore.afterPendingWrites(in: ReadScope(collection: "books"), nil) { hasBegun.withLock { $0 = true } }
        expect(hasBegun.withLock { $0 })
        do {
            _ = try await books.count.getAggregation(source: .server)
            Issue.record("no error")
        } catch FirestoreErrorCode.unavailable {
        }
        try await firestore.terminate()
    }

    @Test
    func `A terminated instance makes room for a new one`() async throws {
        let app = firestore.app
        try await books.document("b1").setData(["title": "x"])
        do {
            try await firestore.clearPersistence()
            Issue.record("no error")
        } catch FirestoreErrorCode.failedPrecondition {
        }
        try await firestore.terminate()
        try await firestore.clearPersistence()
        expect(Firestore.firestore(app: app) !== firestore)
    }

    @Test
    func `The answer that a document does not exist is asked for again with its time if the cache has the document`()
        async throws
    {
        let database = ScriptedDatabase()
        // A read whose answer is older than what the client has learnt meanwhile.
        let server = try FakeServer { call in
            call.method == .getDocument ? .fail(.notFound, "not yet") : database.react(to: call)
        }
        let firestore = TestFirestore.make(host: server.address)
        let (kept, gone) = (firestore.document("books/b1"), firestore.document("books/b2"))
        for reference in [kept, gone] { try await reference.setData(["title": "x"]) }
        try await expectEqual(firestore.collection("books").getDocuments().count, 2)
        try await expect(kept.getDocument().exists)
        try await expect(kept.getDocument(source: .cache).exists)
        database.remove(gone.name)
        try await expect(!gone.getDocument().exists)
        try await expect(!gone.getDocument(source: .cache).exists)
        // Nothing is cached of it any more.
        try await expect(!gone.getDocument().exists)
        expectEqual(server.calls.count { $0.method == .batchGetDocuments }, 2)
        try await firestore.terminate()
    }

    @Test
    func `Reads that a connected server does not answer in time come from the cache, unless the server was asked for`()
        async throws
    {
        let database = ScriptedDatabase()
        let isSilent = Mutex(false)
        let server = try FakeServer { call in
            let isRead = call.method == .getDocument || call.method == .runQuery
            return isRead && isSilent.withLock { $0 }
                ? .fail(.deadlineExceeded, "too late") : database.react(to: call)
        }
        let firestore = TestFirestore.make(host: server.address)
        let (document, all) = (firestore.document("books/b1"), firestore.collection("books"))
        try await document.setData(["title": "x"])
        // The cache in memory keeps what a listener has.
        let listener = document.addSnapshotListener { _, _ in }
        try await expect(document.getDocument().exists)
        isSilent.withLock { $0 = true }
        let found = try await document.getDocument()
        expect(found.exists && found.metadata.isFromCache)
        try await expect(all.getDocuments().metadata.isFromCache)
        let missing = await #expect(throws: NSError.self) {
            _ = try await firestore.document("books/other").getDocument()
        }
        expectEqual(missing?.code, FirestoreErrorCode.Code.unavailable.rawValue)
        let late = await #expect(throws: NSError.self) { _ = try await document.getDocument(source: .server) }
        expectEqual(late?.code, FirestoreErrorCode.Code.deadlineExceeded.rawValue)
        listener.remove()
        try await firestore.terminate()
    }

    @Test
    func `After a call of terminate there is another instance at once, and clearPersistence waits for the end`()
        async throws
    {
        let app = firestore.app
        let directory = TemporaryDirectory("terminated")
        let settings = firestore.settings
        settings.cacheSettings = PersistentCacheSettings()
        settings.cacheDirectory = directory.path(of: "cache")
        firestore.settings = settings
        try await books.document("b1").setData(["title": "x"])
        firestore.terminate(completion: nil)
        expect(Firestore.firestore(app: app) !== firestore)
        let error = await withCheckedContinuation { (continuation: CheckedContinuation<NSError?, Never>) in
            firestore.clearPersistence { continuation.resume(returning: $0 as NSError?) }
        }
        expectNil(error)
        expect(!FileManager.default.fileExists(atPath: directory.path(of: "cache")))
        // The end is one, however often it is asked for.
        firestore.terminate(completion: nil)
        try await firestore.terminate()
        try await firestore.clearPersistence()
    }
}
