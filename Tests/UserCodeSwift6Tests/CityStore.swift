// A service as people write it today, in Swift 6 mode: async calls from the main actor, from actors and from tasks,
// with plain closures and values that are not Sendable.

import FirebaseCore
import FirebaseFirestore
import Foundation

struct City: Codable, Equatable, Sendable {
    @DocumentID var id: String?
    var name: String
    var population: Int
    var regions: [String]
}

/// Not Sendable on purpose: models often are classes.
final class Note: Codable {
    var text: String
    init(text: String) { self.text = text }
}

@MainActor final class CityModel {
    private let db: Firestore
    private(set) var cities: [City] = []
    private(set) var message = ""
    private var listener: (any ListenerRegistration)?

    init(db: Firestore) { self.db = db }

    func load() async throws {
        let snapshot = try await db.collection("cities").order(by: "population", descending: true).getDocuments()
        cities = try snapshot.documents.map { try $0.data(as: City.self) }
    }

    func add(_ city: City) async throws -> String {
        let reference = try db.collection("cities").addDocument(from: city)
        try await db.waitForPendingWrites()
        return reference.documentID
    }

    func noteText() async throws -> String {
        let reference = db.document("notes/n1")
        try reference.setData(from: Note(text: "hello"))
        let note = try await reference.getDocument(as: Note.self)
        return note.text
    }

    func grow(_ id: String) async {
        do {
            let reference = db.collection("cities").document(id)
            try await reference.updateData(["population": FieldValue.increment(Int64(10))])
            try await reference.setData(["seen": FieldValue.serverTimestamp()], merge: true)
        } catch FirestoreErrorCode.notFound {
            message = "not found"
        } catch {
            message = error.localizedDescription
        }
    }

    func callbacks() {
        var count = 0
        db.collection("cities").document("x").getDocument { snapshot, error in
            count += snapshot?.exists == true ? 1 : 0
            _ = error
        }
        db.collection("cities").document("x").setData(["a": 1]) { error in count += error == nil ? 1 : 0 }
        listener = db.collection("cities").addSnapshotListener { _, _ in }
        listener?.remove()
    }

    func batch() async throws {
        let batch = db.batch()
        for number in 0..<3 {
            batch.setData(["n": number], forDocument: db.collection("numbers").document("\(number)"))
        }
        try await batch.commit()
    }

    func count() async throws -> Int {
        try await db.collection("cities").count.getAggregation(source: .server).count.intValue
    }
}

actor Bank {
    private let db: Firestore

    init(db: Firestore) { self.db = db }

    func deposit(_ amount: Int, to account: String) async throws -> Int? {
        let reference = db.collection("accounts").document(account)
        let result = try await db.runTransaction { transaction, errorPointer in
            let snapshot: DocumentSnapshot
            do {
                snapshot = try transaction.getDocument(reference)
            } catch let error as NSError {
                errorPointer?.pointee = error
                return nil
            }
            let balance = (snapshot.get("balance") as? Int ?? 0) + amount
            transaction.setData(["balance": balance], forDocument: reference, merge: true)
            return balance
        }
        return result as? Int
    }
}
