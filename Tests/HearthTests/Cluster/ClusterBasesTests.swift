// Bases of a cluster in a directory, as processes over a real PostgreSQL.

import Foundation
import PostgreSQLLog
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(30)))
struct ClusterBasesTests {
    private let directory = TemporaryDirectory("cluster-bases")
    private let database: PostgreSQLServer
    private var bases: String { directory.path(of: "bases") }
    private let small = ["--cluster-base", "64KiB"]
    private var shared: [String] { small + ["--cluster-bases", bases] }

    init() throws {
        database = try PostgreSQLServer()
        try FileManager.default.createDirectory(atPath: bases, withIntermediateDirectories: true)
    }

    private func node(_ name: String, _ arguments: [String]) throws -> ClusterNode {
        try ClusterNode(database.address, data: directory.path(of: name), arguments: arguments)
    }

    /// Writes documents of more bytes than a base needs.
    private func fill(_ node: ClusterNode, from first: Int, count: Int = 20) throws {
        let text = String(repeating: "text ", count: 2_000)
        for number in first..<(first + count) {
            let outcome = try HearthBinary.run(
                ["set", "--address", node.address, "c/d\(number)", "{\"n\":\(number),\"text\":\"\(text)\"}"])
            expectEqual(outcome.status, 0, "\(outcome)")
        }
    }

    private func documents(_ node: ClusterNode) throws -> [Substring] {
        try HearthBinary.run(["query", "--address", node.address, "c"]).output.split(separator: "\n")
    }

    private func expectDocuments(_ node: ClusterNode, has count: Int) async throws {
        try await eventually("\(node.address) has \(count) documents: \(node.log.suffix(2_000))") {
            try documents(node).count == count
        }
    }

    private func count(_ event: String, _ node: ClusterNode) -> Int {
        node.log.components(separatedBy: "event=\(event)").count - 1
    }

    private func waitForBases(_ number: Int, _ node: ClusterNode) async throws {
        try await eventually("\(number) bases are made: \(node.log.suffix(2_000))") {
            count("base_made", node) >= number
        }
    }

    /// Writes new documents until the next base is made or begun.
    ///
    /// It is due when the log is larger than the last base, and that may have all that was written before.
    private func fill(
        _ node: ClusterNode, from written: inout Int, until what: String, _ condition: () throws -> Bool
    ) async throws {
        let end = 2 * written + 40
        while try written < end && !condition() {
            try fill(node, from: written, count: 10)
            written += 10
        }
        try await eventually("\(what): \(node.log.suffix(2_000))", condition)
    }

    private func fillUntilBase(_ node: ClusterNode, from written: inout Int) async throws {
        let number = try lastNumber()
        try await fill(node, from: &written, until: "a base is made after \(number)") { try lastNumber() > number }
    }

    /// The folders of bases in the directory.
    private func folders() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: bases + "/main").filter { $0 != "BASES" }.sorted()
    }

    private func lastBase() throws -> [String: Any] {
        let status = try HearthBinary.run(["cluster", "status", "--cluster", database.address, "--json"])
        let report = try JSONSerialization.jsonObject(with: Data(status.output.utf8)) as? [String: Any]
        return (report?["stores"] as? [[String: Any]])?.first?["base"] as? [String: Any] ?? [:]
    }

    private func lastNumber() throws -> Int { try lastBase()["number"] as? Int ?? 0 }

    private func lastTable(_ session: PostgreSQLSession) throws -> (number: Int, table: String) {
        let query = "SELECT number, parts_table FROM hearth.bases ORDER BY number DESC LIMIT 1"
        let row = try #require(try session.run(SQLStatement(query)).first)
        return (Int(try #require(row.number(0))), row.text(1))
    }

    private func tables() throws -> Int {
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        let found = try session.run(
            SQLStatement(
                "SELECT count(*) FROM pg_tables WHERE schemaname = 'hearth' AND tablename LIKE 'base%\\_main\\_%'"))
        return Int(found.first?.number(0) ?? 0)
    }

    private func expectSound(_ nodes: [ClusterNode]) throws {
        for node in nodes {
            expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))")
            let check = try HearthBinary.run(["check", "--data", node.data])
            expectEqual(check.status, 0, "\(check)")
        }
    }

    /// Changes a byte of a file of a base.
    /// - Returns: the path of the file.
    private func damage(_ folder: String) throws -> String {
        let runs = "\(bases)/main/\(folder)/runs"
        let names = try FileManager.default.contentsOfDirectory(atPath: runs).filter { $0 != "MANIFEST" }.sorted()
        let path = "\(runs)/\(try #require(names.first))"
        var bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
        bytes[bytes.count / 2] ^= 1
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test
    func `A server that lost its disk starts from the directory, or from what is before a damaged base`() async throws {
        let nodes = [try node("a", shared), try node("b", shared)]
        for node in nodes { try node.start() }
        let first = try await ClusterNode.leader(of: nodes)
        let second = try #require(nodes.first { $0 !== first })
        try fill(first, from: 0)
        try await waitForBases(1, first)
        try expectEqual(tables(), 0)
        let base = try lastBase()
        expect(base["place"] as? String == "directory", "\(base)")
        try expect(folders().contains { base["name"] as? String == "main/\($0)" }, "\(base)")
        let words = try HearthBinary.run(["cluster", "status", "--cluster", database.address]).output
        expect(words.contains("in the directory for bases (main/"), "\(words)")

        second.kill()
        try FileManager.default.removeItem(atPath: second.data)
        try second.start()
        expect(second.log.contains("event=base_fetched"), "\(second.log)")
        try await expectDocuments(second, has: 20)
        try await eventually("both have the directory: \(second.log)") {
            nodes.allSatisfy { $0.metrics.contains("hearth_cluster_base_directory_reachable 1\n") }
        }
        expect(first.metrics.contains("hearth_cluster_bases_total"))

        second.kill()
        try FileManager.default.removeItem(atPath: second.data)
        // It makes no later base, which would not be damaged.
        expectEqual(first.stop(), 0, "\(first.log.suffix(2_000))")
        let last = try lastBase()
        let damaged = try damage(try #require(last["name"] as? String).replacing("main/", with: ""))
        try second.start()
        expect(second.log.contains("event=base_damaged") && second.log.contains(damaged), "\(second.log)")
        try await expectDocuments(second, has: 20)
        // The next one does not count the damaged one, and it goes.
        var written = 20
        try await fillUntilBase(second, from: &written)
        try await eventually("what nobody needs is removed") {
            try !folders().contains { damaged.contains($0) } && folders().count <= 2
        }
        try expectSound([second])
    }

    /// Makes a directory with one document the store: its log does not begin with its first commit.
    private func migrateDirectory() throws {
        let data = directory.path(of: "alone")
        let source = try ServerProcess(data: data)
        let set = try HearthBinary.run(["set", "--address", "127.0.0.1:\(source.port)", "c/d", "{\"n\":1}"])
        expectEqual(set.status, 0)
        expectEqual(source.stop(), 0)
        let moved = try HearthBinary.run(
            ["migrate", "--from", data, "--to", database.address, "--cluster-bases", bases])
        expectEqual(moved.status, 0, "\(moved)")
    }

    @Test
    func `A server waits for a base while the only one is damaged, until the leader has made another`() async throws {
        try migrateDirectory()
        try expect(tables() == 0 && folders().count == 1)

        // A server that does not know the directory says what it lacks.
        let lacking = try HearthBinary.run([
            "serve", "--data", directory.path(of: "lacking"), "--cluster", database.address, "--advertise",
            "127.0.0.1:1", "--port", "0",
        ])
        expect(lacking.status == 1 && lacking.errors.contains("name it with --cluster-bases"), "\(lacking)")

        let first = try node("a", shared)
        try first.start()
        _ = try await ClusterNode.leader(of: [first])
        try await expectDocuments(first, has: 1)
        let damaged = try damage(try #require(folders().first))
        let second = try node("b", shared)
        // It is ready when the leader has made another base.
        try second.start()
        expect(second.log.contains("event=base_damaged") && second.log.contains(damaged), "\(second.log)")
        expect(second.log.contains("event=base_fetched"), "\(second.log)")
        try await expectDocuments(second, has: 1)

        // Back to a directory, from the base in the directory for bases.
        let back = directory.path(of: "back")
        let refused = try HearthBinary.run(["migrate", "--from", database.address, "--to", back])
        expect(refused.status == 1 && refused.errors.contains("name it with --cluster-bases"), "\(refused)")
        let returned = try HearthBinary.run(
            ["migrate", "--from", database.address, "--to", back, "--cluster-bases", bases])
        expectEqual(returned.status, 0, "\(returned)")
        for node in [first, second] { _ = node.stop() }
        let target = try ServerProcess(data: back)
        try expect(
            HearthBinary.run(["get", "--address", "127.0.0.1:\(target.port)", "c/d"]).output.contains("\"n\":1}"))
        expectEqual(target.stop(), 0)
    }

    @Test
    func `A directory that is not mounted stops neither writes nor the log, and a new server waits for it`()
        async throws
    {
        try migrateDirectory()
        let first = try node("a", shared)
        try first.start()
        _ = try await ClusterNode.leader(of: [first])
        let away = directory.path(of: "away")
        try FileManager.default.moveItem(atPath: bases, toPath: away)
        try FileManager.default.createDirectory(atPath: bases, withIntermediateDirectories: true)
        try fill(first, from: 20)
        try await eventually("the leader reports it: \(first.log.suffix(2_000))") {
            first.log.contains("event=base_failed") && first.log.contains("mount the directory")
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: bases), [])
        try await expectDocuments(first, has: 21)

        let second = HearthProcess(
            [
                "serve", "--data", directory.path(of: "b"), "--cluster", database.address, "--advertise", "127.0.0.1:1",
                "--port", "0",
            ] + shared)
        try second.start()
        expect(second.waitForError("event=base_waiting"), "\(second.errors)")
        expect(second.errors.contains("has no file BASES"), "\(second.errors)")
        try FileManager.default.removeItem(atPath: bases)
        try FileManager.default.moveItem(atPath: away, toPath: bases)
        expect(second.waitForError("event=base_fetched"), "\(second.errors)")
        second.signal(SIGTERM)
        second.waitForEnd()
        try await eventually("the leader makes bases again: \(first.log.suffix(2_000))") {
            count("base_made", first) >= 1
        }
        try expectSound([first])
    }

    @Test
    func `A directory that hangs holds up neither writes nor the end of the server`() async throws {
        let first = try node("a", shared)
        try first.start()
        _ = try await ClusterNode.leader(of: [first])
        try fill(first, from: 0)
        try await waitForBases(1, first)
        // Who opens it waits for a writer.
        // It takes the place of the mark at once: a server that finds none makes one.
        let mark = bases + "/main/BASES"
        expectEqual(mkfifo(bases + "/pipe", 0o600), 0)
        expectEqual(rename(bases + "/pipe", mark), 0)
        try fill(first, from: 20, count: 60)
        let process = try #require(first.server?.process.identifier)
        // One that does not wait ends before so many looks.
        var looks = 0
        try await eventually("a thread waits for the directory: \(first.log.suffix(2_000))") {
            let threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")
            let isThere = threads.contains { thread in
                let name = try? String(contentsOfFile: "/proc/\(process)/task/\(thread)/comm", encoding: .utf8)
                return name == "base\n" || name?.hasPrefix("base ") == true
            }
            looks = isThere ? looks + 1 : 0
            return looks == 200
        }
        let made = count("base_made", first)
        try fill(first, from: 80, count: 5)
        try await expectDocuments(first, has: 85)
        expectEqual(count("base_made", first), made, "\(first.log)")
        try expectSound([first])
    }

    @Test
    func `A running cluster changes from tables to a directory and back, and old bases go`() async throws {
        let first = try node("a", small)
        try first.start()
        _ = try await ClusterNode.leader(of: [first])
        try fill(first, from: 0)
        try await waitForBases(1, first)
        try expect(lastBase()["place"] as? String == "database")
        // A server with the directory takes over, and uses what is in tables meanwhile.
        let second = try node("b", shared)
        try second.start()
        expect(second.log.contains("event=base_fetched"), "\(second.log)")
        expectEqual(first.stop(), 0)
        _ = try await ClusterNode.leader(of: [second])
        var written = 20
        for _ in 1...2 { try await fillUntilBase(second, from: &written) }
        try expect(lastBase()["place"] as? String == "directory")
        try await eventually("the tables are dropped") { try tables() == 0 }
        // Another one without the directory cannot start from there; it has its own state, and continues.
        try first.start()
        expectEqual(second.stop(), 0)
        _ = try await ClusterNode.leader(of: [first])
        try await fillUntilBase(first, from: &written)
        try expect(lastBase()["place"] as? String == "database")
        // What is left in the directory goes when a server that has it makes a base.
        try expect(!folders().isEmpty)
        try expectSound([first])
    }

    @Test
    func `What a base covers is dropped by the next leader if its maker could not`() async throws {
        let first = try node("a", small)
        try first.start()
        _ = try await ClusterNode.leader(of: [first])
        try fill(first, from: 0)
        try await waitForBases(1, first)
        // A dump of the database reads the table of a base.
        let dump = try PostgreSQLSession(address: database.address)
        var base = (number: 0, table: "")
        try await eventually("the table of the last base is read") {
            base = try lastTable(dump)
            try dump.run(SQLStatement(script: "BEGIN"))
            do {
                try dump.run(SQLStatement("SELECT count(*) FROM \(base.table)"))
                return true
            } catch let failure as SQLFailure where failure.isMissingTable {
                // Later ones have been made meanwhile.
                try dump.run(SQLStatement(script: "ROLLBACK"))
                return false
            }
        }
        let table = base.table
        var written = 20
        // The last two are kept.
        while count("base_made", first) < base.number + 2 {
            try fill(first, from: written, count: 10)
            written += 10
        }
        try await eventually("it is reported: \(first.log.suffix(2_000))") {
            first.log.contains("event=log_not_trimmed")
        }
        first.kill()
        dump.close()
        // It makes no base.
        let second = try node("a", [])
        try second.start()
        try await eventually("the table is dropped: \(second.log.suffix(2_000))") {
            second.log.contains("event=log_trimmed") && second.log.contains(table.replacing("hearth.", with: ""))
        }
        expectEqual(count("base_making", second), 0, "\(second.log.suffix(2_000))")
        try await expectDocuments(second, has: written)
        try expectSound([second])
    }

    @Test
    func `Leaders that are killed while they make bases leave nothing that stays, and lose nothing`() async throws {
        let nodes = [try node("a", shared), try node("b", shared)]
        for node in nodes { try node.start() }
        var written = 0
        for round in 0..<3 {
            let leader = try await ClusterNode.leader(of: nodes)
            let made = count("base_making", leader)
            try await fill(leader, from: &written, until: "a base is begun") {
                count("base_making", leader) > made
            }
            leader.kill()
            let other = try #require(nodes.first { $0 !== leader })
            _ = try await ClusterNode.leader(of: [other])
            // What a kill leaves in the middle of a file, whatever this one left.
            let remains = "\(bases)/main/\(String(repeating: "0", count: 15))\(round + 1)-00000000000000ab/runs"
            try FileManager.default.createDirectory(atPath: remains, withIntermediateDirectories: true)
            try Data([1]).write(to: URL(fileURLWithPath: remains + "/1.run"))
            try FileManager.default.removeItem(atPath: leader.data)
            try leader.start()
            try await expectDocuments(leader, has: written)
        }
        let leader = try await ClusterNode.leader(of: nodes)
        try await fillUntilBase(leader, from: &written)
        try await eventually("two are left, or three while one is made: \(leader.log.suffix(2_000))") {
            try folders().count <= 3 && !folders().contains { $0.hasSuffix("00000000000000ab") }
        }
        try expectSound(nodes)
    }

    @Test
    func `A signal ends a server that fills its directory from a base`() async throws {
        let first = try node("first", small)
        try first.start()
        try fill(first, from: 0)
        try await waitForBases(1, first)
        // It makes no later base, which would not be locked.
        expectEqual(first.stop(), 0, "\(first.log.suffix(2_000))")
        let session = try PostgreSQLSession(address: database.address)
        let tables = StoreTables(name: "main", advertised: "test:1")
        let base = try #require(BaseRow(try session.run(tables.lastBase)))
        // The new server waits while it reads the base.
        try session.run(SQLStatement(script: "BEGIN; LOCK TABLE \(base.location.text) IN ACCESS EXCLUSIVE MODE"))
        let second = HearthProcess([
            "serve", "--data", directory.path(of: "second"), "--port", "0", "--cluster", database.address,
            "--advertise", "127.0.0.1:1",
        ])
        try second.start()
        try await eventually("it reads the base: \(second.errors)") { second.errors.contains("event=base_fetching") }
        second.signal(SIGTERM)
        second.waitForEnd()
        expectEqual(second.status, -SIGTERM, "\(second.errors)")
        session.close()
        // The next start begins again.
        let third = try node("second", small)
        try third.start()
        try await expectDocuments(third, has: 20)
        try expectSound([third])
    }
}
