// What the stores of a server have in common whose logs lie in the same PostgreSQL database.

import Basics
import PostgreSQLLog

/// One database. Thread-safe.
final class SharedDatabase: Sendable {
    /// Drives the members.
    let loop: MemberLoop
    let upkeep: StoreUpkeep
    /// Of other servers, for the stores of all databases.
    let clients: LeaderClients

    init(_ address: String, _ clients: LeaderClients) {
        self.clients = clients
        loop = MemberLoop(database: address)
        upkeep = StoreUpkeep(database: address)
    }
}

/// The databases of the stores of a server, by their addresses. Thread-safe.
final class SharedDatabases: Sendable {
    private let clients = LeaderClients()
    private let databases = Monitor<[String: SharedDatabase]>([:])

    /// The one with an address; the same one for the same address.
    subscript(_ address: String) -> SharedDatabase {
        databases.withLock { databases in
            if let known = databases[address] { return known }
            let made = SharedDatabase(address, clients)
            databases[address] = made
            return made
        }
    }
}
