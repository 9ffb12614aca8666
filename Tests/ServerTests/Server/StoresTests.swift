// A server with two stores: each call goes to the store that has its database.

import Authorization
import AuthorizationTestSupport
import Basics
import Calls
import Dispatch
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import Foundation
import NativeProtocol
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Server

/// A table of databases in memory, as another server or thread would answer.
private final class PlacesInMemory: DatabasePlaces, Sendable {
    private struct State {
        var rows: [DatabaseName: Int] = [:]
        /// What this server knows of them.
        var known: [DatabaseName: Int] = [:]
        var observers: [@Sendable ([DatabaseName: Int]) -> Void] = []
        var questions = 0
        var isAway = false
    }

    private let state = Mutex(State())
    private let storeCount: Int

    init(storeCount: Int) { self.storeCount = storeCount }

    var rows: [DatabaseName: Int] { state.withLock { $0.rows } }
    var questions: Int { state.withLock { $0.questions } }
    var isAway: Bool {
        get { state.withLock { $0.isAway } }
        set { state.withLock { $0.isAway = newValue } }
    }

    func known(_ database: DatabaseName) -> Int? { state.withLock { $0.known[database] } }

    func find(
        _ database: DatabaseName, creates: Bool, completion: @escaping @Sendable (Result<Int?, RequestError>) -> Void
    ) {
        let isAway = state.withLock { state in
            state.questions += 1
            return state.isAway
        }
        let work: @Sendable () -> Void = { [self] in
            if isAway { return completion(.failure(RequestError(.unavailable, "the table is away"))) }
            if creates { add(database) }
            completion(.success(state.withLock { $0.rows[database] }))
        }
        SystemThread.runDetached(name: "places", work)
    }

    func whenLearnt(_ observer: @escaping @Sendable ([DatabaseName: Int]) -> Void) {
        state.withLock { $0.observers.append(observer) }
    }

    func move(
        _ request: MoveDatabaseRequest, of database: DatabaseName,
        completion: @escaping @Sendable (Result<MovedDatabase, RequestError>) -> Void
    ) {
        let names = ["main", "b"]
        let moved = state.withLock { state -> Result<MovedDatabase, RequestError> in
            guard let number = state.rows[database] else {
                return .failure(RequestError(.notFound, "No store has the database \(database)."))
            }
            var moved = MovedDatabase(store: names[number])
            if request.store != moved.store { moved.movingTo = request.store }
            return .success(moved)
        }
        completion(moved)
    }

    /// A database is in another store from now on.
    func put(_ database: DatabaseName, in store: Int) {
        let observers = state.withLock { state in
            state.rows[database] = store
            state.known[database] = store
            return state.observers
        }
        for observer in observers { observer([database: store]) }
    }

    /// Puts a database in the store that has the fewest, unless one has it.
    func add(_ database: DatabaseName) {
        let observers = state.withLock { state in
            if state.rows[database] == nil {
                let counts = (0..<storeCount).map { store in state.rows.values.count { $0 == store } }
                state.rows[database] = counts.indices.min { counts[$0] < counts[$1] } ?? 0
            }
            state.known[database] = state.rows[database]
            return state.observers
        }
        for observer in observers { observer([database: known(database) ?? 0]) }
    }
}

@Suite(.timeLimit(.minutes(20)))
struct StoresTests {
    private let directory = TemporaryDirectory("stores")
    private let places = PlacesInMemory(storeCount: 2)

    private func start(_ change: (inout DatabaseServerConfiguration) -> Void = { _ in }) throws -> LiveDatabaseServer {
        try LiveDatabaseServer { configuration in
            configuration.places = places
            configuration.store.admitsDatabase = { [places] in places.known($0) == 0 }
            var second = configuration.store
            second.directory = directory.path(of: "b")
            second.admitsDatabase = { [places] in places.known($0) == 1 }
            configuration.furtherStores = [StoreSettings(name: "b", store: second)]
            change(&configuration)
        }
    }

    private func name(_ database: String) throws -> DatabaseName { try DatabaseName(project: "p", database: database) }

    private func commitRequest(_ database: String, _ path: String, _ number: Int64) throws -> [UInt8] {
        let name = try name(database)
        var writes = WriteList(database: name)
        let fields = Harness.fields(["a": .integer(number)])
        try "\(name)/documents/\(path)".withUTF8Span { try writes.update($0, fields: fields.byteSpan) }
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request())
        return writer.copyBytes()
    }

    private func commit(
        _ live: LiveDatabaseServer, _ database: String, _ path: String, _ number: Int64 = 1
    ) throws -> CallOutcome {
        live.call(.commit, try commitRequest(database, path, number)).outcome
    }

    private func get(_ live: LiveDatabaseServer, _ database: String, _ path: String) throws -> StatusCode {
        let request = GetDocumentRequest(name: "\(try name(database))/documents/\(path)")
        return live.call(.getDocument, request.encodedBytes()).outcome.code
    }

    private func databases(_ live: LiveDatabaseServer, _ store: Int) -> Set<String> {
        Set(live.gateway.stores[store].store.databaseNames.map { "\($0)" })
    }

    @Test
    func `Databases are spread over the stores, and every call finds its own`() throws {
        let live = try start()
        for number in 0..<6 { try expectEqual(commit(live, "d\(number)", "c/x").code, .ok) }
        expect(databases(live, 0).count == 3 && databases(live, 1).count == 3)
        expect(databases(live, 0).isDisjoint(with: databases(live, 1)))
        for (name, store) in places.rows { expect(databases(live, store).contains("\(name)")) }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        for number in 0..<6 {
            try expectEqual(get(live, "d\(number)", "c/x"), .ok)
            try expectEqual(get(live, "d\(number)", "c/y"), .notFound)
            expectEqual(http.request("GET", "/v1/projects/p/databases/d\(number)/documents/c/x")?.status, 200)
            let written = http.request(
                "PATCH", "/v1/projects/p/databases/d\(number)/documents/c/z", body: "{\"fields\":{}}")
            expectEqual(written?.status, 200)
            try expectEqual(get(live, "d\(number)", "c/z"), .ok)
        }
        // Each was asked for at most once on each loop.
        expect(places.questions <= 12)
        let listed = live.call(.listDatabases, ListDatabasesRequest(parent: "projects/p").encodedBytes())
        try expectEqual(ListDatabasesResponse(wire: listed.reply.byteSpan).databases.count, 6)
    }

    @Test
    func `What only reads brings no database into being, and malformed names are refused`() throws {
        let live = try start()
        try expectEqual(get(live, "nowhere", "c/x"), .notFound)
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let parent = "\(try name("nowhere"))/documents"
        let asked = live.stream(.runQuery, RunQueryRequest(parent: parent, query: query).encodedBytes())
        expectEqual(asked.outcome.code, .ok)
        expect(places.rows.isEmpty)
        let malformed = GetDocumentRequest(name: "nonsense").encodedBytes()
        expectEqual(live.call(.getDocument, malformed).outcome.code, .invalidArgument)
        expectEqual(live.call(.getDocument, [0xff]).outcome.code, .invalidArgument)
        expectEqual(live.call(.commit, []).outcome.code, .invalidArgument)
        expect(places.rows.isEmpty)
    }

    @Test
    func `A request that names two databases brings none into being in the wrong store`() throws {
        let live = try start()
        try expectEqual(commit(live, "first", "c/x").code, .ok)
        let store = try #require(places.rows[try name("first")])
        // The last field of a number counts for the way, while messages of one number are joined for the service.
        var request = ByteBuffer()
        request.withLengthPrefix(field: 1) { document in
            document.appendField(1, string: "projects/p/databases/second/documents/c/x")
        }
        request.withLengthPrefix(field: 1) { document in
            document.appendField(1, string: "projects/p/databases/first/documents/c/x")
        }
        _ = live.call(.updateDocument, request.copyBytes())
        request = ByteBuffer()
        request.appendField(1, string: "projects/p/databases/second")
        request.append([UInt8](try commitRequest("first", "c/y", 1)))
        _ = live.call(.commit, request.copyBytes())
        for index in 0..<2 {
            for name in databases(live, index) {
                expectEqual(places.rows[try DatabaseName(name)], index, "\(name) is in store \(index)")
            }
        }
        expect(databases(live, store).contains("\(try name("first"))"))
    }

    @Test
    func `A caller that may write brings a database into being, and one that is refused does not`() throws {
        let open = try start { $0.authorization = try? TestAuthorization.make(nil, mode: .open) }
        try expectEqual(commit(open, "first", "c/x").code, .ok)
        expectEqual(places.rows.count, 1)
        let closed = try LiveDatabaseServer { configuration in
            configuration.places = places
            configuration.store.admitsDatabase = { [places] in places.known($0) == 0 }
            configuration.authorization = try? TestAuthorization.make(nil, mode: .closed)
        }
        try expect(commit(closed, "second", "c/x").code != .ok)
        expectEqual(places.rows.count, 1)
    }

    @Test
    func `While the table is away known databases are served, and others get UNAVAILABLE`() throws {
        let live = try start()
        try expectEqual(commit(live, "known", "c/x").code, .ok)
        places.isAway = true
        try expectEqual(commit(live, "known", "c/y").code, .ok)
        try expectEqual(commit(live, "other", "c/x").code, .unavailable)
        try expectEqual(get(live, "other", "c/x"), .unavailable)
        places.isAway = false
        try expectEqual(commit(live, "other", "c/x").code, .ok)
    }

    private func listen(_ live: LiveDatabaseServer, _ database: String) throws -> MessageListener {
        let listener = MessageListener()
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let target = ListenTarget(.query(parent: "\(try name(database))/documents", query), id: 1)
        live.connection.stream(
            FirestoreMessages.Method.listen.rpc,
            ListenRequest(database: "\(try name(database))", .add(target)).encodedBytes(), isComplete: false,
            handler: listener)
        return listener
    }

    /// Waits until a listener has a document.
    private func waitForDocument(_ listener: MessageListener) throws {
        for taken in 0..<100 {
            try listener.came.wait(until: "a message of the listener")
            let message = listener.state.withLock { $0.messages[taken] }
            if case .documentChange = try ListenResponse(wire: message.byteSpan) { return }
        }
        Issue.record("no document has come")
    }

    @Test
    func `A listener of a database that is none yet ends when it comes into being, and finds it then`() throws {
        let live = try start()
        // The first database goes to the first store, so that the next one is another's.
        try expectEqual(commit(live, "first", "c/x").code, .ok)
        let listener = try listen(live, "second")
        try listener.came.wait(until: "the listener has a message")
        try expectEqual(commit(live, "second", "c/x").code, .ok)
        expectEqual(places.rows[try name("second")], 1)
        try listener.ended.wait(until: "the listener has ended")
        expectEqual(listener.state.withLock { $0.outcome.code }, .unavailable)
        try waitForDocument(try listen(live, "second"))
        try waitForDocument(try listen(live, "first"))
    }

    @Test
    func `A write stream begins a database, and its first messages are not lost`() throws {
        let live = try start()
        try expectEqual(commit(live, "first", "c/x").code, .ok)
        let listener = MessageListener()
        var first = ByteBuffer()
        WriteRequestMessage(database: "\(try name("second"))").encode(into: &first)
        let call = live.connection.stream(
            FirestoreMessages.Method.write.rpc, first.copyBytes(), isComplete: false, handler: listener)
        call.finishSending()
        try listener.ended.wait(until: "the stream has ended")
        let (outcome, messages) = listener.state.withLock { $0 }
        expect(outcome.code == .ok && messages.count == 1, "\(outcome)")
        expectEqual(places.rows[try name("second")], 1)
    }

    @Test
    func `No call of one store fails while the other one is closed and opened again`() throws {
        let live = try start()
        try expectEqual(commit(live, "first", "c/x").code, .ok)
        try expectEqual(commit(live, "second", "c/x").code, .ok)
        let listener = try listen(live, "second")
        try waitForDocument(listener)
        let isStopping = Atomic(false)
        let codes = Mutex<[String: Set<StatusCode>]>([:])
        let counts = Mutex<[String: Int]>([:])
        let threads = try ["first", "second"].map { database in
            let connection = live.connect()
            return try SystemThread(name: "client") {
                var number: Int64 = 0
                while !isStopping.load(ordering: .relaxed) {
                    number += 1
                    guard let request = try? commitRequest(database, "c/d\(number)", number) else { return }
                    let code = live.call(.commit, request, on: connection).outcome.code
                    codes.withLock { _ = $0[database, default: []].insert(code) }
                    if code == .ok { counts.withLock { $0[database, default: 0] += 1 } }
                }
                connection.close()
            }
        }
        for round in 1...5 {
            try waitUntil("both databases take commits in round \(round)") {
                counts.withLock { counts in ["first", "second"].allSatisfy { counts[$0] ?? 0 >= 20 * round } }
            }
            let configuration = live.gateway.stores[0].store.configuration
            try live.gateway.stores[0].close()
            try expectEqual(get(live, "first", "c/x"), .unavailable)
            try expectEqual(get(live, "second", "c/x"), .ok)
            live.gateway.stores[0].open(try DocumentStore.open(configuration), leader: nil)
        }
        isStopping.store(true, ordering: .relaxed)
        for thread in threads { thread.join() }
        expectEqual(codes.withLock { $0["second"] }, [.ok])
        expectEqual(codes.withLock { $0["first"] }?.isSubset(of: [.ok, .unavailable]), true)
        expectEqual(
            listener.state.withLock { $0.outcome.code }, .unknown, "the listener of the other store has not ended")
    }

    @Test
    func `The console has the changes of all stores, the newest first`() throws {
        let live = try start()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        expectEqual(http.request("GET", "/console/data/changes")?.body.contains("\"changes\":[]"), true)
        for number in 1...4 {
            try expectEqual(commit(live, number % 2 == 0 ? "even" : "odd", "c/x\(number)").code, .ok)
        }
        expectEqual(Set(places.rows.values), [0, 1])
        let body = try #require(http.request("GET", "/console/data/changes")?.body)
        let paths = body.components(separatedBy: "\"path\":\"").dropFirst().map { $0.prefix(4) }
        expectEqual(paths, ["c/x4", "c/x3", "c/x2", "c/x1"], "\(body)")
        expect(body.contains(try "\"database\":\"\(name("odd"))\""), "\(body)")
    }

    @Test
    func `Metrics have the label store, and a backup has a directory for each store`() throws {
        let live = try start()
        for database in ["first", "second"] { try expectEqual(commit(live, database, "c/x").code, .ok) }
        let page = try #require(HTTPTestClient(port: Int(live.gateway.port)).request("GET", "/metrics")?.body)
        expect(page.contains("\nhearth_commits_total{store=\"main\"} 1\n"))
        expect(page.contains("\nhearth_commits_total{store=\"b\"} 1\n"))
        expect(page.contains("\nhearth_log_segments{state=\"used\",store=\"b\"} "))
        let context = AdminService.Context(
            stores: live.gateway.stores, served: live.gateway.stores[0], log: Log(level: .error) { _ in },
            address: ServerAddress(), rules: nil, revocations: nil, authorization: nil)
        let target = directory.path(of: "backup")
        try context.copyEach(to: target) { try $0.backup(to: $1) }
        for (store, database) in [("main", "first"), ("b", "second")] {
            let copy = try DocumentStore.open(StoreConfiguration(directory: "\(target)/\(store)"))
            expectEqual(copy.databaseNames, [try name(database)])
            copy.close()
        }
        // Copies of all stores, or none.
        let half = directory.path(of: "half")
        #expect(throws: RequestError.self) {
            try context.copyEach(to: half) { store, copy in
                if copy.hasSuffix("/b") { throw RequestError(.internal, "planted") }
                try store.backup(to: copy)
            }
        }
        expect(!FileManager.default.fileExists(atPath: half))
    }

    // MARK: Moves

    /// Asks a store how far it has received a database, or has it apply a chunk.
    private func receive(
        _ live: LiveDatabaseServer, _ request: ReceiveDatabaseRequest
    ) throws -> ReceivedDatabase {
        let answer = live.call(.adminReceiveDatabase, request.encodedBytes())
        try #require(answer.outcome.code == .ok, "\(answer.outcome)")
        return try ReceivedDatabase(wire: answer.reply.byteSpan)
    }

    @Test
    func `A database that moves is refused by both stores for a moment, and then served by the other one`() throws {
        let live = try start()
        for number in 0..<20 { try expectEqual(commit(live, "moving", "c/d\(number)", Int64(number)).code, .ok) }
        let (database, source) = (try name("moving"), live.gateway.stores[0].store)
        expectEqual(places.rows[database], 0)
        let listener = try listen(live, "moving")
        try waitForDocument(listener)
        var request = ReceiveDatabaseRequest(store: "b", database: "\(database)", generation: 1)
        var received = try receive(live, request)
        expect(received.state == .receiving && received.generation == 1)
        var isReleased = false
        while received.state == .receiving {
            let chunk = try source.moveChunk(of: database, generation: 1, after: received.progress)
            if !chunk.bytes.isEmpty {
                request.chunk = chunk.bytes
                received = try receive(live, request)
            }
            guard chunk.isCaughtUp, !isReleased else { continue }
            // Until now the source serves as before.
            try expectEqual(get(live, "moving", "c/d3"), .ok)
            try expectEqual(commit(live, "moving", "c/last").code, .ok)
            let done = Monitor<Result<DatabaseTenure, RequestError>?>(nil)
            source.release(database, generation: 1, to: "b") { outcome in done.update { $0 = outcome } }
            try expectEqual(done.wait { $0 }.get().state, .released)
            isReleased = true
            try expectEqual(get(live, "moving", "c/d3"), .unavailable)
            try expectEqual(commit(live, "moving", "c/late").code, .unavailable)
            try listener.ended.wait(until: "the listener has ended")
            expectEqual(listener.state.withLock { $0.outcome.code }, .unavailable)
        }
        expect(received.state == .owned && received.generation == 1)
        places.put(database, in: 1)
        for path in ["c/d3", "c/last"] {
            try waitUntil("\(path) is found in the other store") { try get(live, "moving", path) == .ok }
        }
        try expectEqual(get(live, "moving", "c/late"), .notFound)
        try expectEqual(commit(live, "moving", "c/after").code, .ok)
        try waitForDocument(try listen(live, "moving"))
        // A late chunk changes nothing: the reply has the present state.
        try expectEqual(receive(live, request).state, .owned)
        request.chunk = []
        try expectEqual(receive(live, request).state, .owned)
        expect(databases(live, 0).isEmpty && databases(live, 1) == ["\(database)"])
    }

    @Test
    func `Requests about moves that cannot be carried out are refused`() throws {
        let live = try start()
        try expectEqual(commit(live, "first", "c/x").code, .ok)
        func code(_ request: MoveDatabaseRequest) -> StatusCode {
            live.call(.adminMoveDatabase, request.encodedBytes()).outcome.code
        }
        expectEqual(code(MoveDatabaseRequest(database: "\(try name("first"))", store: "b")), .ok)
        expectEqual(code(MoveDatabaseRequest(database: "\(try name("nowhere"))", store: "b")), .notFound)
        expectEqual(code(MoveDatabaseRequest(database: "nonsense", store: "b")), .invalidArgument)
        func received(_ store: String, _ database: String, chunk: [UInt8] = []) -> StatusCode {
            let request = ReceiveDatabaseRequest(store: store, database: database, generation: 3, chunk: chunk)
            return live.call(.adminReceiveDatabase, request.encodedBytes()).outcome.code
        }
        let other = "\(try name("other"))"
        expectEqual(received("nowhere", other), .notFound)
        expectEqual(received("b", "nonsense"), .invalidArgument)
        expectEqual(received("b", other), .ok)
        for chunk in [[0], [0xff], [UInt8](repeating: 7, count: 1_000)] as [[UInt8]] {
            expect(received("b", other, chunk: chunk) != .internal)
        }
        let alone = try LiveDatabaseServer()
        let request = MoveDatabaseRequest(database: "\(try name("first"))", store: "b").encodedBytes()
        expectEqual(alone.call(.adminMoveDatabase, request).outcome.code, .failedPrecondition)
    }
}
