// The steps of a move, one by one.

import Basics
import DocumentModel
import Storage
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct MoveTests {
    private static func identifier(_ sequence: UInt64, session: UInt64 = 5) -> RequestIdentifier {
        RequestIdentifier(sessionHigh: session, sessionLow: 1, sequence: sequence, oldestPending: 1)
    }

    private static func time(_ microseconds: UInt64) -> ReadSelector {
        .time(TimestampValue(microseconds: Int64(microseconds)))
    }

    @Test
    func `Documents move with their times, and later writes have later ones although the clock is slow`() async throws {
        let stores = try MovingStores()
        stores.source.clock.advance(milliseconds: 3_600_000)
        let long = "c/" + String(repeating: "x", count: 400)
        try await stores.source.commit([.set("c/a", fields(1)), .set("c/b", fields(2)), .set(long, fields(3))])
        try await stores.source.commit([.set("c/b", fields(4)), .set("c/a/s/d", fields(5)), .set("e/gone", fields(6))])
        try await stores.source.commit([.delete("e/gone")])
        let paths = ["c/a", "c/b", long, "c/a/s/d", "e/gone"]
        let before = try paths.map { try stores.source.get($0) }
        let readTime = stores.source.store.currentReadTime
        try await stores.move()
        expectEqual(stores.target.store.tenure(of: stores.database).state, .owned)
        expect(stores.target.store.tenure(of: stores.database).version > readTime)
        try expectEqual(paths.map { try stores.target.get($0) }, before)
        try expectEqual(stores.target.ids("c").count, 3)
        let created = try #require(before[1]?.createMicroseconds)
        let written = try await stores.target.result(committing: [.set("c/b", fields(7)), .set("c/n", fields(8))])
        expect(written.commitMicroseconds > readTime)
        try expectEqual(
            stores.target.get("c/b"),
            SeenDocument(fields: fields(7), createMicroseconds: created, updateMicroseconds: written.commitMicroseconds)
        )
        expect(stores.target.store.currentReadTime >= written.commitMicroseconds)
        // A precondition names the time that the document had in the source.
        let time = TimestampValue(microseconds: Int64(try #require(before[0]?.updateMicroseconds)))
        try await stores.target.commit([.set("c/a", fields(9), .updateTime(time))])
        let stale = try await stores.target.failure([.set("c/a", fields(10), .updateTime(time))])
        expectEqual(stale?.code, .failedPrecondition)
        try stores.finish()
    }

    @Test
    func `A store owns a database when it may give out the time of the release`() async throws {
        let limit = Monitor(UInt64.max)
        let stores = try MovingStores { $0.admitsTime = { time in limit.withLock { time < $0 } } }
        stores.source.clock.advance(milliseconds: 3_600_000)
        try await stores.source.commit([.set("c/a", fields(1))])
        try await expectEqual(stores.receive().state, .receiving)
        try await stores.copy()
        let released = try await stores.release().version
        limit.update { $0 = released }
        let before = stores.target.store.tenure(of: stores.database)
        let error = await #expect(throws: RequestError.self) { try await stores.copy() }
        expectEqual(error?.code, .unavailable)
        expectEqual(stores.target.store.tenure(of: stores.database), before)
        expect(stores.target.store.currentReadTime < released)
        limit.update { $0 = released + 1 }
        try await stores.copy()
        expectEqual(stores.target.store.tenure(of: stores.database).state, .owned)
        expect(stores.target.store.currentReadTime > released)
        try stores.finish()
    }

    @Test
    func `A document moves that has more index entries than a write may make by now`() async throws {
        let stores = try MovingStores { $0.indexEntriesPerDocumentMax = 100 }
        let list = Value.array((0..<200).map { .integer(Int64($0)) })
        let exemption = FieldOverride(collectionID: "c", field: try FieldPath("list"), indexes: [])
        try await IndexedModel(stores.source).declare(IndexDeclaration(fieldOverrides: [exemption]))
        try await stores.source.commit([.set("c/a", ["list": list])])
        // From here on the document is over the limit.
        try await IndexedModel(stores.source).declare(IndexDeclaration())
        try await expectEqual(stores.source.failure([.set("c/b", ["list": list])])?.code, .invalidArgument)
        let before = try stores.source.get("c/a")
        try await stores.move()
        try expectEqual(stores.target.get("c/a"), before)
        try await expectEqual(stores.target.failure([.set("c/b", ["list": list])])?.code, .invalidArgument)
        try stores.finish()
    }

    @Test
    func `After the release the source refuses everything, and answers what it has answered before`() async throws {
        let stores = try MovingStores()
        let source = stores.source
        let first = try await source.result(
            committing: [.increment("c/a", field: "n", by: 1)], identifier: Self.identifier(1))
        let before = source.store.currentReadTime
        let optimistic = try await source.begin()
        let pessimistic = try await source.begin(.readWrite(retryTransaction: [], concurrency: .pessimistic))
        try expectEqual(source.integer("c/a", "n", .transaction(optimistic)), 1)
        try await expectEqual(stores.receive().state, .receiving)
        try await stores.copy()
        let released = try await stores.release()
        expect(released.state == .released && released.target == "target" && released.isCopyLeft)
        try await expectEqual(stores.release(), released)

        for refused in [
            try await source.failure([.set("c/a", fields(2))]), source.readError("c/a"),
            source.readError("c/a", Self.time(released.version)),
            await #expect(throws: RequestError.self) { try await source.begin() },
            await #expect(throws: RequestError.self) { try await source.begin(.readOnly(readTime: nil)) },
            await #expect(throws: RequestError.self) { try await source.batch([.set("c/a", fields(2))]) },
        ] {
            expect(refused?.code == .unavailable && refused?.isDatabaseElsewhere == true, "\(refused as Any)")
        }
        for transaction in [optimistic, pessimistic] {
            expectEqual(source.readError("c/a", .transaction(transaction))?.code, .aborted)
            let late = try await source.failure([.set("c/b", fields(2))], transaction: transaction)
            expectEqual(late?.code, .aborted)
        }
        try expectEqual(source.integer("c/a", "n", Self.time(before)), 1)
        let again = try await source.result(
            committing: [.increment("c/a", field: "n", by: 1)], identifier: Self.identifier(1))
        expectEqual(again, first)
        expectEqual(source.store.databaseNames, [])
        expect(source.store.moveRefusal(of: stores.database) != nil)

        try await stores.copy()
        let owned = try await stores.target.result(
            committing: [.increment("c/a", field: "n", by: 1)], identifier: Self.identifier(1))
        expectEqual(owned, first)
        try expectEqual(stores.target.integer("c/a"), 1)
        let next = try await stores.target.result(
            committing: [.increment("c/a", field: "n", by: 1)], identifier: Self.identifier(2))
        expect(next.commitMicroseconds > released.version)
        try expectEqual(stores.target.integer("c/a"), 2)

        try await expectEqual(stores.deleteReleased().state, .released)
        try await MovingStores.waitUntilRemoved(source)
        try expectEqual(StoreCheck.run(source.store).documents, 0)
        expectEqual(source.readError("c/a")?.isDatabaseElsewhere, true)
        let late = try await source.failure([.set("c/a", fields(2))])
        expectEqual(late?.isDatabaseElsewhere, true)
        let restarted = try source.reopened()
        expectEqual(restarted.store.tenure(of: stores.database).state, .released)
        expectEqual(restarted.readError("c/a")?.isDatabaseElsewhere, true)
        try restarted.finish()
        try stores.target.finish()
    }

    @Test
    func `A receiving store refuses everything until it owns the database, and reads of times before the move`()
        async throws
    {
        let stores = try MovingStores()
        try await stores.source.commit([.set("c/a", fields(1))])
        // Its history here is of no meaning for the database.
        let other = try DatabaseName(project: "p", database: "other")
        let write = CommitRequest(writes: try stores.target.list([.set("c/o", fields(1))], in: other))
        _ = try await stores.target.outcome(write).get()
        let received = try await stores.receive()
        expect(received.state == .receiving && received.progress == [])
        try await expectEqual(stores.receive(), received)
        try await stores.copy()
        for target in [stores.target, try stores.target.crashed()] {
            expectEqual(target.store.databaseNames, [other])
            for refused in [
                try await target.failure([.set("c/a", fields(2))]), target.readError("c/a"),
                await #expect(throws: RequestError.self) { try await target.begin() },
            ] {
                expect(refused?.code == .unavailable && refused?.isDatabaseElsewhere == true)
            }
        }
        try await expectEqual(stores.release().state, .released)
        let before = stores.target.store.currentReadTime
        try await stores.copy()
        let tenure = stores.target.store.tenure(of: stores.database)
        expectEqual(stores.target.readError("c/a", Self.time(before)), .snapshotTooOld)
        try expectEqual(stores.target.integer("c/a", "n", Self.time(tenure.version)), 1)
        expectEqual(stores.target.store.oldestResumeTime(of: stores.database), tenure.version)
        expectEqual(Set(stores.target.store.databaseNames), [other, stores.database])
        // Another loop of a server has another reader.
        let reader = stores.target.store.makeReader()
        for selector in [.latest, Self.time(before), .latest, Self.time(before)] {
            let point = try? reader.readPoint(selector, in: stores.database)
            if case .latest = selector { expect(point != nil) } else { expectNil(point) }
        }
        try stores.finish()
    }

    @Test
    func `A move that is given up leaves the source as it was, and nothing at the target`() async throws {
        let stores = try MovingStores()
        for start in stride(from: 0, to: 400, by: 100) {
            try await stores.source.commit((start..<start + 100).map { .set("c/d\($0)", fields(Int64($0))) })
        }
        try await expectEqual(stores.receive().state, .receiving)
        try await stores.copy()
        try expectEqual(StoreCheck.run(stores.target.store).documents, 400)
        try await expectEqual(stores.discard().state, .discarded)
        try await expectEqual(stores.discard().state, .discarded)
        let late = await #expect(throws: RequestError.self) { try await stores.receive() }
        expectEqual(late?.code, .failedPrecondition)
        stores.source.store.endMoveSource(of: stores.database)
        try await MovingStores.waitUntilRemoved(stores.target)
        try expectEqual(StoreCheck.run(stores.target.store).documents, 0)
        expectEqual(stores.target.readError("c/d1")?.isDatabaseElsewhere, true)
        stores.target = try stores.target.restarted()
        expectEqual(stores.target.store.tenure(of: stores.database).state, .discarded)
        try await stores.source.commit([.set("c/d1", fields(1_000))])
        // The next attempt.
        stores.generation += 1
        try await stores.move()
        try expectEqual(stores.target.ids("c").count, 400)
        try expectEqual(stores.target.integer("c/d1"), 1_000)
        try stores.finish()
    }

    @Test
    func `A database moves back, which waits until the old copy is gone`() async throws {
        let stores = try MovingStores()
        try await stores.source.commit([.set("c/a", fields(1)), .set("c/b", fields(1))])
        try await stores.move()
        stores.source.store.endMoveSource(of: stores.database)
        try await stores.target.commit([.delete("c/a"), .set("c/d", fields(2))])
        let before = try stores.target.get("c/d")
        stores.turn()
        // The removal begins by itself.
        let early = await #expect(throws: RequestError.self) { try await stores.receive() }
        expectEqual(early?.code, .unavailable)
        try await MovingStores.waitUntilRemoved(stores.target)
        try await stores.move()
        try expectEqual(stores.target.ids("c"), ["b", "d"])
        try expectEqual(stores.target.get("c/d"), before)
        expectEqual(stores.source.readError("c/b")?.isDatabaseElsewhere, true)
        stores.generation = 1
        let outdated = await #expect(throws: RequestError.self) { try await stores.release() }
        expectEqual(outdated?.code, .failedPrecondition)
        try stores.finish()
    }

    @Test
    func `Indexes, overrides and settings move, and entries are derived with the numbers of the target`() async throws {
        let stores = try MovingStores()
        // Numbers of collections and fields differ.
        let other = try DatabaseName(project: "p", database: "other")
        let write = CommitRequest(
            writes: try stores.target.list([.set("x/o", fields(1, "z")), .set("y/o", fields(1, "y"))], in: other))
        _ = try await stores.target.outcome(write).get()
        let declaration = IndexDeclaration(
            indexes: [
                IndexShape(
                    collectionID: "c", isGroup: false,
                    parts: [
                        .init(field: try FieldPath("n"), kind: .ascending),
                        .init(field: try FieldPath("m"), kind: .descending),
                    ])
            ],
            fieldOverrides: [
                FieldOverride(collectionID: "c", field: try FieldPath("secret"), indexes: []),
                FieldOverride(collectionID: "t", field: try FieldPath("until"), indexes: nil, expires: true),
            ])
        try await withCheckedContinuation { continuation in
            stores.source.store.declareIndexes(declaration, in: stores.database) { continuation.resume(returning: $0) }
        }.get()
        for number in 0..<20 {
            try await stores.source.commit([
                .set(
                    "c/d\(number)",
                    MapValue([
                        ("n", .integer(Int64(number % 3))), ("m", .integer(Int64(number))), ("secret", .integer(1)),
                    ]))
            ])
        }
        try await withCheckedContinuation { continuation in
            stores.source.store.changeDatabase(stores.database) { _ in
                DatabaseSettings(state: .created, isProtected: true, location: "here")
            } completion: {
                continuation.resume(returning: $0)
            }
        }.get()
        let described = try #require(stores.source.store.describeDatabase(stores.database))
        try await stores.move()
        let moved = try #require(stores.target.store.describeDatabase(stores.database))
        expectEqual(moved.settings, described.settings)
        expectEqual(moved.createMicroseconds, described.createMicroseconds)
        let number = try #require(stores.target.store.databases.number(of: stores.database))
        expectEqual(stores.target.store.indexState.current.declaration(of: number), declaration)
        try await eventually("the indexes are built") {
            stores.target.clock.advance(milliseconds: 1_000)
            stores.target.store.noticeTime()
            return stores.target.store.declaredIndexes(in: stores.database).allSatisfy { $0.state == .ready }
        }
        // The check derives all entries again.
        stores.target = try stores.target.reopened()
        let reopened = stores.target.store.describeDatabase(stores.database)
        expectEqual(reopened?.createMicroseconds, described.createMicroseconds)
        try stores.finish()
    }

    @Test
    func `A judgement of security rules stands for a document that was moved`() async throws {
        let stores = try MovingStores()
        try await stores.source.commit([.set("c/a", fields(1))])
        try await stores.move()
        let seen = try #require(try stores.target.get("c/a"))
        var basis = CommitBasis()
        let path = Array("c/a".utf8)
        basis.note(path.byteSpan, version: seen.updateMicroseconds)
        let request = CommitRequest(writes: try stores.target.list([.set("c/b", fields(1))]), basis: basis)
        _ = try await stores.target.outcome(request).get()
        try await stores.target.commit([.set("c/a", fields(2))])
        let outdated = await stores.target.outcome(request)
        #expect(throws: RequestError.judgementOutdated) { try outdated.get() }
        try stores.finish()
    }

    @Test
    func `Chunks that are malformed or of another move change nothing`() async throws {
        let stores = try MovingStores()
        try await stores.source.commit([.set("c/a", fields(1)), .set("c/b", fields(2))])
        try await expectEqual(stores.receive().state, .receiving)
        let chunk = try stores.chunk()
        for length in stride(from: 0, to: chunk.bytes.count, by: 3) {
            let cut = Array(chunk.bytes[..<length])
            let error = await #expect(throws: RequestError.self) {
                try await withCheckedContinuation { continuation in
                    stores.target.store.applyMove(chunk: cut, to: stores.database, generation: 1) {
                        continuation.resume(returning: $0)
                    }
                }.get()
            }
            expectEqual(error?.code, .invalidArgument)
        }
        try expectEqual(StoreCheck.run(stores.target.store).documents, 0)
        stores.generation = 2
        let other = await #expect(throws: RequestError.self) { try await stores.apply(chunk) }
        expectEqual(other?.code, .failedPrecondition)
        stores.generation = 1
        let applied = try await stores.apply(chunk)
        try await expectEqual(stores.apply(chunk), applied)
        try expectEqual(StoreCheck.run(stores.target.store).documents, 2)
        try stores.finish()
    }

    @Test
    func `A leader that was replaced, or may have been, gives out nothing`() async throws {
        let stores = try MovingStores()
        try await stores.source.commit([.set("c/a", fields(1))])
        try await expectEqual(stores.receive().state, .receiving)
        let replaced = try stores.source.crashed()
        let uncertain = try stores.source.crashed { $0.holdsLease = { false } }
        try await stores.source.commit([.set("c/a", fields(2))])
        try await stores.copy()
        let progress = stores.target.store.tenure(of: stores.database).progress
        for (store, progress) in [(replaced.store, progress), (uncertain.store, [])] {
            let error = #expect(throws: RequestError.self) {
                try store.moveChunk(of: stores.database, generation: 1, after: progress)
            }
            expectEqual(error?.code, .unavailable)
        }
        try expectEqual(replaced.store.moveChunk(of: stores.database, generation: 1, after: []).documents, 1)
        try stores.finish()
    }

    @Test(.needsFiles)
    func `Followers of both stores have the same entries as their leaders`() async throws {
        let stores = try MovingStores {
            $0.engine.memtableBytesMax = 64 << 20
            $0.engine.logKeptBytes = 64 << 20
        }
        stores.chunkBytes = 300
        for number in 0..<30 {
            let identifier = Self.identifier(UInt64(number) + 1)
            let write = StepWrite.set("c/d\(number % 20)", fields(Int64(number)))
            _ = try await stores.source.result(committing: [write], identifier: identifier)
        }
        try await expectEqual(stores.receive().state, .receiving)
        for number in 0..<5 {
            _ = try await stores.apply(try stores.chunk())
            try await stores.source.commit([.delete("c/d\(number)"), .set("c/n\(number)", fields(1))])
        }
        try await expectEqual(stores.release().state, .released)
        try await stores.copy()
        try await stores.target.commit([.set("c/n1", fields(2))])
        try await expectEqual(stores.deleteReleased().state, .released)
        try await MovingStores.waitUntilRemoved(stores.source)
        for leader in [stores.source, stores.target] {
            let follower = try StoreHarness(clock: leader.clock) { $0.leader = "leader:1" }
            let records = try leader.store.records(after: .zero)
            var batch = FollowedRecords()
            while try records.next() { batch.append(records.record, version: records.version) }
            let all = batch
            try await withCheckedContinuation { continuation in
                follower.store.follow(all) { continuation.resume(returning: $0) }
            }.get()
            expectEqual(follower.store.tenure(of: stores.database), leader.store.tenure(of: stores.database))
            try expectEqual(
                FollowingTests.entries(follower.store, at: nil), FollowingTests.entries(leader.store, at: nil))
            follower.store.close()
        }
        try stores.finish()
    }
}
