// Listeners at a server that follows another, and lags.

import Basics
import DocumentModel
import FirestoreMessages
import Listening
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)), .enabled(if: ListenHarness.hasFiles, "the records of a leader are in files"))
struct FollowerListenTests {
    private static let query = Subject.query(StructuredQuery(from: [CollectionSelector(collectionID: "c")]))

    private func pair() throws -> (ListenHarness, FollowerHarness) {
        let leader = try ListenHarness { $0.engine.logKeptBytes = 64 << 20 }
        return (leader, try FollowerHarness(of: leader))
    }

    /// What the changes of targets say that have come.
    private static func kinds(_ client: ListenClient) -> [ListenResponse.TargetChange.Kind] {
        client.takeMessages().compactMap { message in
            if case .targetChange(let change) = message { return change.kind }
            return nil
        }
    }

    /// A client that has seen a commit which the follower lacks, and comes to the follower.
    private func clientAhead(_ leader: ListenHarness, _ follower: FollowerHarness) throws -> ListenClient {
        try leader.set("c/a", ["n": .integer(1)])
        try follower.follow()
        try leader.set("c/b", ["n": .integer(2)])
        // So that the client's token is above the version of the commit.
        leader.clock.advance(milliseconds: 1)
        let client = ListenClient(leader)
        try client.connect()
        try client.listen(1, to: Self.query)
        try client.drain()
        expectEqual(client.targets[1]?.documents.count, 2)
        client.disconnect()
        _ = client.takeMessages()
        try client.resume(at: follower)
        follower.answerQuestions()
        return client
    }

    @Test(arguments: [11, 12, 13, 14] as [UInt64])
    func `Every snapshot is the query at its read time, at a leader and at its followers in turn`(seed: UInt64) throws {
        let (leader, follower) = try pair()
        let other = try FollowerHarness(of: leader)
        let followers = [follower, other]
        var random = RandomListening(seed: seed)
        let clients = (0..<3).map { _ in ListenClient(leader) }
        for client in clients { try client.connect() }
        for _ in 0..<600 {
            let client = random.generator.pick(clients)
            switch random.generator.below(20) {
            case 0..<5: _ = try leader.commit(random.writes())
            case 5: leader.clock.advance(milliseconds: 3)
            case 6: leader.hub.advance()
            case 7, 8: try random.generator.pick(followers).follow(atMost: random.generator.below(4))
            case 9: try random.generator.pick(followers).follow()
            case 10, 11: random.generator.pick(followers).answerQuestions()
            case 12: for follower in followers { follower.hub.advance() }
            case 13, 14: try client.drain()
            case 15: try client.drain(atMost: random.generator.below(4))
            case 16:
                if client.targets.count < 4, let id = random.freeID(client) {
                    try client.listen(id, to: random.subject())
                }
            case 17:
                if let id = client.targets.keys.sorted().randomElement(using: &random.generator) {
                    try client.stopListening(id)
                }
            default:
                client.disconnect()
                try client.resume(
                    at: random.generator.oneIn(4) ? nil : random.generator.pick(followers),
                    expectedCount: random.generator.oneIn(2))
            }
            for client in clients { expect(!client.targets.values.contains { $0.wasReset }, "seed \(seed)") }
        }
        leader.hub.advance()
        for follower in followers {
            try follower.follow()
            follower.answerQuestions()
            follower.hub.advance()
        }
        for client in clients {
            try client.drain()
            let isCurrent = client.targets.values.allSatisfy { $0.isCurrent }
            expect(isCurrent, "seed \(seed)")
            client.disconnect()
        }
        expect(followers.allSatisfy { $0.hub.sessionCount == 0 })
    }

    @Test
    func `A target with a token above the closed time waits for it, and is not reset`() throws {
        let (leader, follower) = try pair()
        let client = try clientAhead(leader, follower)
        // The commit is visible before the time of the token is.
        for count in [0, 1] {
            try follower.follow(atMost: count)
            follower.hub.advance()
            try client.drain()
            expect(client.takeMessages().isEmpty)
        }
        try follower.follow()
        follower.hub.advance()
        try client.drain()
        expectEqual(client.targets[1]?.documents.count, 2)
        expectEqual(client.targets[1]?.wasReset, false)
        client.disconnect()
    }

    @Test
    func `A target whose wait is cancelled is added and removed; other targets are served`() throws {
        let (leader, follower) = try pair()
        let client = try clientAhead(leader, follower)
        try client.stopListening(1)
        try client.drain()
        expectEqual(Self.kinds(client), [.add, .remove])
        // A new target, which needs no more than what was acknowledged.
        try client.listen(2, to: Self.query)
        follower.answerQuestions()
        try client.drain()
        expect(client.takeMessages().isEmpty)
        try follower.follow()
        follower.hub.advance()
        try client.drain()
        expectEqual(client.targets[2]?.documents.count, 2)
        // What waits when the stream ends leaves nothing.
        client.disconnect()
        expect(follower.hub.sessionCount == 0 && follower.hub.heldBytes == 0)
    }

    @Test
    func `While a target waits, the snapshots of the others come`() throws {
        let (leader, follower) = try pair()
        let client = try clientAhead(leader, follower)
        try client.stopListening(1)
        try client.listen(2, to: Self.query)
        follower.answerQuestions()
        try follower.follow()
        follower.hub.advance()
        try client.drain()
        expectEqual(client.targets[2]?.isCurrent, true)
        // Its question has no answer.
        try client.listen(3, to: Self.query)
        try leader.set("c/d", ["n": .integer(4)])
        try follower.follow()
        follower.hub.advance()
        try client.drain()
        expectEqual(client.targets[2]?.documents.count, 3)
        expectEqual(client.targets[3]?.isAdded, false)
        follower.answerQuestions()
        follower.hub.advance()
        try client.drain()
        expectEqual(client.targets[3]?.documents.count, 3)
        client.disconnect()
    }

    @Test
    func `A stream whose wait lasts too long ends with UNAVAILABLE`() throws {
        let (leader, follower) = try pair()
        let client = try clientAhead(leader, follower)
        leader.clock.advance(milliseconds: 5_000)
        follower.store.endExpiredWaits()
        follower.hub.advance()
        let error = #expect(throws: RequestError.self) { try client.drain() }
        expectEqual(error?.code, .unavailable)
        client.disconnect()
    }

    @Test
    func `A token that no server of the store has given out is reset`() throws {
        let (leader, follower) = try pair()
        try leader.set("c/a", ["n": .integer(1)])
        try follower.follow()
        let client = ListenClient(leader)
        try client.connect(to: follower)
        let token = ResumeToken(microseconds: leader.clock.nowMicroseconds + 3_600_000_000)
        var writer = ByteBuffer()
        token.encode(into: &writer)
        try client.send(1, Self.query, resume: .token(writer.copyBytes()), expectedCount: nil)
        follower.answerQuestions()
        follower.hub.advance()
        try client.drain()
        expect(Self.kinds(client).contains(.reset))
        client.disconnect()
    }

    @Test
    func `A server that is not sure of its lease begins no snapshot`() throws {
        let holds = Monitor(true)
        let leader = try ListenHarness { $0.holdsLease = { holds.withLock { $0 } } }
        try leader.set("c/a", ["n": .integer(1)])
        let client = ListenClient(leader)
        try client.connect()
        try client.listen(1, to: Self.query)
        try client.drain()
        expectEqual(client.targets[1]?.documents.count, 1)
        holds.update { $0 = false }
        try client.listen(2, to: Self.query)
        let error = #expect(throws: RequestError.self) { try client.drain() }
        expectEqual(error?.code, .unavailable)
        client.disconnect()
    }
}
