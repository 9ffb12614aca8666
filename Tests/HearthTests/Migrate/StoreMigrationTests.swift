// hearth migrate between a data directory and a cluster, as processes over a real PostgreSQL.

import Foundation
import PostgreSQLLog
import Replication
import TestSupport
import Testing

@testable import FileSystem
@testable import hearth

@Suite(.serialized, .timeLimit(.minutes(30)))
struct StoreMigrationTests {
    private let directory = TemporaryDirectory("migrate")
    private let database: PostgreSQLServer
    private var data: String { directory.path(of: "data") }

    init() throws { database = try PostgreSQLServer() }

    private func migrate(_ source: String, _ target: String, _ more: [String] = []) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["migrate", "--from", source, "--to", target] + more)
    }

    private func set(_ port: Int, _ path: String, _ number: Int) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["set", "--address", "127.0.0.1:\(port)", path, "{\"n\":\(number)}"])
    }

    private func documents(_ port: Int) throws -> String {
        let outcome = try HearthBinary.run(["export", "--all", "--address", "127.0.0.1:\(port)", "--quiet"])
        return outcome.status == 0 ? outcome.output : "\(outcome)"
    }

    private func node(_ name: String, _ arguments: [String] = []) throws -> ClusterNode {
        try ClusterNode(database.address, data: directory.path(of: name), arguments: arguments)
    }

    @Test
    func `A directory becomes a store of a cluster and a directory again, with documents and tokens`() async throws {
        let source = try ServerProcess(data: data)
        for number in 0..<5 { try expectEqual(set(source.port, "c/d\(number)", number).status, 0) }
        let before = try documents(source.port)
        let sourceNode = try node("unused")
        let token = try await ListenedState(port: source.port, resuming: []).token
        let moved = try migrate(data, database.address, ["--progress", "0s"])
        for stage in ["copying to the database: ", "comparing the copy: "] { expect(moved.errors.contains(stage)) }
        expect(moved.status == 0 && moved.output.contains("is the store main of the cluster now"), "\(moved)")
        // It serves reads, and takes no writes.
        try expectEqual(documents(source.port), before)
        try expect(set(source.port, "c/late", 1).status != 0)
        expectEqual(source.stop(), 0)
        let again = try HearthBinary.run(["serve", "--data", data, "--port", "0"])
        expect(again.status == 1 && again.errors.contains("moved to a cluster"), "\(again)")
        let taken = try migrate(data, database.address)
        expect(taken.status == 1 && taken.errors.contains("is the store main of the cluster already"), "\(taken)")
        // Not a second time under another name, either.
        let twice = try migrate(data, database.address, ["--cluster-store", "other"])
        expect(twice.status == 1 && twice.errors.contains("is the store main of the cluster already"), "\(twice)")

        let nodes = [sourceNode, try node("second", ["--cluster-base", "64KiB"])]
        for node in nodes { try node.start() }
        for node in nodes {
            try await eventually("\(node.address) has the documents: \(node.log.suffix(1_000))") {
                try documents(node.port) == before
            }
        }
        try await eventually("the token of the directory is taken") {
            (try? await ListenedState(port: nodes[0].port, resuming: token).isReset) == false
        }
        for number in 5..<9 {
            let written = try set(nodes[number % 2].port, "c/d\(number)", number)
            expectEqual(written.status, 0, "\(written)")
        }
        let inCluster = try documents(nodes[0].port)
        expect(inCluster != before)

        // Back, while the servers run. An attempt that was interrupted leaves a directory in the target.
        let back = directory.path(of: "back")
        try FileManager.default.createDirectory(atPath: back + "/RESTORE.new/runs", withIntermediateDirectories: true)
        let returned = try migrate(database.address, back, ["--progress", "0s"])
        for stage in ["fetching the base: ", "applying the log: ", "checking the documents: "] {
            expect(returned.errors.contains(stage), "\(returned.errors)")
        }
        expect(returned.status == 0 && returned.output.contains("has the store main now"), "\(returned)")
        for node in nodes {
            try await eventually("\(node.address) ends: \(node.log.suffix(1_000))") {
                node.log.contains("moved out of the database")
            }
            _ = node.stop()
        }
        let target = try ServerProcess(data: back)
        try expectEqual(documents(target.port), inCluster)
        try await expect(!ListenedState(port: target.port, resuming: token).isReset)
        try expectEqual(set(target.port, "c/own", 1).status, 0)
        expectEqual(target.stop(), 0)
        let check = try HearthBinary.run(["check", "--data", back])
        expectEqual(check.status, 0, "\(check)")
    }

    @Test
    func `A migration that was interrupted is made again, and what cannot be moved is refused`() async throws {
        let source = try ServerProcess(data: data)
        try expectEqual(set(source.port, "c/d", 1).status, 0)
        expectEqual(source.stop(), 0)
        // What an attempt leaves that was killed before its last step.
        let session = try PostgreSQLSession(address: database.address)
        try session.run(StoreTables.creation)
        try session.run(SQLStatement(script: "CREATE TABLE hearth.base_main_1_77 (part bigint)"))
        for name in ["MIGRATING", "SUPERSEDED"] { try Data("x\n".utf8).write(to: URL(filePath: "\(data)/\(name)")) }
        let moved = try migrate(data, database.address)
        expectEqual(moved.status, 0, "\(moved)")
        let left = try session.run(SQLStatement("SELECT to_regclass('hearth.base_main_1_77') IS NULL"))
        expectEqual(left.first?.number(0), 1)
        session.close()
        let first = try node("first")
        try first.start()
        try await eventually("it leads") { first.leads }
        try expectEqual(set(first.port, "c/e", 2).status, 0)

        let cached = try migrate(first.data, database.address, ["--cluster-store", "other"])
        expect(cached.status == 1 && cached.errors.contains("caches a store of a cluster"), "\(cached)")
        let full = try migrate(database.address, data)
        expect(full.status == 1 && full.errors.contains("is not empty"), "\(full)")
        let unknown = try migrate(database.address, directory.path(of: "new"), ["--cluster-store", "other"])
        expect(unknown.status == 1 && unknown.errors.contains("has no store other"), "\(unknown)")
        let wrong = try migrate(data, directory.path(of: "new"))
        expect(wrong.status == 2 && wrong.errors.contains("one of --from and --to"), "\(wrong)")
        let nothing = try HearthBinary.run(["migrate"])
        expect(nothing.status == 2 && nothing.errors.contains("--from-firestore PROJECT"), "\(nothing)")
        expectEqual(first.stop(), 0)
    }

    /// Whether the servers of the cluster take no more writes.
    private func isLockedOut(_ session: PostgreSQLSession) throws -> Bool {
        let level = try session.run(SQLStatement("SELECT level FROM hearth.stores")).first?.number(0) ?? 0
        return level >= StoreTables.leavingLevel
    }

    @Test
    func `A cluster takes writes again after a migration has failed, unless a directory has the store`() throws {
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        try session.run(StoreTables.creation)
        try session.run(RulesTable.creation)
        try session.run(StoreTables(name: "main", advertised: "").adoption(.random(), timeline: 7, ceiling: 0))
        func rename(_ column: String, of table: String = "rules", to name: String) throws {
            try session.run(SQLStatement(script: "ALTER TABLE hearth.\(table) RENAME \(column) TO \(name)"))
        }
        func migrate(to name: String) -> String? {
            do {
                try StoreMigration.run(
                    from: database.address, to: directory.path(of: name), store: "main", bases: nil,
                    ProgressLine(isQuiet: true))
                return nil
            } catch {
                return "\(error)"
            }
        }
        // The rules cannot be read, after the lock-out.
        try rename("source", to: "hidden")
        expect(migrate(to: "first") != nil)
        try expect(!isLockedOut(session))
        expect(!FileManager.default.fileExists(atPath: directory.path(of: "first")))
        try rename("hidden", to: "source")

        // An attempt was killed after its lock-out, and the next one fails before that.
        let tables = StoreTables(name: "main", advertised: "")
        let seen = try #require(StoreRow(try session.run(tables.statement(.observe, closed: 0, timeline: 0))))
        try session.run(tables.lockingOut(seen, for: ServerIdentity(high: 1, low: 2)))
        try expect(isLockedOut(session))
        try rename("parts", of: "bases", to: "hidden")
        expect(migrate(to: "first") != nil)
        try expect(!isLockedOut(session))
        try rename("hidden", of: "bases", to: "parts")

        // The directory has the store, and its name cannot be made durable.
        let format = directory.path(of: "second/FORMAT")
        let watch = DiskWatch.begin(directory.path) { change, call in
            guard case .sync = change, FileManager.default.fileExists(atPath: format) else { return call() }
            errno = EIO
            return -1
        }
        let unsure = migrate(to: "second")
        watch.end()
        expectEqual(unsure?.contains("may not outlive a power cut"), true, "\(unsure ?? "")")
        try expect(isLockedOut(session))
        expect(FileManager.default.fileExists(atPath: format))
        let status = try HearthBinary.run(["cluster", "status", "--cluster", database.address])
        expect(status.output.contains("moved out of the database by hearth migrate"), "\(status)")

        // That directory may take writes by now.
        try rename("source", to: "hidden")
        let late = migrate(to: "third")
        expectEqual(late?.contains("since an earlier attempt"), true, "\(late ?? "")")
        try expect(isLockedOut(session))
        try rename("hidden", to: "source")
        expectNil(migrate(to: "third"))
        try expectEqual(HearthBinary.run(["check", "--data", directory.path(of: "third")]).status, 0)
    }

    @Test
    func `A directory is made of an earlier base if the last is damaged, and not of the log alone if that lacks some`()
        async throws
    {
        let source = try ServerProcess(data: data)
        try expectEqual(set(source.port, "c/d", 1).status, 0)
        let before = try documents(source.port)
        expectEqual(source.stop(), 0)
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        let tables = StoreTables(name: "main", advertised: "test:1")
        // Another attempt would have its tables removed by this one.
        let other = try PostgreSQLSession(address: database.address)
        try expectEqual(other.run(tables.claimingAdoption).first?.number(0), 1)
        let late = try migrate(data, database.address)
        expect(late.status == 1 && late.errors.contains("another hearth migrate makes the store main"), "\(late)")
        expect(!Directory.exists("\(data)/SUPERSEDED"))
        other.close()
        try await eventually("the other one has ended") {
            let isFree = try session.run(tables.claimingAdoption).first?.number(0) == 1
            if isFree { try session.run(SQLStatement(script: "SELECT pg_advisory_unlock_all()")) }
            return isFree
        }
        let moved = try migrate(data, database.address)
        expectEqual(moved.status, 0, "\(moved)")
        // As a server does that has found the only base damaged.
        try session.run(tables.markingDamaged(1))
        let back = directory.path(of: "back")
        let refused = try migrate(database.address, back)
        expect(refused.status == 1 && refused.errors.contains("does not continue any base"), "\(refused)")
        expect(!Directory.exists(back))
        let level = try session.run(SQLStatement("SELECT level FROM hearth.stores")).first?.number(0)
        expectEqual(level, StoreTables.level)

        try session.run(SQLStatement("UPDATE hearth.bases SET parts_table = split_part(parts_table, ':', 2)"))
        try session.run(
            SQLStatement(
                """
                INSERT INTO hearth.bases
                SELECT store, 2, sequence, hash, version, bytes, made, 'hearth.base_main_2_7', parts FROM hearth.bases
                """))
        let returned = try migrate(database.address, back)
        expectEqual(returned.status, 0, "\(returned)")
        let target = try ServerProcess(data: back)
        try expectEqual(documents(target.port), before)
        expectEqual(target.stop(), 0)
    }

    @Test
    func `Servers wait while a store is locked out, and lead again when it is taken back`() async throws {
        let node = try node("first")
        try node.start()
        try await eventually("it leads") { node.leads }
        try expectEqual(set(node.port, "c/d", 1).status, 0)
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        let (tables, attempt) = (StoreTables(name: "main", advertised: ""), ServerIdentity(high: 1, low: 2))
        let seen = try #require(StoreRow(try session.run(tables.statement(.observe, closed: 0, timeline: 0))))
        expectEqual(StoreRow(try session.run(tables.lockingOut(seen, for: attempt)))?.isDone, true)
        try await eventually("it does not lead: \(node.log.suffix(1_000))") { !node.leads }
        let status = try HearthBinary.run(["cluster", "status", "--cluster", database.address])
        expect(status.output.contains("being moved out of the database"), "\(status)")
        expectEqual(StoreRow(try session.run(tables.takingBack(seen, from: attempt)))?.isDone, true)
        try await eventually("it leads again: \(node.log.suffix(1_000))") { node.leads }
        try expectEqual(set(node.port, "c/d", 2).status, 0)
        expectEqual(node.stop(), 0)
        expect(!node.log.contains("moved out of the database"))
    }

    @Test
    func `A directory is the store of a cluster with its rules, or not at all`() async throws {
        let source = try ServerProcess(data: data, arguments: ["--insecure"])
        try expectEqual(set(source.port, "c/d", 1).status, 0)
        let file = directory.path(of: "firestore.rules")
        let text = "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { allow get; } } }\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        try expectEqual(HearthBinary.run(["rules", "apply", file, "--data", data]).status, 0)
        expectEqual(source.stop(), 0)
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        try session.run(RulesTable.creation)
        // What keeps rules out stands for the end of the command, or of the database, at this moment.
        try session.run(SQLStatement(script: "ALTER TABLE hearth.rules ADD CONSTRAINT no_rules CHECK (number < 0)"))
        let failed = try migrate(data, database.address)
        expect(failed.status == 1 && failed.errors.contains("no_rules"), "\(failed)")
        // The directory takes no writes meanwhile.
        expect(failed.errors.contains("give the command again. Or, to give it up"), "\(failed)")
        try expectEqual(session.run(SQLStatement("SELECT count(*) FROM hearth.stores")).first?.number(0), 0)
        try session.run(SQLStatement(script: "ALTER TABLE hearth.rules DROP CONSTRAINT no_rules"))
        let moved = try migrate(data, database.address)
        expectEqual(moved.status, 0, "\(moved)")
        try expectEqual(session.run(SQLStatement("SELECT source FROM hearth.rules")).first?.text(0), text)
        let kept = try session.run(SQLStatement("SELECT number FROM hearth.bases WHERE store = 'main'"))
        expect(kept.count == 1 && kept.first?.number(0) == 1)
    }

    @Test
    func `A store that has left a cluster begins above all times that were given out there`() async throws {
        let node = try node("first")
        try node.start()
        try await eventually("the store takes writes: \(node.log)") { try set(node.port, "c/d", 1).status == 0 }
        expectEqual(node.stop(), 0)
        // As if the clocks of its servers had been an hour ahead of this machine's.
        let session = try PostgreSQLSession(address: database.address)
        let raised = try session.run(
            SQLStatement("UPDATE hearth.stores SET ceiling = ceiling + 3600000000 RETURNING ceiling"))
        let ceiling = try #require(raised.first?.number(0))
        let back = directory.path(of: "back")
        let moved = try migrate(database.address, back)
        expectEqual(moved.status, 0, "\(moved)")
        let server = try ServerProcess(data: back)
        let client = try TestClient(server)
        try await expect(client.commitTime(of: "c/d", number: 2) > ceiling)
        await client.close()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A base that a migration reads is announced, and no lease is handed over to what reads one`() async throws {
        let source = try ServerProcess(data: data)
        try expectEqual(set(source.port, "c/d", 1).status, 0)
        expectEqual(source.stop(), 0)
        try expectEqual(migrate(data, database.address).status, 0)
        let tables = StoreTables(name: "main", advertised: "test:1")
        let session = try PostgreSQLSession(address: database.address)
        let base = try #require(BaseRow(try session.run(tables.lastBase)))
        // The migration waits while it reads the base.
        try session.run(SQLStatement(script: "BEGIN; LOCK TABLE \(base.location.text) IN ACCESS EXCLUSIVE MODE"))
        let migration = HearthProcess(["migrate", "--from", database.address, "--to", directory.path(of: "back")])
        try migration.start()
        let others = try PostgreSQLSession(address: database.address)
        let announced = SQLStatement("SELECT role FROM hearth.servers WHERE store = 'main'")
        try await eventually("the base is announced: \(migration.errors)") {
            try others.run(announced).map { $0.text(0) } == [StoreTables.fetchingRole(base.number, percent: 0)]
        }
        try expect(others.run(StoreTables.servers(of: ["main"])).isEmpty)
        try expect(others.run(StoreTables.servers(ofEach: ["main"])).isEmpty)
        try session.run(SQLStatement(script: "COMMIT"))
        migration.waitForEnd()
        expectEqual(migration.status, 0, "\(migration.errors)")
        try expect(others.run(announced).isEmpty)
    }
}
