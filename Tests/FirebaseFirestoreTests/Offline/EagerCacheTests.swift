// A cache that keeps only what listeners cover: what it looks at, and what it keeps while reads are on their way.

import ClientTestSupport
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ClientCache
@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct EagerCacheTests {
    private static func makeEager(_ firestore: Firestore) {
        let settings = firestore.settings
        settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting())
        firestore.settings = settings
    }

    /// How many documents the cache of an engine will look at.
    private static func candidateCount(_ engine: SyncEngine) -> Int {
        let count = Atomic(0)
        engine.queue.sync { count.store(engine.store.eagerCandidateCount, ordering: .relaxed) }
        return count.load(ordering: .relaxed)
    }

    @Test
    func `Documents that a listener covers are looked at once, not with each change`() async throws {
        let database = try TestBackend.memory.start()
        let firestore = TestFirestore.make(host: database.host)
        let collection = firestore.collection("c")
        let batch = firestore.batch()
        for number in 0..<200 { batch.setData(["n": number], forDocument: collection.document("d\(number)")) }
        try await batch.commit()
        let count = Atomic(0)
        let registration = collection.addSnapshotListener { snapshot, _ in
            count.store(snapshot?.count ?? 0, ordering: .relaxed)
        }
        try await eventually("the snapshot") { count.load(ordering: .relaxed) == 200 }
        try await collection.document("new").setData(["n": -1])
        let engine = try firestore.engine()
        try await eventually("nothing is left to look at") { Self.candidateCount(engine) == 0 }
        try await expectEqual(collection.getDocuments(source: .cache).count, 201)
        registration.remove()
        try await expect(collection.getDocuments(source: .cache).isEmpty)
        try await firestore.terminate()
        expect(database.stop())
    }

    @Test
    func `Reads that follow each other without a pause do not make the cache grow`() async throws {
        let database = ScriptedDatabase()
        let server = try FakeServer { call in
            String(decoding: call.payload, as: UTF8.self).contains("slow") ? .hold : database.react(to: call)
        }
        let firestore = TestFirestore.make(host: server.address)
        Self.makeEager(firestore)
        let collection = firestore.collection("c")
        for number in 0..<1000 { database.put(collection.document("d\(number)").name, []) }
        func beginSlowRead(_ id: String) async throws -> Task<DocumentSnapshot, any Error> {
            let before = server.calls.count
            let read = Task { try await firestore.document("slow/\(id)").getDocument() }
            await server.waitForCalls(before + 1)
            return read
        }
        let first = try await beginSlowRead("1")
        for number in 0..<600 { try await collection.document("d\(number)").getDocument() }
        let second = try await beginSlowRead("2")
        first.cancel()
        _ = await first.result
        // The second one is on its way all the time.
        for number in 600..<1000 { try await collection.document("d\(number)").getDocument() }
        let cached = try await collection.getDocuments(source: .cache).count
        expect(cached <= 400, "what was read before the second slow read is gone")
        second.cancel()
        _ = await second.result
        try await expect(collection.getDocuments(source: .cache).isEmpty)
        try await firestore.terminate()
    }

    @Test
    func `A deleted document does not come back when the server sends what was before`() async throws {
        let database = ScriptedDatabase()
        let isDeleted = Atomic(false)
        let late = Atomic(0)
        let server = try FakeServer { call in
            guard call.method == .listen else { return database.react(to: call) }
            guard isDeleted.load(ordering: .relaxed) else {
                return .stream(ListenScript.listing(at: 1_000_500_000))
            }
            // The document was written at 1,001 s and deleted at 1,002 s.
            late.add(1, ordering: .relaxed)
            return .stream(ListenScript.listing(updatedAt: 1_001_000_000, at: 1_001_500_000))
        }
        let firestore = TestFirestore.make(host: server.address, project: "p")
        Self.makeEager(firestore)
        let reference = firestore.document("c/a")
        let shown = Mutex<[[String]]>([])
        firestore.collection("c").addSnapshotListener { snapshot, _ in
            shown.withLock { $0.append(snapshot?.documents.map(\.documentID) ?? []) }
        }
        try await eventually("the result of the server") { shown.withLock { $0 } == [[]] }
        try await reference.setData([:])
        try await reference.delete()
        isDeleted.store(true, ordering: .relaxed)
        try await eventually("what was before") { late.load(ordering: .relaxed) >= 3 }
        try await firestore.terminate()
        expectEqual(shown.withLock { $0 }, [[], ["a"], []])
    }
}
