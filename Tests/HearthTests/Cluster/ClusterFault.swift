// What goes wrong in a cluster: each fault is made, and what it broke is put right again.

import Foundation
import PostgreSQLLog
import TestSupport
import Testing

/// A fault of a server or of the database.
enum ClusterFault: CaseIterable {
    case leaderKilled
    case leaderStandsStill
    case followerKilled
    case followerLosesDisk
    case databaseCrashes
    case databaseRestarts
    case databaseStandsStill
    case connectionsCut
    case leaderStops
}

/// A cluster under load whose parts fail.
struct FailingCluster {
    let nodes: [ClusterNode]
    let database: PostgreSQLServer
    let writer: ClusterWriter

    /// The server that leads.
    func leader(besides other: ClusterNode? = nil) async throws -> ClusterNode {
        var found: ClusterNode?
        try await eventually("a server leads: \(logs)") {
            found = nodes.first { $0 !== other && $0.server != nil && $0.leads }
            return found != nil
        }
        return try #require(found)
    }

    private var logs: [Substring] { nodes.map { $0.log.suffix(1_000) } }

    /// Waits until further commits are acknowledged.
    func expectProgress() async throws {
        let before = writer.numbers.count
        try await eventually("commits are acknowledged: \(logs)") { writer.numbers.count > before + 10 }
    }

    /// Makes a fault, waits until commits are acknowledged in spite of it or after it, and ends it.
    func make(_ fault: ClusterFault) async throws {
        let leader = try await leader()
        let follower = try #require(nodes.first { $0 !== leader })
        switch fault {
        case .leaderKilled:
            leader.kill()
            try await expectProgress()
            try leader.start()
        case .leaderStops:
            #expect(leader.stop() == 0)
            try await expectProgress()
            try leader.start()
        case .leaderStandsStill:
            leader.signal(SIGSTOP)
            _ = try await self.leader(besides: leader)
            try await expectProgress()
            let before = leader.log.components(separatedBy: "event=cluster_deposed").count
            leader.signal(SIGCONT)
            // It wakes up as a leader, finds out that it is none, and begins again.
            try await eventually("it begins again: \(leader.log.suffix(1_000))") {
                leader.log.components(separatedBy: "event=cluster_deposed").count > before
            }
        case .followerKilled:
            follower.kill()
            try await expectProgress()
            try follower.start()
        case .followerLosesDisk:
            follower.kill()
            try FileManager.default.removeItem(atPath: follower.data)
            try await expectProgress()
            try follower.start()
        case .databaseCrashes:
            database.stop(SIGQUIT)
            try database.start()
        case .databaseRestarts:
            database.stop(SIGINT)
            try database.start()
        case .databaseStandsStill:
            // Statements about the lease and the log wait for the table.
            let session = try PostgreSQLSession(address: database.address)
            try session.run(SQLStatement(script: "BEGIN; LOCK TABLE hearth.stores IN ACCESS EXCLUSIVE MODE"))
            try await eventually("no server leads: \(logs)") { !nodes.contains { $0.leads } }
            session.close()
        case .connectionsCut:
            let session = try PostgreSQLSession(address: database.address)
            try session.run(
                SQLStatement(
                    """
                    SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity
                    WHERE application_name = 'hearth' AND pid <> pg_backend_pid()
                    """))
            session.close()
        }
        try await expectProgress()
    }

    /// Everything acknowledged is at every server, and both documents of each commit or none.
    func expectNothingLost() async throws {
        let acknowledged = Set(writer.numbers)
        #expect(acknowledged.count == writer.numbers.count)
        for node in nodes {
            try await eventually("\(node.address) has all: \(node.log.suffix(1_000))") {
                try writer.numbers("left", at: node).isSuperset(of: acknowledged)
            }
        }
        let first = try writer.numbers("left", at: nodes[0])
        for node in nodes {
            for side in ["left", "right"] { #expect(try writer.numbers(side, at: node) == first, "\(node.address)") }
        }
    }
}
