// hearth serve --cluster with a database that is not that of its directory: it is left as it is.

import Basics
import Foundation
import PostgreSQLLog
import TestSupport
import Testing

@testable import hearth

@Suite(.serialized, .timeLimit(.minutes(20)))
struct WrongDatabaseTests {
    private let directory = TemporaryDirectory("wrong")
    private let databases: DatabasePair.Databases

    init() throws { databases = try DatabasePair.of("WrongDatabaseTests").makeDatabases() }

    private func hasSchema(_ address: String) throws -> Bool {
        let session = try PostgreSQLSession(address: address)
        defer { session.close() }
        return try session.run(SQLStatement("SELECT to_regnamespace('hearth') IS NOT NULL")).first?.number(0) == 1
    }

    private func serve(_ data: String, _ address: String, _ arguments: [String]) throws -> HearthBinary.Outcome {
        let port = try LoopbackSocket.reservePort()
        return try HearthBinary.run(
            [
                "serve", "--data", data, "--port", String(port), "--cluster", address, "--advertise",
                "127.0.0.1:\(port)",
            ] + arguments)
    }

    @Test(arguments: [
        "hearth:geheim@10.0.0.9/hearth", "http://hearth:geheim@10.0.0.9/hearth",
        "postgresql://hearth:x@geheim@10.0.0.9/hearth", "postgresql://hearth:geheim/x@10.0.0.9/hearth",
    ])
    func `An address that is none of PostgreSQL is refused, and its password is not shown`(_ address: String) throws {
        for arguments in [[], ["--cluster-stores", "a,main"]] {
            let refused = try serve(directory.path(of: "data"), address, arguments)
            expect(refused.status == 2 && refused.errors.contains("postgresql://USER@HOST"), "\(refused)")
            expect(!refused.errors.contains("geheim"), "\(refused)")
        }
        let status = try HearthBinary.run(["cluster", "status", "--cluster", address])
        expect(status.status == 2 && status.errors.contains("postgresql://USER@HOST"), "\(status)")
        expect(!status.errors.contains("geheim"), "\(status)")
    }

    @Test
    func `A role that may not use the tables is named with what to do, and one that may only read once a minute`()
        async throws
    {
        let leader = try ClusterNode(databases.home, data: directory.path(of: "leader"))
        try leader.start()
        try await eventually("it leads: \(leader.log.suffix(1_000))") { leader.leads }
        let session = try PostgreSQLSession(address: databases.home)
        defer { session.close() }
        try session.run(SQLStatement(script: "CREATE ROLE reader LOGIN"))
        let address = databases.home.replacing("//hearth@", with: "//reader@")
        let refused = try serve(directory.path(of: "data"), address, [])
        expect(refused.status == 1 && refused.errors.contains("give all servers the same role"), "\(refused)")

        try session.run(
            SQLStatement(
                script: "GRANT USAGE ON SCHEMA hearth TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA hearth TO reader")
        )
        let began = SystemClock.monotonicMilliseconds()
        let node = try ClusterNode(address, data: directory.path(of: "data"))
        try node.start()
        func reports() -> Int { node.log.components(separatedBy: "permission denied for table servers").count - 1 }
        try await eventually("it is reported: \(node.log.suffix(1_000))") { reports() > 0 }
        // Each server announces itself as often as the other one.
        var announcements: Set<String> = []
        try await eventually("servers have announced themselves some times") {
            let seen = try session.run(SQLStatement("SELECT seen::text FROM hearth.servers")).first?.text(0)
            announcements.insert(seen ?? "")
            return announcements.count > 4
        }
        // By the announcement, and by the read of the log.
        let most = 2 * (1 + (SystemClock.monotonicMilliseconds() - began) / 60_000)
        expect(UInt64(reports()) <= most, "\(node.log)")
        expectEqual(node.stop(), 0)
        expectEqual(leader.stop(), 0)
    }

    @Test
    func `The effective settings have the address of the database, and no password`() throws {
        func settings(_ address: String) throws -> String {
            let checked = try HearthBinary.run([
                "serve", "--check-config", "--data", directory.path(of: "data"), "--cluster", address, "--advertise",
                "127.0.0.1:1",
            ])
            expectEqual(checked.status, 0, "\(checked)")
            return checked.output
        }
        let open = "postgresql://hearth@10.0.0.9/hearth"
        try expect(settings(open).contains("  --cluster \(open)\n"))
        for address in ["postgresql://hearth:geheim@10.0.0.9/hearth", "host=10.0.0.9 password=geheim"] {
            let shown = try settings(address)
            expect(shown.contains("  --cluster … (") && !shown.contains("geheim"), "\(shown)")
        }
    }

    @Test(arguments: ["http://127.0.0.1:8080", "hearth@127.0.0.1:8080", "0.0.0.0:8080", "[::]:8080"])
    func `An address that other servers cannot use is not advertised`(_ address: String) throws {
        let refused = try HearthBinary.run([
            "serve", "--data", directory.path(of: "data"), "--port", "0", "--cluster", databases.home, "--advertise",
            address,
        ])
        expect(refused.status == 2 && refused.errors.contains("--advertise"), "\(refused)")
        try expect(!hasSchema(databases.home))
    }

    @Test(arguments: [[], ["--cluster-stores", "a,main"]])
    func `A server makes nothing in a database that lacks the store of its directory`(_ arguments: [String])
        async throws
    {
        let data = directory.path(of: "data")
        // The store "a" is made after the server has left, and its directory is new.
        let first = arguments.isEmpty ? [] : ["--cluster-stores", "main"]
        let node = try ClusterNode(databases.home, data: data, arguments: first)
        try node.start()
        try await eventually("it leads: \(node.log.suffix(1_000))") { node.leads || node.leads("main") }
        expectEqual(node.stop(), 0)
        let refused = try serve(data, databases.other, arguments)
        expect(refused.status == 1 && refused.errors.contains("has no store main"), "\(refused)")
        try expect(!hasSchema(databases.other))

        // A database of another cluster does not get a store of this name either.
        let session = try PostgreSQLSession(address: databases.other)
        defer { session.close() }
        try session.run(StoreTables.creation)
        let again = try serve(data, databases.other, arguments)
        expect(again.status == 1 && again.errors.contains("has no store main"), "\(again)")
        let count = try session.run(SQLStatement("SELECT count(*) FROM hearth.stores")).first?.number(0)
        expectEqual(count, 0)
        try expect(session.run(RulesTable.exists).first?.number(0) != 1)
    }

    @Test
    func `A database with stores of a cluster that is not its home gets no store`() throws {
        let session = try PostgreSQLSession(address: databases.other)
        defer { session.close() }
        try session.run(StoreTables.creation)
        try session.run(StoreTables.creationOfIdentity)
        try session.run(StoreTables.entering(DatabaseOwner(identity: .random(), home: .random())))
        let refused = try serve(directory.path(of: "data"), databases.other, ["--cluster-store", "new"])
        expect(refused.status == 1 && refused.errors.contains("is not its home database"), "\(refused)")
        let count = try session.run(SQLStatement("SELECT count(*) FROM hearth.stores")).first?.number(0)
        expectEqual(count, 0)
    }

    @Test(arguments: [
        "CREATE TABLE hearth.guests (name text)", "CREATE VIEW hearth.servers AS SELECT 1 AS one",
        "CREATE TABLE hearth.stores (name text)",
    ])
    func `A schema of another application gets no tables`(_ creation: String) throws {
        let session = try PostgreSQLSession(address: databases.other)
        defer { session.close() }
        try session.run(SQLStatement(script: "CREATE SCHEMA hearth; \(creation)"))
        let names = SQLStatement("SELECT count(*) FROM pg_class WHERE relnamespace = 'hearth'::regnamespace")
        let before = try session.run(names).first?.number(0)
        let refused = try serve(directory.path(of: "data"), databases.other, [])
        expect(refused.status == 1 && refused.errors.contains("which is not of Hearth"), "\(refused)")
        try expectEqual(session.run(names).first?.number(0), before)
        try session.run(SQLStatement(script: "DROP SCHEMA hearth CASCADE; CREATE SCHEMA hearth"))
        try StoreTables.make(session)
        // Once the tables are there, others do not matter.
        try session.run(SQLStatement(script: "CREATE TABLE hearth.guests (name text)"))
        try StoreTables.make(session)
    }

    @Test
    func `The report of a database in two stores says what follows from it`() {
        let before = PlacesTable.conflict(of: "projects/p/databases/d", "a", "b", isSharing: false)
        expect(before.contains("in the stores a and b; no databases are created until"))
        let sharing = PlacesTable.conflict(of: "projects/p/databases/d", "a", "b", isSharing: true)
        expect(sharing.contains("give hearth move for it again") && !sharing.contains("no databases are created"))
    }
}
