// Databases: created, protected, deleted, and there again.

import Basics
import DocumentModel
import Foundation
import Storage
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct DatabaseTests {
    private static func change(
        _ harness: StoreHarness, _ name: DatabaseName,
        _ change: @escaping @Sendable (DatabaseDescription?) throws(RequestError) -> DatabaseSettings
    ) async throws {
        try await withCheckedContinuation { continuation in
            harness.store.changeDatabase(name, change) { continuation.resume(returning: $0) }
        }.get()
    }

    private static func delete(_ harness: StoreHarness) async throws {
        try await withCheckedContinuation { continuation in
            harness.store.deleteDatabase(harness.database) { _ in
            } completion: {
                continuation.resume(returning: $0)
            }
        }.get()
    }

    private static func waitUntilDeleted(_ harness: StoreHarness) async throws {
        try await eventually("the database is removed") {
            // A failure or a refusal is tried again after a second of this clock.
            harness.clock.advance(milliseconds: 1_000)
            harness.store.noticeTime()
            return harness.store.describeDatabase(harness.database)?.settings?.state == .deleted
        }
    }

    private static func fill(_ harness: StoreHarness, _ count: Int) async throws {
        for start in stride(from: 0, to: count, by: 100) {
            try await harness.commit((start..<start + 100).map { .set("c/d\($0)", fields(Int64($0))) })
        }
    }

    @Test
    func `A created database exists without documents, also after a restart`() async throws {
        var harness = try StoreHarness()
        let name = try DatabaseName(project: "p", database: "made")
        let other = try DatabaseName(project: "p", database: "other")
        expectEqual(harness.store.databaseNames, [])
        for name in [name, other] {
            try await Self.change(harness, name) { (known) throws(RequestError) in
                expectNil(known)
                return DatabaseSettings(state: .created, isProtected: name.database == "made", location: "here")
            }
        }
        let before = try #require(harness.store.describeDatabase(name))
        expect(before.exists && before.settings?.isProtected == true && before.settings?.location == "here")
        expect(before.createMicroseconds > 0 && before.settings?.updateMicroseconds ?? 0 > before.createMicroseconds)
        for isCrash in [true, false] {
            harness = isCrash ? try harness.crashed() : try harness.reopened()
            let after = try #require(harness.store.describeDatabase(name))
            expect(after.settings == before.settings && after.createMicroseconds == before.createMicroseconds)
            expectEqual(harness.store.databaseNames.map(\.database).sorted(), ["made", "other"])
        }
        let error = await #expect(throws: RequestError.self) {
            try await Self.change(harness, name) { (_) throws(RequestError) in
                throw RequestError(.failedPrecondition, "no")
            }
        }
        expectEqual(error?.code, .failedPrecondition)
        expectEqual(harness.store.describeDatabase(name)?.settings, before.settings)
        try harness.finish()
    }

    @Test
    func `A deletion shows at once, ends transactions, refuses writes, and continues after a restart`() async throws {
        let harness = try StoreHarness { $0.admitsHousekeeping = atMost(1, .databaseRemoval) }
        try await Self.fill(harness, 600)
        let other = try DatabaseName(project: "p", database: "other")
        let kept = CommitRequest(writes: try harness.list([.set("c/kept", fields(1))], in: other))
        _ = try await harness.outcome(kept).get()
        let transaction = try await harness.begin()
        try expectEqual(harness.integer("c/d5", "n", .transaction(transaction)), 5)
        let before = TimestampValue(microseconds: Int64(harness.store.currentReadTime))

        harness.clock.advance(milliseconds: 10)
        try await Self.delete(harness)
        try expectNil(harness.get("c/d5"))
        try expectEqual(harness.ids("c"), [])
        try expectEqual(harness.integer("c/d5", "n", .time(before)), 5)
        try expectEqual(harness.ids("c", .all, .time(before)).count, 600)
        #expect(throws: RequestError.unknownTransaction) { try harness.get("c/d5", .transaction(transaction)) }
        let late = try await harness.failure([.set("c/new", fields(1))], transaction: transaction)
        expectEqual(late?.code, .invalidArgument)
        let refused = try await harness.failure([.set("c/new", fields(1))])
        expectEqual(refused?.code, .failedPrecondition)
        await expectEqual(#expect(throws: RequestError.self) { try await harness.begin() }?.code, .failedPrecondition)
        expectEqual(harness.store.databaseNames, [other])
        expectEqual(harness.store.describeDatabase(harness.database)?.isBeingDeleted, true)
        let again = await #expect(throws: RequestError.self) { try await Self.delete(harness) }
        expectEqual(again?.code, .notFound)

        // One step of 256 documents was admitted; the rest is removed after the crash.
        try await eventually("a step is done") { harness.store.statistics.documentsWritten == 601 + 256 }
        let restarted = try harness.crashed { $0.admitsHousekeeping = { _ in true } }
        try expectNil(restarted.get("c/d599"))
        try await Self.waitUntilDeleted(restarted)
        try expectEqual(StoreCheck.run(restarted.store).documents, 1)
        try expectEqual(restarted.ids("c", .all, .time(before)).count, 600)
        expectEqual(restarted.store.databaseNames, [other])
        let last = try restarted.reopened()
        expectEqual(last.store.describeDatabase(last.database)?.settings?.state, .deleted)
        try last.finish()
        try harness.finish()
    }

    @Test(.needsFiles)
    func `A deletion that cannot come to its end on a full disk is tried again after pauses`() async throws {
        let fault = FaultSwitch()
        let harness = try StoreHarness { $0.engine.fault = { fault.check($0) } }
        try await Self.fill(harness, 300)
        let model = IndexedModel(harness)
        let part = IndexShape.Part(field: try FieldPath("n"), kind: .ascending)
        let other = IndexShape.Part(field: try FieldPath("m"), kind: .ascending)
        let shape = IndexShape(collectionID: "c", isGroup: false, parts: [part, other])
        try await model.declare(IndexDeclaration(indexes: [shape]))
        try await model.waitForIndexes()
        // Until the checkpoint has succeeded commits that only delete are accepted, and no others.
        fault.fail(.writeRun, with: ENOSPC)
        #expect(throws: (any Error).self) { try harness.store.checkpoint() }
        try await Self.delete(harness)
        try await eventually("the index cannot be removed") { harness.store.statistics.housekeepingFailures > 0 }
        // Each has the thread look for work.
        for _ in 0..<50 {
            harness.store.noticeTime()
            try await expect(harness.failure([.set("c/new", fields(1))]) != nil)
        }
        expectEqual(harness.store.statistics.housekeepingFailures, 1)
        fault.heal()
        try await Self.waitUntilDeleted(harness)
        try harness.finish()
    }

    @Test
    func `A database that was deleted comes into being again with its next document`() async throws {
        let harness = try StoreHarness()
        try await Self.fill(harness, 300)
        let model = IndexedModel(harness)
        let shape = IndexShape(
            collectionID: "c", isGroup: false,
            parts: [
                IndexShape.Part(field: try FieldPath("n"), kind: .ascending),
                IndexShape.Part(field: try FieldPath("m"), kind: .ascending),
            ])
        try await model.declare(IndexDeclaration(indexes: [shape]))
        try await model.waitForIndexes()
        let first = try #require(harness.store.describeDatabase(harness.database))
        expect(first.settings == nil && first.exists && first.createMicroseconds > 0)
        let reader = harness.store.makeReader()
        try expect(reader.readPoint(.latest, in: harness.database).databaseNumber != nil)
        try await Self.delete(harness)
        try expectNil(reader.readPoint(.latest, in: harness.database).databaseNumber)
        try await Self.waitUntilDeleted(harness)
        expect(harness.store.declaredIndexes(in: harness.database).filter { $0.state != .dropping }.isEmpty)

        harness.clock.advance(milliseconds: 10)
        try await harness.commit([.set("c/again", fields(7))])
        try expectEqual(harness.ids("c"), ["again"])
        try expect(reader.readPoint(.latest, in: harness.database).databaseNumber != nil)
        let second = try #require(harness.store.describeDatabase(harness.database))
        expect(second.settings == nil && second.exists)
        expect(second.createMicroseconds > first.createMicroseconds)
        let restarted = try harness.crashed()
        try expectEqual(restarted.ids("c"), ["again"])
        expectEqual(restarted.store.databaseNames, [restarted.database])
        expectEqual(restarted.store.describeDatabase(restarted.database)?.createMicroseconds, second.createMicroseconds)
        try restarted.finish()
        try harness.finish()
    }

    @Test
    func `A database that is deleted again and again is empty at each time between a deletion and the next creation`()
        async throws
    {
        let keepsDocuments = SharedFlag()
        let harness = try StoreHarness {
            $0.admitsHousekeeping = { task in task != .databaseRemoval || !keepsDocuments.isSet }
        }
        func now() -> TimestampValue { TimestampValue(microseconds: Int64(harness.store.currentReadTime)) }
        var (full, empty): ([TimestampValue], [TimestampValue]) = ([], [])
        for _ in 0..<3 {
            harness.clock.advance(milliseconds: 10)
            try await Self.fill(harness, 300)
            full.append(now())
            harness.clock.advance(milliseconds: 10)
            keepsDocuments.set()
            try await Self.delete(harness)
            // The documents are still there.
            empty.append(now())
            keepsDocuments.clear()
            try await Self.waitUntilDeleted(harness)
            empty.append(now())
        }
        let number = try #require(harness.store.databases.number(of: harness.database))
        for time in full {
            try expectEqual(harness.ids("c", .all, .time(time)).count, 300)
            expect(!harness.store.isHidden(database: number, at: UInt64(time.microseconds)))
        }
        for time in empty {
            try expectEqual(harness.ids("c", .all, .time(time)), [])
            try expectNil(harness.get("c/d5", .time(time)))
            expect(harness.store.isHidden(database: number, at: UInt64(time.microseconds)))
        }
        try harness.finish()
    }

    @Test
    func `A deleted database does not count for the limit of databases`() async throws {
        let harness = try StoreHarness { $0.databasesMax = 1 }
        try await harness.commit([.set("c/a", fields(1))])
        let other = try DatabaseName(project: "p", database: "other")
        let write = CommitRequest(writes: try harness.list([.set("c/a", fields(1))], in: other))
        let refused = await harness.outcome(write)
        #expect(throws: RequestError.self) { try refused.get() }
        try await Self.delete(harness)
        try await Self.waitUntilDeleted(harness)
        _ = try await harness.outcome(write).get()
        expectEqual(harness.store.databaseNames, [other])
        try harness.finish()
    }

    @Test
    func `Damaged settings are found, and read as none`() throws {
        for bytes in [[], [1], [UInt8](repeating: 9, count: 30), [UInt8](repeating: 0, count: 17)] {
            expectNil(DatabaseSettings(bytes.byteSpan))
            let record = [LogRecord.databaseKind, 1, 0, 0, 0] + bytes
            #expect(throws: StorageError.self) { try DatabaseRecord<DatabaseSettings>(record.byteSpan) }
        }
        let cut = [LogRecord.databaseKind, 1]
        #expect(throws: StorageError.self) { try DatabaseRecord<DatabaseSettings>(cut.byteSpan) }
    }
}
