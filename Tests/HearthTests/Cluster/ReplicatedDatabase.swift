// PostgreSQL with a synchronous standby, and what happens to it.

import Foundation
import TestSupport

/// The database of a cluster under test. A test changes it from one place at a time.
protocol ClusterDatabase: AnyObject, Sendable {
    /// Names all its hosts.
    var address: String { get }
    /// The faults that it can have.
    var faults: [ClusterFault] { get }

    /// Makes a fault of the database and puts it right again.
    func make(_ fault: ClusterFault) async throws
}

/// One server.
final class SingleDatabase: ClusterDatabase {
    private let server: PostgreSQLServer
    let faults: [ClusterFault] = [.databaseCrashes, .databaseRestarts]

    init() throws { server = try PostgreSQLServer() }

    var address: String { server.address }

    func make(_ fault: ClusterFault) throws {
        server.stop(fault == .databaseCrashes ? SIGQUIT : SIGINT)
        try server.start()
    }
}

/// A primary, and a standby that has each commit before it is acknowledged. When the primary is lost the standby takes
/// its place, and a new standby is made. Each of the two hosts has one of them.
final class ReplicatedDatabase: ClusterDatabase, @unchecked Sendable {
    // Sendable: a test changes it from one place at a time.

    private var primary: PostgreSQLServer
    private var standby: PostgreSQLServer
    private var places: [TestHost]
    let address: String
    let faults: [ClusterFault] = [
        .databaseCrashes, .databaseRestarts, .primaryLost, .standbyLost, .replicationCut, .primaryLostAfterCut,
    ]

    /// A commit waits for any standby, and without one for as long as it takes.
    private static let options = ["synchronous_standby_names=*", "wal_keep_size=256MB", "hot_standby=on"]

    /// - Parameter hosts: of the primary and of the standby.
    init(hosts: [TestHost] = [.local, .local]) throws {
        places = hosts
        primary = try PostgreSQLServer(options: Self.options, host: hosts[0])
        standby = try PostgreSQLServer(standbyOf: primary, options: Self.options, host: hosts[1])
        address = Self.address(primary, standby)
    }

    private static func address(_ primary: PostgreSQLServer, _ standby: PostgreSQLServer) -> String {
        "postgresql://hearth@\(primary.place),\(standby.place)/postgres"
    }

    func make(_ fault: ClusterFault) async throws {
        switch fault {
        case .databaseCrashes, .databaseRestarts:
            primary.stop(fault == .databaseCrashes ? SIGQUIT : SIGINT)
            try primary.start()
        case .primaryLost: try await failOver()
        case .standbyLost:
            standby.stop(SIGQUIT)
            // Commits wait meanwhile.
            try await Task.sleep(for: .seconds(1))
            try standby.start()
        case .replicationCut:
            try await cutReplication()
            try standby.follow(primary)
        case .primaryLostAfterCut:
            // It commits what the standby lacks, and shows it after its restart.
            try await cutReplication()
            primary.stop(SIGQUIT)
            try primary.start()
            // Servers look at the log meanwhile.
            try await Task.sleep(for: .seconds(1))
            try await failOver()
        default: break
        }
    }

    /// The primary is lost, and the standby takes its place. Nothing writes to the old primary any more.
    private func failOver() async throws {
        primary.stop(SIGKILL)
        try standby.promote()
        let port = primary.port
        primary = standby
        places.reverse()
        standby = try PostgreSQLServer(standbyOf: primary, options: Self.options, host: places[1], port: port)
    }

    /// The standby gets nothing more.
    private func cutReplication() async throws {
        try standby.follow(nil)
        // Commits wait meanwhile.
        try await Task.sleep(for: .seconds(1))
    }
}
