// What goes wrong in a cluster: each fault is made, and what it broke is put right again.

import Foundation
import PostgreSQLLog
import TestSupport
import Testing

/// A fault of a server, of the network, or of the database.
enum ClusterFault: CaseIterable {
    case leaderKilled
    case leaderStops
    case leaderStandsStill
    case followerKilled
    case followerStandsStill
    case followerLosesDisk

    /// A follower starts again with a clock that is an hour ahead, or an hour late.
    case clockAhead
    case clockBehind
    /// The clock of the leader jumps by an hour, and back, while it leads.
    case leaderClockJumpsAhead
    case leaderClockJumpsBack

    /// Nothing reaches the leader.
    case leaderCutOff
    case leaderCutFromDatabase
    case followerCutFromDatabase
    case leaderCutFromFollower

    case databaseStandsStill
    case connectionsCut
    case databaseCrashes
    case databaseRestarts

    /// The primary is lost, and its standby takes its place.
    case primaryLost
    case standbyLost
    /// The standby gets nothing for a moment.
    case replicationCut
    /// The primary commits what its standby lacks, starts again, and is lost.
    case primaryLostAfterCut
    /// Patroni moves the primary.
    case primaryMoves
    /// All of the primary's host stands still, until its standby has taken its place.
    case primaryStandsStill

    static let ofServers: [ClusterFault] = [
        .leaderKilled, .leaderStops, .leaderStandsStill, .followerKilled, .followerStandsStill, .followerLosesDisk,
        .databaseStandsStill, .connectionsCut,
    ]
    static let ofClocks: [ClusterFault] = [.clockAhead, .clockBehind, .leaderClockJumpsAhead, .leaderClockJumpsBack]
    static let ofLinks: [ClusterFault] = [
        .leaderCutOff, .leaderCutFromDatabase, .followerCutFromDatabase, .leaderCutFromFollower,
    ]
}

/// A cluster under load whose parts fail.
final class FailingCluster {
    let nodes: [ClusterNode]
    let database: any ClusterDatabase
    let writer: ClusterWriter
    private let network: ClusterNetwork?
    /// The server whose clock is wrong.
    private var shifted: ClusterNode?

    init(nodes: [ClusterNode], database: any ClusterDatabase, network: ClusterNetwork? = nil) throws {
        self.nodes = nodes
        self.database = database
        self.network = network
        writer = try ClusterWriter(nodes)
    }

    /// The faults that can be made here.
    var faults: [ClusterFault] {
        ClusterFault.ofServers + database.faults + (nodes.contains { $0.clock == nil } ? [] : ClusterFault.ofClocks)
            + (network == nil ? [] : ClusterFault.ofLinks)
    }

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
        let follower = try #require(nodes.first { $0 !== leader && $0 !== shifted } ?? nodes.first { $0 !== leader })
        switch fault {
        case .leaderKilled:
            leader.kill()
            try await expectProgress()
            try leader.start()
        case .leaderStops:
            expectEqual(leader.stop(), 0)
            try await expectProgress()
            try leader.start()
        case .leaderStandsStill:
            leader.signal(SIGSTOP)
            try await expectReplaced(leader) { leader.signal(SIGCONT) }
        case .followerKilled:
            follower.kill()
            try await expectProgress()
            try start(follower)
        case .followerStandsStill:
            follower.signal(SIGSTOP)
            try await expectProgress()
            follower.signal(SIGCONT)
        case .followerLosesDisk:
            follower.kill()
            try FileManager.default.removeItem(atPath: follower.data)
            try await expectProgress()
            try start(follower)
        case .clockAhead: try await shiftClock(of: follower, bySeconds: 3_600)
        case .clockBehind: try await shiftClock(of: follower, bySeconds: -3_600)
        case .leaderClockJumpsAhead: try await jumpClock(of: leader, bySeconds: 3_600)
        case .leaderClockJumpsBack: try await jumpClock(of: leader, bySeconds: -3_600)
        case .leaderCutOff, .leaderCutFromDatabase, .followerCutFromDatabase, .leaderCutFromFollower:
            if let network { try await cut(fault, leader, follower, network) }
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
        case .databaseCrashes, .databaseRestarts, .primaryLost, .standbyLost, .replicationCut, .primaryLostAfterCut,
            .primaryMoves, .primaryStandsStill:
            try await database.make(fault)
        }
        try await expectProgress()
    }

    /// Starts a server with the right clock.
    private func start(_ node: ClusterNode) throws {
        if node === shifted { shifted = nil }
        try node.clock?.move(bySeconds: 0)
        try node.start()
    }

    /// Waits until another server leads in a leader's place, ends what kept that one from leading, and waits until it
    /// knows.
    private func expectReplaced(_ leader: ClusterNode, _ end: () throws -> Void) async throws {
        _ = try await self.leader(besides: leader)
        try await expectProgress()
        let count = { leader.log.components(separatedBy: "event=cluster_deposed").count }
        let before = count()
        try end()
        // It wakes up as a leader, finds out that it is none, and begins again.
        try await eventually("it begins again: \(leader.log.suffix(1_000))") { count() > before || !leader.leads }
    }

    private func shiftClock(of node: ClusterNode, bySeconds seconds: Int) async throws {
        // One clock is wrong at a time: a server that is too far from the database's clock does not lead.
        if let other = shifted, other !== node {
            other.kill()
            try start(other)
        }
        node.kill()
        shifted = node
        try node.clock?.move(bySeconds: seconds)
        try node.start()
    }

    private func jumpClock(of node: ClusterNode, bySeconds seconds: Int) async throws {
        let count = { node.log.components(separatedBy: "event=cluster_clock_differs").count }
        let before = count()
        try node.clock?.move(bySeconds: seconds)
        try await eventually("it notices: \(node.log.suffix(1_000))") { count() > before }
        try await expectProgress()
        try node.clock?.move(bySeconds: 0)
        // The clock's library looks at its file once a second: a server that jumps again soon would not see this move,
        // and so nothing new.
        try await eventually("its clock is right again: \(node.log.suffix(1_000))") { node.knowsRightClock }
    }

    private func cut(
        _ fault: ClusterFault, _ leader: ClusterNode, _ follower: ClusterNode, _ network: ClusterNetwork
    ) async throws {
        let name = { (node: ClusterNode) in "s\(self.nodes.firstIndex { $0 === node } ?? 0)" }
        let cutFromDatabase = { (node: ClusterNode, isCut: Bool) in
            for host in ["d0", "d1"] { try network.cut(name(node), host, isCut) }
        }
        switch fault {
        case .leaderCutOff:
            try network.cut(name(leader), true)
            try await expectReplaced(leader) { try network.cut(name(leader), false) }
        case .leaderCutFromDatabase:
            try cutFromDatabase(leader, true)
            try await expectReplaced(leader) { try cutFromDatabase(leader, false) }
        case .followerCutFromDatabase:
            try cutFromDatabase(follower, true)
            try await expectProgress()
            try cutFromDatabase(follower, false)
        default:
            try network.cut(name(leader), name(follower), true)
            try await expectProgress()
            try network.cut(name(leader), name(follower), false)
        }
    }

    /// Everything acknowledged is at every server, and both documents of each commit or none.
    func expectNothingLost() async throws {
        let acknowledged = Set(writer.numbers)
        expectEqual(acknowledged.count, writer.numbers.count)
        // A commit whose reply was lost may come late.
        try await eventually("all servers have the same: \(nodes.map { $0.log.suffix(1_000) })") {
            let first = try writer.numbers("left", at: nodes[0])
            return try first.isSuperset(of: acknowledged)
                && nodes.allSatisfy { node in
                    try ["left", "right"].allSatisfy { side in try writer.numbers(side, at: node) == first }
                }
        }
    }
}
