// Databases that move away from the stores which this server leads: the thread that drives their moves.
//
//     hearth.databases ── once a second ──► rows with moving_to ──► a DatabaseMove each
//     source store ── moveChunk ──► this thread ── ReceiveDatabase, a chunk at a time ──► leader of the target store
//
// A move keeps nothing here (Replication/DatabaseMove): the leader that comes next continues it. One chunk is in
// memory.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import HearthClient
import PostgreSQLLog
import Replication
import Server
import Synchronization

/// Thread-safe.
final class DatabaseMoves: Sendable {
    private struct State {
        var clients: [String: HearthClient] = [:]
        var isStopping = false
        var thread: SystemThread?
    }

    let address: String
    /// Those of this server.
    let stores: [Cluster]
    /// The numbers of those from which databases are moved away here.
    let own: [Int]
    let places: ClusterPlaces
    let log: Log
    private let reach: Cluster.Reach
    private let state = Monitor(State())

    /// How long the leader of a target may take for a chunk.
    private static let callTimeout = Duration.seconds(20)
    /// How long a server may be away before another one is looked for.
    private static let outageMax = Duration.seconds(1)

    /// - Parameters:
    ///   - address: of the database with the table.
    ///   - own: the numbers of the stores from which databases are moved away here.
    ///   - reach: how a server is reached by its address.
    init(
        address: String, _ stores: [Cluster], from own: [Int], _ places: ClusterPlaces, log: Log,
        _ reach: @escaping Cluster.Reach
    ) {
        self.address = address
        self.stores = stores
        self.own = own
        self.places = places
        self.log = log
        self.reach = reach
    }

    /// - Parameter served: the stores, in their order.
    func start(_ served: [ServedStore]) throws {
        let thread = try SystemThread(name: "moves") { [self] in
            let driver = MoveDriver(self, served)
            while pause(until: driver.turn()) {}
            driver.close()
        }
        state.update { $0.thread = thread }
    }

    /// No further step is begun, and calls that are under way fail. Moves are continued by the servers that lead then.
    /// Does not wait.
    func beginStopping() {
        let clients = state.update { state in
            state.isStopping = true
            defer { state.clients = [:] }
            return state.clients.values
        }
        Task { for client in clients { await client.close() } }
    }

    /// Waits until the thread has ended. A commit that it waits for may wait for the database of its store, as long as
    /// the member of the store does.
    func waitForEnd() { state.update { $0.thread.take() }?.join() }

    var isStopping: Bool { state.withLock { $0.isStopping } }

    private func pause(until milliseconds: UInt64) -> Bool {
        state.wait(untilNanoseconds: milliseconds * 1_000_000) { $0.isStopping ? false : nil } ?? true
    }

    /// Asks another server, or this one by its own address. Blocks. The driver asks again, maybe another server.
    func ask(_ request: ReceiveDatabaseRequest, at address: String) throws -> ReceivedDatabase {
        let client = try client(of: address)
        return try Replica.wait {
            try await client.administer(
                .adminReceiveDatabase, request, isRepeatable: false, as: ReceivedDatabase.self)
        }
    }

    private func client(of address: String) throws -> HearthClient {
        if let client = state.withLock({ $0.clients[address] }) { return client }
        var configuration = try reach(address)
        configuration.callTimeout = Self.callTimeout
        configuration.outageMax = Self.outageMax
        let client = try HearthClient(configuration)
        let isKept = state.update { state in
            if !state.isStopping { state.clients[address] = client }
            return !state.isStopping
        }
        guard isKept else {
            Task { await client.close() }
            throw RequestError.shuttingDown
        }
        return client
    }
}

/// What metrics say of the moves away from a store. Thread-safe.
final class MoveFigures: Sendable {
    private let state = Mutex(ClusterFigures.Moves())

    var figures: ClusterFigures.Moves { state.withLock { $0 } }

    func change(_ body: (inout ClusterFigures.Moves) -> Void) { state.withLock { body(&$0) } }
}
