// check, backup and restore as processes.

import Foundation
import TestSupport
import Testing

@Suite("check, backup, restore", .timeLimit(.minutes(20)))
struct BackupTests {
    @Test("A backup taken while serving has what was acknowledged before, and restores")
    func whileServing() async throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let client = try TestClient(server)
        for number in 0..<10 { try await client.set("c/d\(number)", number: number) }
        let backup = try HearthBinary.run(["backup", "--data", data, directory.path(of: "copy")])
        #expect(backup.status == 0, "\(backup.errors)")
        try await client.set("c/late", number: 1)
        await client.close()
        #expect(server.stop() == 0)

        #expect(try HearthBinary.run(["check", "--data", directory.path(of: "copy")]).status == 0)
        let restored = directory.path(of: "restored")
        let restore = try HearthBinary.run(["restore", "--data", restored, directory.path(of: "copy")])
        #expect(restore.status == 0, "\(restore.errors)")
        let second = try ServerProcess(data: restored)
        let again = try TestClient(second)
        for number in 0..<10 { #expect(try await again.number("c/d\(number)") == number) }
        #expect(try await again.number("c/late") == nil)
        await again.close()
        #expect(second.stop() == 0)
    }

    @Test("A backup of a directory that is not served is the same")
    func withoutServer() async throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let client = try TestClient(server)
        try await client.set("c/x", number: 5)
        await client.close()
        #expect(server.stop() == 0)
        #expect(try HearthBinary.run(["backup", "--data", data, directory.path(of: "copy")]).status == 0)
        let second = try ServerProcess(data: directory.path(of: "copy"))
        let again = try TestClient(second)
        #expect(try await again.number("c/x") == 5)
        await again.close()
        #expect(second.stop() == 0)
    }

    @Test("A backup is refused where there is no data or the target is taken")
    func refusals() throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        let nothing = try HearthBinary.run(["backup", "--data", data, directory.path(of: "copy")])
        #expect(nothing.status == 1)
        #expect(nothing.errors.contains("not a Hearth data directory"))
        let server = try ServerProcess(data: data)
        let taken = try HearthBinary.run(["backup", "--data", data, data])
        #expect(taken.status == 1)
        #expect(server.process.isRunning)
        #expect(server.stop() == 0)
        #expect(try HearthBinary.run(["check", "--data", data]).status == 0)
    }

    @Test("A check reports that a directory is in use, is damaged, or does not exist")
    func check() async throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        #expect(try HearthBinary.run(["check", "--data", data]).status == 1)
        let server = try ServerProcess(data: data)
        #expect(try HearthBinary.run(["check", "--data", data]).status == 1)
        let client = try TestClient(server)
        try await client.set("c/x", number: 5)
        await client.close()
        #expect(server.stop() == 0)
        #expect(try HearthBinary.run(["check", "--data", data]).status == 0)
        // The blocks of a run are overwritten.
        let run = try #require(
            FileManager.default.enumerator(atPath: data)?.compactMap { $0 as? String }.first {
                $0.hasSuffix(".run")
            })
        let handle = try #require(FileHandle(forWritingAtPath: "\(data)/\(run)"))
        try handle.write(contentsOf: Data(repeating: 0xA5, count: 3 * 4_096))
        try handle.close()
        let damaged = try HearthBinary.run(["check", "--data", data])
        #expect(damaged.status == 1)
    }

    @Test("A restore leaves a directory alone that is not empty, and a damaged backup where it is")
    func restoreRefusals() throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        #expect(try HearthBinary.run(["backup", "--data", data, directory.path(of: "copy")]).status == 0)
        #expect(server.stop() == 0)
        let onto = try HearthBinary.run(["restore", "--data", data, directory.path(of: "copy")])
        #expect(onto.status == 1)
        #expect(onto.errors.contains("not an empty directory"))
        try Data("hearth-data 999999\n".utf8).write(to: URL(fileURLWithPath: directory.path(of: "copy/FORMAT")))
        let target = directory.path(of: "target")
        #expect(try HearthBinary.run(["restore", "--data", target, directory.path(of: "copy")]).status == 1)
        #expect(!FileManager.default.fileExists(atPath: target))
    }
}
