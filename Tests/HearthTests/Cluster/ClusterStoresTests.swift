// hearth serve --cluster-stores as processes over a real PostgreSQL.

import DocumentModel
import Foundation
import HearthClient
import PostgreSQLLog
import Synchronization
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(30)))
struct ClusterStoresTests {
    private let directory = TemporaryDirectory("stores")
    private let database: PostgreSQLServer
    private var archive: String { directory.path(of: "archive") }

    init() throws { database = try PostgreSQLServer() }

    private func nodes(_ count: Int, stores: String = "main,b") throws -> [ClusterNode] {
        try ClusterNode.several(
            count, database, in: directory,
            ["--cluster-stores", stores, "--archive", archive, "--archive-interval", "1s"])
    }

    private func run(_ arguments: [String], _ node: ClusterNode, _ project: String) throws -> HearthBinary.Outcome {
        try HearthBinary.run(arguments + ["--address", node.address, "--project", project])
    }

    private func set(
        _ node: ClusterNode, _ project: String, _ path: String, _ number: Int
    ) throws -> HearthBinary.Outcome {
        try run(["set", path, "{\"n\":\(number)}"], node, project)
    }

    private func get(_ node: ClusterNode, _ project: String, _ path: String) throws -> String {
        let read = try run(["get", path], node, project)
        return read.output + read.errors
    }

    /// The stores of the databases, as the table has them.
    private func places() throws -> [String: String] {
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        let rows = try session.run(StoreTables.databases).map { ($0.text(0), $0.text(1)) }
        return Dictionary(rows) { first, _ in first }
    }

    private func startTime(_ node: ClusterNode) -> Substring? {
        node.metrics.split(separator: "\n").first { $0.hasPrefix("process_start_time_seconds ") }
    }

    private func expectSound(_ nodes: [ClusterNode]) throws {
        for node in nodes {
            for store in ["main", "b"] {
                let check = try HearthBinary.run(["check", "--data", "\(node.data)/STORES/\(store)"])
                expectEqual(check.status, 0, "\(check.output) \(check.errors)")
            }
        }
        for store in ["main", "b"] {
            let check = try HearthBinary.run(["archive", "check", "\(archive)/\(store)"])
            expectEqual(check.status, 0, "\(check.output) \(check.errors)")
        }
    }

    @Test
    func `Databases are spread over two stores, any server takes any call, and both have leaders after kill -9`()
        async throws
    {
        let nodes = try nodes(2)
        for node in nodes { try node.start() }
        for number in 0..<4 {
            let written = try set(nodes[number % 2], "p\(number)", "c/d", number)
            expectEqual(written.status, 0, "\(written) \(nodes.map { $0.log.suffix(1_000) })")
            let read = try get(nodes[(number + 1) % 2], "p\(number)", "c/d")
            expect(read.contains("\"n\":\(number)}"), "\(read)")
        }
        let places = try places()
        expectEqual(places.count, 4)
        expect(["main", "b"].allSatisfy { store in places.values.count { $0 == store } == 2 }, "\(places)")
        // What only reads brings no database into being.
        try expect(get(nodes[0], "nowhere", "c/d").contains("not found"))
        try expectEqual(self.places().count, 4)
        let status = try HearthBinary.run(["cluster", "status", "--cluster", database.address])
        expectEqual(status.output.split(separator: "\n").count { $0.contains(", 2 databases") }, 2, "\(status)")
        let listed = try HearthBinary.run(["databases", "list", "--project", "-", "--address", nodes[1].address])
        // A line for each, with the id alone.
        expectEqual(listed.output.split(separator: "\n").count, 4, "\(listed)")

        nodes[0].kill()
        for number in 0..<4 {
            try await eventually("p\(number) takes commits: \(nodes[1].log.suffix(2_000))") {
                try set(nodes[1], "p\(number)", "c/e", number).status == 0
            }
        }
        expect(nodes[1].leads("main") && nodes[1].leads("b"))
        try nodes[0].start()
        for number in 0..<4 {
            try expect(get(nodes[0], "p\(number)", "c/e").contains("\"n\":\(number)}"))
            try expect(get(nodes[0], "p\(number)", "c/d").contains("\"n\":\(number)}"))
        }
        try expectEqual(self.places(), places)

        let alone = try HearthBinary.run(
            [
                "serve", "--data", directory.path(of: "alone"), "--cluster", database.address, "--advertise",
                "127.0.0.1:1",
            ]
                + ["--port", "0"])
        expect(alone.status == 1 && alone.errors.contains("serve it with --cluster-stores"), "\(alone)")
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
        let single = try HearthBinary.run(
            ["serve", "--data", nodes[0].data, "--cluster", database.address, "--advertise", "127.0.0.1:1"]
                + ["--port", "0"])
        expect(single.status == 1 && single.errors.contains("serve it with --cluster-stores"), "\(single)")
        try expectSound(nodes)
    }

    @Test
    func `A server that leads both stores hands one over, and commits to the other one do not fail`() async throws {
        let nodes = try nodes(2)
        try nodes[0].start()
        for number in 0..<2 {
            let written = try set(nodes[0], "p\(number)", "c/d", number)
            expectEqual(written.status, 0, "\(written) \(nodes[0].log.suffix(1_000))")
        }
        let places = try places()
        expectEqual(Set(places.values), ["main", "b"], "\(places)")
        expect(nodes[0].leads("main") && nodes[0].leads("b"))
        let started = startTime(nodes[0])
        // The last store by its name is handed over; a client of the other one commits all the while.
        let staying = try #require(places.first { $0.value == "b" }?.key.split(separator: "/")[1])
        let client = try ClusterWriter.client(of: nodes[0])
        let isStopping = Atomic(false)
        let failures = Mutex<[String]>([])
        let committed = Atomic(0)
        let writing = Task {
            var number = 0
            while !isStopping.load(ordering: .relaxed) {
                number += 1
                do {
                    try await client.commit(
                        try ClusterWriter.writes(of: number, in: DatabaseName(project: String(staying))))
                    committed.wrappingAdd(1, ordering: .relaxed)
                } catch {
                    failures.withLock { $0.append("\(error)") }
                }
            }
        }
        try nodes[1].start()
        try await eventually("each server leads one store: \(nodes.map { $0.log.suffix(1_000) })") {
            nodes[1].leads("main") && nodes[0].leads("b")
        }
        let before = committed.load(ordering: .relaxed)
        try await eventually("commits are acknowledged") { committed.load(ordering: .relaxed) > before + 10 }
        isStopping.store(true, ordering: .relaxed)
        await writing.value
        await client.close()
        expect(failures.withLock { $0 }.isEmpty, "\(failures.withLock { $0.prefix(3) })")
        expectEqual(startTime(nodes[0]), started)
        for number in 0..<2 {
            for node in nodes {
                try await eventually("p\(number) takes commits at \(node.address)") {
                    try set(node, "p\(number)", "c/f", number).status == 0
                }
            }
        }
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
        try expectSound(nodes)
    }

    @Test
    func `A store that was alone before keeps its databases when it shares them with another one`() async throws {
        let alone = try ClusterNode(database.address, data: directory.path(of: "alone"))
        try alone.start()
        for number in 0..<3 {
            try await eventually("p\(number) takes commits: \(alone.log.suffix(1_000))") {
                try set(alone, "p\(number)", "c/d", number).status == 0
            }
        }
        expectEqual(alone.stop(), 0)
        let nodes = try nodes(2)
        for node in nodes { try node.start() }
        for number in 0..<3 {
            try expect(get(nodes[number % 2], "p\(number)", "c/d").contains("\"n\":\(number)}"), "\(nodes[0].log)")
        }
        for number in 3..<6 { try expectEqual(set(nodes[number % 2], "p\(number)", "c/d", number).status, 0) }
        let places = try places()
        for number in 0..<6 {
            let name = "projects/p\(number)/databases/(default)"
            expectEqual(places[name], number < 3 ? "main" : "b", "\(places)")
        }
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
        try expectSound(nodes)
    }

    @Test
    func `A server that follows ten stores has the threads and connections of one that follows one`() async throws {
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        try session.run(SQLStatement(script: "CREATE ROLE follower SUPERUSER LOGIN"))
        let leader = try ClusterNode(
            database.address, data: directory.path(of: "leader"),
            arguments: ["--cluster-stores", (0..<11).map { "s\($0)" }.joined(separator: ",")])
        try leader.start()
        try await eventually("the first server leads all stores") { (0..<11).allSatisfy { leader.leads("s\($0)") } }
        // It lacks a store, so no lease is handed over to it.
        let stores = (0..<10).map { "s\($0)" }
        let follower = try ClusterNode(
            "postgresql://follower@\(database.place)/postgres", data: directory.path(of: "follower"),
            arguments: ["--cluster-stores", stores.joined(separator: ",")])
        try follower.start()
        let process = try #require(follower.server?.process.identifier)
        try await eventually("all streams are there: \(follower.log.suffix(2_000))") {
            let following = follower.log.split(separator: "\n").filter { $0.contains("event=following ") }
            return stores.allSatisfy { store in following.contains { $0.contains("store=\(store)") } }
        }
        var threads: [String: Int] = [:]
        try await eventually("connections for reading the logs are closed, and threads that opened them have ended") {
            threads = try Self.threads(of: process)
            let rows = try session.run(
                SQLStatement("SELECT count(*) FROM pg_stat_activity WHERE usename = 'follower'"))
            // Rows of leases, upkeep, the table of databases, and rules.
            return rows.first?.number(0) == 4 && threads["cluster open"] == nil
        }
        for name in ["cluster", "upkeep", "databases", "moves"] { expectEqual(threads[name], 1, "\(threads)") }
        expect(threads["hearth-client-0"] == 1 && threads["bases"] == nil && threads["reopening"] == nil, "\(threads)")
        for node in [follower, leader] { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
    }

    /// How many threads of a process have a name.
    private static func threads(of process: Int32) throws -> [String: Int] {
        let folder = "/proc/\(process)/task"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { thread in
            try? String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8)
        }
        return Dictionary(grouping: names) { $0.trimmingCharacters(in: .newlines) }.mapValues(\.count)
    }

    @Test
    func `A directory that hangs for one store holds up no base of another one`() async throws {
        let bases = directory.path(of: "bases")
        try FileManager.default.createDirectory(atPath: bases, withIntermediateDirectories: true)
        let node = try ClusterNode(
            database.address, data: directory.path(of: "data"),
            arguments: ["--cluster-stores", "main,b", "--cluster-base", "64KiB", "--cluster-bases", bases])
        try node.start()
        let text = String(repeating: "text ", count: 2_000)
        func fill(_ store: String, _ numbers: Range<Int>) throws {
            let project = try #require(try places().first { $0.value == store }).key.split(separator: "/")[1]
            for number in numbers {
                let written = try run(["set", "c/d\(number)", "{\"text\":\"\(text)\"}"], node, String(project))
                expectEqual(written.status, 0, "\(written)")
            }
        }
        func made(_ store: String) -> Int {
            node.log.split(separator: "\n").count { $0.contains("event=base_made ") && $0.contains("store=\(store)") }
        }
        for number in 0..<2 {
            try await eventually("p\(number) takes commits") { try set(node, "p\(number)", "c/d", number).status == 0 }
        }
        for store in ["main", "b"] {
            try fill(store, 0..<20)
            try await eventually("\(store) has a base: \(node.log.suffix(2_000))") { made(store) >= 1 }
        }
        // Who opens it waits for a writer.
        let mark = bases + "/main/BASES"
        try FileManager.default.removeItem(atPath: mark)
        expectEqual(mkfifo(mark, 0o600), 0)
        try fill("main", 20..<80)
        let process = try #require(node.server?.process.identifier)
        try await eventually("a thread waits for the directory") { try Self.threads(of: process)["base"] != nil }
        let (main, b) = (made("main"), made("b"))
        for count in 1...2 {
            try fill("b", (100 * count)..<(100 * count + 60))
            try await eventually("b has \(count) more bases: \(node.log.suffix(2_000))") { made("b") >= b + count }
        }
        // One may have been begun before the directory hung.
        expect(made("main") <= main + 1)
        expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))")
    }
}
