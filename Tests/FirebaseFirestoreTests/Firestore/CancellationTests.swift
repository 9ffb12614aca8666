// Every async call that waits for the server ends when its task is cancelled.

import Basics
import ClientTestSupport
import DocumentModel
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct CancellationTests {
    /// Starts a call in a task, cancels the task when `isInProgress` returns, and expects the code `cancelled`.
    private func expectCancelled(
        _ call: @escaping @Sendable () async throws -> Void, whenever isInProgress: () async -> Void,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let task = Task { try await call() }
        await isInProgress()
        task.cancel()
        do {
            try await task.value
            Issue.record("the call ended without an error", sourceLocation: sourceLocation)
        } catch FirestoreErrorCode.cancelled {
        } catch {
            Issue.record("another error: \(error)", sourceLocation: sourceLocation)
        }
    }

    @Test
    func `Calls without a reply end, and the client cancels them at the server`() async throws {
        let server = try FakeServer { _ in .hold }
        let firestore = TestFirestore.make(host: server.address)
        let document = firestore.document("c/d")
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await document.getDocument() },
            { _ = try await document.getDocument(as: [String: Int].self) },
            { _ = try await firestore.collection("c").getDocuments() },
            { _ = try await firestore.collection("c").count.getAggregation(source: .server) },
            { try await document.setData(["a": 1]) },
            { try await document.updateData(["a": 1]) },
            { try await document.delete() },
            { _ = try await firestore.collection("c").addDocument(data: ["a": 1]) },
            { try await firestore.batch().setData(["a": 1], forDocument: document).commit() },
            {
                _ = try await firestore.runTransaction { transaction, errorPointer in
                    do { try transaction.getDocument(document) } catch { errorPointer?.pointee = error as NSError }
                    return nil
                }
            },
            {
                _ = try await firestore.runTransaction { transaction, _ in
                    transaction.setData(["a": 1], forDocument: document)
                    return nil
                }
            },
        ]
        for (number, call) in calls.enumerated() {
            await expectCancelled(call) { await server.waitForCalls(number + 1) }
            await server.waitForCancellations(number + 1)
        }
        expectEqual(firestore.pendingWrites.count, 0)
        try await firestore.terminate()
    }

    @Test
    func `Writes that wait for a server are withdrawn, and so is waiting for them`() async throws {
        let firestore = TestFirestore.detached()
        let document = firestore.document("c/d")
        await expectCancelled({ try await document.setData(["a": 1]) }) {
            while firestore.pendingWrites.count == 0 { await Task.yield() }
        }
        expectEqual(firestore.pendingWrites.count, 0)
        // These wait for a write that nobody awaits.
        document.setData(["a": 1], completion: nil)
        await expectCancelled({ try await firestore.waitForPendingWrites() }) { await Task.yield() }
        let snapshot = try await document.getDocument()
        expect(snapshot.metadata.isFromCache)
        expect(snapshot.metadata.hasPendingWrites)
        try await firestore.terminate()
    }

    /// Whether a call waits for pending writes.
    private func isWaiting(_ engine: SyncEngine) -> Bool {
        let isWaiting = Atomic(false)
        engine.queue.sync { isWaiting.store(!engine.writeWaits.isEmpty, ordering: .relaxed) }
        return isWaiting.load(ordering: .relaxed)
    }

    @Test
    func `A pipeline or a total that waits for pending writes ends, and is not sent`() async throws {
        let server = try FakeServer { _ in .hold }
        let firestore = TestFirestore.make(host: server.address)
        firestore.document("c/d").setData(["a": 1], completion: nil)
        let pipeline = firestore.pipeline().collection("c").rawStage(name: "delete", params: [])
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await pipeline.execute() },
            { _ = try await firestore.collection("c").count.getAggregation(source: .server) },
        ]
        for call in calls {
            let engine = try firestore.engine()
            await expectCancelled(call) {
                while !isWaiting(engine) { await Task.yield() }
            }
        }
        // Calls are sent in the order in which they are made.
        await expectCancelled({ _ = try await firestore.document("e/f").getDocument() }) {
            await server.waitForCalls(2)
        }
        expectEqual(server.calls.map(\.method), [.commit, .getDocument])
        try await firestore.terminate()
    }

    @Test
    func `A transaction that waits for its next attempt ends at once`() async throws {
        // The third attempt begins after a second or more; the whole transaction would take minutes.
        let server = try FakeServer { _ in .fail(.unauthenticated, "no") }
        let firestore = TestFirestore.make(host: server.address)
        await expectCancelled({
            _ = try await firestore.runTransaction { transaction, _ in
                transaction.setData(["a": 1], forDocument: firestore.document("c/d"))
                return nil
            }
        }) { await server.waitForCalls(2) }
        expect(server.calls.count < 5)
        try await firestore.terminate()
    }

    @Test
    func `A task that is cancelled before its call sends nothing`() async throws {
        let server = try FakeServer { _ in .hold }
        let firestore = TestFirestore.make(host: server.address)
        let document = firestore.document("c/d")
        let calls: [@Sendable () async throws -> Void] = [
            { _ = try await document.getDocument() }, { try await document.setData(["a": 1]) },
            { _ = try await firestore.runTransaction { _, _ in nil } },
        ]
        for call in calls {
            await expectCancelled({
                withUnsafeCurrentTask { $0?.cancel() }
                try await call()
            }) {}
        }
        expect(server.calls.isEmpty)
        try await firestore.terminate()
    }
}
