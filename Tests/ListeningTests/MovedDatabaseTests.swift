// Listeners of a database that moves to another store.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import TestSupport
import Testing

@testable import Listening

@Suite(.timeLimit(.minutes(20)), .inSimulations)
struct MovedDatabaseTests {
    private static let all = Subject.query(StructuredQuery(from: [CollectionSelector(collectionID: "c")]))

    private static func step(
        _ body: (@escaping @Sendable (Result<DatabaseTenure, RequestError>) -> Void) -> Void
    ) throws {
        let done = Monitor<Result<DatabaseTenure, RequestError>?>(nil)
        body { result in done.update { $0 = result } }
        _ = try done.wait { $0 }.get()
    }

    private static func receive(from source: ListenHarness, at target: ListenHarness) throws {
        try step { target.store.receive(source.database, generation: 1, completion: $0) }
    }

    private static func release(_ source: ListenHarness) throws {
        try step { source.store.release(source.database, generation: 1, to: "target", completion: $0) }
    }

    private static func copy(from source: ListenHarness, to target: ListenHarness) throws {
        while target.store.tenure(of: source.database).state == .receiving {
            let progress = target.store.tenure(of: source.database).progress
            let chunk = try source.store.moveChunk(of: source.database, generation: 1, after: progress)
            if chunk.bytes.isEmpty { return }
            try step { target.store.applyMove(chunk: chunk.bytes, to: source.database, generation: 1, completion: $0) }
        }
    }

    @Test
    func `A release ends the streams before a time above it is sent; at the target they begin from the start`() throws {
        let (source, target) = (try ListenHarness(), try ListenHarness())
        let client = ListenClient(source)
        try client.connect()
        try source.set("c/a", ["n": .integer(1)])
        try client.listen(1, to: Self.all)
        try client.drain()
        let time = client.readTime
        try Self.receive(from: source, at: target)
        let refused = ListenClient(target)
        try refused.connect()
        try refused.listen(1, to: Self.all)
        #expect(throws: RequestError.self) { try refused.drain() }
        refused.disconnect()
        try Self.copy(from: source, to: target)

        try source.set("c/b", ["n": .integer(1)])
        let wakes = source.wakeUps.count
        try Self.release(source)
        try waitUntil("the hub is woken") { source.wakeUps.count > wakes }
        source.hub.advance()
        let end = #expect(throws: RequestError.self) { try client.drain() }
        expect(end?.code == .unavailable && end?.isDatabaseElsewhere == true)
        expectEqual(client.readTime, time)
        client.disconnect()
        // Who comes back to the old store learns it at once.
        try client.resume()
        let again = #expect(throws: RequestError.self) { try client.drain() }
        expectEqual(again?.isDatabaseElsewhere, true)
        client.disconnect()

        try Self.copy(from: source, to: target)
        let moved = ListenClient(target)
        try moved.connect()
        var token = ByteBuffer()
        ResumeToken(microseconds: time).encode(into: &token)
        try moved.send(1, Self.all, resume: .token(token.copyBytes()), expectedCount: nil)
        try moved.drain()
        let messages = try moved.takeMessages().map(target.text)
        expectEqual(
            messages, ["add [1]", "reset [1]", "change c/a [1]", "change c/b [1]", "current [1]", "noChange []"])
        moved.disconnect()
        expect(source.hub.sessionCount == 0 && target.hub.sessionCount == 0)
    }

    /// A database with a document, a follower of it, and a client there that has got a listener's first results.
    private static func followed() throws -> (ListenHarness, FollowerHarness, ListenClient) {
        let source = try ListenHarness()
        let follower = try FollowerHarness(of: source)
        let client = ListenClient(source)
        try source.set("c/a", ["n": .integer(1)])
        try follower.follow()
        try client.connect(to: follower)
        try client.listen(1, to: all)
        follower.answerQuestions()
        follower.hub.advance()
        try client.drain()
        return (source, follower, client)
    }

    @Test(.enabled(if: ListenHarness.hasFiles, "The engine in memory has no records to follow."))
    func `A follower ends the streams when it has applied the release`() throws {
        let (source, follower, client) = try Self.followed()
        let time = client.readTime
        expect(time > 0)
        try Self.release(source)
        follower.hub.advance()
        try client.drain()
        let wakes = follower.wakeUps.count
        try follower.follow()
        try waitUntil("the hub is woken") { follower.wakeUps.count > wakes }
        expectEqual(follower.store.tenure(of: source.database).state, .released)
        follower.hub.advance()
        let end = #expect(throws: RequestError.self) { try client.drain() }
        expect(end?.code == .unavailable && end?.isDatabaseElsewhere == true)
        expectEqual(client.readTime, time)
        client.disconnect()
    }

    @Test(.enabled(if: ListenHarness.hasFiles, "The engine in memory has no records to follow."))
    func `A follower ends the targets when it has applied the deletion of their database`() throws {
        let (source, follower, client) = try Self.followed()
        _ = client.takeMessages()
        let wakes = follower.wakeUps.count
        try source.deleteDatabase()
        try follower.follow()
        try waitUntil("the hub is woken") { follower.wakeUps.count > wakes }
        follower.hub.advance()
        try client.drain()
        let ends = try client.takeMessages().map(source.text).filter { $0.hasPrefix("remove [1] NOT_FOUND") }
        expectEqual(ends.count, 1)
        client.disconnect()
    }
}
