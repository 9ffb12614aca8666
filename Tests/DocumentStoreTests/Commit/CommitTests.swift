// Commits: what is stored, what is refused, which results clients get.

import Basics
import DocumentModel
import Storage
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)), .inSimulations)
struct CommitTests {
    @Test
    func `A document is there after its commit, with both times, and gone after its deletion`() async throws {
        let harness = try StoreHarness()
        let first = try await harness.result(committing: [.set("c/a", fields(1))])
        expectEqual(first.writeResults.map(\.updateMicroseconds), [first.commitMicroseconds])
        let created = try #require(try harness.get("c/a"))
        expectEqual(
            created,
            SeenDocument(
                fields: fields(1), createMicroseconds: first.commitMicroseconds,
                updateMicroseconds: first.commitMicroseconds))
        let second = try await harness.result(committing: [.set("c/a", fields(2))])
        expect(second.commitMicroseconds > first.commitMicroseconds)
        let updated = try #require(try harness.get("c/a"))
        expectEqual(
            updated,
            SeenDocument(
                fields: fields(2), createMicroseconds: first.commitMicroseconds,
                updateMicroseconds: second.commitMicroseconds))
        let third = try await harness.result(committing: [.delete("c/a")])
        expectEqual(third.writeResults.map(\.updateMicroseconds), [nil])
        try expectNil(harness.get("c/a"))
        let fourth = try await harness.result(committing: [.set("c/a", fields(3))])
        try expectEqual(harness.get("c/a")?.createMicroseconds, fourth.commitMicroseconds)
        try harness.finish()
    }

    @Test
    func `A commit that its caller may sync is done when the call returns, and durable`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(0))])
        // The commit thread may still be on its way to its place in the queue; then the commit just takes the usual
        // way.
        var doneAtOnce = 0
        for number in 1...200 as ClosedRange<Int64> {
            let outcome = Mutex<Result<CommitResult, RequestError>?>(nil)
            let request = CommitRequest(writes: try harness.list([.set("c/a", fields(number))]))
            harness.store.commit(request, maySync: true) { result in outcome.withLock { $0 = result } }
            let isDone = outcome.withLock { $0 != nil }
            if isDone {
                doneAtOnce += 1
                _ = try outcome.withLock { $0 }?.get()
                try expectEqual(harness.integer("c/a"), number)
            } else {
                try await harness.commit([.increment("c/other", field: "n", by: 1)])
                // On a busy machine the thread needs a moment to come there.
                try await pause(microseconds: 1_000)
            }
        }
        expect(doneAtOnce > 0)
        let crashed = try harness.crashed()
        try expectEqual(crashed.integer("c/a"), 200)
        try crashed.finish()
        try harness.finish()
    }

    @Test
    func `Commits that their callers sync and commits of the commit thread mix, each applied once, in one order`()
        async throws
    {
        let harness = try StoreHarness()
        let (clients, each) = (6, 150)
        let times = try await withThrowingTaskGroup(of: [UInt64].self) { group in
            for client in 0..<clients {
                group.addTask {
                    var times: [UInt64] = []
                    for _ in 0..<each {
                        let writes = try harness.list([
                            .increment("c/sum", field: "n", by: 1), .increment("c/own\(client)", field: "n", by: 1),
                        ])
                        let result = try await harness.outcome(CommitRequest(writes: writes), maySync: client % 2 == 0)
                            .get()
                        times.append(result.commitMicroseconds)
                    }
                    return times
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        expect(times.allSatisfy { $0 == $0.sorted() })
        expectEqual(Set(times.joined()).count, clients * each)
        try expectEqual(harness.integer("c/sum"), Int64(clients * each))
        for client in 0..<clients { try expectEqual(harness.integer("c/own\(client)"), Int64(each)) }
        try harness.finish()
    }

    @Test
    func `Writes of one commit see those before them`() async throws {
        let harness = try StoreHarness()
        let result = try await harness.result(committing: [
            .set("c/a", fields(1), .exists(false)),
            .increment("c/a", field: "n", by: 5),
            .merge("c/a", fields(7, "m"), mask: ["m"], .exists(true)),
            .delete("c/b"),
            .set("c/b", fields(1)),
            .delete("c/b", .exists(true)),
            .set("c/b", fields(2), .exists(false)),
        ])
        expectEqual(result.writeResults.count, 7)
        expectEqual(result.writeResults[1].transformResults, [EncodedValue(.integer(6))])
        try expectEqual(harness.get("c/a")?.fields, MapValue([("n", .integer(6)), ("m", .integer(7))]))
        try expectEqual(harness.integer("c/b"), 2)
        try expectEqual(harness.store.makeReader().count("c", harness), 2)
        try harness.finish()
    }

    @Test
    func `One failing write fails all of its commit and none of its neighbours'`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        async let bad = harness.failure([.set("c/x", fields(1)), .delete("c/a"), .set("c/a", fields(2), .exists(true))])
        async let good: CommitResult = harness.result(committing: [.set("d/y", fields(1))])
        let error = try #require(try await bad)
        _ = try await good
        expectEqual(error.code, .notFound)
        expect(error.message.hasPrefix("No document to update: "))
        try expectNil(harness.get("c/x"))
        try expectEqual(harness.integer("c/a"), 1)
        try expectEqual(harness.integer("d/y"), 1)
        try harness.finish()
    }

    @Test
    func `Preconditions: the code and the words that clients match`() async throws {
        let harness = try StoreHarness()
        let made = try await harness.result(committing: [.set("c/a", fields(1))])
        let time = TimestampValue(microseconds: Int64(made.commitMicroseconds))
        let exists = try #require(try await harness.failure([.set("c/a", fields(2), .exists(false))]))
        expectEqual(exists.code, .alreadyExists)
        expectEqual(exists.message, "Document already exists: \(harness.name("c/a"))")
        try await expectNil(harness.failure([.set("c/a", fields(2), .updateTime(time))]))
        try await expectEqual(harness.failure([.set("c/a", fields(3), .updateTime(time))])?.code, .failedPrecondition)
        let future = TimestampValue(microseconds: Int64(made.commitMicroseconds) + 3_600_000_000)
        try await expectEqual(harness.failure([.delete("c/a", .updateTime(future))])?.code, .invalidArgument)
        try await expectEqual(harness.failure([.verify("c/b", .exists(true))])?.code, .notFound)
        try await expectNil(harness.failure([.verify("c/b", .exists(false))]))
        try harness.finish()
    }

    @Test
    func `A write that changes nothing keeps the update time, and its commit time still advances`() async throws {
        let harness = try StoreHarness()
        let first = try await harness.result(committing: [.set("c/a", fields(1))])
        let second = try await harness.result(committing: [.set("c/a", fields(1))])
        expectEqual(second.writeResults.map(\.updateMicroseconds), [first.commitMicroseconds])
        expect(second.commitMicroseconds > first.commitMicroseconds)
        let third = try await harness.result(committing: [.delete("c/none")])
        let fourth = try await harness.result(committing: [])
        expect(third.commitMicroseconds > second.commitMicroseconds)
        expect(fourth.commitMicroseconds > third.commitMicroseconds)
        let fifth = try await harness.result(committing: [.set("c/a", fields(2))])
        expect(fifth.commitMicroseconds > fourth.commitMicroseconds)
        try harness.finish()
    }

    @Test
    func `A batch of independent writes: each has its own outcome`() async throws {
        let harness = try StoreHarness()
        let result = try await harness.batch([
            .set("c/a", fields(1)), .set("c/b", fields(1), .exists(true)), .delete("c/z"), .set("d/e", fields(2)),
        ])
        let codes = result.outcomes.map { outcome -> StatusCode in
            if case .failure(let error) = outcome { error.code } else { .ok }
        }
        expectEqual(codes, [.ok, .notFound, .ok, .ok])
        try expectEqual(harness.ids("c"), ["a"])
        try expectEqual(harness.ids("d"), ["e"])
        await #expect(throws: RequestError.self) { try await harness.batch([.delete("c/a"), .delete("c/a")]) }
        try harness.finish()
    }

    @Test
    func `Databases are kept apart`() async throws {
        let harness = try StoreHarness()
        let other = try DatabaseName(
            project: String(repeating: "o", count: 1_500), database: String(repeating: "d", count: 1_500))
        try await harness.commit([.set("c/a", fields(1))])
        _ = try await harness.outcome(CommitRequest(writes: try harness.list([.set("c/a", fields(2))], in: other)))
            .get()
        try expectEqual(harness.integer("c/a"), 1)
        let again = try harness.reopened()
        expectEqual(again.store.databases.all.count, 2)
        let reader = again.store.makeReader()
        let name = Array("\(other.documentsRoot)/c/a".utf8)
        var isFound = false
        try reader.withDocument(name.byteSpan, at: try reader.readPoint(.latest, in: other)) { isFound = $0 != nil }
        expect(isFound)
        #expect(throws: RequestError.self) {
            try reader.withDocument(name.byteSpan, at: try reader.readPoint(.latest, in: again.database)) { _ in }
        }
        try again.finish()
    }

    @Test
    func `Versions increase over clock steps and restarts, and stay above read times handed out`() async throws {
        let harness = try StoreHarness()
        let first = try await harness.result(committing: [.set("c/a", fields(1))])
        harness.clock.advance(milliseconds: 5_000)
        let notified = try harness.store.makeReader().readPoint(.latest, in: harness.database).readMicroseconds
        expect(notified >= harness.clock.nowMicroseconds)
        harness.clock.stepBack(milliseconds: 4_000_000)
        let second = try await harness.result(committing: [.set("c/a", fields(2))])
        expect(second.commitMicroseconds > notified)
        expect(notified > first.commitMicroseconds)
        // The acknowledged state is still what is stored.
        try expectEqual(harness.integer("c/a", "n", .time(TimestampValue(microseconds: Int64(notified)))), 1)
        let again = try harness.reopened()
        let third = try await again.result(committing: [.set("c/a", fields(3))])
        expect(third.commitMicroseconds > second.commitMicroseconds)
        try again.finish()
    }

    @Test
    func `A read time in the future or before the retention is refused`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        func code(_ microseconds: Int64) -> StatusCode? {
            do {
                _ = try harness.get("c/a", .time(TimestampValue(microseconds: microseconds)))
                return nil
            } catch {
                return (error as? RequestError)?.code
            }
        }
        let now = Int64(harness.clock.nowMicroseconds)
        expectEqual(code(now + 10_000_000), .invalidArgument)
        expect(code(now + 1) == nil || code(now + 1) == .invalidArgument)
        expectEqual(code(0), .invalidArgument)
        expectEqual(code(-5), .invalidArgument)
        expectNil(code(now))
        try harness.finish()
    }

    @Test
    func `After closing, submissions fail`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        try harness.finish()
        try await expectEqual(harness.failure([.set("c/a", fields(1))])?.code, .unavailable)
    }

    @Test
    func `A full queue refuses with a clear status, and what was accepted completes`() async throws {
        let harness = try StoreHarness { $0.queuedRequestsMax = 2 }
        let list = try harness.list([.set("c/a", fields(1))])
        let outcomes = await withTaskGroup(of: StatusCode.self, returning: [StatusCode].self) { group in
            for _ in 0..<200 {
                group.addTask {
                    switch await harness.outcome(CommitRequest(writes: list)) {
                    case .success: .ok
                    case .failure(let error): error.code
                    }
                }
            }
            var all: [StatusCode] = []
            for await code in group { all.append(code) }
            return all
        }
        expectEqual(outcomes.count, 200)
        expect(Set(outcomes).subtracting([.ok, .resourceExhausted]).isEmpty)
        expect(outcomes.contains(.ok))
        try harness.finish()
    }
}

extension StoreReader {
    func count(_ collection: String, _ harness: StoreHarness) throws -> Int {
        try documentCount(
            of: CollectionPath("\(harness.database.documentsRoot)/\(collection)"),
            at: readPoint(.latest, in: harness.database))
    }
}
