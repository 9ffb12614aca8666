// What the names of databases may take in memory, and numbers that are set aside.

import Basics
import DocumentModel
import Storage
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct DatabaseDirectoryTests {
    private static func name(_ id: String) throws -> DatabaseName { try DatabaseName(project: "p", database: id) }

    private static func begin(_ harness: StoreHarness, _ name: DatabaseName) async throws -> TransactionIdentifier {
        try await withCheckedContinuation { continuation in
            harness.store.beginTransaction(in: name, options: .readWrite) { continuation.resume(returning: $0) }
        }.get()
    }

    private static func create(_ harness: StoreHarness, _ name: DatabaseName) async throws {
        try await withCheckedContinuation { continuation in
            harness.store.changeDatabase(name) { (_) throws(RequestError) in
                DatabaseSettings(state: .created)
            } completion: {
                continuation.resume(returning: $0)
            }
        }.get()
    }

    @Test
    func `A number that is set aside is forgotten with its last claim, and no other database gets it`() throws {
        let directory = DatabaseDirectory(maximum: 10)
        let name = try Self.name("one")
        var first = try directory.reserve(name).claim
        var second = try directory.reserve(name, for: .transaction).claim
        expect(first != nil && second != nil)
        expect(directory.number(of: name) == 1 && directory.byteCount > DatabaseDirectory.entryBytes)
        let generation = directory.generation
        first = nil
        expect(first == nil && directory.number(of: name) == 1 && directory.generation == generation)
        second = nil
        expect(second == nil && directory.number(of: name) == nil && directory.name(of: 1) == nil)
        expect(directory.byteCount == 0 && directory.storedCount == 0 && directory.generation > generation)
        let again = try directory.reserve(name)
        expect(again.number == 2 && !again.isStored)
        directory.markStored(name, number: 2, version: 5)
        withExtendedLifetime(again.claim) {}
        let stored = try directory.reserve(name)
        expect(stored.number == 2 && stored.isStored && stored.claim == nil)
        expect(directory.storedCount == 1 && directory.name(of: 2) == name)
    }

    @Test
    func `The claim of a commit that was stored changes nothing when it ends`() throws {
        let directory = DatabaseDirectory(maximum: 10)
        let name = try Self.name("one")
        do {
            let reserved = try directory.reserve(name)
            directory.markStored(name, number: reserved.number, version: 5)
            withExtendedLifetime(reserved.claim) {}
        }
        expect(directory.number(of: name) == 1 && directory.existing.map(\.number) == [1])
    }

    @Test
    func `Of very many deletions of one database the last are known`() throws {
        let directory = DatabaseDirectory(maximum: 10)
        let name = try Self.name("one")
        let count = UInt64(DatabaseDirectory.hiddenMax + 3)
        // It is there from 100n to 100n + 50, and deleted from there on.
        for round in 1...count {
            directory.markStored(name, number: 1, version: 100 * round)
            for state in [DatabaseSettings.State.deleting, .deleted] {
                var settings = DatabaseSettings(state: state)
                settings.deleteMicroseconds = 100 * round + 50
                directory.set(settings, of: 1)
            }
        }
        for round in 1...count {
            let isKnown = round > 3
            try expectEqual(directory.number(of: name, at: 100 * round + 49).number, 1)
            expectEqual(directory.isHidden(1, at: 100 * round + 50), isKnown)
            expectEqual(directory.isHidden(1, at: 100 * round + 99), isKnown)
            expectEqual(directory.deleted(after: 100 * round + 49, through: 100 * round + 50), isKnown ? [name] : [])
            expectEqual(directory.deleted(after: 100 * round + 50, through: 100 * round + 149), [])
        }
        expect(directory.isHidden(1, at: .max - 1))
        expect(directory.byteCount < DatabaseDirectory.entryBytes + name.utf8.count + 32 * DatabaseDirectory.hiddenMax)
    }

    @Test
    func `All numbers of 32 bits can be used up, which is refused`() throws {
        let directory = DatabaseDirectory(maximum: 10)
        directory.markStored(try Self.name("last"), number: .max, version: 1)
        let error = #expect(throws: RequestError.self) { _ = try directory.reserve(try Self.name("next")) }
        expectEqual(error?.code, .resourceExhausted)
        try expectEqual(directory.reserve(try Self.name("last")).number, .max)
    }

    @Test
    func `Transactions set aside a quarter of the memory, so that commits find room`() throws {
        let bytes = 100 * DatabaseDirectory.entryBytes
        let directory = DatabaseDirectory(maximum: 1_000, bytesMax: bytes)
        var claims: [DatabaseClaim] = []
        var refusal: RequestError?
        do throws(RequestError) {
            for number in 0..<100 {
                let name = try DatabaseName(project: "p", database: "d\(number)")
                if let claim = try directory.reserve(name, for: .transaction).claim { claims.append(claim) }
            }
        } catch {
            refusal = error
        }
        expect(refusal?.code == .resourceExhausted && claims.count == 24 && directory.byteCount <= bytes / 4)
        try expect(directory.reserve(try Self.name("a commit")).claim != nil)
        claims = []
        expectEqual(directory.byteCount, 0)
        try expect(directory.reserve(try Self.name("d0"), for: .transaction).claim != nil)
    }

    @Test
    func `What clients try and do not store takes no memory`() async throws {
        let harness = try StoreHarness { $0.databasesMax = 3 }
        try await harness.commit([.set("c/a", fields(1))])
        let bytes = harness.store.statistics.databaseBytes
        expect(bytes > 0)
        for number in 0..<50 {
            let other = try Self.name("other\(number)")
            let writes = try harness.list([.set("c/a", fields(1), .exists(true))], in: other)
            let outcome = await harness.outcome(CommitRequest(writes: writes))
            #expect(throws: RequestError.self) { try outcome.get() }
            harness.store.rollback(try await Self.begin(harness, other))
        }
        try await eventually("the transactions have ended") { harness.store.statistics.databaseBytes == bytes }
        expectEqual(harness.store.statistics.databases, 1)
        // A commit without an effect.
        let nothing = try harness.list([.delete("c/none")], in: try Self.name("other"))
        _ = try await harness.outcome(CommitRequest(writes: nothing)).get()
        try harness.finish()
    }

    @Test
    func `A transaction keeps the number under which it found nothing, while others try and fail`() async throws {
        let harness = try StoreHarness()
        let transaction = try await harness.begin()
        try expectNil(harness.get("c/a", .transaction(transaction)))
        try await expect(harness.failure([.set("c/a", fields(1), .exists(true))]) != nil)
        harness.store.rollback(try await harness.begin())
        try await harness.commit([.set("c/a", fields(2))])
        let late = try await harness.failure([.set("c/b", fields(1))], transaction: transaction)
        expectEqual(late?.code, .aborted)
        try expectEqual(harness.integer("c/a"), 2)
        try harness.finish()
    }

    @Test
    func `Databases beyond the memory are refused, deleted ones count, and a start loads all`() async throws {
        let harness = try StoreHarness { $0.databaseBytesMax = 10 * DatabaseDirectory.entryBytes }
        var made = 0
        var refusal: RequestError?
        while refusal == nil, made < 100 {
            do {
                try await Self.create(harness, try Self.name("d\(made)"))
                made += 1
            } catch {
                refusal = error as? RequestError
            }
        }
        expect(refusal?.code == .resourceExhausted && made == 9)
        let known = try Self.name("d0")
        let write = CommitRequest(writes: try harness.list([.set("c/a", fields(1))], in: known))
        _ = try await harness.outcome(write).get()
        try await withCheckedContinuation { continuation in
            harness.store.deleteDatabase(known) { _ in
            } completion: {
                continuation.resume(returning: $0)
            }
        }.get()
        try await eventually("the database is removed") {
            harness.clock.advance(milliseconds: 1_000)
            harness.store.noticeTime()
            return harness.store.describeDatabase(known)?.settings?.state == .deleted
        }
        expectEqual(harness.store.statistics.databases, 8)
        let more = await #expect(throws: RequestError.self) {
            try await Self.create(harness, try Self.name("more"))
        }
        expectEqual(more?.code, .resourceExhausted)
        // The name of the deleted one is there to be used again.
        _ = try await harness.outcome(write).get()
        expectEqual(harness.store.statistics.databases, 9)
        let bytes = harness.store.statistics.databaseBytes
        let smaller = try harness.crashed { $0.databaseBytesMax = 1 }
        expect(smaller.store.statistics.databases == 9 && smaller.store.statistics.databaseBytes == bytes)
        _ = try await smaller.outcome(write).get()
        try smaller.finish()
        try harness.finish()
    }
}
