// The whole server over sockets: many calls at once, streams, drains, limits.

import Basics
import Dispatch
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import Server
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct DatabaseServerTests {
    private let one = Harness.fields(["a": .integer(1)])

    /// How many documents the directory of a stopped server holds in collection c.
    private func storedCount(_ directory: String) throws -> Int {
        let store = try DocumentStore.open(StoreConfiguration(directory: directory))
        defer { store.close() }
        let reader = store.makeReader()
        let point = try reader.readPoint(.latest, in: DatabaseName(Harness.database))
        return try reader.documentCount(of: CollectionPath("\(Harness.root)/c"), at: point)
    }

    @Test
    func `A document is committed and read back over a connection`() throws {
        let live = try LiveDatabaseServer()
        try expectEqual(live.set("c/x", one).code, .ok)
        let (outcome, reply) = live.call(.getDocument, GetDocumentRequest(name: Harness.name("c/x")).encodedBytes())
        expectEqual(outcome.code, .ok)
        try expectEqual(DocumentMessage(wireBytes: reply).fields, one)
        let missing = live.call(.getDocument, GetDocumentRequest(name: Harness.name("c/y")).encodedBytes())
        expectEqual(missing.outcome.code, .notFound)
        expect(missing.outcome.message.contains("c/y"))
    }

    @Test
    func `A connection has its bound of transactions; once it is closed they make room for others`() throws {
        let live = try LiveDatabaseServer {
            $0.store.transactionsMax = 6
            $0.store.transactionsPerConnectionMax = 5
        }
        let begin = BeginTransactionRequest(database: Harness.database, options: nil).encodedBytes()
        let other = live.connect()
        for _ in 0..<5 { expectEqual(live.call(.beginTransaction, begin, on: other).outcome.code, .ok) }
        let refused = live.call(.beginTransaction, begin, on: other).outcome
        expect(refused.code == .resourceExhausted && refused.message.contains("of this connection"))
        expectEqual(live.call(.beginTransaction, begin).outcome.code, .ok)
        let full = live.call(.beginTransaction, begin).outcome
        expect(full.code == .resourceExhausted && full.message.contains("at most 6"))
        other.close()
        // The server notices in its own time.
        var begun = 0
        for _ in 0..<10_000 where begun < 4 {
            if live.call(.beginTransaction, begin).outcome.code == .ok { begun += 1 }
        }
        expectEqual(begun, 4)
    }

    @Test
    func `A write stream that stays open does not hold up a stop`() throws {
        let live = try LiveDatabaseServer { $0.drainMilliseconds = 60_000 }
        let listener = MessageListener()
        var request = ByteBuffer()
        WriteRequestMessage(database: Harness.database).encode(into: &request)
        live.connection.stream(
            FirestoreMessages.Method.write.rpc, request.copyBytes(), isComplete: false, handler: listener)
        try listener.came.wait(until: "a message has come")
        live.stop()
        try listener.ended.wait(until: "the stream has ended")
        let (outcome, messages) = listener.state.withLock { $0 }
        expect(outcome.code == .unavailable && outcome.message == "the server is draining")
        expectEqual(messages.count, 1)
    }

    @Test
    func `Hundreds of commits and reads under way at once are each answered with their own`() throws {
        let live = try LiveDatabaseServer()
        let group = DispatchGroup()
        let wrong = Mutex(0)
        for index in 0..<300 {
            group.enter()
            let fields = Harness.fields(["a": .integer(Int64(index))])
            let connection = live.connection
            let name = Harness.name("c/d\(index)")
            connection.unary(
                FirestoreMessages.Method.commit.rpc, try LiveDatabaseServer.commitRequest("c/d\(index)", fields)
            ) { outcome, _ in
                guard outcome.code == .ok else {
                    wrong.withLock { $0 += 1 }
                    return group.leave()
                }
                connection.unary(
                    FirestoreMessages.Method.getDocument.rpc, GetDocumentRequest(name: name).encodedBytes()
                ) {
                    outcome, reply in
                    let document = try? DocumentMessage(wire: reply)
                    if outcome.code != .ok || document?.fields != fields { wrong.withLock { $0 += 1 } }
                    group.leave()
                }
            }
        }
        expectEqual(group.wait(timeout: .now() + .seconds(60)), .success)
        expectEqual(wrong.withLock { $0 }, 0)
        let totals = live.gateway.totals
        expectEqual(totals["calls_succeeded"], 600)
        expectEqual(totals["writes_submitted"], 300)
    }

    @Test
    func `A query's results stream over a connection, more than a window of them`() throws {
        let live = try LiveDatabaseServer()
        let padding = Harness.fields(["p": .string(String(repeating: "x", count: 20_000))])
        for index in 0..<100 { try expectEqual(live.set("c/\(100 + index)", padding).code, .ok) }
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let (outcome, messages) = live.stream(
            .runQuery, RunQueryRequest(parent: Harness.root, query: query).encodedBytes())
        expectEqual(outcome.code, .ok)
        let names = try messages.compactMap { try RunQueryResponse(wireBytes: $0).document?.name }
        expectEqual(names, (0..<100).map { Harness.name("c/\(100 + $0)") })
    }

    @Test
    func `A query that the client gives up ends on the server too`() throws {
        let live = try LiveDatabaseServer()
        let padding = Harness.fields(["p": .string(String(repeating: "x", count: 100_000))])
        for index in 0..<60 { try expectEqual(live.set("c/\(100 + index)", padding).code, .ok) }
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let (outcome, messages) = live.stream(
            .runQuery, RunQueryRequest(parent: Harness.root, query: query).encodedBytes(), messagesMax: 1)
        expectEqual(outcome.code, .cancelled)
        expect(messages.count < 60)
        // The next call on the same connection completes after the cancellation was processed.
        try expectEqual(live.set("c/last", one).code, .ok)
        expectEqual(live.gateway.totals["calls_abandoned"], 1)
        expectEqual(live.gateway.totals["streams_open"], 0)
    }

    @Test
    func `A batch get streams over a connection`() throws {
        let live = try LiveDatabaseServer()
        try expectEqual(live.set("c/x", one).code, .ok)
        let request = BatchGetDocumentsRequest(
            database: Harness.database, documents: [Harness.name("c/none"), Harness.name("c/x")])
        let (outcome, messages) = live.stream(.batchGetDocuments, request.encodedBytes())
        expectEqual(outcome.code, .ok)
        let results = try messages.map { try BatchGetDocumentsResponse(wireBytes: $0).result }
        expectEqual(results.count, 2)
        expectEqual(results.last, .missing(Harness.name("c/none")))
    }

    @Test
    func `A request over the message limit is refused, and the connection continues`() throws {
        let live = try LiveDatabaseServer { $0.transport.messageBytesMax = 64 << 10 }
        let large = Harness.fields(["p": .string(String(repeating: "x", count: 100_000))])
        // The client knows the limit with the first answer.
        try expectEqual(live.set("c/x", one).code, .ok)
        try expectEqual(live.set("c/x", large).code, .invalidArgument)
        try expectEqual(live.set("c/x", one).code, .ok)
    }

    @Test
    func `A stop answers what was accepted`() throws {
        let live = try LiveDatabaseServer()
        let group = DispatchGroup()
        let statuses = Mutex<[StatusCode]>([])
        for index in 0..<100 {
            group.enter()
            live.connection.unary(
                FirestoreMessages.Method.commit.rpc, try LiveDatabaseServer.commitRequest("c/d\(index)", one)
            ) { outcome, _ in
                statuses.withLock { $0.append(outcome.code) }
                group.leave()
            }
        }
        live.stop()
        expectEqual(group.wait(timeout: .now() + .seconds(60)), .success)
        let all = statuses.withLock { $0 }
        // A call that came too late fails; nothing is left open and nothing ends otherwise.
        expectEqual(all.count, 100)
        expect(all.allSatisfy { $0 == .ok || $0 == .unavailable }, "\(Set(all))")
        let stored = try storedCount(live.directory.path(of: "data"))
        expect(stored >= all.count { $0 == .ok })
    }

    @Test
    func `A host that cannot be listened on leaves the directory free for the next try`() throws {
        let directory = TemporaryDirectory("gateway")
        var configuration = DatabaseServerConfiguration(
            store: StoreConfiguration(directory: directory.path(of: "data")), log: Log(level: .error) { _ in })
        configuration.transport.host = "256.0.0.1"
        #expect(throws: (any Error).self) { try DatabaseServer.start(configuration) }
        configuration.transport.host = "127.0.0.1"
        try DatabaseServer.start(configuration).stop()
    }
}
