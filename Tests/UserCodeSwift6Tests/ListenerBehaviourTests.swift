// Which events listeners get, and with which metadata.

import FirebaseFirestore
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ListenerBehaviourTests {
    private final class Events: Sendable {
        private let entries = Mutex<[String]>([])
        func append(_ entry: String) { entries.withLock { $0.append(entry) } }
        var all: [String] { entries.withLock { $0 } }
    }

    /// Notes the size and the metadata of each event.
    private static func listen(
        _ query: Query, source: ListenSource = .default
    ) -> (Events, any ListenerRegistration) {
        let events = Events()
        let options = SnapshotListenOptions().withIncludeMetadataChanges(true).withSource(source)
        let registration = query.addSnapshotListener(options: options) { snapshot, error in
            guard let snapshot else { return events.append("error \((error as NSError?)?.code ?? 0)") }
            let metadata = snapshot.metadata
            events.append(
                "\(snapshot.count)" + (metadata.isFromCache ? " cache" : "")
                    + (metadata.hasPendingWrites ? " pending" : ""))
        }
        return (events, registration)
    }

    @Test
    func `The first event waits for the server, unless the cache has documents or knows that there are none`()
        async throws
    {
        let user = try UserDatabase(.server)
        let empty = user.db.collection("empty")
        let (unknown, first) = Self.listen(empty)
        try await eventually("the server's result") { !unknown.all.isEmpty }
        #expect(unknown.all == ["0"])
        first.remove()
        let (known, second) = Self.listen(empty)
        try await eventually("both results") { known.all.last == "0" }
        #expect(known.all == ["0 cache", "0"])
        second.remove()
        try await user.db.document("full/d").setData(["a": 1])
        let (full, third) = Self.listen(user.db.collection("full"))
        try await eventually("both results") { full.all.last == "1" }
        #expect(full.all == ["1 cache", "1"])
        third.remove()
        try await user.db.disableNetwork()
        let (offline, fourth) = Self.listen(user.db.collection("never"))
        try await eventually("an empty cache") { !offline.all.isEmpty }
        #expect(offline.all == ["0 cache"])
        fourth.remove()
        #expect(try await user.end())
    }

    @Test
    func `The first event after a read that found nothing comes from the cache`() async throws {
        let user = try UserDatabase(.server)
        let (query, document) = (user.db.collection("c").whereField("a", isEqualTo: 1), user.db.document("c/d"))
        #expect(try await query.getDocuments().isEmpty)
        #expect(try await !document.getDocument().exists)
        let (results, _) = Self.listen(query)
        let events = Events()
        document.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            events.append("\(snapshot?.exists ?? true) \(snapshot?.metadata.isFromCache ?? true)")
        }
        try await eventually("the server's results") { results.all.last == "0" && events.all.last == "false false" }
        #expect(results.all == ["0 cache", "0"])
        #expect(events.all == ["false true", "false false"])
        // What was read is known, no other query.
        let (other, _) = Self.listen(user.db.collection("c").whereField("a", isEqualTo: 2))
        try await eventually("the server's result") { !other.all.isEmpty }
        #expect(other.all == ["0"])
        #expect(try await user.end())
    }

    @Test(arguments: [true, false])
    func `A listener of the cache is current while a default listener has the same query`(cacheIsFirst: Bool)
        async throws
    {
        let user = try UserDatabase(.server)
        let query = user.db.collection("c").order(by: "n")
        let first = Self.listen(query, source: cacheIsFirst ? .cache : .default)
        let firstEvent = cacheIsFirst ? "0 cache" : "0"
        try await eventually("the first result") { first.0.all == [firstEvent] }
        let second = Self.listen(query, source: cacheIsFirst ? .default : .cache)
        let (cache, normal) = cacheIsFirst ? (first, second) : (second, first)
        try await eventually("both are current") { cache.0.all.last == "0" && normal.0.all.last == "0" }
        // A transaction is a change of the server.
        _ = try await user.db.runTransaction { transaction, _ in
            transaction.setData(["n": 1], forDocument: user.db.document("c/d"))
            return nil
        }
        try await eventually("the change") { cache.0.all.last == "1" && normal.0.all.last == "1" }
        // The other listener stays, and nothing says that it is current.
        normal.1.remove()
        try await eventually("the cache alone") { cache.0.all.last == "1 cache" }
        try await user.db.document("c/e").setData(["n": 2])
        try await eventually("an own change") { cache.0.all.last == "2 cache" }
        #expect(normal.0.all.last == "1")
        let third = Self.listen(query)
        try await eventually("both are current") { cache.0.all.last == "2" && third.0.all.last == "2" }
        cache.1.remove()
        try await user.db.document("c/f").setData(["n": 3])
        try await eventually("the listener that is left") { third.0.all.last == "3" }
        #expect(cache.0.all.last == "2")
        #expect(try await user.end())
    }

    @Test
    func `A document that was deleted here has no pending writes; its collection neither`() async throws {
        let user = try UserDatabase(.server)
        let document = user.db.document("c/d")
        try await document.setData(["a": 1])
        let events = Events()
        document.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            events.append("\(snapshot?.exists ?? false) \(snapshot?.metadata.hasPendingWrites ?? false)")
        }
        let (results, _) = Self.listen(user.db.collection("c"))
        try await eventually("the document") { events.all.last == "true false" && results.all.last == "1" }
        try await user.db.disableNetwork()
        document.delete(completion: nil)
        try await eventually("the deletion") { events.all.last == "false false" && results.all.last == "0 cache" }
        try await user.db.enableNetwork()
        try await user.db.waitForPendingWrites()
        try await eventually("the server's result") { results.all.last == "0" }
        #expect(!events.all.contains { $0.hasSuffix("true") } && !results.all.contains { $0.hasSuffix("pending") })
        #expect(try await user.end())
    }

    @Test(arguments: TestBackend.allCases)
    func `An error is the last event, and ends a sequence`(backend: TestBackend) async throws {
        let user = try UserDatabase(backend)
        // The client does not count the disjunctions, the server does.
        let refused = user.db.collection("c").whereField("a", in: Array(0..<31)).whereField("b", in: Array(0..<31))
        let (events, registration) = Self.listen(refused)
        try await eventually("the error") { events.all == ["error 3"] }
        try await user.db.document("c/d").setData(["a": 1, "b": 1])
        #expect(await firestoreCode { for try await _ in refused.snapshots {} } == .invalidArgument)
        #expect(await firestoreCode { _ = try await refused.getDocuments(source: .server) } == .invalidArgument)
        #expect(events.all == ["error 3"])
        registration.remove()
        #expect(try await user.end())
    }

    @Test
    func `Snapshots with equal documents and other changes differ`() async throws {
        let user = try UserDatabase(.memory)
        let collection = user.db.collection("c")
        try await collection.document("d").setData(["a": 1])
        var snapshots: [QuerySnapshot] = []
        for try await snapshot in collection.snapshots where !snapshot.metadata.isFromCache {
            snapshots.append(snapshot)
            if snapshots.count == 1 { try await collection.document("e").setData(["a": 1]) }
            if snapshots.last?.count == 2 { try await collection.document("e").delete() }
            if snapshots.count > 1 && snapshot.count == 1 { break }
        }
        let (first, last) = (try #require(snapshots.first), try #require(snapshots.last))
        #expect(first.documents == last.documents && first.metadata == last.metadata)
        #expect(first.documentChanges.map(\.type) == [.added] && last.documentChanges.map(\.type) == [.removed])
        #expect(first != last && first == first)
        #expect(try await user.end())
    }

    @Test
    func `Changes come with their indexes, and a change of metadata alone only if it was asked for`() async throws {
        let user = try UserDatabase(.server)
        let collection = user.db.collection("c")
        for n in [1, 2, 3] { try await collection.document("d\(n)").setData(["n": n]) }
        let (plain, detailed) = (Events(), Events())
        func text(_ changes: [DocumentChange]) -> String {
            changes.map { change in
                func index(_ index: UInt) -> String { index == UInt(NSNotFound) ? "-" : "\(index)" }
                return
                    "\(change.type) \(change.document.documentID) \(index(change.oldIndex)) \(index(change.newIndex))"
            }.joined(separator: ", ")
        }
        let sorted = collection.order(by: "n").limit(to: 3)
        sorted.addSnapshotListener { snapshot, _ in plain.append(text(snapshot?.documentChanges ?? [])) }
        sorted.addSnapshotListener(options: SnapshotListenOptions().withIncludeMetadataChanges(true)) { snapshot, _ in
            detailed.append(text(snapshot?.documentChanges(includeMetadataChanges: true) ?? []))
        }
        let first = "added d1 - 0, added d2 - 1, added d3 - 2"
        try await eventually("the first result") { plain.all == [first] && detailed.all.first == first }
        try await collection.document("d0").setData(["n": 0])
        try await eventually("the acknowledgement") { detailed.all.contains("modified d0 0 0") }
        #expect(plain.all == [first, "removed d3 2 -, added d0 - 0"])
        try await collection.document("d1").setData(["n": 9])
        try await eventually("the move") { plain.all.count > 2 }
        #expect(plain.all.last == "removed d1 1 -, added d3 - 2")
        #expect(try await user.end())
    }
}
