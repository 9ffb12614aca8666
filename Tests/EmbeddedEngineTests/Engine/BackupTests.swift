// Copies made while serving.

import Dispatch
import EmbeddedEngine
import EngineTestSupport
import Foundation
import Storage
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct BackupTests {
    let directory = TemporaryDirectory()

    @Test
    func `A backup is a separate directory with everything up to a version, history included`() throws {
        let store = try Store(directory.path(of: "data"))
        let copy = directory.path(of: "copies/one")
        for version in 1...50 as ClosedRange<UInt64> {
            try store.commit(version, [.put("k\(version % 10)", "\(version)"), .delete("k\((version + 5) % 10)")])
            if version == 20 { try store.engine.checkpointNow() }
        }
        try store.engine.backup(to: copy)
        try store.commit(51, [.put("later", "51")])
        try expectClean(copy)
        let restored = try Store(copy)
        expectEqual(restored.replayed, [])
        expectEqual(restored.engine.publishedVersion.microseconds, 50)
        for version in 1...50 as ClosedRange<UInt64> {
            let expected = try store.scan(at: version)
            try expectEqual(restored.scan(at: version), expected)
        }
        // It is written to like any other.
        try restored.commit(60, [.put("new", "60")])
        try restored.engine.close()
        try expectClean(copy)
        #expect(throws: StorageError.self) { try store.engine.backup(to: copy) }
        try store.engine.close()
    }

    @Test
    func `A backup reports its progress, and one that is cancelled leaves nothing`() throws {
        let store = try Store(directory.path(of: "data"))
        for version in 1...3_000 as ClosedRange<UInt64> {
            try store.commit(version, [.put("key number \(version)", "value \(version)")])
        }
        let control = CopyControl()
        try store.engine.backup(to: directory.path(of: "one"), control)
        // What is in the block that is being written is not counted yet.
        expect(control.progress.total > 10_000)
        expect(control.progress.done > 0 && control.progress.done <= control.progress.total)
        control.cancel()
        #expect { try store.engine.backup(to: directory.path(of: "two"), control) } throws: {
            ($0 as? StorageError)?.code == .cancelled
        }
        expect(!FileManager.default.fileExists(atPath: directory.path(of: "two")))
        try expectClean(directory.path(of: "one"))
        try store.engine.close()
    }

    private func write(_ path: String, _ text: String) throws {
        try FileManager.default.createDirectory(
            atPath: URL(filePath: path).deletingLastPathComponent().path, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: URL(filePath: path))
    }

    @Test
    func `Backups and copies have the rules that lie in the directory, with their times`() throws {
        let (data, one, two) = (
            directory.path(of: "data"), directory.path(of: "one"), directory.path(of: "two")
        )
        let store = try Store(data)
        let time = Date(timeIntervalSince1970: 1_700_000_000.5)
        for (name, text) in [("000001.rules", "old"), ("000002.rules", ""), ("000003.rules.7.new", "unfinished")] {
            try write("\(data)/rules/\(name)", text)
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: "\(data)/rules/\(name)")
        }
        try FileManager.default.createDirectory(atPath: "\(data)/rules/folder", withIntermediateDirectories: true)
        try store.engine.backup(to: one)
        try store.engine.close()
        try DirectoryCopy.run(from: one, to: two)
        for copy in [one, two] {
            let names = try FileManager.default.contentsOfDirectory(atPath: "\(copy)/rules").sorted()
            expectEqual(names, ["000001.rules", "000002.rules"])
            let file = "\(copy)/rules/000001.rules"
            try expectEqual(String(contentsOfFile: file, encoding: .utf8), "old")
            let attributes = try FileManager.default.attributesOfItem(atPath: file)
            expect(attributes[.modificationDate] as? Date == time)
            expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }

    @Test
    func `Copies of one of several stores have the rules of their server`() throws {
        let (server, data) = (directory.path(of: "server"), directory.path(of: "server/STORES/b"))
        let store = try Store(data)
        try write("\(server)/rules/000002.rules", "common")
        // A base from which the store began may have had some.
        try write("\(data)/rules/000001.rules", "old")
        try store.engine.backup(to: directory.path(of: "backup"))
        _ = try store.engine.fork(to: directory.path(of: "fork"))
        try store.engine.close()
        try DirectoryCopy.run(from: "\(data)/", to: directory.path(of: "copy"))
        for copy in ["backup", "fork", "copy"] {
            let rules = directory.path(of: "\(copy)/rules")
            try expectEqual(FileManager.default.contentsOfDirectory(atPath: rules), ["000002.rules"], "\(copy)")
        }
    }

    @Test
    func `Rules that cannot be copied fail a backup and a copy, which leave nothing`() throws {
        let (data, copy) = (directory.path(of: "data"), directory.path(of: "copy"))
        let store = try Store(data)
        // Its files cannot be listed.
        try write("\(data)/rules", "no directory")
        #expect(throws: StorageError.self) { try store.engine.backup(to: copy) }
        expect(!FileManager.default.fileExists(atPath: copy))
        try store.engine.close()
        #expect(throws: StorageError.self) { try DirectoryCopy.run(from: data, to: copy) }
        expect(!FileManager.default.fileExists(atPath: copy))
    }

    @Test
    func `A backup begins its own history when it is opened for use, and keeps it`() throws {
        let (data, copy) = (directory.path(of: "data"), directory.path(of: "copy"))
        /// Opens a directory at a time, and returns where its history begins.
        func start(_ path: String, at now: UInt64, begins: Bool = true, backup: String? = nil) throws -> UInt64 {
            var options = EngineOptions.small
            options.clock = { now }
            options.beginsTimeline = begins
            let store = try Store(path, options)
            if let backup { try store.engine.backup(to: backup) }
            let start = store.engine.timelineStart.microseconds
            try store.engine.close()
            return start
        }
        try expectEqual(start(data, at: 100, backup: copy), 100)
        try expectEqual(start(data, at: 200), 100)
        try expectEqual(start(copy, at: 300, begins: false), 300)
        try expectEqual(start(copy, at: 400), 400)
        try expectEqual(start(copy, at: 500, begins: false), 400)
        try Data("4x".utf8).write(to: URL(fileURLWithPath: copy + "/TIMELINE"))
        #expect(throws: StorageError.self) { try start(copy, at: 600) }
    }

    @Test
    func `A backup made under writing is one consistent state`() throws {
        var options = EngineOptions.small
        options.memtableBytesMax = 40 << 10
        let store = try Store(directory.path(of: "data"), options)
        let keys = (0..<50).map { Bytes("key \($0)".utf8) }
        let isOver = Atomic<Bool>(false)
        let box = Box(store)
        let engine = store.engine
        let copies = (0..<3).map { directory.path(of: "copy\($0)") }
        try store.commit(1, keys.map { Change(key: $0, value: [1]) })
        DispatchQueue.concurrentPerform(iterations: 2) { index in
            do {
                if index == 0 {
                    defer { isOver.store(true, ordering: .releasing) }
                    for copy in copies { try engine.backup(to: copy) }
                } else {
                    var version: UInt64 = 1
                    while !isOver.load(ordering: .acquiring) {
                        version += 1
                        try box.store.commit(version, keys.map { Change(key: $0, value: Bytes("\(version)".utf8)) })
                    }
                }
            } catch {
                Issue.record("\(error)")
            }
        }
        try store.engine.close()
        for copy in copies {
            try expectClean(copy)
            let restored = try Store(copy)
            let version = restored.engine.publishedVersion.microseconds
            let entries = try restored.scan()
            expectEqual(entries.count, keys.count)
            expect(entries.allSatisfy { $0.version == version })
            try restored.engine.close()
        }
    }

    private final class Box: @unchecked Sendable {
        let store: Store
        init(_ store: Store) { self.store = store }
    }
}
