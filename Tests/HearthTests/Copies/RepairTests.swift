// check --repair, serve --repair-indexes and salvage as processes.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RepairTests {
    private let directory = TemporaryDirectory("repair")

    /// A data directory that is not in use.
    private func makeData() async throws -> String {
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let client = try TestClient(server)
        for number in 0..<40 { try await client.set("c/d\(number)", number: number) }
        await client.close()
        expectEqual(server.stop(), 0)
        return data
    }

    private func files(_ ending: String, in data: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: data + "/runs").filter { $0.hasSuffix(ending) }
            .map { data + "/runs/" + $0 }
    }

    private func flipBit(_ path: String, at offset: Int) throws {
        var bytes = try Data(contentsOf: URL(filePath: path))
        bytes[bytes.startIndex + offset] ^= 1
        try bytes.write(to: URL(filePath: path))
    }

    private func expectDocuments(_ data: String, _ arguments: [String] = []) async throws -> String {
        let server = try ServerProcess(data: data, arguments: arguments)
        let client = try TestClient(server)
        for number in 0..<40 { try await expectEqual(client.number("c/d\(number)"), number) }
        await client.close()
        expectEqual(server.stop(), 0)
        return server.process.errors
    }

    @Test
    func `What a salvage makes has the rules when it gets its name: a kill leaves no directory without them`()
        async throws
    {
        let data = try await makeData()
        try FileManager.default.createDirectory(atPath: data + "/rules", withIntermediateDirectories: true)
        // Copying it takes a moment.
        try Data(count: 64 << 20).write(to: URL(filePath: data + "/rules/long"))
        let target = directory.path(of: "salvaged")
        let salvage = HearthProcess(["salvage", data, target, "--quiet"])
        try salvage.start()
        while salvage.isRunning, !FileManager.default.fileExists(atPath: target) { usleep(100) }
        salvage.signal(9)
        salvage.waitForEnd()
        let attributes = try FileManager.default.attributesOfItem(atPath: target + "/rules/long")
        expect(attributes[.size] as? Int == 64 << 20)
    }

    @Test
    func `check --repair makes damaged and missing entries again, and leaves damaged documents alone`() async throws {
        let data = try await makeData()
        let entries = try #require(try files(".run", in: data).first)
        try flipBit(entries, at: 100)
        let found = try HearthBinary.run(["check", "--data", data])
        expect(found.status == 1 && found.errors.contains("hearth check --repair"), "\(found.errors)")
        let repaired = try HearthBinary.run(["check", "--repair", "--data", data])
        expect(repaired.status == 0 && repaired.output.contains("repaired"), "\(repaired.output)\(repaired.errors)")
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 0)
        for path in try files(".run", in: data) { try FileManager.default.removeItem(atPath: path) }
        try expectEqual(HearthBinary.run(["check", "--repair", "--data", data]).status, 0)
        _ = try await expectDocuments(data)
        for path in try files(".mdb", in: data) { try flipBit(path, at: 8_192 + 30) }
        let documents = try HearthBinary.run(["check", "--repair", "--data", data])
        expect(documents.status == 1 && !documents.output.contains("repaired"), "\(documents.output)")
    }

    @Test
    func `The entries of a replica are not made again: it would have commits that its source lacks`() async throws {
        let source = try ServerProcess(data: directory.path(of: "source"))
        let client = try TestClient(source)
        for number in 0..<40 { try await client.set("c/d\(number)", number: number) }
        let copy = directory.path(of: "copy")
        let flags = ["--follow", "127.0.0.1:\(source.port)"]
        var replica = try ServerProcess(data: copy, arguments: flags)
        expectEqual(replica.stop(), 0)
        let run = try #require(try files(".run", in: copy).first)
        let intact = try Data(contentsOf: URL(filePath: run))
        try flipBit(run, at: 100)
        let repaired = try HearthBinary.run(["check", "--repair", "--data", copy])
        expect(repaired.status == 1 && repaired.errors.contains("is a replica: remove it"), "\(repaired)")
        let served = try HearthBinary.run(["serve", "--data", copy, "--port", "0", "--repair-indexes"] + flags)
        expect(served.status == 2 && served.errors.contains("cannot be combined"), "\(served)")
        // Nothing was changed.
        try intact.write(to: URL(filePath: run))
        try await client.set("c/d0", number: 7)
        replica = try ServerProcess(data: copy, arguments: flags)
        let there = try TestClient(replica)
        try await eventually("the replica follows") { try await there.number("c/d0") == 7 }
        expect(!replica.process.errors.contains("replica_outdated"), "\(replica.process.errors)")
        await there.close()
        await client.close()
        expectEqual(replica.stop(), 0)
        expectEqual(source.stop(), 0)
    }

    @Test
    func `serve --repair-indexes names damaged entries in its log and serves`() async throws {
        let data = try await makeData()
        try await expect(expectDocuments(data, ["--repair-indexes"]).contains("indexes_intact"))
        try FileManager.default.removeItem(atPath: try #require(try files(".run", in: data).first))
        let log = try await expectDocuments(data, ["--repair-indexes"])
        expect(log.contains("indexes_dropped") && log.contains("damaged_files=1"), "\(log)")
        // What was not built before the stop is built by check or by the next server.
        _ = try await expectDocuments(data)
    }

    @Test
    func `salvage creates a directory of what is intact, and names what is not`() async throws {
        let data = try await makeData()
        let intact = try HearthBinary.run(["salvage", data, directory.path(of: "intact")])
        expect(intact.status == 0 && intact.output.contains("40 documents"), "\(intact.output)\(intact.errors)")
        expect(!intact.output.contains("unreadable"))
        for path in try files(".side", in: data) { try FileManager.default.removeItem(atPath: path) }
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 1)
        let target = directory.path(of: "salvaged")
        let salvaged = try HearthBinary.run(["salvage", data, target])
        expect(salvaged.status == 0 && salvaged.output.contains("unreadable: "), "\(salvaged.output)")
        _ = try await expectDocuments(target)
        try expectEqual(HearthBinary.run(["check", "--data", target]).status, 0)
        for words in [[data, target], [data, data], [directory.path(of: "nothing"), directory.path(of: "new")]] {
            try expectEqual(HearthBinary.run(["salvage"] + words).status, 1)
        }
    }

    @Test
    func `A salvage leaves alone what another one has made so far, and what is not of one`() async throws {
        let data = try await makeData()
        let target = directory.path(of: "salvaged")
        let place = target + ".salvaging"
        try FileManager.default.createDirectory(atPath: place + "/table", withIntermediateDirectories: true)
        let kept = place + "/table/kept"
        for path in [kept, place + "/LOCK"] { try Data().write(to: URL(filePath: path)) }
        let other = open(place + "/LOCK", O_RDWR)
        expectEqual(flock(other, LOCK_EX | LOCK_NB), 0)
        let second = try HearthBinary.run(["salvage", data, target])
        expect(second.status == 1 && second.errors.contains("another process uses"), "\(second.errors)")
        expect(FileManager.default.fileExists(atPath: kept) && !FileManager.default.fileExists(atPath: target))
        close(other)

        let own = place + "/own"
        try Data().write(to: URL(filePath: own))
        let refused = try HearthBinary.run(["salvage", data, target])
        expect(refused.status == 1 && refused.errors.contains(place), "\(refused.errors)")
        expect(FileManager.default.fileExists(atPath: own))
        try FileManager.default.removeItem(atPath: own)

        // What a killed one has left goes.
        let third = try HearthBinary.run(["salvage", data, target])
        expectEqual(third.status, 0, "\(third.errors)")
        expect(!FileManager.default.fileExists(atPath: place))
        _ = try await expectDocuments(target)
    }

    /// Needs root, to be another user.
    @Test
    func `A file that the user must not read is not taken for a damaged one`() async throws {
        let data = try await makeData()
        let (program, out) = (directory.path(of: "hearth"), directory.path(of: "out"))
        try FileManager.default.copyItem(atPath: HearthBinary.path, toPath: program)
        try FileManager.default.createDirectory(atPath: out, withIntermediateDirectories: true)
        let open = [directory.path, program, data, data + "/runs", data + "/log"]
        for path in open + (try FileManager.default.subpathsOfDirectory(atPath: data)).map({ "\(data)/\($0)" }) {
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: out)
        func salvage(_ name: String) throws -> HearthBinary.Outcome {
            try HearthBinary.run(
                ["--reuid=65534", "--regid=65534", "--clear-groups", program, "salvage", data, "\(out)/\(name)"],
                executable: "/usr/bin/setpriv")
        }
        try expectEqual(salvage("whole").status, 0)
        for path in [data + "/runs", try #require(files(".mdb", in: data).first), data + "/log"] {
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
            let outcome = try salvage("part")
            expect(outcome.status == 1 && outcome.errors.contains(path), "\(outcome)")
            expect(outcome.errors.contains("run the command as the user root"), "\(outcome)")
            try expectEqual(FileManager.default.contentsOfDirectory(atPath: out), ["whole"])
            try FileManager.default.setAttributes([.posixPermissions: mode as Any], ofItemAtPath: path)
        }
    }
}
