// Transactions of the SDK: blocking reads, retries, and errors that are delivered as they are.

import Basics
import ClientTestSupport
import DocumentModel
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct TransactionTests {
    private let scripted: ScriptedFirestore
    private var firestore: Firestore { scripted.firestore }
    private var counter: DocumentReference { firestore.document("counters/c1") }

    init() throws { scripted = try ScriptedFirestore() }

    private static let conflict = RequestError(.aborted, "conflict")

    /// The usual block: read, add one, write, return the new number.
    private func increment(_ attempts: Counter? = nil) async throws -> Int? {
        let counter = counter
        let result = try await firestore.runTransaction { transaction, errorPointer in
            attempts?.bump()
            let snapshot: DocumentSnapshot
            do {
                snapshot = try transaction.getDocument(counter)
            } catch let error as NSError {
                errorPointer?.pointee = error
                return nil
            }
            let next = (snapshot.get("n") as? Int ?? 0) + 1
            transaction.setData(["n": next], forDocument: counter)
            return next
        }
        return result as? Int
    }

    private final class Counter: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func bump() { count.withLock { $0 += 1 } }
    }

    @Test
    func `A transaction returns what its block returned, after the commit`() async throws {
        try await expectEqual(increment(), 1)
        try await expectEqual(increment(), 2)
        expectEqual(scripted.server.calls.map(\.method), [.batchGetDocuments, .commit, .batchGetDocuments, .commit])
        try await firestore.terminate()
    }

    @Test
    func `A conflict runs the block again, with priority on the server`() async throws {
        scripted.database.failCommits([Self.conflict, Self.conflict])
        let attempts = Counter()
        try await expectEqual(increment(attempts), 1)
        expectEqual(attempts.value, 3)
        expectEqual(
            scripted.server.calls.map(\.method),
            [
                .batchGetDocuments, .commit, .beginTransaction, .getDocument, .commit, .beginTransaction, .getDocument,
                .commit,
            ])
        try await firestore.terminate()
    }

    @Test
    func `After five attempts the conflict is delivered`() async throws {
        scripted.database.failCommits(Array(repeating: Self.conflict, count: 10))
        let attempts = Counter()
        do {
            _ = try await increment(attempts)
            Issue.record("no error")
        } catch FirestoreErrorCode.aborted {
        }
        expectEqual(attempts.value, 5)
        try await firestore.terminate()
    }

    @Test
    func `Options limit the attempts`() async throws {
        scripted.database.failCommits(Array(repeating: Self.conflict, count: 10))
        let options = FirebaseFirestore.TransactionOptions()
        options.maxAttempts = 2
        let counter = counter
        let firestore = firestore
        let attempts = Counter()
        let error = await withCheckedContinuation { (continuation: CheckedContinuation<NSError?, Never>) in
            firestore.runTransaction(
                with: options,
                block: { transaction, _ in
                    attempts.bump()
                    transaction.setData([:], forDocument: counter)
                    return nil
                },
                completion: { _, error in continuation.resume(returning: error as NSError?) })
        }
        expectEqual(error?.code, FirestoreErrorCode.aborted.rawValue)
        expectEqual(attempts.value, 2)
        try await firestore.terminate()
    }

    @Test
    func `The error that a block stores is delivered itself, and of a foreign domain it is not retried`() async throws {
        let attempts = Counter()
        let mine = NSError(domain: "mine", code: 42)
        do {
            _ = try await firestore.runTransaction { _, errorPointer in
                attempts.bump()
                errorPointer?.pointee = mine
                return nil
            }
            Issue.record("no error")
        } catch let error as NSError {
            expect(error === mine)
        }
        expectEqual(attempts.value, 1)
        expect(scripted.server.calls.isEmpty)
        try await firestore.terminate()
    }

    @Test
    func `Reads after writes are refused`() async throws {
        let counter = counter
        let code = try await firestore.runTransaction { transaction, _ in
            transaction.setData([:], forDocument: counter)
            do {
                _ = try transaction.getDocument(counter)
                return nil
            } catch let error as NSError {
                return error.code
            }
        }
        expect(code as? Int == FirestoreErrorCode.invalidArgument.rawValue)
        try await firestore.terminate()
    }

    @Test
    func `Updating a document that was read as absent ends the transaction`() async throws {
        let counter = counter
        let attempts = Counter()
        do {
            _ = try await firestore.runTransaction { transaction, _ in
                attempts.bump()
                _ = try? transaction.getDocument(counter)
                transaction.updateData(["n": 1], forDocument: counter)
                return nil
            }
            Issue.record("no error")
        } catch FirestoreErrorCode.invalidArgument {
        }
        expectEqual(attempts.value, 1)
        try await firestore.terminate()
    }

    @Test
    func `A document that was read as absent may be updated after it was set`() async throws {
        let counter = counter
        try await firestore.runTransaction { transaction in
            try transaction.getDocument(counter)
            transaction.setData(["n": 1], forDocument: counter).updateData(["m": 2], forDocument: counter)
        }
        expectEqual(scripted.database.writes.map(\.mask), [nil, ["m"]])
        expectEqual(scripted.database.writes.last?.precondition, .exists(true))
        try await firestore.terminate()
    }

    @Test
    func `That a document is absent says nothing about one whose id is the same text in other bytes`() async throws {
        let (composed, decomposed) = (firestore.document("c/\u{e9}"), firestore.document("c/e\u{301}"))
        try await composed.setData([:])
        try await firestore.runTransaction { transaction in
            try transaction.getDocument(decomposed)
            transaction.updateData(["n": 1], forDocument: composed).deleteDocument(composed)
            transaction.setData([:], forDocument: decomposed).updateData(["n": 1], forDocument: decomposed)
        }
        expectEqual(scripted.database.writes.count, 5)
        try await firestore.terminate()
    }

    @Test
    func `A transaction without reads is one commit`() async throws {
        let counter = counter
        _ = try await firestore.runTransaction { transaction, _ in
            transaction.deleteDocument(counter)
            return nil
        }
        expectEqual(scripted.server.calls.map(\.method), [.commit])
        try await firestore.terminate()
    }
}
