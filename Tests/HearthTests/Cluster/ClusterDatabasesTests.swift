// The stores of one cluster in two PostgreSQL servers, which fail independently.

import Basics
import DocumentModel
import Foundation
import HearthClient
import PostgreSQLLog
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(30)))
struct ClusterDatabasesTests {
    private let directory = TemporaryDirectory("databases")
    private let pair: DatabasePair
    private let databases: DatabasePair.Databases

    init() throws {
        pair = try DatabasePair.of("databases")
        databases = try pair.makeDatabases()
    }

    private func cluster(_ action: String, _ words: [String] = [], home: String? = nil) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["cluster", action] + words + ["--cluster", home ?? databases.home])
    }

    /// Servers of the store `main` in the home database, and one in the other database.
    private func nodes(_ count: Int, placing store: String = "b") throws -> [ClusterNode] {
        let placed = try cluster("place", [store, databases.other])
        expectEqual(placed.status, 0, "\(placed)")
        return try ClusterNode.several(count, databases.home, in: directory, ["--cluster-stores", "main,\(store)"])
    }

    private func run(_ arguments: [String], _ node: ClusterNode, _ project: String) throws -> HearthBinary.Outcome {
        try HearthBinary.run(arguments + ["--address", node.address, "--project", project, "--timeout", "8s"])
    }

    private func set(_ node: ClusterNode, _ project: String, _ number: Int) throws -> HearthBinary.Outcome {
        try run(["set", "c/d", "{\"n\":\(number)}"], node, project)
    }

    private func get(_ node: ClusterNode, _ project: String) throws -> String {
        let read = try run(["get", "c/d"], node, project)
        return read.output + read.errors
    }

    private func expectWritten(
        _ projects: [String], _ number: Int, at nodes: [ClusterNode], _ comment: String
    ) async throws {
        for (index, project) in projects.enumerated() {
            let (writer, reader) = (nodes[index % nodes.count], nodes[(index + 1) % nodes.count])
            try await eventually("\(project) takes commits \(comment): \(writer.log.suffix(3_000))") {
                try set(writer, project, number).status == 0
            }
            let read = try get(reader, project)
            expect(read.contains("\"n\":\(number)}"), "\(project) \(comment): \(read)")
        }
    }

    /// Calls end with UNAVAILABLE, and not by the deadline of the client.
    private func expectUnavailable(_ projects: [String], at node: ClusterNode, _ text: String = "") async throws {
        for project in projects {
            var configuration = HearthClient.Configuration(host: node.host, port: UInt16(node.port))
            configuration.outageMax = .milliseconds(200)
            configuration.callTimeout = .seconds(2)
            let client = try HearthClient(configuration)
            let name = try DatabaseName(project: project)
            try await eventually("\(project) is unavailable: \(node.log.suffix(3_000))") {
                do {
                    try await client.commit(try ClusterWriter.writes(of: 1, in: name))
                    return false
                } catch let error as RequestError {
                    return error.code == .unavailable && (text.isEmpty || error.message.contains(text))
                }
            }
            await client.close()
        }
    }

    private func sql<Output>(_ address: String, _ body: (PostgreSQLSession) throws -> Output) throws -> Output {
        let session = try PostgreSQLSession(address: address)
        defer { session.close() }
        return try body(session)
    }

    /// The projects whose database each store has.
    private func projects() throws -> [String: [String]] {
        let rows = try sql(databases.home) { try $0.run(StoreTables.databases) }
        let pairs = rows.map { (store: $0.text(1), project: String($0.text(0).split(separator: "/")[1])) }
        return Dictionary(grouping: pairs, by: \.store).mapValues { $0.map(\.project).sorted() }
    }

    private func hasLog(of store: String, _ address: String) throws -> Bool {
        let tables = StoreTables(name: store, advertised: "")
        return try sql(address) { try !$0.run(tables.tablesOfLog).isEmpty }
    }

    private func ready(_ node: ClusterNode) -> Int? {
        let client = HTTPTestClient(ifListening: node.port, address: node.host, patienceSeconds: 2)
        return client?.request("GET", "/readyz")?.status
    }

    private func expectSound(_ nodes: [ClusterNode], _ stores: [String] = ["main", "b"]) throws {
        for node in nodes {
            expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))")
            for store in stores {
                let check = try HearthBinary.run(["check", "--data", "\(node.data)/STORES/\(store)"])
                expectEqual(check.status, 0, "\(check.output) \(check.errors)")
            }
        }
    }

    // MARK: Failures

    @Test
    func `Two PostgreSQL servers have a store each, and either of them is away while the other store is served`()
        async throws
    {
        let nodes = try nodes(2)
        for node in nodes { try node.start() }
        for number in 0..<4 {
            let written = try set(nodes[number % 2], "p\(number)", 1)
            expectEqual(written.status, 0, "\(written) \(nodes.map { $0.log.suffix(1_000) })")
        }
        let places = try projects()
        let (main, other) = (try #require(places["main"]), try #require(places["b"]))
        expect(main.count == 2 && other.count == 2, "\(places)")
        try await expectWritten(main + other, 2, at: nodes, "at first")
        try expect(hasLog(of: "b", databases.other) && !hasLog(of: "b", databases.home))
        try expect(hasLog(of: "main", databases.home) && !hasLog(of: "main", databases.other))
        let status = try cluster("status")
        expect(status.output.contains(", in \(databases.other)\n"), "\(status)")
        let info = "hearth_cluster_store_info{store=\"b\",database=\"\(databases.other)\"} 1\n"
        expect(nodes[0].metrics.contains(info))

        pair.other.stop(SIGQUIT)
        try await expectWritten(main, 3, at: nodes, "while the other database is away")
        for node in nodes { try await expectUnavailable(other, at: node) }
        // A new database does not go to the store that is away, although that has no more than the other one.
        try await eventually("both servers know that the database is away: \(nodes[0].log.suffix(2_000))") {
            nodes.allSatisfy { $0.log.contains("event=cluster_database_away") }
        }
        try await expectWritten(["q0", "q1"], 3, at: nodes, "although it is new")
        try expectEqual(projects()["main"]?.count, 4)
        expect(ready(nodes[0]) == 200 && ready(nodes[1]) == 200)
        let down = try cluster("status")
        expect(
            down.status == 0 && down.output.contains("store b: its database \(databases.other) cannot be reached"),
            "\(down)")
        try pair.other.start()
        try await expectWritten(other, 4, at: nodes, "after the other database is back")

        pair.home.stop(SIGQUIT)
        try await expectWritten(other, 5, at: nodes, "while the home database is away")
        for node in nodes { try await expectUnavailable(main, at: node) }
        try await expectUnavailable(["nowhere"], at: nodes[0], "home database")
        // A server that starts meanwhile knows where its stores lie, and their logs say what they have.
        nodes[1].kill()
        try nodes[1].start()
        expect(nodes[1].log.contains("event=cluster_home_away"), "\(nodes[1].log)")
        expect(nodes[1].log.contains("event=rules_not_taken"), "\(nodes[1].log)")
        try await expectWritten(other, 6, at: [nodes[1], nodes[0]], "at a server that began without the home database")
        try await expectUnavailable(main, at: nodes[1])
        let moved = try run(["move", "(default)", "main"], nodes[0], other[0])
        expect(moved.status == 1 && moved.errors.contains("home database"), "\(moved)")
        try pair.home.start()
        try await expectWritten(main + other + ["r0", "r1"], 7, at: nodes, "after the home database is back")
        for (store, names) in places { try expectEqual(projects()[store]?.filter(names.contains), names) }
        try expectSound(nodes)
    }

    @Test
    func `A server that starts while the database of a store is away serves the others, and that store later`()
        async throws
    {
        let nodes = try nodes(2)
        try nodes[0].start()
        for number in 0..<2 {
            let written = try set(nodes[0], "p\(number)", 1)
            expectEqual(written.status, 0, "\(written) \(nodes[0].log.suffix(1_000))")
        }
        let places = try projects()
        let (main, other) = (try #require(places["main"]), try #require(places["b"]))
        pair.other.stop(SIGQUIT)
        // It has nothing of the store yet.
        try nodes[1].start()
        try await expectWritten(main, 2, at: [nodes[1]], "at a server without the other store")
        try await expectUnavailable(other, at: nodes[1])
        expectEqual(ready(nodes[1]), 200)
        expect(nodes[1].metrics.contains("hearth_cluster_leads{store=\"b\"} 0\n"))
        try pair.other.start()
        try await expectWritten(other, 3, at: [nodes[1], nodes[0]], "after the database is back")
        nodes[0].kill()
        try await expectWritten(main + other, 4, at: [nodes[1]], "at the only server")
        try nodes[0].start()
        try await expectWritten(main + other, 5, at: nodes, "at both servers")
        try expectSound(nodes)
    }

    @Test
    func `A database that does not answer holds up its store and moves to it, and nothing else`() async throws {
        let nodes = try nodes(2)
        for node in nodes { try node.start() }
        for number in 0..<2 {
            let written = try set(nodes[0], "p\(number)", 1)
            expectEqual(written.status, 0, "\(written) \(nodes.map { $0.log.suffix(1_000) })")
        }
        let places = try projects()
        let (main, other) = (try #require(places["main"]), try #require(places["b"]))
        try pair.other.signalAll(SIGSTOP)
        defer { try? pair.other.signalAll(SIGCONT) }
        try await expectWritten(main, 2, at: nodes, "while the other database does not answer")
        try await eventually("both servers know it: \(nodes[0].log.suffix(2_000))") {
            nodes.allSatisfy { $0.log.contains("event=cluster_database_away") }
        }
        for node in nodes { try await expectUnavailable(other, at: node) }
        let begun = try run(["move", "(default)", "b", "--no-wait"], nodes[0], main[0])
        expectEqual(begun.status, 0, "\(begun)")
        try await eventually("the move waits: \(nodes.map { $0.log.suffix(2_000) })") {
            let moves = try sql(databases.home) { StoreTables.moveRows(try $0.run(StoreTables.moves)) }
            return moves.first?.note == "the database of the store b cannot be reached"
        }
        // The source has the database until the target can take it.
        try await expectWritten(main + ["q0", "q1"], 3, at: nodes, "while a move waits")
        nodes[1].kill()
        try nodes[1].start()
        try await expectWritten(main + ["q0", "q1"], 4, at: [nodes[1]], "at a server that has begun meanwhile")
        try pair.other.signalAll(SIGCONT)
        try await eventually("the move comes to its end: \(nodes.map { $0.log.suffix(3_000) })") {
            try projects()["b"]?.contains(main[0]) == true
        }
        try await expectWritten(main + other, 5, at: nodes, "after the move")
        try expectSound(nodes)
    }

    @Test
    func `A database that moves while the home database is lost is served by the store that has it by its log`()
        async throws
    {
        for store in ["b", "c"] { try expectEqual(cluster("place", [store, databases.other]).status, 0) }
        let nodes = try ClusterNode.several(2, databases.home, in: directory, ["--cluster-stores", "main,b,c"])
        for node in nodes { try node.start() }
        for number in 0..<3 {
            let written = try set(nodes[0], "p\(number)", 1)
            expectEqual(written.status, 0, "\(written) \(nodes.map { $0.log.suffix(1_000) })")
        }
        let moved = try #require(try projects()["b"]?.first)
        let (name, server) = ("projects/\(moved)/databases/(default)", nodes[0])
        let begun = try run(["move", "(default)", "c", "--no-wait"], server, moved)
        expectEqual(begun.status, 0, "\(begun)")
        func moveRow(_ session: PostgreSQLSession) throws -> DatabaseMoveRow? {
            StoreTables.moveRows(try session.run(StoreTables.row(of: name))).first
        }
        try sql(databases.home) { session in
            // In the pause, if the move has not come to its end already.
            try waitUntil("the source releases the database") {
                let row = try moveRow(session)?.row
                return row?.movingTo == nil || row?.isReleasing == true
            }
        }
        pair.home.stop(SIGQUIT)
        try await expectWritten([moved], 2, at: nodes, "while the home database is away")
        nodes[1].kill()
        try nodes[1].start()
        try await expectWritten([moved], 3, at: [nodes[1], nodes[0]], "at a server that has begun meanwhile")
        try pair.home.start()
        try await eventually("the row has the end of the move: \(nodes.map { $0.log.suffix(3_000) })") {
            let row = try sql(databases.home) { try moveRow($0) }
            return row?.row.store == "c" && row?.row.movingTo == nil
        }
        try await expectWritten(["p0", "p1", "p2"], 4, at: nodes, "after the move")
        try expectSound(nodes, ["main", "b", "c"])
    }

    @Test
    func `A store that lies elsewhere is handed over to a server that joins`() async throws {
        // The last store by its name is handed over.
        let nodes = try nodes(2, placing: "z")
        try nodes[0].start()
        for number in 0..<2 {
            let written = try set(nodes[0], "p\(number)", 1)
            expectEqual(written.status, 0, "\(written) \(nodes[0].log.suffix(1_000))")
        }
        expect(nodes[0].leads("main") && nodes[0].leads("z"))
        try nodes[1].start()
        try await eventually("each server leads one store: \(nodes.map { $0.log.suffix(1_000) })") {
            nodes[1].leads("z") && nodes[0].leads("main")
        }
        expect(nodes[0].log.contains("event=cluster_store_handed_over"))
        try await expectWritten(["p0", "p1"], 2, at: nodes, "after the store was handed over")
        try expectSound(nodes, ["main", "z"])
    }

    // MARK: Wrong configurations

    private func expectRefused(
        _ words: [String], _ text: String, home: String? = nil, status: Int32 = 1,
        location: SourceLocation = #_sourceLocation
    ) throws {
        let outcome = try cluster("place", words, home: home)
        expect(outcome.status == status && outcome.errors.contains(text), "\(outcome)", sourceLocation: location)
        expect(!(outcome.errors + outcome.output).contains("geheim"), sourceLocation: location)
    }

    @Test
    func `A place that does not fit is refused with its reason, and another address of the same database is not`()
        throws
    {
        let (home, other) = (databases.home, databases.other)
        let foreign = try pair.makeDatabases()
        let secret = other.replacing("hearth@", with: "hearth:geheim@")
        try expectRefused(["b", secret], "has a password", status: 2)
        try expectRefused(["b", "postgresql://hearth:geheim@[::1/x"], "not one of PostgreSQL", status: 2)
        try expectRefused(["B!", other], "lower-case letters", status: 2)
        try expectRefused(["b", home + "?application_name=x"], "is the home database by another address")
        for _ in 0..<2 { try expectEqual(cluster("place", ["b", other]).status, 0) }
        let again = other + "?connect_timeout=3"
        try expectRefused(["c", again], "name it by that address")
        try expectEqual(cluster("place", ["b", again]).status, 0)
        try expectEqual(cluster("place", ["c", again]).status, 0)
        try expectEqual(cluster("place", ["b", other]).status, 0)
        try expectEqual(sql(home) { try StorePlace.all($0).map(\.address) }, [other, other])
        try expectRefused(["b", foreign.other], "is another database")

        try expectRefused(["d", foreign.other], "is not its home database", home: other)
        try expectRefused(["d", other], "has stores of another cluster", home: foreign.home)
        try expectEqual(cluster("place", ["d", foreign.other], home: foreign.home).status, 0)
        try expectRefused(["e", foreign.home], "is the home database of another cluster")
        let lying = StoreTables(name: "main", advertised: "")
        _ = try sql(home) { try $0.run(lying.adoption(.random(), timeline: 1, ceiling: 0)) }
        try expectRefused(["main", other], "has its log in the home database already")

        let migrated = try HearthBinary.run(
            ["migrate", "--from", home, "--to", directory.path(of: "copy"), "--cluster-store", "b"])
        expect(migrated.status == 1 && migrated.errors.contains(other), "\(migrated)")
        let restored = try cluster("restored")
        expect(restored.output.contains("store b: lies in \(other), and is not touched"), "\(restored)")
        expect(restored.output.contains("store main: a new time line begins"), "\(restored)")
    }

    @Test
    func `Rules of a store that came to another database become those of a cluster without rules`() throws {
        let text = "service cloud.firestore {}\n"
        _ = try sql(databases.other) { session in
            try session.run(RulesTable.creation)
            return try session.run(RulesTable.adding(text, as: 3, after: 0))
        }
        for (store, isTaken) in [("b", true), ("c", false)] {
            let placed = try cluster("place", [store, databases.other])
            expectEqual(placed.status, 0, "\(placed)")
            expect(placed.output.contains("those in \(databases.other) do not") != isTaken, "\(placed)")
            let rules = try sql(databases.home) { try $0.run(RulesTable.texts(after: 0, withLast: true)) }
            expect(rules.count == 1 && rules.first?.number(0) == 3 && rules.first?.text(1) == text)
        }
    }

    @Test
    func `A server refuses a database that is not the home, a store that lies elsewhere, and one that was replaced`()
        throws
    {
        func serve(_ address: String, _ flags: [String], _ data: String = "data") throws -> HearthBinary.Outcome {
            try HearthBinary.run(
                ["serve", "--data", directory.path(of: data), "--cluster", address, "--advertise", "127.0.0.1:1"]
                    + ["--port", "0"] + flags)
        }
        try expectEqual(cluster("place", ["b", databases.other]).status, 0)
        let wrong = try serve(databases.other, ["--cluster-stores", "b"])
        expect(wrong.status == 1 && wrong.errors.contains("is not its home database"), "\(wrong)")
        let single = try serve(databases.home, ["--cluster-store", "b"])
        expect(single.status == 1 && single.errors.contains("lies in another database"), "\(single)")
        // The database was lost, and made again without its stores.
        _ = try sql(databases.other) { session in
            try session.run(SQLStatement(script: "DELETE FROM hearth.stores"))
        }
        let lost = try serve(databases.home, ["--cluster-stores", "b"])
        expect(lost.status == 1 && lost.errors.contains("has no store b"), "\(lost)")
        let tables = StoreTables(name: "b", advertised: "")
        _ = try sql(databases.other) { try $0.run(tables.adoption(.random(), timeline: 1, ceiling: 0)) }
        let another = try serve(databases.home, ["--cluster-stores", "b"])
        expect(another.status == 1 && another.errors.contains("has another store b"), "\(another)")
        _ = try sql(databases.other) { session in
            try session.run(SQLStatement(script: "UPDATE hearth.identity SET low = low + 1"))
        }
        let replaced = try serve(databases.home, ["--cluster-stores", "b"])
        expect(replaced.status == 1 && replaced.errors.contains("is another database"), "\(replaced)")
    }
}
