// What the table of databases needs done in the database of a store that lies elsewhere.
//
//     thread "databases" ── share, hand over ──► StoreTasks ──► thread of StoreUpkeep, with a separate connection
//                        ◄── shares, servers ──┘
//
// The thread of the table serves all stores, so it connects to the home database alone.

import Basics
import PostgreSQLLog

/// Thread-safe.
final class StoreTasks: Sendable {
    private struct State {
        /// The epoch in which this server leads, and had entered all databases of the store.
        var enteredEpoch: UInt64?
        var shares = false
        var handOver: (epoch: UInt64, server: String)?
        var servers: Set<String> = []
        /// When they were read, in milliseconds.
        var readAt: UInt64?
        var wake: @Sendable () -> Void = {}
    }

    private let state = Monitor(State())

    private static let staleMilliseconds: UInt64 = 10_000

    /// - Parameter wake: has the thread that runs tasks look at once.
    func bind(wake: @escaping @Sendable () -> Void) { state.update { $0.wake = wake } }

    // MARK: The side of the table

    /// All databases of the store have a row: the store is to say that it shares, if this server led in that epoch.
    func share(in epoch: UInt64) {
        let wake = state.update { state -> (@Sendable () -> Void)? in
            defer { state.enteredEpoch = epoch }
            return state.enteredEpoch == epoch || state.shares ? nil : state.wake
        }
        wake?()
    }

    /// Whether the store's own row says that it shares.
    var shares: Bool { state.withLock { $0.shares } }

    /// Gives the lease up, which this server holds in an epoch, for another server.
    func handOver(in epoch: UInt64, to server: String) {
        let wake = state.update { state in
            state.handOver = (epoch, server)
            return state.wake
        }
        wake()
    }

    /// The addresses of the servers that can lead the store; nil if they are not known now.
    var servers: Set<String>? {
        state.withLock { state in
            guard let readAt = state.readAt else { return nil }
            return SystemClock.monotonicMilliseconds() > readAt + Self.staleMilliseconds ? nil : state.servers
        }
    }

    // MARK: The side of the store's database

    /// The addresses of the servers that can lead the store were read.
    func note(_ servers: Set<String>) {
        state.update { state in
            state.servers = servers
            state.readAt = SystemClock.monotonicMilliseconds()
        }
    }

    /// Does what there is to do, with a session of the database of the store.
    /// - Returns: the server to which the store was handed over; nil if it was not.
    func run(_ session: PostgreSQLSession, _ tables: StoreTables) throws -> String? {
        let (epoch, handOver) = state.update { state in
            defer { state.handOver = nil }
            return (state.shares ? nil : state.enteredEpoch, state.handOver)
        }
        if let epoch, try !session.run(tables.sharing(in: epoch, level: StoreTables.movesLevel)).isEmpty {
            state.update { $0.shares = true }
        }
        guard let handOver else { return nil }
        let statement = tables.handingOver(in: handOver.epoch, to: handOver.server)
        return try session.run(statement).isEmpty ? nil : handOver.server
    }
}
