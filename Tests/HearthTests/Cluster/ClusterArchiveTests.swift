// hearth serve --cluster with --archive, and replicas of a cluster, as processes over a real PostgreSQL.

import Foundation
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(30)))
struct ClusterArchiveTests {
    private let directory = TemporaryDirectory("cluster-archive")
    private let database: PostgreSQLServer
    private var archive: String { directory.path(of: "archive") }
    private var archiving: [String] { ["--archive", archive, "--archive-interval", "100ms"] }

    init() throws { database = try PostgreSQLServer() }

    private func nodes(_ count: Int, _ arguments: [String]) throws -> [ClusterNode] {
        try ClusterNode.several(count, database, in: directory, arguments)
    }

    private func set(_ node: ClusterNode, _ path: String, _ number: Int) throws {
        let outcome = try HearthBinary.run(["set", "--address", node.address, path, "{\"n\":\(number)}"])
        expectEqual(outcome.status, 0, "\(outcome)")
    }

    private func run(_ arguments: [String], status: Int32 = 0) throws -> String {
        let outcome = try HearthBinary.run(arguments)
        expectEqual(outcome.status, status, "\(arguments): \(outcome)")
        return outcome.output + outcome.errors
    }

    private func expectNumber(_ port: Int, _ path: String, is number: Int, _ log: () -> String) async throws {
        try await eventually("\(path) is \(number): \(log().suffix(2_000))") {
            try HearthBinary.run(["get", "--address", "127.0.0.1:\(port)", path]).output.contains("\"n\":\(number)}")
        }
    }

    private func listing() throws -> [String: Any] {
        let outcome = try HearthBinary.run(["archive", "list", archive, "--json"])
        return try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any] ?? [:]
    }

    /// Waits until the archive has everything that a server has committed.
    private func expectArchived(by node: ClusterNode) async throws {
        try await eventually("the archive is complete: \(node.log.suffix(2_000))") {
            let lines = node.metrics.split(separator: "\n")
            let lag = lines.first { $0.hasPrefix("hearth_archive_lag_seconds ") }?.split(separator: " ").last
            return lag.flatMap { Double($0) } == 0 && lines.contains("hearth_archive_failing 0")
                && node.log.contains("event=archive_opened")
        }
    }

    /// A leader that has archived five documents, and its follower.
    private func startedPair() async throws -> (leader: ClusterNode, follower: ClusterNode) {
        let nodes = try nodes(2, archiving)
        for node in nodes { try node.start() }
        let leader = try await ClusterNode.leader(of: nodes)
        for number in 0..<5 { try set(leader, "c/d\(number)", number) }
        try await expectArchived(by: leader)
        return (leader, try #require(nodes.first { $0 !== leader }))
    }

    @Test
    func `Leaders that follow each other write one archive without a gap, and it becomes a cluster again`() async throws
    {
        let (first, second) = try await startedPair()
        expect(!second.log.contains("event=archive_opened"))
        for number in 5..<10 { try set(first, "c/d\(number)", number) }
        first.kill()
        for number in 10..<15 { try set(second, "c/d\(number)", number) }
        try await expectArchived(by: second)
        try first.start()
        // A leader that ends has the archive complete, and the next one continues it.
        expectEqual(second.stop(), 0, "\(second.log.suffix(2_000))")
        for number in 15..<20 { try set(first, "c/d\(number)", number) }
        expectEqual(first.stop(), 0, "\(first.log.suffix(2_000))")
        expect(!first.log.contains("event=archive_incomplete"), "\(first.log.suffix(2_000))")

        try expect(run(["archive", "check", archive]).hasSuffix("no problems\n"))
        let listing = try listing()
        expectEqual((listing["commits"] as? [Any])?.count, 1, "\(listing)")
        expect(listing["from"] as? Int == 0, "\(listing)")
        let restored = directory.path(of: "restored")
        _ = try run(["restore", "--from", archive, "--to", restored])
        _ = try run(["check", "--data", restored])
        for number in 0..<20 {
            try expect(run(["get", "--data", restored, "c/d\(number)"]).contains("\"n\":\(number)}"))
        }

        // Into a database again.
        let other = try PostgreSQLServer()
        try expect(run(["migrate", "--from", restored, "--to", other.address]).contains("of the cluster now"))
        let node = try ClusterNode(other.address, data: directory.path(of: "other"), arguments: archiving)
        try node.start()
        try await expectNumber(node.port, "c/d19", is: 19) { node.log }
        try set(node, "c/d", 20)
        // It is another store: the archive is refused, and nothing waits for it.
        expectEqual(node.server?.process.waitForError("event=archive_failing"), true)
        expect(node.log.contains("the archive is of another store"), "\(node.log.suffix(2_000))")
        expectEqual(node.stop(), 0)
        try expect(run(["archive", "check", archive]).hasSuffix("no problems\n"))
    }

    @Test
    func `A leader that stands still keeps the archive from the next one, which continues it afterwards`() async throws
    {
        let (first, second) = try await startedPair()
        first.signal(SIGSTOP)
        for number in 5..<10 { try set(second, "c/d\(number)", number) }
        expectEqual(second.server?.process.waitForError("event=archive_waiting"), true)
        expect(second.metrics.contains("hearth_archive_failing 1\n"))
        first.signal(SIGCONT)
        try await expectArchived(by: second)
        try set(second, "c/d10", 10)
        for node in [first, second] { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
        try expect(run(["archive", "check", archive]).hasSuffix("no problems\n"))
        expectEqual((try listing()["commits"] as? [Any])?.count, 1)
        let restored = directory.path(of: "restored")
        _ = try run(["restore", "--from", archive, "--to", restored])
        for number in 0...10 {
            try expect(run(["get", "--data", restored, "c/d\(number)"]).contains("\"n\":\(number)}"))
        }
    }

    @Test
    func `A replica of a server of a cluster follows it over its restarts, and archives the cluster`() async throws {
        let nodes = try nodes(2, [])
        for node in nodes { try node.start() }
        let first = try await ClusterNode.leader(of: nodes)
        let source = try #require(nodes.first { $0 !== first })
        for number in 0..<3 { try set(first, "c/d", number) }
        let replica = try ServerProcess(
            data: directory.path(of: "copy"),
            arguments: ["--follow", source.address, "--follow-read-only", "--archive", archive])
        try await expectNumber(replica.port, "c/d", is: 2) { replica.process.errors }
        try set(first, "c/e", 3)
        try await expectNumber(replica.port, "c/e", is: 3) { replica.process.errors }
        // A server that starts again has its last groups in its runs, and reads those before from the database.
        source.kill()
        try source.start()
        try set(first, "c/f", 4)
        try await expectNumber(replica.port, "c/f", is: 4) { replica.process.errors }
        expectEqual(source.stop(), 0)
        try set(first, "c/g", 5)
        try source.start()
        try await expectNumber(replica.port, "c/g", is: 5) { replica.process.errors }
        expect(!replica.process.errors.contains("event=replica_outdated"), "\(replica.process.errors.suffix(2_000))")
        expectEqual(replica.stop(), 0)
        let restored = directory.path(of: "restored")
        _ = try run(["restore", "--from", archive, "--to", restored])
        try expect(run(["get", "--data", restored, "c/g"]).contains("\"n\":5}"))
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
    }
}
