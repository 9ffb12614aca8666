// hearth move as processes over a real PostgreSQL: a database moves between two stores while clients use it. The second
// store is in the database of the first one, or in another PostgreSQL.

import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
import PostgreSQLLog
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(30)))
struct ClusterMoveTests {
    private let directory = TemporaryDirectory("moves")
    private let databases: DatabasePair.Databases
    /// The database that moves, as its row is called.
    private static let name = "projects/hearth/databases/(default)"
    private static let documentCount = 3_000

    init() throws { databases = try DatabasePair.of("moves").makeDatabases() }

    /// Two servers of two stores, each of which leads one of them.
    /// - Parameters:
    ///   - isElsewhere: the second store is in the other PostgreSQL.
    ///   - stores: of both servers.
    private func start(isElsewhere: Bool = false, _ stores: String = "main,b") async throws -> [ClusterNode] {
        if isElsewhere {
            let placed = try HearthBinary.run(["cluster", "place", "b", databases.other, "--cluster", databases.home])
            expectEqual(placed.status, 0, "\(placed)")
        }
        let nodes = try ClusterNode.several(2, databases.home, in: directory, ["--cluster-stores", stores])
        for node in nodes { try node.start() }
        return nodes
    }

    private func query<Output>(_ body: (PostgreSQLSession) throws -> Output) throws -> Output {
        let session = try PostgreSQLSession(address: databases.home)
        defer { session.close() }
        return try body(session)
    }

    private func row() throws -> DatabaseMoveRow {
        try #require(
            try query { StoreTables.moveRows(try $0.run(StoreTables.row(of: Self.name))) }.first, "the row")
    }

    /// The server that leads a store.
    private func leader(of store: String, _ nodes: [ClusterNode]) async throws -> ClusterNode {
        var found: ClusterNode?
        try await eventually("the store \(store) has a leader: \(logs(nodes))") {
            found = nodes.first { $0.server != nil && $0.leads(store) }
            return found != nil
        }
        return try #require(found)
    }

    private func logs(_ nodes: [ClusterNode]) -> [Substring] { nodes.map { $0.log.suffix(2_000) } }

    /// Other databases are in both stores; the one that moves has many documents.
    private func fill(_ nodes: [ClusterNode]) async throws {
        let client = try ClusterWriter.client(of: nodes[0])
        let name = try DatabaseName(project: "hearth")
        try await eventually("the database takes commits: \(logs(nodes))") {
            (try? await client.commit(try ClusterWriter.writes(of: 0, in: name))) != nil
        }
        for start in stride(from: 0, to: Self.documentCount, by: 250) {
            var writes = CommitWrites(database: name)
            for number in start..<start + 250 {
                var writer = ByteBuffer()
                writer.withLengthPrefix(field: 2) { entry in
                    entry.appendField(1, string: "text")
                    entry.withLengthPrefix(field: 2) {
                        Value.string(String(repeating: "\(number) ", count: 50)).encode(into: &$0)
                    }
                }
                writes.set("\(name.documentsRoot)/filled/d\(number)", fields: writer.copyBytes())
            }
            try await client.commit(writes)
        }
        await client.close()
    }

    /// Clients that use the database all the while.
    private final class Load {
        let writer: ClusterWriter
        let clients: ListAppendClients
        let listener: FaithfulListener
        private let nodes: [ClusterNode]
        private var tasks: [Task<Void, Never>] = []

        init(_ nodes: [ClusterNode]) throws {
            self.nodes = nodes
            writer = try ClusterWriter(nodes)
            clients = try ListAppendClients(nodes, seed: 3)
            listener = try FaithfulListener(nodes, collection: "left")
            tasks.append(Task { [writer] in try? await writer.run() })
            tasks.append(Task { [clients] in await clients.run(clients: 2) })
            tasks.append(Task { [listener] in await listener.run() })
        }

        /// Waits until so many further commits and transactions were made.
        func expectProgress(_ text: @autoclosure () -> String) async throws {
            let (commits, transactions) = (writer.numbers.count, clients.committedCount)
            try await eventually("further commits are acknowledged: \(text())") { writer.numbers.count > commits + 10 }
            try await eventually("further transactions are committed: \(text())") {
                clients.committedCount > transactions + 5
            }
        }

        /// Ends the clients, and compares what they saw with what there is.
        func expectNothingLost() async throws {
            writer.stop()
            clients.stop()
            for task in tasks.prefix(2) { await task.value }
            let acknowledged = Set(writer.numbers)
            for node in nodes {
                // A commit whose reply was lost may come late.
                try await eventually("\(node.address) has all, and each commit whole: \(node.log.suffix(2_000))") {
                    let found = try writer.numbers("left", at: node)
                    return try found.isSuperset(of: acknowledged) && found == writer.numbers("right", at: node)
                }
            }
            try await eventually("the listener has all documents, and no others") {
                try listener.numbers == writer.numbers("left", at: nodes[0])
            }
            listener.stop()
            await tasks[2].value
            expect(listener.problems.isEmpty, "\(listener.problems.prefix(3))")
            let history = try await clients.history(finalAt: 0)
            await clients.close()
            let anomalies = ListAppendCheck.anomalies(of: history, isStrict: false)
            expect(anomalies.isEmpty, "\(anomalies.prefix(3))")
        }
    }

    private func move(to store: String, _ node: ClusterNode, _ further: [String] = []) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["move", "(default)", store, "--address", node.address] + further)
    }

    private func expectSound(_ nodes: [ClusterNode]) throws {
        for node in nodes {
            expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))")
            for store in ["main", "b"] {
                let check = try HearthBinary.run(["check", "--data", "\(node.data)/STORES/\(store)"])
                expectEqual(check.status, 0, "\(check.output) \(check.errors)")
            }
        }
    }

    @Test(arguments: [false, true])
    func `A database moves to another store and back while clients write, read and listen`(
        isElsewhere: Bool
    ) async throws {
        let nodes = try await start(isElsewhere: isElsewhere)
        try await fill(nodes)
        let load = try Load(nodes)
        try await load.expectProgress("\(logs(nodes))")
        let source = try row().row.store
        let target = source == "main" ? "b" : "main"
        let moved = try move(to: target, nodes[1], ["--json"])
        expect(moved.status == 0 && moved.output.contains("\"store\":\"\(target)\""), "\(moved) \(logs(nodes))")
        try expectEqual(row().row.store, target)
        try await load.expectProgress("\(logs(nodes))")
        let again = try move(to: target, nodes[0])
        expect(again.status == 0 && again.output.contains("is in the store \(target)"), "\(again)")
        let unknown = try move(to: "nowhere", nodes[0])
        expect(unknown.status == 1 && unknown.errors.contains("no store nowhere"), "\(unknown)")
        let back = try move(to: source, nodes[0])
        expectEqual(back.status, 0, "\(back) \(logs(nodes))")
        try expectEqual(row().row.store, source)
        try await load.expectProgress("\(logs(nodes))")
        try await load.expectNothingLost()
        expect(nodes.contains { $0.metrics.contains("hearth_moves_completed_total{store=\"\(source)\"} 1\n") })
        let pauses = nodes.flatMap { $0.log.split(separator: "\n") }.filter { $0.contains("event=database_moved ") }
        expectEqual(pauses.count, 2, "\(logs(nodes))")
        print("moves: \(pauses)")
        let listed = try HearthBinary.run(["databases", "list", "--address", nodes[0].address])
        expectEqual(listed.output.split(separator: "\n").count, 1, "\(listed)")
        try expectSound(nodes)
    }

    /// When the server of a move is killed.
    enum Moment: CaseIterable {
        case sourceCopies, targetCopies, sourceReleases, targetReceivesTheRest
    }

    /// Moments, within one database and between two.
    private static let kills = [true, false].flatMap { isElsewhere in Moment.allCases.map { ($0, isElsewhere) } }

    @Test(arguments: CaseShare.of(kills, 2))
    func `A move comes to its end, and nothing is lost, when a leader is killed`(
        moment: Moment, isElsewhere: Bool
    ) async throws {
        let nodes = try await start(isElsewhere: isElsewhere)
        try await fill(nodes)
        let source = try row().row.store
        let target = source == "main" ? "b" : "main"
        // Each store has its own leader.
        try await eventually("each server leads one store: \(logs(nodes))") {
            nodes.allSatisfy { $0.leads("main") != $0.leads("b") }
        }
        let isOfSource = moment == .sourceCopies || moment == .sourceReleases
        let victim = try await leader(of: isOfSource ? source : target, nodes)
        let other = try #require(nodes.first { $0 !== victim })
        let load = try Load(nodes)
        try await load.expectProgress("\(logs(nodes))")
        let begun = try move(to: target, other, ["--no-wait"])
        expectEqual(begun.status, 0, "\(begun)")
        let waitsForRelease = moment == .sourceReleases || moment == .targetReceivesTheRest
        try query { session in
            var looks = 0
            while true {
                let rows = StoreTables.moveRows(try session.run(StoreTables.row(of: Self.name)))
                // The move may have ended already.
                guard let row = rows.first?.row, row.movingTo != nil, !row.isReleasing else { break }
                looks += 1
                if !waitsForRelease, looks > 20 { break }
            }
        }
        victim.kill()
        try await eventually("the move comes to its end: \(logs(nodes))") {
            let row = try row().row
            return row.store == target && row.movingTo == nil
        }
        try victim.start()
        try await load.expectProgress("\(logs(nodes))")
        try await load.expectNothingLost()
        try expectSound(nodes)
    }

    private func expectCommit(_ number: Int, _ nodes: [ClusterNode]) async throws {
        let name = try DatabaseName(project: "hearth")
        let client = try ClusterWriter.client(of: nodes[0])
        try await eventually("the database takes commits: \(logs(nodes))") {
            (try? await client.commit(try ClusterWriter.writes(of: number, in: name))) != nil
        }
        await client.close()
    }

    /// Takes the table of databases back to before some moves.
    private func restore(_ store: String, movesBack: Int, _ nodes: [ClusterNode]) throws {
        for node in nodes { expectEqual(node.stop(), 0) }
        try query { session in
            let restored = "UPDATE hearth.databases SET store = $1::text, generation = generation - $2::bigint"
            try session.run(SQLStatement(restored, [.text(store), .number(UInt64(movesBack))]))
        }
        for node in nodes { try node.start() }
    }

    @Test
    func `A database moves on if the table of databases was restored to before its last two moves`() async throws {
        let nodes = try await start()
        try await expectCommit(1, nodes)
        let source = try row().row.store
        let target = source == "main" ? "b" : "main"
        for store in [target, source] { try expectEqual(move(to: store, nodes[0]).status, 0) }
        try restore(source, movesBack: 2, nodes)
        try await expectCommit(2, nodes)
        let moved = try move(to: target, nodes[0])
        expectEqual(moved.status, 0, "\(moved) \(logs(nodes))")
        try expectEqual(row().row.store, target)
        try await expectCommit(3, nodes)
        try expectSound(nodes)
    }

    @Test
    func `A copy that a move has left goes to no third store if the table was restored to before the move`()
        async throws
    {
        let nodes = try await start("main,b,c")
        try await expectCommit(1, nodes)
        let source = try row().row.store
        let others = ["main", "b", "c"].filter { $0 != source }
        try expectEqual(move(to: others[0], nodes[0]).status, 0)
        // The copy in the source lacks it.
        try await expectCommit(2, nodes)
        try restore(source, movesBack: 1, nodes)
        // A server that does not know of the move gives this one the same number.
        _ = try query { session in
            try session.run(
                SQLStatement(
                    "UPDATE hearth.databases SET moving_to = $1::text, generation = generation + 1",
                    [.text(others[1])]))
        }
        try await eventually("the move is given up: \(logs(nodes))") { try row().row.movingTo == nil }
        try expectEqual(row().row.store, source, "\(logs(nodes))")
        try expect(row().note.contains("the store \(others[0]) has got the database"), "\(logs(nodes))")
        let moved = try move(to: others[0], nodes[0])
        expectEqual(moved.status, 0, "\(moved) \(logs(nodes))")
        try await expectCommit(3, nodes)
        let found = try HearthBinary.run(["export", "--all", "--address", nodes[1].address, "--quiet"]).output
        expectEqual(found.split(separator: "\n").count, 6, "\(found)")
        try expectSound(nodes)
    }

    @Test
    func `A database is served where it is if the table of databases was restored to before its move`() async throws {
        let nodes = try await start()
        try await expectCommit(1, nodes)
        let source = try row().row.store
        let target = source == "main" ? "b" : "main"
        try expectEqual(move(to: target, nodes[0]).status, 0)
        try await expectCommit(2, nodes)
        try restore(source, movesBack: 1, nodes)
        try await expectCommit(3, nodes)
        // The command given again puts the row right.
        let again = try move(to: target, nodes[0])
        expectEqual(again.status, 0, "\(again) \(logs(nodes))")
        try expectEqual(row().row.store, target)
        try await expectCommit(4, nodes)
        try expectSound(nodes)
    }

    /// Changes the row of the database, while no server runs.
    private func change(_ assignments: String, _ nodes: [ClusterNode]) throws {
        for node in nodes { expectEqual(node.stop(), 0) }
        _ = try query { try $0.run(SQLStatement(script: "UPDATE hearth.databases SET \(assignments)")) }
        for node in nodes { try node.start() }
    }

    /// A move that no store can bring to its end is given up, with a reason, and was begun once by each leader at most.
    private func expectGivenUp(_ reason: String, _ nodes: [ClusterNode]) async throws {
        try await eventually("the move is given up: \(logs(nodes))") { try row().row.movingTo == nil }
        let note = try row().note
        expect(note.contains(reason), "\(note)")
        let driven = nodes.reduce(0) { $0 + $1.log.components(separatedBy: "event=database_move_driven").count - 1 }
        expect(driven <= nodes.count, "\(logs(nodes))")
    }

    @Test
    func `A move to a store that has the database by another way is given up`() async throws {
        let nodes = try await start()
        try await expectCommit(1, nodes)
        let source = try row().row.store
        let target = source == "main" ? "b" : "main"
        // The table was restored to before the database, which was then made in the other store too.
        try change("store = '\(target)'", nodes)
        try await expectCommit(2, nodes)
        try change("moving_to = '\(source)', generation = generation + 1", nodes)
        try await expectGivenUp("the store \(source) has the database by another way", nodes)
        try expectEqual(row().row.store, target)
        expect(nodes.contains { $0.log.contains("event=database_twice") }, "\(logs(nodes))")
        try await expectCommit(3, nodes)
        try expectSound(nodes)
    }

    @Test
    func `A move to a store that knows of a later one is given up, and another one comes to its end`() async throws {
        let nodes = try await start()
        try await expectCommit(1, nodes)
        let source = try row().row.store
        let target = source == "main" ? "b" : "main"
        for store in [target, source] { try expectEqual(move(to: store, nodes[0]).status, 0) }
        // The table was restored to before both, and a move has the number of the first.
        try change("generation = 1, moving_to = '\(target)'", nodes)
        try await expectGivenUp("the store \(target) knows of a later move", nodes)
        try await expectCommit(2, nodes)
        let moved = try move(to: target, nodes[0])
        expectEqual(moved.status, 0, "\(moved) \(logs(nodes))")
        try await expectCommit(3, nodes)
        try expectSound(nodes)
    }

    @Test
    func `A server ends while the release of a database waits for its PostgreSQL`() async throws {
        let nodes = try await start()
        try await expectCommit(1, nodes)
        let source = try row().row.store
        let target = source == "main" ? "b" : "main"
        let victim = try await leader(of: source, nodes)
        let other = try #require(nodes.first { $0 !== victim })
        let session = try PostgreSQLSession(address: databases.home)
        defer { session.close() }
        // Commits of the source wait.
        try session.run(SQLStatement(script: "BEGIN; LOCK TABLE hearth.log_\(source)_0 IN SHARE MODE"))
        try expectEqual(move(to: target, other, ["--no-wait"]).status, 0)
        let waiting = SQLStatement("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'RowExclusiveLock'")
        try await eventually("the release waits: \(logs(nodes))") {
            try row().row.isReleasing && query { try $0.run(waiting).first?.number(0) ?? 0 } > 0
        }
        expectEqual(victim.stop(), 0, "\(victim.log.suffix(2_000))")
        try session.run(SQLStatement(script: "COMMIT"))
        try victim.start()
        try await eventually("the move comes to its end: \(logs(nodes))") { try row().row.store == target }
        try await expectCommit(2, nodes)
        try expectSound(nodes)
    }

    @Test
    func `A move that is given up at once leaves the database where it was, or has come to its end`() async throws {
        let nodes = try await start()
        let client = try ClusterWriter.client(of: nodes[0])
        let name = try DatabaseName(project: "hearth")
        try await eventually("the database takes commits: \(logs(nodes))") {
            (try? await client.commit(try ClusterWriter.writes(of: 1, in: name))) != nil
        }
        let source = try row().row.store
        let target = source == "main" ? "b" : "main"
        let begun = try move(to: target, nodes[0], ["--no-wait"])
        expectEqual(begun.status, 0, "\(begun) \(logs(nodes))")
        let status = try HearthBinary.run(["cluster", "status", "--cluster", databases.home])
        expectEqual(status.status, 0, "\(status)")
        let given = try move(to: source, nodes[1])
        let row = try row().row
        // It was given up, or had come to its end before.
        if given.status == 0 {
            expect(row.store == source && row.movingTo == nil, "\(row)")
        } else {
            expect(given.errors.contains("already"), "\(given)")
        }
        try await client.commit(try ClusterWriter.writes(of: 2, in: name))
        await client.close()
        try expectSound(nodes)
    }
}
