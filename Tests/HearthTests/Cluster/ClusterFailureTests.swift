// A cluster of three servers under load, while its parts fail.

import Foundation
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(600)))
struct ClusterFailureTests {
    /// Faults in the long form, at random; `Tools/cluster` sets it.
    private static let faultsAtRandom = ProcessInfo.processInfo.environment["HEARTH_CLUSTER_FAULTS"].flatMap(Int.init)

    private func run(_ faults: [ClusterFault]) async throws {
        let directory = TemporaryDirectory("cluster")
        let database = try PostgreSQLServer()
        let nodes = try (0..<3).map { number in
            try ClusterNode(
                database.address, data: directory.path(of: "data\(number)"), arguments: ["--cluster-base", "64KiB"])
        }
        for node in nodes { try node.start() }
        let cluster = FailingCluster(nodes: nodes, database: database, writer: try ClusterWriter(nodes))
        let writing = Task { try await cluster.writer.run() }
        try await cluster.expectProgress()
        for fault in faults {
            print("cluster: \(fault), \(cluster.writer.numbers.count) commits acknowledged")
            try await cluster.make(fault)
        }
        cluster.writer.stop()
        try await writing.value
        try await cluster.expectNothingLost()
        for node in nodes {
            #expect(node.stop() == 0, "\(node.log.suffix(2_000))")
            let check = try HearthBinary.run(["check", "--data", node.data])
            #expect(check.status == 0, "\(check.output) \(check.errors)")
        }
        print("cluster: \(cluster.writer.numbers.count) commits acknowledged, none lost")
    }

    @Test
    func `Nothing acknowledged is lost when leaders are killed or stand still and the database crashes`() async throws {
        try await run([.leaderKilled, .leaderStandsStill, .databaseCrashes])
    }

    @Test(.enabled(if: faultsAtRandom != nil, "the long form is Tools/cluster"))
    func `Nothing acknowledged is lost in many faults of all kinds`() async throws {
        let count = try #require(Self.faultsAtRandom)
        // Every kind first.
        let further = (0..<max(0, count - ClusterFault.allCases.count)).compactMap { _ in
            ClusterFault.allCases.randomElement()
        }
        try await run(Array(ClusterFault.allCases.shuffled().prefix(count)) + further)
    }
}
