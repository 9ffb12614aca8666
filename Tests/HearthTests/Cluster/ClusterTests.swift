// hearth serve --cluster as processes over a real PostgreSQL.

import Basics
import DocumentModel
import Foundation
import HearthClient
import PostgreSQLLog
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(30)))
struct ClusterTests {
    private let directory = TemporaryDirectory("cluster")
    private let database: PostgreSQLServer

    init() throws { database = try PostgreSQLServer() }

    private func nodes(_ count: Int, _ arguments: [String] = []) throws -> [ClusterNode] {
        try ClusterNode.several(count, database, in: directory, arguments)
    }

    private func set(_ node: ClusterNode, _ path: String, _ number: Int) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["set", "--address", node.address, path, "{\"n\":\(number)}"])
    }

    private func get(_ node: ClusterNode, _ path: String) throws -> String {
        let read = try HearthBinary.run(["get", "--address", node.address, path])
        return read.output + read.errors
    }

    private func expectNumber(_ node: ClusterNode, _ path: String, is number: Int) async throws {
        try await eventually("\(path) is \(number) at \(node.address): \(node.log.suffix(2_000))") {
            try get(node, path).contains("\"n\":\(number)}")
        }
    }

    private func expectSound(_ nodes: [ClusterNode]) throws {
        for node in nodes {
            let check = try HearthBinary.run(["check", "--data", node.data])
            expectEqual(check.status, 0, "\(check.output) \(check.errors)")
        }
    }

    @Test
    func `Any of three servers takes writes and strict reads, and another one leads after kill -9`() async throws {
        let nodes = try nodes(3)
        for node in nodes { try node.start() }
        let first = try await ClusterNode.leader(of: nodes)
        // Any server takes any call, and a read at any server sees what was acknowledged before.
        for number in 0..<12 {
            let written = try set(nodes[number % 3], "c/d", number)
            expectEqual(written.status, 0, "\(written)")
            let read = try get(nodes[(number + number / 3 + 1) % 3], "c/d")
            expect(read.contains("\"n\":\(number)}"), "\(read)")
        }

        try await eventually("a follower gets groups over the stream of the leader") {
            guard try set(nodes[0], "c/streamed", 1).status == 0 else { return false }
            return nodes.contains { $0 !== first && $0.groupsStreamed > 0 }
        }

        first.kill()
        // A call that comes before another server leads waits for it.
        let other = try #require(nodes.first { $0 !== first })
        try expectEqual(set(other, "c/d10", 10).status, 0)
        let second = try await ClusterNode.leader(of: nodes)
        try first.start()
        for node in nodes { try await expectNumber(node, "c/d10", is: 10) }

        let status = try HearthBinary.run(["cluster", "status", "--cluster", database.address, "--json"])
        let report = try #require(
            try JSONSerialization.jsonObject(with: Data(status.output.utf8)) as? [String: Any], "\(status)")
        let stores = try #require(report["stores"] as? [[String: Any]])
        expect(stores.first?["leader"] as? String == second.address)
        expect(report["synchronousStandbys"] as? Int == 0)
        let words = try HearthBinary.run(["cluster", "status", "--cluster", database.address])
        expect(words.output.contains("leader \(second.address)"), "\(words)")
        expect(words.output.contains("no synchronous standby is configured"), "\(words)")
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log)") }
        try expectSound(nodes)
    }

    /// Takes the lease of a store from its leader, as a server would that nobody hears of any more.
    private func depose(_ store: String = "main") throws {
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        try session.run(
            SQLStatement(
                """
                UPDATE hearth.stores SET epoch = epoch + 1, renewals = renewals + 1, holder_high = 1, holder_low = 1
                WHERE name = $1::text
                """, [.text(store)]))
    }

    private func startTime(_ node: ClusterNode) -> Substring? {
        node.metrics.split(separator: "\n").first { $0.hasPrefix("process_start_time_seconds ") }
    }

    @Test
    func `A leader that is deposed follows in the same process, also under load, and nothing is lost`() async throws {
        let nodes = try nodes(2)
        for node in nodes { try node.start() }
        let first = try await ClusterNode.leader(of: nodes)
        let started = startTime(first)
        let writer = try ClusterWriter(nodes)
        let writing = Task { try await writer.run() }
        for round in 1...3 {
            let before = writer.numbers.count
            try await eventually("commits are acknowledged in round \(round)") { writer.numbers.count > before + 10 }
            let leading = try await ClusterNode.leader(of: nodes)
            let count = { leading.log.components(separatedBy: "event=cluster_store_reopened").count }
            let reopened = count()
            try depose()
            try await eventually("the store is open again: \(leading.log.suffix(2_000))") { count() > reopened }
        }
        let before = writer.numbers.count
        try await eventually("commits are acknowledged at the end") { writer.numbers.count > before + 10 }
        writer.stop()
        try await writing.value
        let acknowledged = Set(writer.numbers)
        for node in nodes {
            try await eventually("\(node.address) has all") {
                try writer.numbers("left", at: node).isSuperset(of: acknowledged)
            }
        }
        expect(started != nil && startTime(first) == started)
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
        try expectSound(nodes)
    }

    @Test
    func `Nothing is forwarded to a server that has another store, whose address is advertised by mistake`()
        async throws
    {
        let alone = try ServerProcess(data: directory.path(of: "alone"))
        let other = try PostgreSQLServer()
        let stranger = try ClusterNode(other.address, data: directory.path(of: "stranger"))
        try stranger.start()
        try await eventually("it leads: \(stranger.log.suffix(1_000))") { stranger.leads }
        let follower = try nodes(1)[0]
        for (number, port) in [alone.port, stranger.port].enumerated() {
            let leader = try ServerProcess(
                data: directory.path(of: "leader\(number)"),
                arguments: ["--cluster", database.address, "--advertise", "127.0.0.1:\(port)", "--drain-time", "1s"])
            try await eventually("it leads") { leader.process.errors.contains("event=cluster_leads") }
            try follower.start()
            var configuration = HearthClient.Configuration(host: follower.host, port: UInt16(follower.port))
            configuration.callTimeout = .seconds(2)
            let client = try HearthClient(configuration)
            let name = try DatabaseName(project: "hearth")
            await #expect(throws: RequestError.self) {
                try await client.commit(try ClusterWriter.writes(of: 1, in: name))
            }
            await client.close()
            let read = HTTPTestClient(ifListening: follower.port, address: follower.host)?
                .request("GET", "/v1/\(name.documentsRoot)/left/d1")
            expect(read?.status == 503 && read?.body.contains("--advertise") == true, "\(String(describing: read))")
            for address in ["127.0.0.1:\(port)", "127.0.0.1:\(leader.port)"] {
                let found = try HearthBinary.run(["export", "--all", "--address", address, "--quiet"])
                expect(found.status == 0 && found.output.isEmpty, "\(found)")
            }
            expectEqual(follower.stop(), 0)
            expectEqual(leader.stop(), 0)
        }
        expectEqual(stranger.stop(), 0)
        expectEqual(alone.stop(), 0)
    }

    @Test
    func `A directory of a cluster is served by nothing else, and a cluster takes no other directory`() async throws {
        let node = try nodes(1)[0]
        try node.start()
        _ = try await ClusterNode.leader(of: [node])
        try expectEqual(set(node, "c/d", 1).status, 0)
        expectEqual(node.stop(), 0)
        let alone = try HearthBinary.run(["serve", "--data", node.data, "--port", "0"])
        expect(alone.status == 1 && alone.errors.contains("serve it with --cluster"), "\(alone)")
        let cluster = ["--cluster", database.address, "--advertise", "127.0.0.1:1", "--port", "0"]
        let named = try HearthBinary.run(
            ["serve", "--data", node.data, "--cluster-store", "other"] + cluster)
        expect(named.status == 1 && named.errors.contains("caches the store main"), "\(named)")
        let independent = directory.path(of: "independent")
        let server = try ServerProcess(data: independent)
        expectEqual(server.stop(), 0)
        let replaced = try HearthBinary.run(["serve", "--data", independent] + cluster)
        expect(replaced.status == 1 && replaced.errors.contains("has an independent store"), "\(replaced)")

        let other = try PostgreSQLServer()
        let moved = try HearthBinary.run(
            ["serve", "--data", node.data, "--cluster", other.address, "--advertise", "127.0.0.1:1", "--port", "0"])
        expect(moved.status == 1 && moved.errors.contains("the database has no store main"), "\(moved)")
    }

    @Test
    func `Servers of a database that has lost groups discard them, agree, and begin a new time line`() async throws {
        let nodes = try nodes(2)
        for node in nodes { try node.start() }
        let first = try await ClusterNode.leader(of: nodes)
        try expectEqual(set(first, "c/kept", 1).status, 0)
        let session = try PostgreSQLSession(address: database.address)
        let last = try session.run(SQLStatement("SELECT max(sequence) FROM hearth.log_main_0")).first?.number(0)
        try expectEqual(set(first, "c/lost", 2).status, 0)
        for node in nodes { try await expectNumber(node, "c/lost", is: 2) }
        var tokens: [[UInt8]] = []
        for node in nodes {
            let state = try await ListenedState(node, resuming: [])
            tokens.append(state.token)
            try await expect(!ListenedState(node, resuming: state.token).isReset)
        }
        // What a restored database lacks.
        try session.run(
            SQLStatement("DELETE FROM hearth.log_main_0 WHERE sequence > $1::bigint", [.number(try #require(last))]))
        session.close()
        // The leader finds out with its next commit, the other one with its next look at the log.
        try await eventually("a commit is taken") { try set(nodes[0], "c/after", 3).status == 0 }
        for node in nodes {
            try await eventually("the state is discarded: \(node.log.suffix(1_000))") {
                // A leader may not have had the group in its runs: then it is enough that it begins again.
                ["diverged", "deposed", "timeline_changed"].contains { node.log.contains("event=cluster_\($0)") }
            }
            try await expectNumber(node, "c/after", is: 3)
            try await expectNumber(node, "c/kept", is: 1)
            try expect(!get(node, "c/lost").contains("\"n\":2}"))
        }
        expect(nodes.contains { $0.log.contains("event=cluster_groups_lost") })
        // What a client has of the part that is lost is not continued; what it gets now is.
        for (node, token) in zip(nodes, tokens) {
            try await eventually("\(node.address) has the new time line: \(node.log.suffix(1_000))") {
                (try? await ListenedState(node, resuming: token).isReset) == true
            }
        }
        let newToken = try await ListenedState(nodes[0], resuming: []).token
        try await expect(!ListenedState(nodes[0], resuming: newToken).isReset)

        let restored = try HearthBinary.run(["cluster", "restored", "--cluster", database.address])
        expect(restored.status == 0 && restored.output.contains("store main: a new time line"), "\(restored)")
        try await eventually("the first one has the new time line: \(nodes[0].log.suffix(1_000))") {
            (try? await ListenedState(nodes[0], resuming: newToken).isReset) == true
        }
        _ = try await ClusterNode.leader(of: nodes)
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
        try expectSound(nodes)
    }

    @Test
    func `A server that derives something else than its leader names the key space and begins again`() async throws {
        // It does not ask the rules.
        let nodes = try nodes(2, ["--insecure"])
        for node in nodes { try node.start() }
        let first = try await ClusterNode.leader(of: nodes)
        let second = try #require(nodes.first { $0 !== first })
        for number in 0..<3 { try expectEqual(set(first, "c/d", number).status, 0) }
        let rules = directory.path(of: "firestore.rules")
        let text = "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { allow read; } } }\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: rules))
        try await eventually("the rules are in force at the second one: \(second.log.suffix(1_000))") {
            _ = try HearthBinary.run(["rules", "apply", rules, "--data", first.data])
            return try HearthBinary.run(["rules", "show", "--data", second.data]).output == text
        }
        second.kill()
        // No checkpoint of the second one has it.
        try expectEqual(set(first, "c/d", 3).status, 0)
        // From now on the group is not in the memory of the leader.
        expectEqual(first.stop(), 0)
        try first.start()
        _ = try await ClusterNode.leader(of: nodes)
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        // A leader that derives other documents from the last group that has some.
        let groups = try session.run(
            SQLStatement("SELECT sequence, derived FROM hearth.log_main_0 WHERE piece = 0 ORDER BY sequence DESC"))
        let found = groups.lazy.compactMap { row -> (sequence: UInt64, hashes: [UInt8], at: Int)? in
            let hashes = row.bytes(1)
            let place = stride(from: 1, to: hashes.count, by: 9).first { hashes[$0] == 0x10 }
            return place.map { (row.number(0) ?? 0, hashes, $0 + 1) }
        }.first
        let group = try #require(found)
        func change(_ mask: UInt8) throws {
            var hashes = group.hashes
            hashes[group.at] ^= mask
            try session.run(
                SQLStatement(
                    "UPDATE hearth.log_main_0 SET derived = $1::bytea WHERE sequence = $2::bigint AND piece = 0",
                    [.bytes(hashes), .number(group.sequence)]))
        }
        try change(1)
        try second.start()
        try await eventually("the second one has found it: \(second.log.suffix(1_000))") {
            second.log.contains("event=cluster_differs") && second.log.contains("key_space=documents")
        }
        try change(0)
        try expectEqual(set(first, "c/d", 7).status, 0)
        try await expectNumber(second, "c/d", is: 7)
        // The process is the same, and is administered as before.
        let status = try HearthBinary.run(["status", "--data", second.data])
        expectEqual(status.status, 0, "\(status)")
        try expectEqual(HearthBinary.run(["rules", "show", "--data", second.data]).output, text)
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
        try expectSound(nodes)
    }

    @Test
    func `A server that lost its disk starts from a base and the groups after it`() async throws {
        let nodes = try nodes(2, ["--cluster-base", "64KiB"])
        for node in nodes { try node.start() }
        let first = try await ClusterNode.leader(of: nodes)
        let text = String(repeating: "text ", count: 2_000)
        for number in 0..<20 {
            let outcome = try HearthBinary.run(
                ["set", "--address", first.address, "c/d\(number)", "{\"n\":\(number),\"text\":\"\(text)\"}"])
            expectEqual(outcome.status, 0, "\(outcome)")
        }
        expectEqual(first.server?.process.waitForError("event=base_made"), true)
        try expectEqual(set(first, "c/after", 100).status, 0)
        let second = try #require(nodes.first { $0 !== first })
        second.kill()
        try FileManager.default.removeItem(atPath: second.data)
        try second.start()
        expect(second.log.contains("event=base_fetched"), "\(second.log)")
        try await expectNumber(second, "c/after", is: 100)
        // A read at a moment without a leader has no answer.
        try await eventually("both have all documents: \(nodes.map { $0.log.suffix(1_000) })") {
            let documents = try nodes.map { try HearthBinary.run(["query", "--address", $0.address, "c"]).output }
            return documents[0] == documents[1] && documents[0].split(separator: "\n").count == 21
        }
        // The one with the base can lead.
        first.kill()
        let leader = try await ClusterNode.leader(of: nodes)
        try expectEqual(set(leader, "c/last", 7).status, 0)
        expectEqual(leader.stop(), 0, "\(leader.log)")
        try expectSound([leader])
    }
}
