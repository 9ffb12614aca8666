// Runs the tutorial service against a server, and against stores in this process.

import Firebase
import FirebaseFirestore
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct BookServiceTests {
    /// A database object on a new database.
    private func start(_ backend: TestBackend) throws -> (TestDatabase, Firestore) {
        let database = try backend.start()
        let name = "swift5-\(UUID().uuidString)"
        let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
        options.projectID = name
        FirebaseApp.configure(name: name, options: options)
        let firestore = Firestore.firestore(app: FirebaseApp.app(name: name)!)
        let settings = FirestoreSettings()
        settings.host = database.host
        settings.isSSLEnabled = false
        settings.dispatchQueue = DispatchQueue(label: "user")
        firestore.settings = settings
        return (database, firestore)
    }

    @Test(arguments: TestBackend.allCases)
    func `The tutorial's view model reads, writes and reports what it should`(backend: TestBackend) async throws {
        let (database, db) = try start(backend)
        let model = BookViewModel(db: db)
        let id = try #require(model.addBook(book: Book(title: "Ulysses", author: "Joyce", numberOfPages: 730)))
        // Until the server has acknowledged the book, its server timestamp reads as nil.
        try await db.waitForPendingWrites()
        await withCheckedContinuation { done in model.fetchBook(documentId: id) { done.resume() } }
        #expect(model.book.title == "Ulysses")
        #expect(model.book.id == id)
        #expect(model.book.lastUpdated != nil)
        let error = await withCheckedContinuation { done in model.patch(id: id) { done.resume(returning: $0) } }
        #expect(error == nil)
        await withCheckedContinuation { done in model.fetchByHand(documentId: id) { done.resume() } }
        #expect(model.book.title == "changed")
        #expect(model.book.numberOfPages == 731)
        let found = await withCheckedContinuation { done in model.snapshots { done.resume(returning: $0) } }
        #expect(found.map(\.documentID) == [id])
        await withCheckedContinuation { done in model.fetchBook(documentId: "missing") { done.resume() } }
        #expect(model.errorMessage != nil)
        try await db.collection("books").document("text").setData(
            ["title": "t", "author": "a", "numberOfPages": "many", "subtitle": NSNull()])
        await withCheckedContinuation { done in model.fetchBook(documentId: "text") { done.resume() } }
        #expect(model.errorMessage?.contains("Expected to decode Int") == true)
        try await db.terminate()
        #expect(database.stop())
    }

    @Test(arguments: TestBackend.allCases)
    func `The tutorial's generic service and its transaction work`(backend: TestBackend) async throws {
        let (database, db) = try start(backend)
        let service = FirebaseService(database: db)
        let id = try await service.post(Book(title: "A", author: "Joyce", numberOfPages: 1), to: "books")
        let books: [Book] = try await service.get(query: BookViewModel(db: db).query())
        #expect(books.map(\.id) == [id])
        try await service.delete(id, in: "books")
        let none: [Book] = try await service.get(query: db.collection("books"))
        #expect(none.isEmpty)
        try await db.document("accounts/a").setData(["balance": 41])
        let model = BookViewModel(db: db)
        let (result, error) = await withCheckedContinuation {
            (done: CheckedContinuation<(Int?, (any Error)?), Never>) in
            model.transfer { done.resume(returning: ($0 as? Int, $1)) }
        }
        #expect(error == nil)
        #expect(result == 42)
        #expect(model.handle(NSError(domain: FirestoreErrorDomain, code: 14)) == "offline")
        try await db.terminate()
        #expect(database.stop())
    }
}
