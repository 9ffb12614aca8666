// Runs the service against a server, and against stores in this process.

import FirebaseCore
import FirebaseFirestore
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct CityStoreTests {
    private func start(_ backend: TestBackend) throws -> (TestDatabase, Firestore) {
        let database = try backend.start()
        let name = "swift6-\(UUID().uuidString)"
        let options = FirebaseOptions(googleAppID: "1:1:ios:1", gcmSenderID: "1")
        options.projectID = name
        FirebaseApp.configure(name: name, options: options)
        let firestore = Firestore.firestore(app: FirebaseApp.app(name: name)!)
        let settings = firestore.settings
        settings.host = database.host
        firestore.settings = settings
        return (database, firestore)
    }

    @Test("A model on the main actor works with async calls alone", arguments: TestBackend.allCases)
    func model(backend: TestBackend) async throws {
        let (database, db) = try start(backend)
        let model = await CityModel(db: db)
        let small = try await model.add(City(name: "S", population: 1, regions: ["r"]))
        _ = try await model.add(City(name: "L", population: 1000, regions: []))
        try await model.load()
        #expect(await model.cities.map(\.name) == ["L", "S"])
        await model.grow(small)
        await model.grow("missing")
        #expect(await model.message == "not found")
        try await model.load()
        #expect(await model.cities.map(\.population) == [1000, 11])
        #expect(try await model.noteText() == "hello")
        try await model.batch()
        #expect(try await db.collection("numbers").getDocuments().count == 3)
        #expect(try await model.count() == 2)
        try await db.terminate()
        #expect(database.stop())
    }

    @Test("Concurrent transactions on one document all finish, and the sum is exact", arguments: TestBackend.allCases)
    func bank(backend: TestBackend) async throws {
        let (database, db) = try start(backend)
        let bank = Bank(db: db)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<5 { _ = try await bank.deposit(1, to: "a") } }
            }
            try await group.waitForAll()
        }
        let balance = try await db.document("accounts/a").getDocument().get("balance") as? Int
        #expect(balance == 40)
        try await db.terminate()
        #expect(database.stop())
    }
}
