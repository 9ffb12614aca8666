// The Firestore objects of the process, by app and database.

import Basics
import DocumentCoding
import DocumentModel
public import FirebaseCore
import Synchronization

/// The registry that `Firestore.firestore()` uses. Thread-safe.
final class FirestoreInstances: Sendable {
    static let shared = FirestoreInstances()

    private struct Key: Hashable {
        var app: ObjectIdentifier
        var database: UTF8Text
    }
    private let instances = Mutex<[Key: Firestore]>([:])

    func instance(app: FirebaseApp, database: String) -> Firestore {
        let key = Key(app: ObjectIdentifier(app), database: UTF8Text(database))
        if let existing = instances.withLock({ $0[key] }) { return existing }
        let name: DatabaseName
        do {
            name = try DatabaseName(project: app.projectID, database: database)
        } catch {
            programmingError(error.message)
        }
        return instances.withLock { instances in
            if let existing = instances[key] { return existing }
            let made = Firestore(app: app, databaseName: name)
            instances[key] = made
            app.onDeletion(of: "\(name)") { [weak made] in await made?.shutDown() }
            return made
        }
    }

    /// Every instance that was not terminated.
    var all: [Firestore] { instances.withLock { Array($0.values) } }

    func remove(_ firestore: Firestore) {
        instances.withLock { instances in
            for (key, value) in instances where value === firestore { instances[key] = nil }
        }
    }
}

extension Firestore {
    /// The `(default)` database of the default app. If no app was configured, one is made from the environment.
    @discardableResult
    public static func firestore() -> Firestore {
        FirestoreInstances.shared.instance(app: .defaultOrImplicit(), database: "(default)")
    }

    /// The `(default)` database of an app.
    @discardableResult
    public static func firestore(app: FirebaseApp) -> Firestore {
        FirestoreInstances.shared.instance(app: app, database: "(default)")
    }

    /// A database of the default app.
    @discardableResult
    public static func firestore(database: String) -> Firestore {
        FirestoreInstances.shared.instance(app: .defaultOrImplicit(), database: database)
    }

    /// A database of an app.
    @discardableResult
    public static func firestore(app: FirebaseApp, database: String) -> Firestore {
        FirestoreInstances.shared.instance(app: app, database: database)
    }
}
