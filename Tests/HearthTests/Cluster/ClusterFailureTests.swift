// A cluster of three servers under load, while its parts fail.

import Foundation
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(600)))
struct ClusterFailureTests {
    private static let environment = ProcessInfo.processInfo.environment
    /// Faults in the long form, at random; `Tools/cluster` sets it and the other variables.
    private static let faultsAtRandom = environment["HEARTH_CLUSTER_FAULTS"].flatMap(Int.init)
    /// Clients whose transactions are recorded.
    private static let clientCount = 6
    /// Transactions that a history has at least.
    private static let committedMin = 50

    /// - Parameters:
    ///   - database: made for the cluster.
    ///   - choose: from the faults that are possible.
    private func run(
        _ database: any ClusterDatabase, network: ClusterNetwork? = nil, seed: UInt64,
        _ choose: ([ClusterFault]) -> [ClusterFault]
    ) async throws {
        let directory = TemporaryDirectory("cluster")
        let nodes = try (0..<3).map { number in
            try ClusterNode(
                database.address, data: directory.path(of: "data\(number)"), arguments: Self.arguments(network),
                host: network?.host("s\(number)") ?? .local,
                clock: Self.faultsAtRandom == nil ? nil : MovableClock(file: directory.path(of: "clock\(number)")))
        }
        for node in nodes { try node.start() }
        let cluster = try FailingCluster(nodes: nodes, database: database, network: network)
        let clients = try ListAppendClients(nodes, seed: seed)
        let writer = cluster.writer
        let writing = Task { try await writer.run() }
        let appending = Task { await clients.run(clients: Self.clientCount) }
        try await cluster.expectProgress()
        for fault in choose(cluster.faults) {
            print("cluster: \(fault), \(cluster.writer.numbers.count) commits, \(clients.count) transactions")
            try await cluster.make(fault)
        }
        try await eventually("transactions are committed") { clients.committedCount >= Self.committedMin }
        cluster.writer.stop()
        clients.stop()
        try await writing.value
        await appending.value
        try await cluster.expectNothingLost()
        try await expectNoAnomaly(clients)
        for node in nodes {
            expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))")
            let check = try HearthBinary.run(["check", "--data", node.data])
            expectEqual(check.status, 0, "\(check.output) \(check.errors)")
        }
    }

    /// A base every 64 KiB, so that the log is trimmed too. In a namespace only the tests reach the servers.
    private static func arguments(_ network: ClusterNetwork?) -> [String] {
        ["--cluster-base", "64KiB"] + (network == nil ? [] : ["--insecure"])
    }

    private func expectNoAnomaly(_ clients: ListAppendClients) async throws {
        let history = try await clients.history(finalAt: 0)
        await clients.close()
        if let path = Self.environment["HEARTH_CLUSTER_HISTORY"] {
            try history.edn.write(toFile: path, atomically: true, encoding: .utf8)
        }
        let anomalies = ListAppendCheck.anomalies(of: history, isStrict: true)
        let outcomes = Dictionary(grouping: history.transactions, by: \.outcome).mapValues(\.count)
        let counts = outcomes.map { "\($0.value) \($0.key)" }.sorted().joined(separator: ", ")
        print("cluster: transactions: \(counts); \(anomalies.count) anomalies")
        for anomaly in anomalies.prefix(10) {
            var text = "\(anomaly)"
            if case .cycle(_, let transactions) = anomaly {
                for index in transactions { text += "\n  \(index): \(history.transactions[index])" }
            }
            Issue.record(Comment(rawValue: text))
        }
    }

    @Test
    func `Nothing is lost, and histories are strict, when leaders fail and a standby takes over`() async throws {
        try await run(try ReplicatedDatabase(), seed: 1) { _ in [.leaderKilled, .leaderStandsStill, .primaryLost] }
    }

    @Test(.enabled(if: faultsAtRandom != nil, "the long form is Tools/cluster"))
    func `Nothing is lost, and histories are strict, in many faults of all kinds`() async throws {
        let count = try #require(Self.faultsAtRandom)
        let seed = Self.environment["HEARTH_CLUSTER_SEED"].flatMap(UInt64.init) ?? .random(in: 0 ... .max)
        let network = ClusterNetwork.ofEnvironment
        let hosts = network.map { [$0.host("d0"), $0.host("d1")] } ?? [.local, .local]
        let database: any ClusterDatabase =
            switch Self.environment["HEARTH_CLUSTER_DATABASE"] {
            case "single": try SingleDatabase()
            case "patroni": try await PatroniDatabase(hosts: hosts, keeper: network?.host("client") ?? .local)
            default: try ReplicatedDatabase(hosts: hosts)
            }
        print("cluster: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        try await run(database, network: network, seed: seed) { possible in
            // Every kind first.
            let first = Array(possible.shuffled(using: &random).prefix(count))
            return first + (0..<max(0, count - first.count)).map { _ in random.pick(possible) }
        }
    }
}
