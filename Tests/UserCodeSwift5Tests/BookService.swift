// A service as tutorials for the Apple SDK write it, in Swift 5 mode: completions, Result, legacy imports. That it
// compiles unchanged is most of the test; `BookServiceTests` runs it.

import Firebase
import FirebaseFirestore
import FirebaseFirestoreSwift
import Foundation

struct Book: Identifiable, Codable {
    @DocumentID var id: String?
    var title: String
    var author: String
    var numberOfPages: Int
    @ServerTimestamp var lastUpdated: Date?
    @ExplicitNull var subtitle: String?
    var place: GeoPoint?
}

extension Book {
    static let empty = Book(title: "", author: "", numberOfPages: 0)
}

final class FirebaseService {
    static let shared = FirebaseService()
    let database: Firestore

    init(database: Firestore = Firestore.firestore()) {
        self.database = database
    }

    /// Settings as older tutorials set them.
    static func configure(_ db: Firestore) {
        let settings = db.settings
        settings.isPersistenceEnabled = true
        settings.cacheSizeBytes = FirestoreCacheSizeUnlimited
        db.settings = settings
    }

    func get<T: Decodable>(query: Query) async throws -> [T] {
        let querySnapshot = try await query.getDocuments()
        var values: [T] = []
        for document in querySnapshot.documents { values.append(try document.data(as: T.self)) }
        return values
    }

    func post<T: Encodable>(_ value: T, to collection: String) async throws -> String {
        let ref = database.collection(collection).document()
        try ref.setData(from: value)
        return ref.documentID
    }

    func delete(_ id: String, in collection: String) async throws {
        let ref = database.collection(collection).document(id)
        try await ref.delete()
    }
}

final class BookViewModel {
    var book: Book = .empty
    var books: [Book] = []
    var errorMessage: String?
    let db: Firestore
    private var listenerRegistration: ListenerRegistration?

    init(db: Firestore) { self.db = db }

    func fetchBook(documentId: String, done: @escaping () -> Void) {
        let docRef = db.collection("books").document(documentId)
        docRef.getDocument(as: Book.self) { result in
            switch result {
            case .success(let book):
                self.book = book
                self.errorMessage = nil
            case .failure(let error):
                switch error {
                case DecodingError.typeMismatch(_, let context):
                    self.errorMessage = "\(error.localizedDescription): \(context.debugDescription)"
                case DecodingError.valueNotFound(_, let context):
                    self.errorMessage = "\(error.localizedDescription): \(context.debugDescription)"
                default:
                    self.errorMessage = "Error decoding document: \(error.localizedDescription)"
                }
            }
            done()
        }
    }

    func fetchByHand(documentId: String, done: @escaping () -> Void) {
        let docRef = db.collection("books").document(documentId)
        docRef.getDocument { document, error in
            if let error = error as NSError? {
                self.errorMessage = "Error getting document: \(error.localizedDescription)"
            } else if let document = document {
                let id = document.documentID
                let data = document.data()
                let title = data?["title"] as? String ?? ""
                let numberOfPages = data?["numberOfPages"] as? Int ?? 0
                let author = data?["author"] as? String ?? ""
                self.book = Book(id: id, title: title, author: author, numberOfPages: numberOfPages)
            }
            done()
        }
    }

    func updateBook(book: Book) {
        if let id = book.id {
            let docRef = db.collection("books").document(id)
            do {
                try docRef.setData(from: book)
            } catch {
                print(error)
            }
        }
    }

    func addBook(book: Book) -> String? {
        let collectionRef = db.collection("books")
        do {
            let newDocReference = try collectionRef.addDocument(from: book)
            return newDocReference.documentID
        } catch {
            return nil
        }
    }

    func patch(id: String, done: @escaping ((any Error)?) -> Void) {
        db.collection("books").document(id).updateData([
            "title": "changed", "lastUpdated": FieldValue.serverTimestamp(),
            "numberOfPages": FieldValue.increment(Int64(1)),
        ]) { err in
            done(err)
        }
    }

    func subscribe() {
        if listenerRegistration == nil {
            listenerRegistration = db.collection("books").addSnapshotListener { [weak self] querySnapshot, error in
                guard let documents = querySnapshot?.documents else {
                    self?.errorMessage = error?.localizedDescription
                    return
                }
                self?.books = documents.compactMap { try? $0.data(as: Book.self) }
            }
        }
    }

    func unsubscribe() {
        listenerRegistration?.remove()
        listenerRegistration = nil
    }

    func query() -> Query {
        db.collection("books").whereField("author", isEqualTo: "Joyce").order(by: "title").limit(to: 5)
    }

    func snapshots(done: @escaping ([DocumentSnapshot]) -> Void) {
        query().getDocuments { snapshot, _ in
            var array: [DocumentSnapshot] = []
            array = snapshot?.documents ?? []
            done(array)
        }
    }

    func transfer(done: @escaping (Any?, (any Error)?) -> Void) {
        let reference = db.collection("accounts").document("a")
        db.runTransaction({ (transaction, errorPointer) -> Any? in
            let document: DocumentSnapshot
            do {
                try document = transaction.getDocument(reference)
            } catch let fetchError as NSError {
                errorPointer?.pointee = fetchError
                return nil
            }
            guard let old = document.data()?["balance"] as? Int else {
                let error = NSError(
                    domain: "AppErrorDomain", code: -1, userInfo: [NSLocalizedDescriptionKey: "no balance"])
                errorPointer?.pointee = error
                return nil
            }
            transaction.updateData(["balance": old + 1], forDocument: reference)
            return old + 1
        }) { (object, error) in
            done(object, error)
        }
    }

    func handle(_ error: any Error) -> String {
        let ns = error as NSError
        if ns.domain == FirestoreErrorDomain, let code = FirestoreErrorCode.Code(rawValue: ns.code) {
            switch code {
            case .unavailable: return "offline"
            case .notFound: return "gone"
            default: return "other"
            }
        }
        return "foreign"
    }

    func writeWithoutCompletion() {
        // None of these results is used, and nothing warns.
        db.collection("books").addDocument(data: ["a": 1])
        db.document("books/b").setData(["a": 1], merge: true)
        db.collection("books").document("b").delete()
        db.batch().setData(["a": 1], forDocument: db.document("books/b")).deleteDocument(db.document("books/c"))
    }
}
