// Files of commands that take their place when they are complete, and what an interruption leaves of them.

import Basics
import DocumentModel
import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import hearth

@Suite(.timeLimit(.minutes(5)))
struct ReplacingFileTests {
    private let directory = TemporaryDirectory("replacing")
    private var path: String { directory.path(of: "export") }

    private func names() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: directory.path))
    }

    private func write(_ text: String, _ name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: directory.path(of: name)))
    }

    @Test
    func `What an interrupted process has left is removed, and nothing else`() throws {
        let others: Set = ["export.new", "export.x.new", "export.7.old", "export.1.2.new", "exports.7.new", "a.7.new"]
        for name in others { try write("mine", name) }
        // The number is that of this process, as in a container.
        for number in ["1", "4194303", String(getpid())] { try write("left", "export.\(number).new") }
        ReplacingFile.removeAbandoned(of: path)
        try expectEqual(names(), others)
        let file = try ReplacingFile(path)
        try file.write(Array("whole".utf8))
        ReplacingFile.removeAbandoned(of: path)
        try expectEqual(names(), others.union(["export.\(getpid()).new"]))
        try file.finish()
        try expectEqual(names(), others.union(["export"]))
        try expectEqual(String(contentsOfFile: path, encoding: .utf8), "whole")
    }

    @Test
    func `A file that an earlier process of the same number has left does not have the place written in`() throws {
        try write("before", "export")
        try write("left", "export.\(getpid()).new")
        let file = try ReplacingFile(path)
        try file.write(Array("part".utf8))
        try expectEqual(String(contentsOfFile: path, encoding: .utf8), "before")
        try file.finish()
        try expectEqual(String(contentsOfFile: path, encoding: .utf8), "part")
        try expectEqual(names(), ["export"])
    }

    @Test(arguments: [ReplacingFile.Durability.bytes, .name])
    func `The bytes are durable before the file takes its place`(_ durability: ReplacingFile.Durability) throws {
        let changes = Monitor<[String]>([])
        let watch = DiskWatch.begin(directory.path) { change, call in
            switch change {
            case .sync: changes.update { $0.append("sync") }
            case .rename: changes.update { $0.append("rename") }
            default: break
            }
            return call()
        }
        defer { watch.end() }
        try ReplacingFile.replace(path, with: Array("x".utf8), durability)
        let expected = durability == .bytes ? ["sync", "rename"] : ["sync", "rename", "sync"]
        expectEqual(changes.withLock { $0 }, expected)
        let state = MigrationState(
            source: "a", target: "b", readTime: nil,
            listenFrom: TimestampValue(seconds: 0, nanoseconds: 0))
        changes.update { $0 = [] }
        try state.write(to: directory.path(of: "state"))
        expectEqual(changes.withLock { $0 }, ["sync", "rename"])
    }
}
