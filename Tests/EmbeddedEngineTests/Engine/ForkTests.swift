// Copies that share files of runs.

import EngineTestSupport
import Foundation
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct ForkTests {
    let directory = TemporaryDirectory()

    private func runs(_ path: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(path)/runs").filter {
            $0.hasSuffix(".run") || $0.hasSuffix(".mdb") || $0.hasSuffix(".side")
        }
    }

    private func inode(_ path: String) throws -> UInt64 {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64)
    }

    @Test
    func `A fork has everything with its history, shares the files, and copies nothing`() throws {
        let (data, fork) = (directory.path(of: "data"), directory.path(of: "fork"))
        let store = try Store(data)
        for version in 1...60 as ClosedRange<UInt64> {
            try store.commit(
                version,
                [
                    Change(key: [0x10] + Bytes("k\(version % 10)".utf8) + [0], value: Bytes("\(version)".utf8)),
                    .put("entry \(version)", "\(version)"),
                ])
            if version % 25 == 0 { try store.engine.checkpointNow() }
        }
        try expectEqual(store.engine.fork(to: fork), 0)
        let shared = try runs(fork)
        expect(shared.count >= 3)
        for name in shared { try expectEqual(inode("\(data)/runs/\(name)"), inode("\(fork)/runs/\(name)")) }
        try expectClean(fork)
        let copy = try Store(fork)
        for version in 1...60 as ClosedRange<UInt64> {
            let expected = try store.scan(at: version)
            try expectEqual(copy.scan(at: version), expected)
        }
        try copy.engine.close()
        try store.engine.close()
        #expect(throws: StorageError.self) { try Store(data).engine.fork(to: fork) }
    }

    /// Random commits to a tree of forks, each beside a model; merges and deletions of the directories in between.
    @Test(arguments: CaseShare.of(Array(1...8 as ClosedRange<UInt64>), 3))
    func `Forks of forks are independent of each other, whatever is merged and deleted`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var options = EngineOptions.small
        options.memtableBytesMax = 16 << 10
        options.runFileBytesMax = 16 << 10
        /// The directories that are there, with what each has.
        var contents: [String: [String: String]] = ["data": [:]]
        var version: UInt64 = 0
        for round in 0..<12 {
            let name = random.pick(contents.keys.sorted())
            let store = try Store(directory.path(of: name), options)
            for _ in 0..<random.below(60) {
                version += 1
                let (key, value) = ("k\(random.below(40))", String(repeating: "\(version) ", count: random.below(300)))
                try store.commit(version, [.put(key, value)])
                contents[name]![key] = value
            }
            if random.oneIn(3) { try store.engine.checkpointNow() }
            let fork = "fork\(round)"
            try expectEqual(store.engine.fork(to: directory.path(of: fork)), 0)
            contents[fork] = contents[name]
            version += 1
            try store.commit(version, [.put("after", fork)])
            contents[name]!["after"] = fork
            try store.engine.close()
            if contents.count > 3, random.oneIn(2) {
                let removed = random.pick(contents.keys.sorted())
                try FileManager.default.removeItem(atPath: directory.path(of: removed))
                contents[removed] = nil
            }
        }
        for (name, expected) in contents {
            try expectClean(directory.path(of: name))
            let store = try Store(directory.path(of: name), options)
            let found = try store.scan().map {
                (String(decoding: $0.key, as: UTF8.self), String(decoding: $0.value, as: UTF8.self))
            }
            expectEqual(Dictionary(uniqueKeysWithValues: found), expected, "\(name)")
            try store.engine.close()
        }
    }

    @Test
    func `On another file system the files are copied, and what cannot be completed leaves nothing`() throws {
        let disk = try TemporaryDisk(megabytes: 16)
        let store = try Store(directory.path(of: "data"))
        try store.commit(1, [.put("a", String(repeating: "x", count: 300_000))])
        let copied = try store.engine.fork(to: disk.path(of: "fork"))
        expect(copied > 300_000)
        try expectClean(disk.path(of: "fork"))
        try disk.fill()
        #expect(throws: StorageError.self) { try store.engine.fork(to: disk.path(of: "second")) }
        expect(!FileManager.default.fileExists(atPath: disk.path(of: "second")))
        try store.engine.close()
    }

    @Test
    func `A fork begins a new history`() throws {
        let (data, fork) = (directory.path(of: "data"), directory.path(of: "fork"))
        func start(_ path: String, at now: UInt64, _ body: (Store) throws -> Void = { _ in }) throws -> UInt64 {
            var options = EngineOptions.small
            options.clock = { now }
            let store = try Store(path, options)
            try body(store)
            defer { try? store.engine.close() }
            return store.engine.timelineStart.microseconds
        }
        try expectEqual(start(data, at: 100) { _ = try $0.engine.fork(to: fork) }, 100)
        try expectEqual(start(fork, at: 300), 300)
        try expectEqual(start(data, at: 400), 100)
    }

    @Test
    func `A temporary fork ends with its user, or is removed by the next`() throws {
        let data = directory.path(of: "data")
        let store = try Store(data)
        try store.commit(1, [.put("a", "1")])
        let first = try TemporaryFork(of: data)
        _ = try store.engine.fork(to: first.directory)
        let second = try TemporaryFork(of: data)
        _ = try store.engine.fork(to: second.directory)
        expect(first.directory != second.directory)
        try expectClean(first.directory)
        first.remove()
        expect(!FileManager.default.fileExists(atPath: first.directory))
        // What a process left that was killed; a name that only begins as one does; forks of others.
        let abandoned = directory.path(of: "data.fork-1-1")
        let others = ["data.fork-2031-05", "data.fork-test", "data.forks"]
        try FileManager.default.createDirectory(atPath: "\(abandoned)/data/runs", withIntermediateDirectories: true)
        for name in others { _ = try store.engine.fork(to: directory.path(of: name)) }
        let third = try TemporaryFork(of: data)
        expect(!FileManager.default.fileExists(atPath: abandoned))
        expect(FileManager.default.fileExists(atPath: second.directory))
        second.remove()
        third.remove()
        try store.engine.close()
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(), ["data"] + others)
        for name in others { try expectClean(directory.path(of: name)) }
    }

    @Test
    func `A temporary fork within its source needs no directory beside it; another fork there is refused`() throws {
        let data = directory.path(of: "data")
        let store = try Store(data)
        try store.commit(1, [.put("a", "1")])
        let abandoned = "\(data)/fork-1-1"
        try FileManager.default.createDirectory(atPath: "\(abandoned)/data/runs", withIntermediateDirectories: true)
        let fork = try TemporaryFork(within: data)
        _ = try store.engine.fork(to: fork.directory)
        try expectClean(fork.directory)
        expect(!FileManager.default.fileExists(atPath: abandoned))
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["data"])
        for name in ["copy", "fork-copy", "fork-1-1", "fork-1-1/data/copy"] {
            #expect(throws: StorageError.self) { try store.engine.fork(to: "\(data)/\(name)") }
        }
        fork.remove()
        expect(!FileManager.default.fileExists(atPath: fork.directory))
        try store.engine.close()
    }
}
