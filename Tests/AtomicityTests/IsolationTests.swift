// What concurrent clients may see of each other: money is neither made nor lost, batches are seen whole or not at all,
// increments are not lost.

import Basics
import DocumentModel
import FirestoreMessages
import HearthClient
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct IsolationTests {
    @Test
    func `Transfers between accounts keep the total, at every moment that anybody looks`() async throws {
        let arena = Arena()
        let server = try arena.start()
        let accounts = (0..<10).map { "accounts/\($0)" }
        let setUp = try Arena.client(of: server)
        try await setUp.commit(accounts.map { ($0, ["balance": 100]) })
        let isDone = Flag()

        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    let client = try Arena.client(of: server)
                    var random = SeededGenerator(seed: UInt64(worker))
                    for _ in 0..<40 * Arena.scale {
                        let from = random.below(accounts.count)
                        let to = (from + 1 + random.below(accounts.count - 1)) % accounts.count
                        let amount = Int64(random.below(10))
                        try await client.runTransaction(database: Arena.database, attemptsMax: 50) { transaction in
                            let reply = try await transaction.get([
                                Arena.name(accounts[from]), Arena.name(accounts[to]),
                            ])
                            for (name, content) in reply.results {
                                guard let balance = try content?.integer("balance") else {
                                    throw Unexpected("\(name) is missing")
                                }
                                let change = name == Arena.name(accounts[from]) ? -amount : amount
                                transaction.writes.set(
                                    name, fields: Arena.fields(["balance": .integer(balance + change)]))
                            }
                        }
                    }
                    await client.close()
                }
            }
            // Readers look at all accounts in one read and by a query until the workers are done.
            let readers = (0..<2).map { _ in
                Task {
                    let client = try Arena.client(of: server)
                    var looks = 0
                    while !isDone.isSet || looks < 5 {
                        let snapshot = try await client.snapshot(accounts).map { try $0.integer("balance") }
                        expectEqual(snapshot.reduce(0, +), 1000)
                        let queried = try await client.runQuery(
                            RunQueryRequest(
                                parent: Arena.database.documentsRoot,
                                query: StructuredQuery(from: [CollectionSelector(collectionID: "accounts")])))
                        try expectEqual(queried.map { try $0.content.integer("balance") }.reduce(0, +), 1000)
                        looks += 1
                    }
                    await client.close()
                }
            }
            do {
                try await group.waitForAll()
                isDone.set()
            } catch {
                isDone.set()
                throw error
            }
            for reader in readers { try await reader.value }
        }
        await setUp.close()
        expectEqual(server.stop(), 0)
        try arena.expectSound()
    }

    @Test
    func `No reader ever sees half a batch`() async throws {
        let arena = Arena()
        let server = try arena.start()
        // Documents of one batch lie in several collections.
        let paths = (0..<12).map { "part\($0 % 4)/\($0)" }
        let writer = try Arena.client(of: server)
        try await writer.commit(paths.map { ($0, ["stamp": 0]) })
        let isDone = Flag()

        let readers = (0..<3).map { _ in
            Task {
                let client = try Arena.client(of: server)
                var last: Int64 = 0
                while !isDone.isSet {
                    let stamps = Set(try await client.snapshot(paths).map { try $0.integer("stamp") })
                    expectEqual(stamps.count, 1, "half a batch: \(stamps)")
                    let stamp = stamps.first ?? -1
                    expect(stamp >= last, "a later read went back from \(last) to \(stamp)")
                    last = stamp
                }
                await client.close()
            }
        }
        for stamp in 1...Int64(300 * Arena.scale) {
            try await writer.commit(paths.map { ($0, ["stamp": .integer(stamp)]) })
        }
        isDone.set()
        for reader in readers { try await reader.value }
        await writer.close()
        expectEqual(server.stop(), 0)
        try arena.expectSound()
    }

    @Test
    func `Clients that increment one document all finish, and the sum is exact`() async throws {
        let arena = Arena()
        let server = try arena.start()
        let clients = 16
        let rounds = 10 * Arena.scale
        let setUp = try Arena.client(of: server)
        try await setUp.commit([("counters/c", ["n": 0])])

        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<clients {
                group.addTask {
                    let client = try Arena.client(of: server)
                    for _ in 0..<rounds {
                        // As many attempts as every user has by default.
                        try await client.runTransaction(database: Arena.database) { transaction in
                            guard let counter = try await transaction.get(Arena.name("counters/c")) else {
                                throw Unexpected("no counter")
                            }
                            let next = try counter.integer("n") + 1
                            transaction.writes.set(
                                Arena.name("counters/c"), fields: Arena.fields(["n": .integer(next)]))
                        }
                    }
                    await client.close()
                }
            }
            try await group.waitForAll()
        }
        try await expectEqual(setUp.snapshot(["counters/c"])[0].integer("n"), Int64(clients * rounds))
        await setUp.close()
        expectEqual(server.stop(), 0)
        try arena.expectSound()
    }

    @Test
    func `Two doctors cannot both go off call: write skew is refused`() async throws {
        let arena = Arena()
        let server = try arena.start()
        let client = try Arena.client(of: server)
        let onCall = RunQueryRequest(
            parent: Arena.database.documentsRoot,
            query: StructuredQuery(
                from: [CollectionSelector(collectionID: "doctors")],
                filter: .field(try FieldPath("onCall"), .equal, EncodedValue(.boolean(true)))))

        for round in 0..<20 * Arena.scale {
            try await client.commit([("doctors/a", ["onCall": true]), ("doctors/b", ["onCall": true])])
            // Both read how many are on call, then each goes off if another stays.
            let attempts = await withTaskGroup(of: Result<Void, RequestError>.self) { group in
                for doctor in ["a", "b"] {
                    group.addTask {
                        do {
                            let id = try await client.beginTransaction(database: Arena.database)
                            var query = onCall
                            query.consistency = .transaction(id)
                            var writes = CommitWrites(database: Arena.database)
                            if try await client.runQuery(query).count > 1 {
                                writes.set(Arena.name("doctors/\(doctor)"), fields: Arena.fields(["onCall": false]))
                            }
                            try await client.commit(writes, transaction: id)
                            return .success(())
                        } catch let error as RequestError {
                            return .failure(error)
                        } catch {
                            return .failure(RequestError(.unknown, "\(error)"))
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for case .failure(let error) in attempts { expectEqual(error.code, .aborted, "\(error)") }
            let remaining = try await client.runQuery(onCall).count
            expect(remaining >= 1, "nobody is on call after round \(round)")
        }
        await client.close()
        expectEqual(server.stop(), 0)
        try arena.expectSound()
    }
}
