// The cache, latency compensation and listeners of the SDK, against a real server process.

import ClientCache
import Foundation
import HearthClient
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct OfflineTests {
    private let directory = TemporaryDirectory("offline")

    private func server() throws -> ServerProcess { try ServerProcess(data: directory.path(of: "server")) }

    private func firestore(_ port: Int) -> Firestore {
        TestFirestore.make(host: "127.0.0.1:\(port)", project: "offline")
    }

    /// What a listener has been called with.
    private final class Events: Sendable {
        private let entries = Mutex<[String]>([])
        func append(_ entry: String) { entries.withLock { $0.append(entry) } }
        var all: [String] { entries.withLock { $0 } }
    }

    /// A snapshot as text: values of `n`, then the metadata that is true.
    private static func text(_ snapshot: QuerySnapshot) -> String {
        let values = snapshot.documents.map { "\($0.get("n") as? Int ?? -1)\($0.metadata.hasPendingWrites ? "*" : "")" }
        return values.joined(separator: ",") + (snapshot.metadata.isFromCache ? " cache" : "")
            + (snapshot.metadata.hasPendingWrites ? " pending" : "")
    }

    private static func text(_ snapshot: DocumentSnapshot) -> String {
        "\(snapshot.get("n") as? Int ?? -1)" + (snapshot.metadata.isFromCache ? " cache" : "")
            + (snapshot.metadata.hasPendingWrites ? " pending" : "")
    }

    @Test
    func `A write is seen at once, then acknowledged; the events have the SDK's metadata`() async throws {
        let server = try server()
        let firestore = firestore(server.port)
        let reference = firestore.document("c/d")
        let (plain, detailed) = (Events(), Events())
        reference.addSnapshotListener { snapshot, _ in plain.append(snapshot.map(Self.text) ?? "error") }
        reference.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            detailed.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("the first snapshots") { plain.all == ["-1"] && detailed.all == ["-1"] }
        try await reference.setData(["n": 1])
        try await eventually("the acknowledgement") { detailed.all.last == "1" }
        expectEqual(plain.all, ["-1", "1 pending"])
        expectEqual(detailed.all, ["-1", "1 pending", "1"])
        try await firestore.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Offline writes are seen by reads and listeners, and reach the server later`() async throws {
        let server = try server()
        let firestore = firestore(server.port)
        let collection = firestore.collection("c")
        try await collection.document("a").setData(["n": 1])
        let events = Events()
        collection.order(by: "n").addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            events.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("the first snapshot") { events.all.last == "1" }
        try await firestore.disableNetwork()
        try await eventually("offline") { events.all.last == "1 cache" }
        collection.document("b").setData(["n": 2], completion: nil)
        collection.document("a").updateData(["n": FieldValue.increment(Int64(5))], completion: nil)
        try await eventually("local changes") { events.all.last == "2*,6* cache pending" }
        let cached = try await collection.order(by: "n").getDocuments()
        expectEqual(Self.text(cached), "2*,6* cache pending")
        expectEqual(Self.text(try await collection.document("b").getDocument()), "2 cache pending")
        collection.document("a").delete(completion: nil)
        try await eventually("the local deletion") { events.all.last == "2* cache pending" }
        try await expect(!collection.document("a").getDocument(source: .cache).exists)
        await #expect("as in the SDK: without the server nobody knows whether it exists") {
            try await collection.document("a").getDocument()
        } throws: { error in
            FirestoreErrorCode.unavailable ~= error
        }
        try await firestore.enableNetwork()
        try await firestore.waitForPendingWrites()
        try await eventually("acknowledged") { events.all.last == "2" }
        expectEqual(Self.text(try await collection.getDocuments(source: .server)), "2")
        try await firestore.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A rejected write is undone, and its completion gets the error`() async throws {
        let server = try server()
        let firestore = firestore(server.port)
        let reference = firestore.document("c/d")
        try await reference.setData(["n": 1])
        // Another client deletes the document; this one still has it in its cache.
        let other = self.firestore(server.port)
        try await firestore.disableNetwork()
        try await other.document("c/d").delete()
        let events = Events()
        reference.addSnapshotListener { snapshot, _ in events.append(snapshot.map(Self.text) ?? "error") }
        try await eventually("from the cache") { events.all == ["1 cache"] }
        let errors = Events()
        reference.updateData(["n": 2]) { error in errors.append("\((error as NSError?)?.code ?? 0)") }
        try await eventually("the local change") { events.all.last == "2 cache pending" }
        try await firestore.enableNetwork()
        try await eventually("the rejection") { errors.all == ["5"] }
        try await eventually("undone") { events.all.last == "-1" }
        try await firestore.terminate()
        try await other.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Server timestamps: null, an estimate or the previous value while they are pending`() async throws {
        let server = try server()
        let firestore = firestore(server.port)
        let reference = firestore.document("c/d")
        try await reference.setData(["at": "before"])
        try await firestore.disableNetwork()
        reference.updateData(["at": FieldValue.serverTimestamp(), "n": 1], completion: nil)
        let snapshot = try await reference.getDocument(source: .cache)
        expect(snapshot.get("at") is NSNull)
        expect(snapshot.data(with: .previous)?["at"] as? String == "before")
        let estimate = try #require(snapshot.get("at", serverTimestampBehavior: .estimate) as? Timestamp)
        expect(abs(estimate.dateValue().timeIntervalSinceNow) < 600)
        expect(snapshot.metadata.hasPendingWrites)
        try await firestore.enableNetwork()
        try await firestore.waitForPendingWrites()
        let later = try await reference.getDocument()
        expect(later.get("at") is Timestamp)
        expect(later.get("n") as? Int == 1)
        try await firestore.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A document that another client deleted while this one was offline leaves the results: limbo`() async throws {
        let server = try server()
        let firestore = firestore(server.port)
        let collection = firestore.collection("c")
        for n in 1...3 { try await collection.document("d\(n)").setData(["n": n]) }
        try await expectEqual(collection.getDocuments().count, 3)
        try await firestore.disableNetwork()
        let other = self.firestore(server.port)
        try await other.document("c/d2").delete()
        try await other.document("c/d3").updateData(["n": 30])
        let events = Events()
        collection.order(by: "n").addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            events.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("from the cache") { events.all == ["1,2,3 cache"] }
        try await firestore.enableNetwork()
        try await eventually("from the server") { events.all.last == "1,30" }
        try await expect(!collection.document("d2").getDocument(source: .cache).exists)
        try await firestore.terminate()
        try await other.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A listener that is added when the server can be reached again waits for the server`() async throws {
        let server = try server()
        let firestore = firestore(server.port)
        let other = self.firestore(server.port)
        try await other.document("d/x").setData(["n": 1])
        let (first, second) = (Events(), Events())
        let registration = firestore.collection("c").addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            first.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("the first snapshot") { first.all == [""] }
        try await firestore.disableNetwork()
        try await eventually("offline") { first.all.last == " cache" }
        registration.remove()
        try await firestore.enableNetwork()
        firestore.collection("d").addSnapshotListener { snapshot, _ in
            second.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("a snapshot") { !second.all.isEmpty }
        expectEqual(second.all, ["1"])
        for firestore in [firestore, other] { try await firestore.terminate() }
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Documents whose ids are the same text in other bytes are kept apart, online and offline`() async throws {
        let server = try server()
        let (firestore, other) = (firestore(server.port), firestore(server.port))
        let collection = firestore.collection("c")
        let (composed, decomposed) = (collection.document("\u{e9}"), collection.document("e\u{301}"))
        try await firestore.batch().setData(["n": 1], forDocument: composed)
            .setData(["n": 2], forDocument: decomposed).commit()
        let (all, one, two) = (Events(), Events(), Events())
        collection.order(by: "n").addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            all.append(snapshot.map(Self.text) ?? "error")
        }
        for (reference, events) in [(composed, one), (decomposed, two)] {
            reference.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
                events.append(snapshot.map(Self.text) ?? "error")
            }
        }
        try await eventually("the first snapshots") {
            all.all.last == "1,2" && one.all.last == "1" && two.all.last == "2"
        }
        try await firestore.disableNetwork()
        try await eventually("offline") { all.all.last == "1,2 cache" }
        composed.updateData(["n": FieldValue.increment(Int64(10))], completion: nil)
        try await eventually("the local change") {
            all.all.last == "2,11* cache pending" && one.all.last == "11 cache pending"
        }
        expectEqual(Self.text(try await collection.order(by: "n").getDocuments()), "2,11* cache pending")
        try await other.document("c/e\u{301}").delete()
        try await firestore.enableNetwork()
        try await eventually("the server's state") { all.all.last == "11" && two.all.last == "-1" }
        try await expect(!decomposed.getDocument(source: .cache).exists)
        try await expect(composed.getDocument(source: .cache).exists)
        for firestore in [firestore, other] { try await firestore.terminate() }
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A listener of the cache shows local changes and what other listeners bring, without the server`() async throws
    {
        let server = try server()
        let firestore = firestore(server.port)
        let collection = firestore.collection("c")
        let events = Events()
        let options = SnapshotListenOptions().withSource(.cache)
        collection.order(by: "n").addSnapshotListener(options: options) { snapshot, _ in
            events.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("an empty cache") { events.all == [" cache"] }
        try await collection.document("a").setData(["n": 1])
        try await eventually("a local write") { events.all.last == "1* cache pending" }
        let other = self.firestore(server.port)
        try await other.document("c/b").setData(["n": 2])
        try await expectEqual(collection.getDocuments().count, 2)
        try await eventually("what was read") { events.all.last?.hasPrefix("1,2") ?? false }
        try await firestore.terminate()
        try await other.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A limit: a deleted document makes room for another of the cache`() async throws {
        let server = try server()
        let firestore = firestore(server.port)
        let collection = firestore.collection("c")
        for n in 1...4 { try await collection.document("d\(n)").setData(["n": n]) }
        let (first, last) = (Events(), Events())
        collection.order(by: "n").limit(to: 2).addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            first.append(snapshot.map(Self.text) ?? "error")
        }
        collection.order(by: "n").limit(toLast: 2).addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            last.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("the first snapshots") { first.all.last == "1,2" && last.all.last == "3,4" }
        try await firestore.disableNetwork()
        collection.document("d2").delete(completion: nil)
        collection.document("d0").setData(["n": 0], completion: nil)
        collection.document("d9").setData(["n": 9], completion: nil)
        try await eventually("local changes") {
            first.all.last?.hasPrefix("0*,1") ?? false && last.all.last?.hasPrefix("4,9*") ?? false
        }
        try await firestore.enableNetwork()
        try await firestore.waitForPendingWrites()
        expectEqual(Self.text(try await collection.order(by: "n").limit(to: 3).getDocuments()), "0,1,3")
        try await firestore.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `After its server was restored to an earlier state a client shows that state`() async throws {
        let (data, copy) = (directory.path(of: "server"), directory.path(of: "copy"))
        var server = try server()
        let port = server.port
        // One with a listener, one that only reads.
        let (listening, reading) = (firestore(port), firestore(port))
        for n in 1...2 { try await listening.document("c/d\(n)").setData(["n": n]) }
        expectEqual(server.stop(), 0)
        try FileManager.default.copyItem(atPath: data, toPath: copy)
        server = try ServerProcess(data: data, port: port)
        let events = Events()
        listening.collection("c").order(by: "n").addSnapshotListener { snapshot, _ in
            events.append(snapshot.map(Self.text) ?? "error")
        }
        let batch = reading.batch()
        for (id, n) in [("d1", 10), ("d3", 3)] { batch.setData(["n": n], forDocument: reading.document("c/\(id)")) }
        try await batch.commit()
        try await eventually("the later state") { events.all.last == "2,3,10" }
        expectEqual(Self.text(try await reading.collection("c").order(by: "n").getDocuments(source: .server)), "2,3,10")
        expectEqual(server.stop(), 0)
        // As `hearth restore` leaves it.
        try FileManager.default.removeItem(atPath: data)
        try FileManager.default.copyItem(atPath: copy, toPath: data)
        for name in ["TIMELINE", "IDENTITY"] { try FileManager.default.removeItem(atPath: "\(data)/\(name)") }
        server = try ServerProcess(data: data, port: port)
        try await eventually("the earlier state") { events.all.last == "1,2" }
        expectEqual(Self.text(try await reading.document("c/d1").getDocument(source: .server)), "1")
        expectEqual(Self.text(try await reading.collection("c").order(by: "n").getDocuments(source: .server)), "1,2")
        for firestore in [listening, reading] { try await firestore.terminate() }
        expectEqual(server.stop(), 0)
    }

    // MARK: Persistence

    /// A Firestore with a cache in a directory, as a program that starts again would have it.
    private func persistent(_ port: Int, _ name: String = "app") -> Firestore {
        TestFirestore.make(
            host: "127.0.0.1:\(port)", project: "offline", cache: directory.path(of: "cache-\(name)"))
    }

    @Test
    func `Cached documents, pending writes and queries survive a restart`() async throws {
        let server = try server()
        var firestore = persistent(server.port)
        for n in 1...3 { try await firestore.document("c/d\(n)").setData(["n": n]) }
        let events = Events()
        firestore.collection("c").order(by: "n").addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            events.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("the first snapshot") { events.all.last == "1,2,3" }
        try await firestore.disableNetwork()
        firestore.document("c/d4").setData(["n": 4], completion: nil)
        firestore.document("c/d1").updateData(["n": FieldValue.increment(Int64(10))], completion: nil)
        try await eventually("local changes") { events.all.last?.hasPrefix("2,3,4*,11*") ?? false }
        try await firestore.terminate()

        firestore = persistent(server.port)
        try await firestore.disableNetwork()
        let cached = try await firestore.collection("c").order(by: "n").getDocuments()
        expectEqual(Self.text(cached), "2,3,4*,11* cache pending")
        let again = Events()
        firestore.collection("c").order(by: "n").addSnapshotListener { snapshot, _ in
            again.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("from the cache") { again.all == ["2,3,4*,11* cache pending"] }
        try await firestore.enableNetwork()
        try await firestore.waitForPendingWrites()
        let stored = try await firestore.collection("c").order(by: "n").getDocuments(source: .server)
        expectEqual(Self.text(stored), "2,3,4,11")
        try await firestore.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Two users of one cache: a clear error; clearPersistence removes a cache that nobody uses`() async throws {
        let server = try server()
        let firestore = persistent(server.port)
        try await firestore.document("c/d").setData(["n": 1])
        let second = persistent(server.port)
        do {
            try await second.document("c/e").setData(["n": 2])
            Issue.record("no error")
        } catch FirestoreErrorCode.failedPrecondition {
        }
        do {
            try await firestore.clearPersistence()
            Issue.record("no error")
        } catch FirestoreErrorCode.failedPrecondition {
        }
        try await firestore.terminate()
        expectEqual(Self.text(try await second.document("c/d").getDocument(source: .cache)), "1 cache")
        try await second.terminate()
        try await second.clearPersistence()
        let third = persistent(server.port)
        do {
            _ = try await third.document("c/d").getDocument(source: .cache)
            Issue.record("the document is still there")
        } catch FirestoreErrorCode.unavailable {
        }
        try await third.terminate()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `As the first call after a restart, waitForPendingWrites waits for the writes of the process before`()
        async throws
    {
        let server = try server()
        for usesCompletion in [false, true] {
            var firestore = persistent(server.port)
            let collection = "restarted\(usesCompletion)"
            try await firestore.disableNetwork()
            for n in 0..<100 { firestore.document("\(collection)/d\(n)").setData(["n": n], completion: nil) }
            try await firestore.terminate()

            firestore = persistent(server.port)
            if usesCompletion {
                let outcomes = Events()
                firestore.waitForPendingWrites { error in outcomes.append(error == nil ? "settled" : "\(error!)") }
                try await eventually("the wait's end") { !outcomes.all.isEmpty }
                expectEqual(outcomes.all, ["settled"])
            } else {
                try await firestore.waitForPendingWrites()
            }
            let other = self.firestore(server.port)
            try await expectEqual(other.collection(collection).getDocuments(source: .server).count, 100)
            try await other.terminate()
            try await firestore.terminate()
        }
        expectEqual(server.stop(), 0)
    }

    @Test
    func `waitForPendingWrites fails if another instance uses the cache, and if the instance ends first`() async throws
    {
        let first = persistent(1)
        first.document("c/d").setData(["n": 1], completion: nil)
        let second = persistent(1)
        do {
            try await second.waitForPendingWrites()
            Issue.record("no error")
        } catch FirestoreErrorCode.failedPrecondition {
        }
        let codes = Events()
        second.waitForPendingWrites { error in codes.append("\((error as NSError?)?.code ?? 0)") }
        try await eventually("the error") { codes.all == ["\(FirestoreErrorCode.failedPrecondition.rawValue)"] }

        let outcomes = Events()
        first.waitForPendingWrites { error in outcomes.append("\((error as NSError?)?.code ?? 0)") }
        try await first.terminate()
        try await eventually("the end of the wait") {
            outcomes.all == ["\(FirestoreErrorCode.cancelled.rawValue)"]
        }
        try await second.terminate()
    }

    @Test
    func `With eager garbage collection only what listeners cover is cached`() async throws {
        let server = try server()
        let firestore = firestore(server.port)
        let settings = firestore.settings
        settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting())
        firestore.settings = settings
        try await firestore.document("c/d").setData(["n": 1])
        expectEqual(Self.text(try await firestore.document("c/d").getDocument()), "1")
        do {
            _ = try await firestore.document("c/d").getDocument(source: .cache)
            Issue.record("the document is in the cache")
        } catch FirestoreErrorCode.unavailable {
        }
        let events = Events()
        let registration = firestore.collection("c").addSnapshotListener { snapshot, _ in
            events.append(snapshot.map(Self.text) ?? "error")
        }
        try await eventually("the first snapshot") { events.all == ["1"] }
        expectEqual(Self.text(try await firestore.document("c/d").getDocument(source: .cache)), "1 cache")
        registration.remove()
        try await expect(firestore.collection("c").getDocuments(source: .cache).isEmpty)
        try await firestore.terminate()
        expectEqual(server.stop(), 0)
    }

    // MARK: The end

    /// What a program has done before it ends a client.
    enum Use: CaseIterable {
        case writes, listeners, outage, failedConnection, tokens, transactions, everything
    }

    /// The objects of a client.
    private struct Objects: @unchecked Sendable {
        // Unchecked: the store is not used.
        weak var firestore: Firestore?
        weak var engine: SyncEngine?
        weak var client: HearthClient?
        weak var store: LocalStore?
        weak var stream: WatchStream?

        /// Those that are alive.
        var names: [String] {
            [
                firestore.map { _ in "Firestore" }, engine.map { _ in "SyncEngine" },
                client.map { _ in "HearthClient" }, store.map { _ in "LocalStore" },
                stream.map { _ in "WatchStream" },
            ].compactMap { $0 }
        }
    }

    /// Uses a client and ends it.
    private func objects(after use: Use, _ firestore: Firestore) async throws -> Objects {
        let all = use == .everything
        let document = firestore.document("c/d")
        if use == .tokens || all {
            let settings = firestore.settings
            settings.tokenProvider = { _ in nil }
            firestore.settings = settings
        }
        if use != .failedConnection { try await document.setData(["n": 1]) }
        if use == .listeners || use == .outage || use == .failedConnection || all {
            let events = Events()
            document.addSnapshotListener { snapshot, _ in events.append(snapshot.map(Self.text) ?? "error") }
            let registration = firestore.collection("c").addSnapshotListener(includeMetadataChanges: true) { _, _ in
                events.append("query")
            }
            firestore.collectionGroup("c").limit(to: 1).addSnapshotListener { _, _ in }
            firestore.addSnapshotsInSyncListener { events.append("sync") }
            try await eventually("a snapshot") { events.all.contains("sync") }
            if use == .listeners { registration.remove() }
        }
        if use == .outage || all { try await firestore.disableNetwork() }
        if use == .outage || use == .failedConnection || all {
            document.setData(["n": 2]) { _ in }
            firestore.waitForPendingWrites { _ in }
            firestore.collection("c").getDocuments { _, _ in }
            firestore.collection("c").count.getAggregation(source: .server) { _, _ in }
        }
        if use == .transactions || all {
            // The third attempt waits.
            let failures = Atomic(0)
            let hasEnded = Atomic(false)
            firestore.runTransaction { transaction, error in
                if failures.add(1, ordering: .relaxed).oldValue < 2 {
                    error?.pointee = .firestore(.aborted, "again")
                    return nil
                }
                return transaction.setData(["n": 3], forDocument: document)
            } completion: { _, _ in
                hasEnded.store(true, ordering: .releasing)
            }
            try await eventually("the transaction ends") { hasEnded.load(ordering: .acquiring) }
        }
        let engine = try firestore.engine()
        let objects = Objects(
            firestore: firestore, engine: engine, client: engine.client, store: engine.store, stream: engine.stream)
        try await firestore.terminate()
        return objects
    }

    @Test(arguments: Use.allCases, [false, true])
    func `A client that was terminated is released`(use: Use, isPersistent: Bool) async throws {
        let server = try server()
        let host = use == .failedConnection ? "127.0.0.1:1" : "127.0.0.1:\(server.port)"
        let cache = isPersistent ? directory.path(of: "cache") : nil
        let objects = try await objects(after: use, TestFirestore.make(host: host, project: "offline", cache: cache))
        try await eventually("the release") { objects.names.isEmpty }
        expectEqual(server.stop(), 0)
    }
}
