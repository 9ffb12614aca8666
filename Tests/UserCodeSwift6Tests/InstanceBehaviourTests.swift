// Instances, callbacks, listeners and snapshots as programs use them.

import FirebaseCore
import FirebaseFirestore
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct InstanceBehaviourTests {
    private final class Events: Sendable {
        private let entries = Mutex<[String]>([])
        func append(_ entry: String) { entries.withLock { $0.append(entry) } }
        var all: [String] { entries.withLock { $0 } }
    }

    @Test
    func `Every callback runs on the queue of the settings`() async throws {
        let user = try UserDatabase(.memory)
        let (db, document) = (user.db, user.db.document("c/d"))
        let key = DispatchSpecificKey<Bool>()
        user.queue.setSpecific(key: key, value: true)
        let events = Events()
        @Sendable func note(_ name: String) {
            events.append(DispatchQueue.getSpecific(key: key) == true ? name : "\(name) on another queue")
        }
        document.setData(["a": 1]) { _ in note("set") }
        document.updateData(["a": 1]) { _ in note("update") }
        document.getDocument { _, _ in note("get") }
        document.getDocument(as: [String: Int].self) { _ in note("decode") }
        db.collection("c").getDocuments { _, _ in note("query") }
        db.collection("c").count.getAggregation(source: .server) { _, _ in note("count") }
        db.batch().deleteDocument(db.document("c/e")).commit { _ in note("batch") }
        db.runTransaction({ _, _ in nil }, completion: { _, _ in note("transaction") })
        db.waitForPendingWrites { _ in note("wait") }
        db.enableNetwork { _ in note("enable") }
        db.getQuery(named: "none") { _ in note("named query") }
        db.setIndexConfiguration("{}") { _ in note("indexes") }
        db.addSnapshotsInSyncListener { note("in sync") }
        document.addSnapshotListener { _, _ in note("document") }
        db.collection("c").addSnapshotListener { _, _ in note("results") }
        let names: Set = [
            "set", "update", "get", "decode", "query", "count", "batch", "transaction", "wait", "enable", "named query",
            "indexes", "in sync", "document", "results",
        ]
        try await eventually("every callback") { names.isSubset(of: events.all) }
        #expect(Set(events.all) == names)
        #expect(try await user.end())
    }

    @Test
    func `A listener that removes itself in its callback is not called again; remove() may be repeated`() async throws {
        let user = try UserDatabase(.memory)
        let document = user.db.document("c/d")
        let (once, always) = (Events(), Events())
        // Set before the queue of the callbacks begins.
        nonisolated(unsafe) var own: (any ListenerRegistration)?
        user.queue.suspend()
        let registration = document.addSnapshotListener { snapshot, _ in
            once.append("\(snapshot?.exists ?? false)")
            own?.remove()
        }
        own = registration
        user.queue.resume()
        document.addSnapshotListener { snapshot, _ in always.append("\(snapshot?.get("a") ?? "absent")") }
        try await eventually("the first calls") { !once.all.isEmpty && !always.all.isEmpty }
        for number in 1...3 { try await document.setData(["a": number]) }
        try await eventually("the last change") { always.all.last == "3" }
        #expect(once.all == ["false"])
        registration.remove()
        registration.remove()
        #expect(try await user.end())
    }

    @Test
    func `Waiting for writes ends at once without any; a write that cannot leave keeps its caller waiting`()
        async throws
    {
        let user = try UserDatabase(.memory)
        try await user.db.disableNetwork()
        try await user.db.disableNetwork()
        try await user.db.waitForPendingWrites()
        let events = Events()
        user.db.document("c/d").setData(["a": 1]) { _ in events.append("acknowledged") }
        user.db.waitForPendingWrites { _ in events.append("settled") }
        #expect(try await user.db.document("c/d").getDocument(source: .cache).get("a") as? Int == 1)
        #expect(try await user.db.document("c/d").getDocument().metadata.hasPendingWrites)
        #expect(events.all == [])
        try await user.db.enableNetwork()
        try await user.db.enableNetwork()
        try await eventually("both callbacks") { Set(events.all) == ["acknowledged", "settled"] }
        #expect(try await user.end())
    }

    @Test
    func `After the end an app has a new instance; ending twice is fine, and clearing works then only`() async throws {
        let user = try UserDatabase(.memory)
        let app = user.db.app
        #expect(Firestore.firestore(app: app) === user.db)
        #expect(Firestore.firestore(app: app, database: "other") !== user.db)
        try await user.db.document("c/d").setData(["a": 1])
        #expect(await firestoreCode { try await user.db.clearPersistence() } == .failedPrecondition)
        try await user.db.terminate()
        try await user.db.terminate()
        try await user.db.clearPersistence()
        let next = Firestore.firestore(app: app)
        #expect(next !== user.db)
        try await next.terminate()
        #expect(await app.delete())
        #expect(FirebaseApp.app(name: app.name) == nil)
        app.isDataCollectionDefaultEnabled = false
        #expect(!app.isDataCollectionDefaultEnabled)
    }

    @Test
    func `A cache in memory keeps documents unless it is an eager one`() async throws {
        let user = try UserDatabase(.server)
        let eager = MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting())
        for (cache, keeps) in [(MemoryCacheSettings(), true), (eager, false)] {
            let db = UserDatabase.firestore(user.database.host)
            let settings = db.settings
            settings.cacheSettings = cache
            db.settings = settings
            try await db.document("c/d").setData(["a": 1])
            try await db.waitForPendingWrites()
            let code = await firestoreCode { _ = try await db.document("c/d").getDocument(source: .cache) }
            #expect(code == (keeps ? nil : .unavailable))
            #expect(db.persistentCacheIndexManager == nil)
            try await db.terminate()
        }
        #expect(MemoryCacheSettings() != eager)
        #expect(try await user.end())
    }

    @Test
    func `The manager of a cache's indexes is one object for each instance`() async throws {
        let directory = TemporaryDirectory("managers")
        let instances = (1...2).map { number in
            let db = UserDatabase.firestore("127.0.0.1:1")
            let settings = db.settings
            settings.cacheSettings = PersistentCacheSettings()
            settings.cacheDirectory = "\(directory.path)/\(number)"
            db.settings = settings
            return db
        }
        let managers = instances.map { $0.persistentCacheIndexManager }
        #expect(managers[0] != nil && managers[0] === instances[0].persistentCacheIndexManager)
        #expect(managers[0] != managers[1])
        for db in instances { try await db.terminate() }
    }

    @Test
    func `Snapshots and what they are made of compare by value`() async throws {
        let user = try UserDatabase(.memory)
        let db = user.db
        try await db.document("c/d").setData(["a": 1])
        try await db.document("c/e").setData(["a": 1])
        func read(_ path: String) async throws -> DocumentSnapshot { try await db.document(path).getDocument() }
        let (first, second) = (try await read("c/d"), try await read("c/d"))
        #expect(first == second && first !== second && first.hash == second.hash)
        #expect(Set([first, second]).count == 1)
        #expect(try await first != read("c/e"))
        let query = db.collection("c").whereField("a", isEqualTo: 1)
        let (results, again) = (try await query.getDocuments(), try await query.getDocuments())
        #expect(results == again && results.hash == again.hash && results.documentChanges == again.documentChanges)
        #expect(results.query == query && results.metadata == again.metadata)
        let pending = Set(results.documents.map(\.reference))
        #expect(pending == [db.document("c/d"), db.document("c/e")])
        try await db.document("c/d").setData(["a": 1, "b": 2])
        #expect(try await first != read("c/d"))
        #expect(try await results != query.getDocuments())
        let counts = (try await query.count.getAggregation(source: .server), query.aggregate([.count()]))
        #expect(counts.0.query == counts.1 && counts.1 == query.count)
        #expect(SnapshotListenOptions() == SnapshotListenOptions().withSource(.default))
        #expect(SnapshotListenOptions().withIncludeMetadataChanges(true) != SnapshotListenOptions())
        #expect(try await user.end())
    }

    @Test
    func `A configuration of indexes in another format is .invalidArgument, in every form of the call`() async throws {
        let user = try UserDatabase(.memory)
        let db = user.db
        let valid = #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a", "order": "ASCENDING"}]}]}"#
        #expect(await firestoreCode { try await db.setIndexConfiguration(valid) } == nil)
        let stream = InputStream(data: Data(valid.utf8))
        #expect(await firestoreCode { try await db.setIndexConfiguration(stream) } == nil)
        #expect(await firestoreCode { try await db.setIndexConfiguration("{") } == .invalidArgument)
        let damaged = InputStream(data: Data("[]".utf8))
        #expect(await firestoreCode { try await db.setIndexConfiguration(damaged) } == .invalidArgument)
        let events = Events()
        db.setIndexConfiguration("no JSON") { events.append("\(($0 as NSError?)?.code ?? 0)") }
        db.setIndexConfiguration(valid) { events.append("\(($0 as NSError?)?.code ?? 0)") }
        try await eventually("the results, in order") { events.all == ["3", "0"] }
        #expect(try await user.end())
    }
}
