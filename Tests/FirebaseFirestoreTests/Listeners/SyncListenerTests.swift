// When listeners of snapshots in agreement are called: after the events of snapshot listeners, and at no other time.

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct SyncListenerTests {
    /// The calls of all listeners, in order.
    private final class Calls: Sendable {
        private let entries = Mutex<[String]>([])
        func append(_ entry: String) { entries.withLock { $0.append(entry) } }
        var all: [String] { entries.withLock { $0 } }
    }

    @Test(arguments: [TestBackend.server, .memory])
    func `They follow the events of snapshot listeners, the first one too, and nothing else`(
        backend: TestBackend
    ) async throws {
        let database = try backend.start()
        let firestore = TestFirestore.make(host: database.host, project: "listeners")
        let calls = Calls()
        firestore.addSnapshotsInSyncListener { calls.append("sync") }
        try await eventually("the first agreement") { calls.all == ["sync"] }
        let (first, second) = (firestore.document("c/first"), firestore.document("c/second"))
        // Nobody listens to it.
        try await firestore.document("c/other").setData(["n": 1])
        first.addSnapshotListener { _, _ in calls.append("first") }
        try await eventually("the first event") { calls.all == ["sync", "first", "sync"] }
        try await firestore.document("c/other").setData(["n": 2])
        second.addSnapshotListener { _, _ in calls.append("second") }
        try await eventually("the event of the other") { calls.all.suffix(2) == ["second", "sync"] }
        let batch = firestore.batch().setData(["n": 1], forDocument: first).setData(["n": 1], forDocument: second)
        try await batch.commit()
        // Everything before it has reached the listeners.
        second.delete(completion: nil)
        try await eventually("the events of both, then one agreement") { calls.all.count >= 10 }
        expectEqual(calls.all[..<5], ["sync", "first", "sync", "second", "sync"])
        expectEqual(Set(calls.all[5..<7]), ["first", "second"])
        expectEqual(calls.all[7...], ["sync", "second", "sync"])
        try await firestore.terminate()
        expect(database.stop())
    }

    @Test
    func `The first event of a listener that cannot reach the server is followed by an agreement`() async throws {
        let firestore = TestFirestore.detached()
        let calls = Calls()
        firestore.addSnapshotsInSyncListener { calls.append("sync") }
        firestore.document("c/d").addSnapshotListener { _, _ in calls.append("document") }
        try await eventually("the event, then the agreement") { calls.all == ["sync", "document", "sync"] }
        try await firestore.terminate()
    }
}
