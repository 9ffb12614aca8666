// Security rules of a cluster, as processes over a real PostgreSQL.

import Foundation
import PostgreSQLLog
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(30)))
struct ClusterRulesTests {
    private let directory = TemporaryDirectory("cluster-rules")
    private let database: PostgreSQLServer
    /// The database that moves.
    private static let document = "/v1/projects/hearth/databases/(default)/documents/c/d"

    init() throws { database = try PostgreSQLServer() }

    private func node(_ name: String, _ arguments: [String]) throws -> ClusterNode {
        try ClusterNode(database.address, data: directory.path(of: name), arguments: arguments)
    }

    private func file(_ statement: String) throws -> String {
        let path = directory.path(of: "firestore.rules")
        let text = "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { \(statement) } } }\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func rules(_ words: [String], at node: ClusterNode) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["rules"] + words + ["--data", node.data])
    }

    private func expectRules(_ lines: Int, at node: ClusterNode) async throws {
        try await eventually("\(node.address) has \(lines) rules: \(node.log.suffix(2_000))") {
            try rules(["list"], at: node).output.split(separator: "\n").count == lines
        }
    }

    private func status(_ node: ClusterNode) -> Int? {
        HTTPTestClient(ifListening: node.port, address: node.host, patienceSeconds: 20)?
            .request("GET", Self.document)?.status
    }

    /// Copies of several stores are independent directories with the rules of the cluster.
    private func expectCopies(of nodes: [ClusterNode], have text: String) async throws {
        for command in ["backup", "fork"] {
            let copy = directory.path(of: command)
            let words = command == "fork" ? [nodes[0].data, copy] : ["--data", nodes[0].data, copy]
            // A store that has lost its lease is opened again, which refuses both and leaves nothing.
            var made = try HearthBinary.run([command] + words)
            try await eventually("the stores are open") {
                if !made.errors.contains("is being opened again") { return true }
                made = try HearthBinary.run([command] + words)
                return false
            }
            expectEqual(made.status, 0, "\(made)")
            for store in ["main", "b"] {
                let kept = try HearthBinary.run(["rules", "show", "--data", "\(copy)/\(store)"])
                expectEqual(kept.output, text, "\(command) \(store): \(kept)")
                try expectEqual(HearthBinary.run(["check", "--data", "\(copy)/\(store)"]).status, 0)
            }
        }
        // Its first bases are older than the rules.
        for store in ["main", "b"] {
            let (archive, restored) = (directory.path(of: "archive/\(store)"), directory.path(of: "restored-\(store)"))
            try await eventually("the archive has a base with the rules: \(nodes.map { $0.log.suffix(1_000) })") {
                FileManager.default.subpaths(atPath: archive)?.contains { $0.hasSuffix("/rules/000003.rules") } == true
            }
            let made = try HearthBinary.run(["restore", "--from", archive, "--to", restored])
            expectEqual(made.status, 0, "\(made)")
            let kept = try HearthBinary.run(["rules", "show", "--data", restored])
            expectEqual(kept.output, text, "the archive of \(store): \(kept)")
        }
    }

    @Test
    func `Rules applied at one server are in force at others, at a new one from the start, and after a move`()
        async throws
    {
        let stores = [
            "--cluster-stores", "main,b", "--archive", directory.path(of: "archive"), "--archive-base-interval", "1s",
        ]
        // Without access control, so that the servers reach each other; rules are kept all the same.
        let nodes = [
            try node("a", stores + ["--insecure"]), try node("b", stores + ["--insecure"]),
        ]
        for node in nodes { try node.start() }
        try await eventually("the database takes commits: \(nodes.map { $0.log.suffix(1_000) })") {
            try HearthBinary.run(["set", "--address", nodes[0].address, "c/d", "{\"n\":1}"]).status == 0
        }
        try expectEqual(rules(["apply", file("allow get;")], at: nodes[0]).status, 0)
        try await expectRules(1, at: nodes[1])
        try expectEqual(rules(["apply", file("allow get: if false;")], at: nodes[1]).status, 0)
        try await expectRules(2, at: nodes[0])
        try expectEqual(rules(["rollback"], at: nodes[0]).status, 0)
        try await expectRules(3, at: nodes[1])
        let shown = try nodes.map { try rules(["show"], at: $0).output }
        expect(shown[0] == shown[1] && shown[0].contains("allow get;"), "\(shown)")
        try await eventually("it has taken them: \(nodes[1].log)") { nodes[1].log.contains("event=rules_taken") }

        // Indexes go along, and are listed at every server.
        let indexes = directory.path(of: "firestore.indexes.json")
        let declared = """
            {"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
                {"fieldPath": "n", "order": "ASCENDING"}, {"fieldPath": "m", "order": "DESCENDING"}]}]}
            """
        try Data(declared.utf8).write(to: URL(fileURLWithPath: indexes))
        let applied = try HearthBinary.run(["indexes", "apply", indexes, "--data", nodes[0].data])
        expectEqual(applied.status, 0, "\(applied)")
        func expectIndexes(at nodes: [ClusterNode]) async throws {
            for node in nodes {
                try await eventually("the index is listed at \(node.address): \(node.log.suffix(1_000))") {
                    try HearthBinary.run(["indexes", "list", "--data", node.data]).output.contains("DESCENDING")
                }
            }
        }
        try await expectIndexes(at: nodes)

        // A move takes no rules along, and leaves none: a server that begins afterwards has all of them.
        let session = try PostgreSQLSession(address: database.address)
        let row = StoreTables.moveRows(
            try session.run(StoreTables.row(of: "projects/hearth/databases/(default)"))
        ).first
        session.close()
        let target = try #require(row).row.store == "main" ? "b" : "main"
        let moved = try HearthBinary.run(["move", "(default)", target, "--address", nodes[0].address])
        expectEqual(moved.status, 0, "\(moved)")
        for node in nodes { try expectEqual(rules(["show"], at: node).output, shown[0]) }
        try await expectIndexes(at: nodes)
        try await expectCopies(of: nodes, have: shown[0])
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }

        let late = try node("late", stores)
        try late.start()
        try expectEqual(rules(["list"], at: late).output.split(separator: "\n").count, 3)
        try await eventually("it leads, and permits what the rules permit: \(late.log.suffix(2_000))") {
            status(late) == 200
        }
        let denied = try HearthBinary.run(["set", "--address", late.address, "c/d", "{\"n\":2}"])
        expect(denied.status != 0 && denied.errors.contains("PERMISSION_DENIED"), "\(denied)")
        try await eventually("it is closed: \(late.log)") { late.log.contains("security=closed") }
        try expectEqual(rules(["apply", file("allow get: if false;")], at: late).status, 0)
        try await expectEqual(late.statusOfOpenStore { status(late) }, 403)
        expectEqual(late.stop(), 0)

        // What does not run does not change the rules of others.
        let offline = try rules(["apply", file("allow get;")], at: late)
        expect(offline.status == 1 && offline.errors.contains("have their rules in common"), "\(offline)")
    }

    @Test
    func `The rules of a directory become those of its cluster, and come back with it`() async throws {
        let data = directory.path(of: "alone")
        let source = try ServerProcess(data: data)
        expectEqual(source.stop(), 0)
        try expectEqual(HearthBinary.run(["rules", "apply", file("allow get;"), "--data", data]).status, 0)
        let moved = try HearthBinary.run(["migrate", "--from", data, "--to", database.address])
        expectEqual(moved.status, 0, "\(moved)")
        let first = try node("a", [])
        try first.start()
        try await eventually("it is closed: \(first.log)") { first.log.contains("security=closed") }
        try await eventually("reads are permitted: \(first.log.suffix(2_000))") { status(first) == 404 }
        // Newer than what any base has.
        try expectEqual(rules(["apply", file("allow get: if false;")], at: first).status, 0)
        try await expectEqual(first.statusOfOpenStore { status(first) }, 403)
        let back = directory.path(of: "back")
        let returned = try HearthBinary.run(["migrate", "--from", database.address, "--to", back])
        expectEqual(returned.status, 0, "\(returned)")
        _ = first.stop()
        let shown = try HearthBinary.run(["rules", "show", "--data", back])
        expect(shown.output.contains("allow get: if false;"), "\(shown)")
    }
}
