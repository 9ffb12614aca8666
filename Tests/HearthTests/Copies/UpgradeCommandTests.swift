// `hearth upgrade`, and how the other commands meet a directory of another format.

import Foundation
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine
@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct UpgradeCommandTests {
    private let directory = TemporaryDirectory("upgrade")
    private var data: String { directory.path(of: "data") }

    private func makeDirectory() throws {
        try expectEqual(ServerProcess(data: data).stop(), 0)
    }

    private func setFormat(_ line: String) throws {
        try Data("\(line)\n".utf8).write(to: URL(fileURLWithPath: "\(data)/FORMAT"))
    }

    private func files() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: directory.path).sorted()
    }

    @Test
    func `A directory of the present format is left as it is`() throws {
        try makeDirectory()
        let before = try files()
        for flags in [["--dry-run"], [], ["--quiet"]] {
            let outcome = try HearthBinary.run(["upgrade", data] + flags)
            expectEqual(outcome.status, 0)
            expectEqual(outcome.output, "\(data) has format 1, which this version uses.\n")
        }
        try expectEqual(
            HearthBinary.run(["upgrade", data, "--confirm"]).output, "\(data) has no files of an older format\n")
        let back = try HearthBinary.run(["upgrade", data, "--back", "--yes"])
        expect(back.status == 1 && back.errors.contains("there is no way back"), "\(back.errors)")
        let unasked = try HearthBinary.run(["upgrade", data, "--back"])
        expect(unasked.status == 1 && unasked.errors.contains("confirm with --yes"), "\(unasked.errors)")
        try expectEqual(HearthBinary.run(["upgrade", data, "--back", "--confirm"]).status, 2)
        try expectEqual(files(), before)
        let server = try ServerProcess(data: data, arguments: ["--upgrade"])
        let used = try HearthBinary.run(["upgrade", data])
        expect(used.status == 1 && used.errors.contains("another process uses this data directory"), "\(used.errors)")
        expectEqual(server.stop(), 0)
        expect(!server.process.errors.contains("event=upgrad"))
    }

    @Test(arguments: [
        ("hearth store, format 2", "which a newer version has written"),
        ("hearth store, changing from format 1 to 2", "was interrupted"),
        ("hearth key-value store, format 5", "export the documents with the version that wrote it"),
        ("something else", "is unknown to this version"),
    ])
    func `Every command refuses a directory of another format with what to do, and changes nothing`(
        line: String, words: String
    ) throws {
        try makeDirectory()
        try setFormat(line)
        let before = try files()
        let (other, rules) = (directory.path(of: "other"), directory.path(of: "rules"))
        for arguments in [
            ["serve", "--data", data, "--port", "0"], ["serve", "--data", data, "--port", "0", "--upgrade"],
            ["serve", "--data", data, "--port", "0", "--repair-indexes"], ["upgrade", data], ["check", "--data", data],
            ["get", "a/b", "--data", data], ["query", "a", "--data", data], ["fork", data, other],
            ["restore", "--data", other, data], ["indexes", "list", "--data", data],
        ] + (line == "something else" ? [] : [["salvage", data, other]]) {
            let outcome = try HearthBinary.run(arguments)
            expect(outcome.status == 1 && outcome.errors.contains(words), "\(arguments): \(outcome.errors)")
        }
        try expectEqual(files(), before, "\(rules)")
    }

    @Test
    func `No command that reads makes a directory`() throws {
        for arguments in [
            ["upgrade", data], ["check", "--data", data], ["get", "a/b", "--data", data],
            ["query", "a", "--data", data], ["ls", "--data", data], ["fork", data, directory.path(of: "other")],
            ["restore", "--data", directory.path(of: "other"), data], ["salvage", data, directory.path(of: "other")],
            ["indexes", "list", "--data", data], ["backup", "--data", data, directory.path(of: "other")],
            ["rules", "list", "--data", data], ["health", "--data", data],
        ] {
            try expect(HearthBinary.run(arguments).status != 0, "\(arguments)")
        }
        try expectEqual(files(), [])
    }

    @Test
    func `Reports say what is kept, and what returns to it`() {
        var plan = DirectoryUpgrade.Plan(from: 1, to: 2, bytesNeeded: 10, bytesFree: 99)
        expectEqual(
            UpgradeCommand.describe(plan, of: "d"),
            "d would be upgraded from format 1 to 2; at most 10 bytes would be written, and 99 are free")
        expectEqual(
            UpgradeCommand.describe(done: plan, of: "d"),
            "d was upgraded from format 1 to 2. The files of format 1 are kept: --confirm removes them, --back "
                + "returns to them")
        plan = DirectoryUpgrade.Plan(from: 2, to: 1, isInterrupted: true)
        expect(UpgradeCommand.describe(plan, of: "d").contains("was interrupted and would be completed"))
        expect(UpgradeCommand.describe(done: plan, of: "d").hasPrefix("d has format 1 again"))
        expect(UpgradeCommand.describe(DirectoryUpgrade.Plan(from: 2, to: 2, kept: 1), of: "d").contains("--back"))
    }
}
