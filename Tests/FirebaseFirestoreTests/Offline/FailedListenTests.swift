// A listener that the store of the cache cannot begin.

import Basics
import DocumentModel
import FirestoreMessages
import Synchronization
import TestSupport
import Testing

@testable import ClientCache
@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct FailedListenTests {
    /// What a listener was called with.
    private final class Calls: Sendable {
        let snapshots = Mutex(0)
        let errors = Mutex<[StatusCode]>([])
        var snapshotCount: Int { snapshots.withLock { $0 } }
    }

    private func listen(_ engine: SyncEngine, _ subject: SyncEngine.Subject, isOfCache: Bool = false) -> Calls {
        let calls = Calls()
        _ = engine.listen(
            subject, isOfCache: isOfCache, includesMetadataChanges: true,
            deliver: { _ in calls.snapshots.withLock { $0 += 1 } },
            fail: { error in calls.errors.withLock { $0.append(error.code) } })
        engine.queue.sync {}
        return calls
    }

    @Test
    func `It gets its error as the last call, and other listeners of the query stay`() async throws {
        let firestore = TestFirestore.make(host: "127.0.0.1:1", project: "p")
        try await firestore.disableNetwork()
        let engine = try firestore.engine()
        let subject = SyncEngine.Subject(firestore.collection("c"))
        let canonical = subject.canonical(engine.database)
        let damaged = Calls()
        engine.queue.sync {
            engine.store.begin()
            engine.store.put(LocalKey.target(canonical), [0xFF])
            do throws(RequestError) { try engine.store.commit() } catch {
                damaged.errors.withLock { $0.append(error.code) }
            }
        }
        expect(damaged.errors.withLock { $0 }.isEmpty)
        let failed = listen(engine, subject)
        expect(failed.errors.withLock { $0 } == [.dataLoss] && engine.channels.isEmpty)
        // One of the cache needs no target.
        let other = listen(engine, subject, isOfCache: true)
        expectEqual(other.snapshotCount, 1)
        let again = listen(engine, subject)
        expectEqual(again.errors.withLock { $0 }, [.dataLoss])
        firestore.document("c/d").setData(["n": 1], completion: nil)
        engine.queue.sync {}
        expect(other.snapshotCount >= 2)
        for calls in [failed, again] { expectEqual(calls.snapshotCount, 0) }
        try await firestore.terminate()
    }
}
