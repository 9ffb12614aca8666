// A listener that changes servers at each snapshot keeps its resume token.

import Basics
import Calls
import DocumentModel
import FirestoreMessages
import NativeProtocol
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct AlternatingListenerTests {
    /// What one stream has brought up to a consistent snapshot with something new.
    private struct Snapshot {
        var token: [UInt8] = []
        var readTime: Int64 = 0
        var names: [String] = []
        var removed: [String] = []
        var isReset = false
    }

    /// Begins to listen to the collection `c`.
    private static func open(
        _ server: LiveDatabaseServer, _ listener: MessageListener, _ options: RequestOptions = RequestOptions(),
        token: [UInt8] = []
    ) -> ClientCall {
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        var target = ListenTarget(.query(parent: Harness.root, query), id: 1)
        if !token.isEmpty { target.resume = .token(token) }
        return server.connection.stream(
            FirestoreMessages.Method.listen.rpc, ListenRequest(database: Harness.database, .add(target)).encodedBytes(),
            isComplete: false, options, handler: listener)
    }

    private static func listen(
        _ server: LiveDatabaseServer, _ token: [UInt8], until isComplete: (Snapshot) -> Bool
    ) throws -> Snapshot {
        let listener = MessageListener()
        let call = open(server, listener, token: token)
        defer { call.cancel() }
        var snapshot = Snapshot()
        var taken = 0
        while true {
            try listener.came.wait(until: "a message of the listener")
            let message = listener.state.withLock { $0.messages[taken] }
            taken += 1
            switch try ListenResponse(wire: message.byteSpan) {
            case .documentChange(let change):
                snapshot.names.append(try DocumentMessage(wire: change.document.byteSpan).name)
            case .documentDelete(let removal), .documentRemove(let removal): snapshot.removed.append(removal.name)
            case .targetChange(let change):
                if change.kind == .reset { snapshot.isReset = true }
                guard change.kind == .noChange, change.targets.isEmpty, let time = change.readTime else { continue }
                expect(time.microseconds >= snapshot.readTime)
                snapshot.token = change.resumeToken
                snapshot.readTime = time.microseconds
                if isComplete(snapshot) { return snapshot }
            case .filter, .unknown: continue
            }
        }
    }

    @Test(arguments: [1, 2], [false, true])
    func `Each commit comes once, at whichever server the listener is`(
        documentsPerSnapshot: Int, readsAreStrict: Bool
    ) throws {
        let pair = try ServerPair(readsAreStrict: readsAreStrict)
        try expectEqual(pair.source.commit("c/start", 0).code, .ok)
        var snapshot = try Self.listen(pair.source, []) { $0.names.count == 1 }
        expectEqual(snapshot.names, [Harness.name("c/start")])
        for round in 0..<24 {
            let (here, there) = round % 2 == 0 ? (pair.follower, pair.source) : (pair.source, pair.follower)
            var expected: [String] = []
            for number in 0..<documentsPerSnapshot {
                let path = "c/d\(round)-\(number)"
                // Written at the server that the listener left, or at the one where it comes.
                try expectEqual((round % 3 == 0 ? there : here).commit(path, Int64(round)).code, .ok)
                expected.append(Harness.name(path))
            }
            let before = snapshot.readTime
            snapshot = try Self.listen(here, snapshot.token) { $0.names.count >= documentsPerSnapshot }
            expectEqual(snapshot.names.sorted(), expected.sorted(), "round \(round)")
            expect(snapshot.removed.isEmpty && !snapshot.isReset)
            expect(snapshot.readTime > before)
        }
    }

    @Test
    func `The first snapshot at a follower has what was acknowledged at the source`() throws {
        let pair = try ServerPair(readsAreStrict: true)
        try expectEqual(pair.follower.commit("d/y", 0).code, .ok)
        pair.cut(true)
        try expectEqual(pair.source.commit("c/x", 1).code, .ok)
        let listener = MessageListener()
        let call = Self.open(pair.follower, listener)
        defer { call.cancel() }
        // A read at a time of the past on the same connection, which comes after the listener.
        let past = TimestampValue(microseconds: Int64(pair.follower.gateway.store.currentReadTime))
        try expectNil(pair.follower.number("c/x", .readTime(past)))
        pair.cut(false)
        var names: [String] = []
        for taken in 0..<100 {
            try listener.came.wait(until: "a message of the listener")
            let message = listener.state.withLock { $0.messages[taken] }
            switch try ListenResponse(wire: message.byteSpan) {
            case .documentChange(let change):
                names.append(try DocumentMessage(wire: change.document.byteSpan).name)
            case .targetChange(let change) where change.kind == .current:
                expectEqual(names, [Harness.name("c/x")])
                return
            default: continue
            }
        }
        Issue.record("the target is not current after 100 messages")
    }

    @Test
    func `A listener whose server cannot ask the source ends with UNAVAILABLE`() throws {
        let pair = try ServerPair(readsAreStrict: true)
        pair.leader.move(to: .unknown)
        let listener = MessageListener()
        _ = Self.open(pair.follower, listener, RequestOptions(deadlineMilliseconds: 1_000))
        try listener.ended.wait(until: "the stream has ended")
        let code = listener.state.withLock { $0.outcome.code }
        expect(code == .unavailable || code == .deadlineExceeded)
        try waitUntil("the follower has no stream") { pair.follower.gateway.totals["streams_open"] == 0 }
    }
}
