// Runs the service against a server, and against stores in this process.

import FirebaseFirestore
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct CityStoreTests {
    @Test(arguments: TestBackend.allCases)
    func `A model on the main actor works with async calls alone`(backend: TestBackend) async throws {
        let user = try UserDatabase(backend)
        let model = await CityModel(db: user.db)
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
        #expect(try await user.db.collection("numbers").getDocuments().count == 3)
        #expect(try await model.count() == 2)
        #expect(try await user.end())
    }

    @Test(arguments: TestBackend.allCases)
    func `Concurrent transactions on one document all finish, and the sum is exact`(backend: TestBackend) async throws {
        let user = try UserDatabase(backend)
        let bank = Bank(db: user.db)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<5 { _ = try await bank.deposit(1, to: "a") } }
            }
            try await group.waitForAll()
        }
        let balance = try await user.db.document("accounts/a").getDocument().get("balance") as? Int
        #expect(balance == 40)
        #expect(try await user.end())
    }
}
