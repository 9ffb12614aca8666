// What the write methods send, in which order, and how their callers hear of it.

import Basics
import ClientTestSupport
import DocumentModel
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct WriteTests {
    private struct Book: Codable, Equatable {
        var title: String
        var pages: Int
    }

    private let scripted: ScriptedFirestore
    private var firestore: Firestore { scripted.firestore }
    private var book: DocumentReference { firestore.document("books/b1") }

    init() throws { scripted = try ScriptedFirestore() }

    @Test
    func `set replaces, merge and mergeFields carry a mask, update insists on the document`() async throws {
        try await book.setData(["title": "A", "tags": ["x"]])
        try await book.setData(["a": ["b": 1]], merge: true)
        try await book.setData(["a": 1, "b": 2], mergeFields: ["a"])
        try await book.updateData(["a.b": 1, "c": FieldValue.delete()])
        try await book.delete()
        let writes = scripted.database.writes
        expectEqual(writes.map(\.kind), [.update, .update, .update, .update, .delete])
        expect(writes.allSatisfy { $0.name == book.name })
        expectNil(writes[0].mask)
        expectEqual(writes[1].mask, ["a.b"])
        expectEqual(writes[2].mask, ["a"])
        expectEqual(writes[3].mask?.sorted(), ["a.b", "c"])
        expectEqual(writes.map(\.precondition), [nil, nil, nil, .exists(true), nil])
        try await firestore.terminate()
    }

    @Test
    func `Sentinels become transforms`() async throws {
        try await book.updateData(["at": FieldValue.serverTimestamp(), "count": FieldValue.increment(Int64(2))])
        let transforms = scripted.database.writes[0].transforms
        expectEqual(Set(transforms.map(\.path.description)), ["at", "count"])
        expect(transforms.contains { $0.operation == .requestTime })
        expect(transforms.contains { $0.operation == .increment(.integer(2)) })
        try await firestore.terminate()
    }

    @Test
    func `setData(from:) gives the document that encoding and setData give`() async throws {
        let value = Book(title: "Ulysses", pages: 730)
        try book.setData(from: value)
        try await firestore.waitForPendingWrites()
        try await book.setData(Firestore.Encoder().encode(value))
        let writes = scripted.database.writes
        expectEqual(writes.count, 2)
        expectEqual(writes[0].fields, writes[1].fields)
        expect(!writes[0].fields.isEmpty)
        try await firestore.terminate()
    }

    @Test
    func `Writes that nobody awaits arrive in the order of the calls`() async throws {
        for number in 0..<200 { book.setData(["n": number], completion: nil) }
        try await firestore.waitForPendingWrites()
        let snapshot = try await book.getDocument()
        expect(snapshot.get("n") as? Int == 199)
        expectEqual(scripted.database.writes.count, 200)
        try await firestore.terminate()
    }

    @Test
    func `A read sees a write that was issued before it and is not awaited`() async throws {
        for number in 0..<50 {
            try book.setData(from: Book(title: "T", pages: number))
            try await expectEqual(book.getDocument(as: Book.self).pages, number)
            let found = try await firestore.collection("books").getDocuments()
            expect(found.documents.first?.get("pages") as? Int == number)
        }
        try await firestore.terminate()
    }

    @Test
    func `Completions run on the queue of the settings, with the error of a rejection`() async throws {
        scripted.database.failCommits([RequestError(.permissionDenied, "no")])
        let firestore = firestore
        let book = book
        let error = await withCheckedContinuation { (continuation: CheckedContinuation<NSError?, Never>) in
            let queue = firestore.settings.dispatchQueue
            book.setData(["a": 1]) { error in
                dispatchPrecondition(condition: .onQueue(queue))
                continuation.resume(returning: error as NSError?)
            }
        }
        expectEqual(error?.domain, FirestoreErrorDomain)
        expectEqual(error?.code, FirestoreErrorCode.permissionDenied.rawValue)
        expectEqual(error?.localizedDescription, "no")
        try await firestore.terminate()
    }

    @Test
    func `The async form throws what the server says, as an NSError that patterns match`() async throws {
        scripted.database.failCommits([RequestError(.notFound, "No document to update: b1")])
        do {
            try await book.updateData(["a": 1])
            Issue.record("no error")
        } catch FirestoreErrorCode.notFound {
        }
        try await firestore.terminate()
    }

    @Test
    func `addDocument gives a new id, at once or after the acknowledgement`() async throws {
        let first = try await firestore.collection("books").addDocument(data: ["a": 1])
        let second = try firestore.collection("books").addDocument(from: Book(title: "B", pages: 1))
        try await firestore.waitForPendingWrites()
        expectEqual(scripted.database.writes.map(\.name), [first.name, second.name])
        try await firestore.terminate()
    }

    @Test
    func `A batch is one commit, whatever it holds`() async throws {
        let batch = firestore.batch()
        batch.setData(["a": 1], forDocument: book).updateData(["b": 2], forDocument: firestore.document("x/y"))
            .deleteDocument(firestore.document("x/z"))
        try batch.setData(from: Book(title: "B", pages: 1), forDocument: firestore.document("x/w"))
        try await batch.commit()
        expectEqual(scripted.server.calls.count, 1)
        expectEqual(scripted.database.writes.map(\.kind), [.update, .update, .delete, .update])
        try await firestore.terminate()
    }

    @Test
    func `An empty batch succeeds at once, also while the server cannot be reached`() async throws {
        try await firestore.disableNetwork()
        let ends = Mutex<[Bool]>([])
        firestore.batch().commit { error in ends.withLock { $0.append(error == nil) } }
        try await eventually("the batch has ended") { ends.withLock { $0 } == [true] }
        try await firestore.batch().commit()
        try await firestore.waitForPendingWrites()
        expect(scripted.server.calls.isEmpty)
        try await firestore.terminate()
    }

    @Test
    func `An update after a delete of the same document in one commit is refused without asking the server`()
        async throws
    {
        let batch = firestore.batch().deleteDocument(book).updateData(["a": 1], forDocument: book)
        do {
            try await batch.commit()
            Issue.record("no error")
        } catch FirestoreErrorCode.invalidArgument {
        }
        expect(scripted.server.calls.isEmpty)
        // A set in between brings the document back.
        let fine = firestore.batch().deleteDocument(book).setData([:], forDocument: book)
        try await fine.updateData(["a": 1], forDocument: book).commit()
        try await firestore.terminate()
    }

    @Test
    func `A delete says nothing about a document whose id is the same text in other bytes`() async throws {
        let (composed, decomposed) = (firestore.document("c/\u{e9}"), firestore.document("c/e\u{301}"))
        try await decomposed.setData([:])
        try await firestore.batch().deleteDocument(composed).updateData(["a": 1], forDocument: decomposed).commit()
        expectEqual(scripted.database.writes.map(\.kind), [.update, .delete, .update])
        try await firestore.terminate()
    }

    @Test
    func `What cannot be written is a broken rule that names the field`() {
        let cases: [([String: Any], String)] = [
            (["a": ["b": Date.self as Any]], "a.b"), (["x": [[1]]], "x"), (["l": [FieldValue.serverTimestamp()]], "l"),
            (["d": FieldValue.delete()], "d"), (["__x__": 1], "__x__"),
        ]
        for (data, field) in cases {
            #expect {
                _ = try WriteValues.set(data, for: book)
            } throws: {
                ($0 as? RuleViolation)?.message.contains(field) == true
            }
        }
    }

    @Test
    func `A merge field that the data does not have is a broken rule`() {
        #expect(throws: RuleViolation.self) { _ = try WriteValues.set(["a": 1], for: book, mergeFields: ["b"]) }
        #expect(throws: RuleViolation.self) { _ = try WriteValues.set(["a": 1], for: book, mergeFields: ["a..b"]) }
        #expect(throws: RuleViolation.self) { _ = try WriteValues.set(["a": 1], for: book, mergeFields: [5]) }
    }

    @Test
    func `A server that comes back gets the writes that waited for it`() async throws {
        let database = scripted.database
        let port = scripted.server.port
        scripted.server.cut()
        book.setData(["a": 1], completion: nil)
        let later = try FakeServer(port: port) { database.react(to: $0) }
        try await firestore.waitForPendingWrites()
        expectEqual(database.writes.count, 1)
        expectEqual(later.calls.count, 1)
        try await firestore.terminate()
    }
}
