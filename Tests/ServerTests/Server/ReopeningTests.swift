// A store is closed and opened again while its server serves.

import Basics
import Calls
import Dispatch
import DocumentModel
import DocumentStore
import FirestoreMessages
import NativeProtocol
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Server

@Suite(.timeLimit(.minutes(20)))
struct ReopeningTests {
    private static func query(_ collection: String) -> [UInt8] {
        let query = StructuredQuery(from: [CollectionSelector(collectionID: collection)])
        return RunQueryRequest(parent: Harness.root, query: query).encodedBytes()
    }

    private static func reopen(_ live: LiveDatabaseServer) throws {
        let configuration = live.gateway.store.configuration
        try live.gateway.stores[0].close()
        expect(!live.gateway.stores[0].isOpen)
        live.gateway.stores[0].open(try DocumentStore.open(configuration), leader: nil)
    }

    @Test
    func `A connection stays, and finds what the store has after it was opened again`() throws {
        let live = try LiveDatabaseServer()
        let before = live.gateway.store
        try expectEqual(live.commit("c/x", 1).code, .ok)
        try expectEqual(live.number("c/x"), 1)
        let transaction = try live.begin(.readWrite)
        try Self.reopen(live)
        expect(live.gateway.store !== before)
        try expectEqual(live.number("c/x"), 1)
        try expectEqual(live.commit("c/x", 2).code, .ok)
        try expectEqual(live.number("c/x"), 2)
        // A transaction of before is none of the store.
        try expect(live.commit("c/x", 3, in: transaction).code != .ok)
        let again = try live.begin(.readWrite)
        try expectEqual(live.commit("c/x", 4, in: again).code, .ok)
        try expectEqual(live.number("c/x"), 4)
    }

    @Test
    func `While the store is closed calls get UNAVAILABLE, health is served, and readyz says why`() throws {
        let live = try LiveDatabaseServer()
        try expectEqual(live.commit("c/x", 1).code, .ok)
        let configuration = live.gateway.store.configuration
        try live.gateway.stores[0].close()
        let refused = try live.commit("c/x", 2)
        expect(refused.code == .unavailable && refused.message.contains("opened again"))
        expectEqual(live.call(.healthCheck, HealthCheckRequest(service: "").encodedBytes()).outcome.code, .ok)
        let listed = live.call(.listDatabases, ListDatabasesRequest(parent: "projects/-").encodedBytes())
        expectEqual(listed.outcome.code, .unavailable)
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let ready = try #require(http.request("GET", "/readyz"))
        expect(ready.status == 503 && ready.body.contains("the store main is being opened again"))
        expectEqual(http.request("GET", "/metrics")?.status, 200)
        expectEqual(http.request("GET", "/v1/\(Harness.name("c/x"))")?.status, 503)
        live.gateway.stores[0].open(try DocumentStore.open(configuration), leader: nil)
        expectEqual(http.request("GET", "/readyz")?.status, 200)
        try expectEqual(live.number("c/x"), 1)
    }

    @Test
    func `Listeners and write streams of a store that is closed end with UNAVAILABLE, and begin again`() throws {
        let live = try LiveDatabaseServer()
        try expectEqual(live.commit("c/x", 1).code, .ok)
        func listen() -> MessageListener {
            let listener = MessageListener()
            let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
            let target = ListenTarget(.query(parent: Harness.root, query), id: 1)
            live.connection.stream(
                FirestoreMessages.Method.listen.rpc,
                ListenRequest(database: Harness.database, .add(target)).encodedBytes(), isComplete: false,
                handler: listener)
            return listener
        }
        let listener = listen()
        let writer = MessageListener()
        var request = ByteBuffer()
        WriteRequestMessage(database: Harness.database).encode(into: &request)
        live.connection.stream(
            FirestoreMessages.Method.write.rpc, request.copyBytes(), isComplete: false, handler: writer)
        try listener.came.wait(until: "the listener has a message")
        try writer.came.wait(until: "the write stream has a message")
        try Self.reopen(live)
        for stream in [listener, writer] {
            try stream.ended.wait(until: "a stream has ended")
            expectEqual(stream.state.withLock { $0.outcome.code }, .unavailable)
        }
        let again = listen()
        try again.came.wait(until: "the new listener has a message")
        try waitUntil("one stream is open") { live.gateway.totals["streams_open"] == 1 }
    }

    @Test
    func `A query whose client reads slowly fails when its store is closed, and holds up nothing`() throws {
        let live = try LiveDatabaseServer()
        let fields = Harness.fields(["a": .bytes([UInt8](repeating: 7, count: 100_000))])
        for number in 0..<100 { try expectEqual(live.set("c/d\(number)", fields).code, .ok) }
        let reader = SlowReader()
        live.connection.stream(FirestoreMessages.Method.runQuery.rpc, Self.query("c"), handler: reader)
        try reader.came.wait(until: "the first message has come")
        try Self.reopen(live)
        try expectEqual(live.commit("c/more", 1).code, .ok)
        reader.call.withLock { $0 }?.resumeMessages()
        try reader.ended.wait(until: "the query has ended")
        let (outcome, count) = reader.state.withLock { $0 }
        // What had been read when the store was closed is sent.
        expect(outcome.code == .unavailable || (outcome.code == .ok && count == 100), "\(outcome)")
        let all = live.stream(.runQuery, Self.query("c"))
        expect(all.outcome.code == .ok && all.messages.count == 101)
    }

    @Test
    func `Under load each acknowledged commit outlives ten closings`() throws {
        let live = try LiveDatabaseServer()
        let isStopping = Atomic(false)
        let acknowledged = Mutex<[Int64]>([])
        let outcomes = Mutex<Set<StatusCode>>([])
        let threads = try (0..<3).map { thread in
            let connection = live.connect()
            return try SystemThread(name: "client") {
                var number = Int64(thread) * 1_000_000
                while !isStopping.load(ordering: .relaxed) {
                    number += 1
                    let fields = Harness.fields(["a": .integer(number)])
                    guard let request = try? LiveDatabaseServer.commitRequest("c/d\(number)", fields) else { return }
                    let code = live.call(.commit, request, on: connection).outcome.code
                    outcomes.withLock { _ = $0.insert(code) }
                    if code == .ok { acknowledged.withLock { $0.append(number) } }
                }
                connection.close()
            }
        }
        for round in 1...10 {
            try waitUntil("commits are acknowledged in round \(round)") {
                acknowledged.withLock { $0.count } >= 20 * round
            }
            try Self.reopen(live)
        }
        isStopping.store(true, ordering: .relaxed)
        for thread in threads { thread.join() }
        expect(outcomes.withLock { $0 }.isSubset(of: [.ok, .unavailable]), "\(outcomes.withLock { $0 })")
        let numbers = acknowledged.withLock { $0 }
        for number in numbers { try expectEqual(live.number("c/d\(number)"), number) }
        live.stop()
        let check = try StoreCheck.run(StoreConfiguration(directory: live.directory.path(of: "data")))
        expect(check.problems.isEmpty, "\(check.problems)")
    }
}

/// Asks for no further message after the first.
private final class SlowReader: ClientCallHandler, Sendable {
    let came = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    let call = Mutex<ClientCall?>(nil)
    let state = Mutex((outcome: CallOutcome(.unknown, ""), count: 0))

    func received(_ message: RawSpan, on call: ClientCall) {
        let count = state.withLock { state in
            state.count += 1
            return state.count
        }
        guard count == 1 else { return }
        call.pauseMessages()
        self.call.withLock { $0 = call }
        came.signal()
    }

    func finished(_ outcome: CallOutcome, on call: ClientCall) {
        state.withLock { $0.outcome = outcome }
        ended.signal()
    }
}
