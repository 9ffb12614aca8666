import ClientTestSupport
import FirebaseFirestore

/// A database object and its scripted server.
struct ScriptedFirestore {
    let database = ScriptedDatabase()
    let server: FakeServer
    let firestore: FirebaseFirestore.Firestore

    init() throws {
        let database = database
        server = try FakeServer { database.react(to: $0) }
        firestore = TestFirestore.make(host: server.address)
    }
}
