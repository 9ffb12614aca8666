// Databases for the suites, as user code reaches them.

import FirebaseCore
import FirebaseFirestore
import Foundation
import TestSupport

/// A new database, with a new project and `Firestore`.
struct UserDatabase {
    let database: TestDatabase
    let db: Firestore
    /// The queue of the callbacks.
    let queue: DispatchQueue

    init(_ backend: TestBackend) throws {
        database = try backend.start()
        queue = DispatchQueue(label: "callbacks")
        db = Self.firestore(database.host, queue)
    }

    /// Another client of the same host, with a new project.
    static func firestore(_ host: String, _ queue: DispatchQueue = DispatchQueue(label: "callbacks")) -> Firestore {
        let name = "user-\(UUID().uuidString)"
        let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
        options.projectID = name
        FirebaseApp.configure(name: name, options: options)
        let firestore = Firestore.firestore(app: FirebaseApp.app(name: name)!)
        let settings = firestore.settings
        settings.host = host
        settings.dispatchQueue = queue
        firestore.settings = settings
        return firestore
    }

    /// Ends the client, then the server.
    ///
    /// - Returns: whether the server ended in order.
    func end() async throws -> Bool {
        try await db.terminate()
        return database.stop()
    }
}

/// The code of the error that a call throws; nil if it throws none.
func firestoreCode(_ body: () async throws -> Void) async -> FirestoreErrorCode.Code? {
    do {
        try await body()
        return nil
    } catch {
        return FirestoreErrorCode.Code(rawValue: (error as NSError).code)
    }
}
