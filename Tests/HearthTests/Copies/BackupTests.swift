// check, backup and restore as processes.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct BackupTests {
    @Test
    func `A backup taken while serving has what was acknowledged before, and restores`() async throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let client = try TestClient(server)
        for number in 0..<10 { try await client.set("c/d\(number)", number: number) }
        let backup = try HearthBinary.run(["backup", "--data", data, directory.path(of: "copy")])
        expectEqual(backup.status, 0, "\(backup.errors)")
        try await client.set("c/late", number: 1)
        await client.close()
        expectEqual(server.stop(), 0)

        try expectEqual(HearthBinary.run(["check", "--data", directory.path(of: "copy")]).status, 0)
        let restored = directory.path(of: "restored")
        let restore = try HearthBinary.run(["restore", "--data", restored, directory.path(of: "copy")])
        expectEqual(restore.status, 0, "\(restore.errors)")
        let second = try ServerProcess(data: restored)
        let again = try TestClient(second)
        for number in 0..<10 { try await expectEqual(again.number("c/d\(number)"), number) }
        try await expectNil(again.number("c/late"))
        await again.close()
        expectEqual(second.stop(), 0)
    }

    /// Mounting needs root.
    @Test
    func `A copy that the server writes where it alone sees it is a failure`() throws {
        let directory = TemporaryDirectory("private")
        let (data, hidden) = (directory.path(of: "data"), directory.path(of: "tmp"))
        try FileManager.default.createDirectory(atPath: hidden, withIntermediateDirectories: false)
        let script = "mount -t tmpfs hearth-test \"$1\" && exec \"$0\" serve --data \"$2\" --port 0"
        let server = HearthProcess(
            ["--mount", "sh", "-c", script, HearthBinary.path, hidden, data], executable: "/usr/bin/unshare")
        try server.start()
        expect(server.waitForLine(prefix: "hearth ready on ") != nil, "\(server.errors)")
        for words in [["backup", "--data", data, "\(hidden)/a"], ["fork", data, "\(hidden)/b"]] {
            let outcome = try HearthBinary.run(words)
            expect(outcome.status == 1 && outcome.output.isEmpty, "\(outcome)")
            expect(outcome.errors.contains("PrivateTmp"), "\(outcome)")
        }
        try expectEqual(HearthBinary.run(["backup", "--data", data, directory.path(of: "copy")]).status, 0)
        server.signal(SIGTERM)
        server.waitForEnd()
        expectEqual(server.status, 0)
    }

    @Test
    func `A backup of a directory that is not served is the same`() async throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let client = try TestClient(server)
        try await client.set("c/x", number: 5)
        await client.close()
        expectEqual(server.stop(), 0)
        try expectEqual(HearthBinary.run(["backup", "--data", data, directory.path(of: "copy")]).status, 0)
        let second = try ServerProcess(data: directory.path(of: "copy"))
        let again = try TestClient(second)
        try await expectEqual(again.number("c/x"), 5)
        await again.close()
        expectEqual(second.stop(), 0)
    }

    @Test
    func `A backup is refused where there is no data or the target is taken`() throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        let nothing = try HearthBinary.run(["backup", "--data", data, directory.path(of: "copy")])
        expectEqual(nothing.status, 1)
        expect(nothing.errors.contains("not a Hearth data directory"))
        let server = try ServerProcess(data: data)
        let taken = try HearthBinary.run(["backup", "--data", data, data])
        expectEqual(taken.status, 1)
        expect(server.process.isRunning)
        expectEqual(server.stop(), 0)
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 0)
    }

    @Test
    func `A target that leads nowhere, and what a killed backup has left, are named`() throws {
        let directory = TemporaryDirectory("backup")
        let (data, link) = (directory.path(of: "data"), directory.path(of: "link"))
        try expectEqual(ServerProcess(data: data).stop(), 0)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: directory.path(of: "none"))
        for words in [["backup", "--data", data, link], ["restore", "--data", link, data], ["salvage", data, link]] {
            let outcome = try HearthBinary.run(words + ["--quiet"])
            expect(outcome.status == 1 && outcome.errors.contains("exists"), "\(words): \(outcome.errors)")
            try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(), ["data", "link"])
        }

        // FORMAT comes last.
        let target = directory.path(of: "copy")
        try expectEqual(HearthBinary.run(["backup", "--data", data, target]).status, 0)
        try FileManager.default.removeItem(atPath: target + "/FORMAT")
        let second = try HearthBinary.run(["backup", "--data", data, target])
        expect(second.status == 1 && second.errors.contains("has left of a backup, remove it"), "\(second.errors)")
        let lock = open(target + "/LOCK", O_RDWR)
        expectEqual(flock(lock, LOCK_EX | LOCK_NB), 0)
        let beside = try HearthBinary.run(["backup", "--data", data, target])
        expect(beside.status == 1 && beside.errors.contains("another process uses"), "\(beside.errors)")
        close(lock)
    }

    @Test
    func `A check reports that a directory is in use, is damaged, or does not exist`() async throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 1)
        let server = try ServerProcess(data: data)
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 1)
        let client = try TestClient(server)
        try await client.set("c/x", number: 5)
        await client.close()
        expectEqual(server.stop(), 0)
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 0)
        // The blocks of a run are overwritten.
        let run = try #require(
            FileManager.default.enumerator(atPath: data)?.compactMap { $0 as? String }.first {
                $0.hasSuffix(".run")
            })
        let handle = try #require(FileHandle(forWritingAtPath: "\(data)/\(run)"))
        try handle.write(contentsOf: Data(repeating: 0xA5, count: 3 * 4_096))
        try handle.close()
        let damaged = try HearthBinary.run(["check", "--data", data])
        expectEqual(damaged.status, 1)
    }

    /// All files below a directory with their sizes.
    private func files(_ path: String) -> [String: Int] {
        var sizes: [String: Int] = [:]
        for case let name as String in FileManager.default.enumerator(atPath: path) ?? .init() {
            sizes[name] = (try? FileManager.default.attributesOfItem(atPath: "\(path)/\(name)"))?[.size] as? Int
        }
        return sizes
    }

    /// A backup of a database with one document, in `copy` of the directory; the original is in `data`.
    private func makeBackup(in directory: TemporaryDirectory) async throws {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(server)
        try await client.set("c/x", number: 5)
        await client.close()
        let copy = directory.path(of: "copy")
        try expectEqual(HearthBinary.run(["backup", "--data", directory.path(of: "data"), copy]).status, 0)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Neither a restore nor a backup copies a directory into itself, by whatever path`() async throws {
        let directory = TemporaryDirectory("backup")
        try await makeBackup(in: directory)
        let copy = directory.path(of: "copy")
        let link = directory.path(of: "link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: copy)
        try FileManager.default.createDirectory(atPath: directory.path(of: "upper"), withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(
            atPath: directory.path(of: "upper/inner"), withDestinationPath: "\(copy)/runs")
        let before = files(directory.path)
        let targets = [
            copy, "\(copy)/", "\(copy)/sub", "\(copy)/deep/sub", "\(copy)/runs/sub", "\(copy)/../copy/sub", link,
            "\(link)/sub", directory.path(of: "upper/inner/sub"), directory.path,
        ]
        for target in targets {
            for words in [
                ["restore", "--data", target, copy], ["restore", "--data", target, link],
                ["backup", "--data", copy, target], ["backup", "--data", link, target],
            ] {
                let outcome = try HearthBinary.run(words)
                expectEqual(outcome.status, 1, "\(words)")
                expectEqual(files(directory.path), before, "\(words): \(outcome.errors)")
            }
        }
        // The name under which a restore writes is its own.
        let named = directory.path(of: "new/RESTORE.new")
        try FileManager.default.createDirectory(atPath: directory.path(of: "new"), withIntermediateDirectories: false)
        try FileManager.default.copyItem(atPath: copy, toPath: named)
        try expectEqual(HearthBinary.run(["restore", "--data", directory.path(of: "new"), named]).status, 1)
        expectEqual(files(named), files(copy))
        // Served, too.
        let server = try ServerProcess(data: directory.path(of: "data"))
        for target in ["data", "data/sub", "data/runs/sub", "data/../data/sub"] {
            let backup = try HearthBinary.run([
                "backup", "--data", directory.path(of: "data"), directory.path(of: target),
            ])
            expect(backup.status == 1 && backup.errors.contains("two separate directories"), "\(backup.errors)")
        }
        expect(!FileManager.default.fileExists(atPath: directory.path(of: "data/sub")))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A directory in use is not restored from`() throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let outcome = try HearthBinary.run(["restore", "--data", directory.path(of: "new"), data])
        expectEqual(outcome.status, 1)
        expect(outcome.errors.contains("\(data) is in use by another process"), "\(outcome.errors)")
        expect(outcome.errors.contains("hearth backup"))
        expectEqual(server.stop(), 0)
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["data"])
        // What an interrupted restore has left is in nobody's way.
        let left = directory.path(of: "new/RESTORE.new")
        try FileManager.default.createDirectory(atPath: "\(left)/runs", withIntermediateDirectories: true)
        let restored = try HearthBinary.run(["restore", "--data", directory.path(of: "new") + "/", data])
        expectEqual(restored.status, 0, "\(restored.errors)")
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(), ["data", "new"])
        try expectEqual(HearthBinary.run(["check", "--data", directory.path(of: "new")]).status, 0)
    }

    @Test
    func `A restore or a backup that fails leaves nothing`() async throws {
        let directory = TemporaryDirectory("backup")
        try await makeBackup(in: directory)
        let (data, copy, new) = (directory.path(of: "data"), directory.path(of: "copy"), directory.path(of: "new"))
        /// Runs a command that may write files of a kibibyte at most.
        func runLimited(_ words: [String]) throws -> HearthProcess {
            let process = HearthProcess(
                ["-c", #"ulimit -f 1; exec "$0" "$@""#, HearthBinary.path] + words, executable: "/bin/bash")
            try process.start()
            process.waitForEnd()
            return process
        }
        let restore = try runLimited(["restore", "--data", new, copy])
        expect(restore.status == 1 && restore.errors.contains("File too large"), "\(restore.errors)")
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(), ["copy", "data"])
        let backup = try runLimited(["backup", "--data", data, new])
        expectEqual(backup.status, 1, "\(backup.errors)")
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(), ["copy", "data"])
        let run = try #require(files(copy).keys.first { $0.hasSuffix(".run") })
        let handle = try #require(FileHandle(forWritingAtPath: "\(copy)/\(run)"))
        try handle.write(contentsOf: Data(repeating: 0xA5, count: 4_096))
        try handle.close()
        let damaged = try HearthBinary.run(["restore", "--data", new, copy])
        expect(damaged.status == 1 && damaged.errors.contains("\(copy) is damaged"), "\(damaged.errors)")
        expect(!damaged.errors.contains("RESTORE"), "\(damaged.errors)")
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(), ["copy", "data"])
    }

    @Test
    func `A restore into a mount point that was killed is noticed, and made again`() async throws {
        let directory = TemporaryDirectory("backup")
        try await makeBackup(in: directory)
        let copy = directory.path(of: "copy")
        let disk = try TemporaryDisk(megabytes: 64)
        // As a file system has it.
        try FileManager.default.createDirectory(atPath: disk.path(of: "lost+found"), withIntermediateDirectories: false)
        // What is left when the last file, FORMAT, has not been moved.
        for name in ["RESTORE.new", "runs", "log", "rules"] {
            try FileManager.default.createDirectory(atPath: disk.path(of: name), withIntermediateDirectories: false)
        }
        for name in ["runs/old", "RESTORE.new/FORMAT", "LOCK"] {
            try Data("x".utf8).write(to: URL(fileURLWithPath: disk.path(of: name)))
        }
        let served = try HearthBinary.run(["serve", "--data", disk.path, "--port", "0"])
        expect(served.status == 1 && served.errors.contains("hearth restore"), "\(served)")
        let restored = try HearthBinary.run(["restore", "--data", disk.path, copy])
        expectEqual(restored.status, 0, "\(restored)")
        let names = Set(try FileManager.default.contentsOfDirectory(atPath: disk.path))
        expect(names.isSuperset(of: ["FORMAT", "runs", "log", "lost+found"]) && !names.contains("RESTORE.new"))
        expect(!FileManager.default.fileExists(atPath: disk.path(of: "runs/old")))
        try expectEqual(HearthBinary.run(["check", "--data", disk.path]).status, 0)
        // What it has now stays.
        let again = try HearthBinary.run(["restore", "--data", disk.path, copy])
        expect(again.status == 1 && again.errors.contains("not an empty directory"), "\(again)")
        let server = try ServerProcess(data: disk.path)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A restore leaves a directory alone that is not empty, and a damaged backup where it is`() throws {
        let directory = TemporaryDirectory("backup")
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        try expectEqual(HearthBinary.run(["backup", "--data", data, directory.path(of: "copy")]).status, 0)
        expectEqual(server.stop(), 0)
        let onto = try HearthBinary.run(["restore", "--data", data, directory.path(of: "copy")])
        expectEqual(onto.status, 1)
        expect(onto.errors.contains("not an empty directory"))
        try Data("hearth-data 999999\n".utf8).write(to: URL(fileURLWithPath: directory.path(of: "copy/FORMAT")))
        let target = directory.path(of: "target")
        try expectEqual(HearthBinary.run(["restore", "--data", target, directory.path(of: "copy")]).status, 1)
        expect(!FileManager.default.fileExists(atPath: target))
    }
}
