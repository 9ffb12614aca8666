// The archive as processes: serve --archive, archive, restore --from, and reads at an earlier time.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ArchiveCommandTests {
    private let directory = TemporaryDirectory("archive")
    private var data: String { directory.path(of: "data") }
    private var archive: String { directory.path(of: "archive") }

    private func serve(_ data: String) throws -> ServerProcess {
        try ServerProcess(data: data, arguments: ["--archive", archive, "--archive-interval", "100ms"])
    }

    private func run(_ arguments: [String], status: Int32 = 0) throws -> String {
        let outcome = try HearthBinary.run(arguments)
        expectEqual(outcome.status, status, "\(arguments): \(outcome.errors)")
        return outcome.output + outcome.errors
    }

    /// The time now, as the commands take it.
    private func now() throws -> String {
        let date = try HearthBinary.run(["-u", "+%Y-%m-%dT%H:%M:%S.%6NZ"], executable: "/bin/date")
        return date.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @Test
    func `The drill of docs/backup.md runs as it stands`() throws {
        let outcome = try PageScript.run("docs/backup.md", in: directory)
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        let lines = outcome.output.split(separator: "\n").map(String.init)
        // While serving, after the restore, and not in the last two lines: there is the backup, without the order.
        expectEqual(lines.count { $0 == #"{"__name__":"orders/1","total":10}"# }, 2, "\(outcome.output)")
        expect(lines.contains("archive: no problems"))
        expectEqual(lines.last, #"{"__name__":"orders/2","total":20}"#)
    }

    @Test
    func `An archive outlives kills of its server, and leads to states in parts and as a whole`() async throws {
        var server = try serve(data)
        var client = try TestClient(server)
        for number in 0..<10 { try await client.set("c/d\(number)", number: number) }
        try await client.set("e/x", number: 1)
        await client.close()
        server.kill()
        let before = try now()
        server = try serve(data)
        client = try TestClient(server)
        try await client.set("c/d3", number: 33)
        try expect(run(["get", "--address", "127.0.0.1:\(server.port)", "--at", before, "c/d3"]).contains("3}"))
        let exported = try run(
            ["export", "--address", "127.0.0.1:\(server.port)", "--collection", "c", "--at", before])
        expect(!exported.contains("33"))
        await client.close()
        expectEqual(server.stop(), 0)
        expect(server.process.errors.contains("event=archive_on_same_device"))
        try expect(run(["archive", "check", archive]).hasSuffix("no problems\n"))
        try expect(run(["archive", "list", archive]).contains("restores from"))

        let restored = directory.path(of: "restored")
        try expect(run(["restore", "--from", archive, "--to", restored, "--at", before]).contains("as of"))
        try expect(run(["get", "--data", restored, "c/d3"]).contains("3}"))
        try expect(!run(["get", "--data", restored, "c/d3"]).contains("33"))
        let part = directory.path(of: "part")
        _ = try run(["restore", "--from", archive, "--to", part, "--collection", "c"])
        try expect(run(["get", "--data", part, "c/d3"]).contains("33"))
        _ = try run(["get", "--data", part, "e/x"], status: 1)
        for path in [restored, part] { _ = try run(["check", "--data", path]) }

        // A restored directory has another identity.
        let refused = try HearthBinary.run(["serve", "--data", restored, "--archive", archive, "--port", "0"])
        expectEqual(refused.status, 1)
        expect(refused.errors.contains("of another store"))
    }

    @Test
    func `A last file that was cut short is named where its commits are missing`() async throws {
        for number in [1, 2] {
            let server = try serve(data)
            let client = try TestClient(server)
            try await client.set("c/x", number: number)
            await client.close()
            expectEqual(server.stop(), 0)
        }
        let last = try #require(try records().last)
        try expect(!run(["archive", "list", archive]).contains("not complete"))
        let bytes = try Data(contentsOf: URL(filePath: last))
        try bytes.dropLast(1).write(to: URL(filePath: last))
        let restored = directory.path(of: "restored")
        for words in [["list", archive], ["check", archive]] {
            let output = try run(["archive"] + words)
            expect(output.contains("note: \(last) is not complete"), "\(output)")
        }
        let outcome = try run(["restore", "--from", archive, "--to", restored])
        expect(outcome.contains("; \(last) is not complete"), "\(outcome)")
        try expect(run(["get", "--data", restored, "c/x"]).contains("1}"))
    }

    /// The paths of the archive's files of records.
    private func records() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: archive + "/records").filter { $0.hasSuffix(".records") }
            .sorted().map { "\(archive)/records/\($0)" }
    }

    @Test
    func `Damage and contradictions are named, and leave no directory`() async throws {
        // The second time there is a base, and a commit after it.
        for number in 1...2 {
            let server = try serve(data)
            let client = try TestClient(server)
            try await client.set("c/d", number: number)
            await client.close()
            expectEqual(server.stop(), 0)
        }
        let target = directory.path(of: "target")
        try expect(
            run(["restore", "--from", archive, "--to", target, "--version", "99999999999999999"], status: 1).contains(
                "no commits between"))
        try expect(run(["restore", "--data", target], status: 2).contains("--from"))
        _ = try run(["restore", "--from", archive, data, "--to", target], status: 2)
        _ = try run(["restore", data, "--to", target, "--version", "3"], status: 2)
        _ = try run(["restore", "--from", data, "--to", target, "--at", "2031-05-02T12:00:00Z"], status: 2)
        _ = try run(["archive", "list", data], status: 1)
        _ = try run(["archive", "burn", archive], status: 2)
        try expect(run(["archive", "prune", archive, "--retention", "0s"]).contains("removed"))
        let records = "\(archive)/records"
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: records).first)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: "\(records)/\(name)"))
        bytes[bytes.count - 1] ^= 1
        try bytes.write(to: URL(fileURLWithPath: "\(records)/\(name)"))
        try expect(run(["archive", "check", archive], status: 1).contains(name))
        try expect(run(["restore", "--from", archive, "--to", target], status: 1).contains("hearth archive check"))
        expect(!FileManager.default.fileExists(atPath: target))
    }

    @Test
    func `A fork of a directory on a read-only file system is a copy`() async throws {
        let disk = try TemporaryDisk(megabytes: 64)
        let source = disk.path(of: "data")
        let server = try ServerProcess(
            data: source, arguments: ["--disk-reserve", "0B", "--memtable", "1MiB", "--log-segment", "1MiB"])
        let client = try TestClient(server)
        try await client.set("c/d", number: 7)
        await client.close()
        server.kill()
        try disk.makeReadOnly()
        let fork = directory.path(of: "fork")
        try expect(run(["fork", source, fork]).contains("bytes were copied"))
        try expect(run(["get", "--data", fork, "c/d"]).contains("7}"))
        let refused = try HearthBinary.run(["serve", "--fork-of", source, "--port", "0"])
        expectEqual(refused.status, 1)
        expect(refused.errors.contains("Read-only file system"))
    }
}
