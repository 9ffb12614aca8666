// The base of a replica: what a source sends is written, and nothing else.

import EmbeddedEngine
import Foundation
import Storage
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)), .needsFiles)
struct BaseTests {
    @Test
    func `A base gives a directory with the documents and the history of the source`() async throws {
        let source = try StoreHarness()
        try await source.commit([.set("c/a", fields(1)), .set("c/b", fields(2))])
        let base = try StoreBase(of: source.store)
        // Not in the base.
        try await source.commit([.set("c/a", fields(3))])
        let directory = TemporaryDirectory("base")
        let receiver = try BaseReceiver(directory: directory.path(of: "data"))
        for part in base.parts {
            try receiver.begin(part.path)
            try base.read(part) { try receiver.append($0) }
        }
        expectEqual(receiver.byteCount, base.byteCount)
        try receiver.complete(source: "source:1") { _ in }
        try expectEqual(ReplicaFile.source(in: directory.path(of: "data")), "source:1")
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["data"])

        let replica = try StoreHarness(in: directory, clock: source.clock) { $0.leader = "source:1" }
        try expectEqual(replica.get("c/a")?.fields, fields(1))
        try expectEqual(replica.get("c/b")?.fields, fields(2))
        expectEqual(replica.store.timelineStart, source.store.timelineStart)
        try replica.finish()
        try source.finish()
    }

    @Test
    func `What belongs to the server or its operator stays when a base takes the place of its state`() async throws {
        let source = try StoreHarness()
        try await source.commit([.set("c/a", fields(1))])
        let base = try StoreBase(of: source.store)
        expect(!base.parts.contains { $0.path.hasPrefix("identity") })
        let directory = TemporaryDirectory("base-identity")
        let (data, file) = (directory.path(of: "data"), "identity/revocations.json")
        try FileManager.default.createDirectory(atPath: "\(data)/identity", withIntermediateDirectories: true)
        try Data("kept".utf8).write(to: URL(fileURLWithPath: "\(data)/\(file)"))
        try FileManager.default.createDirectory(atPath: "\(data)/lost+found", withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: "\(data)/runs", withIntermediateDirectories: true)
        for name in ["principals.json", "TIMELINE", "PLACES.new", "runs/1.run"] {
            try Data().write(to: URL(fileURLWithPath: "\(data)/\(name)"))
        }
        let receiver = try BaseReceiver(directory: data)
        for part in base.parts {
            try receiver.begin(part.path)
            try base.read(part) { try receiver.append($0) }
        }
        try receiver.complete(source: "source:1") { _ in }
        try expectEqual(String(contentsOfFile: "\(data)/\(file)", encoding: .utf8), "kept")
        for name in ["principals.json", "lost+found"] {
            expect(FileManager.default.fileExists(atPath: "\(data)/\(name)"), "\(name)")
        }
        for name in ["PLACES.new", "runs/1.run"] {
            expect(!FileManager.default.fileExists(atPath: "\(data)/\(name)"), "\(name)")
        }
        try source.finish()
    }

    @Test(arguments: [
        "../x", "runs/../../x", "/etc/x", "runs/", "runs/.hidden", "LOCK", "log/1.log", "runs/a/b", "", "runs/a b",
    ])
    func `A path that does not belong to a base is refused`(path: String) throws {
        let directory = TemporaryDirectory("base-path")
        let receiver = try BaseReceiver(directory: directory.path(of: "data"))
        #expect(throws: StorageError.self) { try receiver.begin(path) }
        #expect(throws: StorageError.self) { try receiver.append([1]) }
        #expect(throws: StorageError.self) { try receiver.complete(source: "source:1") { _ in } }
        expect(!FileManager.default.fileExists(atPath: directory.path(of: "data/FORMAT")))
    }

    /// Receives a base in a directory.
    private func receive(_ base: StoreBase, in data: String) throws {
        let receiver = try BaseReceiver(directory: data)
        for part in base.parts {
            try receiver.begin(part.path)
            try base.read(part) { try receiver.append($0) }
        }
        try receiver.complete(source: "source:1") { _ in }
    }

    @Test
    func `Nothing is written beside the directory of a source or of a replica, which may be mount points`()
        async throws
    {
        func names(_ directory: TemporaryDirectory) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: directory.path)
        }
        let source = try StoreHarness()
        try await source.commit([.set("c/a", fields(1))])
        do {
            let base = try StoreBase(of: source.store)
            try expectEqual(names(source.directory), ["data"])
            let directory = TemporaryDirectory("base-place")
            let receiver = try BaseReceiver(directory: directory.path(of: "data"))
            for part in base.parts {
                try receiver.begin(part.path)
                try base.read(part) { try receiver.append($0) }
                try expectEqual(names(directory), ["data"])
            }
            try receiver.complete(source: "source:1") { _ in }
            try expectEqual(names(directory), ["data"])
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: source.directory.path(of: "data"))
        expect(!left.contains { $0.hasPrefix("fork-") }, "\(left)")
        try source.finish()
    }

    @Test
    func `A base that a process has begun to put in its place is there after the next start`() async throws {
        let source = try StoreHarness()
        try await source.commit([.set("c/a", fields(1))])
        let base = try StoreBase(of: source.store)
        let files = FileManager.default
        // The folder that the base is in, and what is at its place already.
        let moments: [(folder: String, moved: Set<String>)] = [
            ("BASE", []), ("BASE.moving", []), ("BASE.moving", ["runs", "log"]), ("BASE.moving", ["FORMAT"]),
        ]
        for moment in moments {
            let directory = TemporaryDirectory("base-settled")
            let data = directory.path(of: "data")
            try receive(base, in: data)
            let folder = "\(data)/\(moment.folder)"
            let names = try files.contentsOfDirectory(atPath: data)
            try files.createDirectory(atPath: folder, withIntermediateDirectories: false)
            for name in names where !moment.moved.contains(name) && !moment.moved.contains("FORMAT") {
                try files.moveItem(atPath: "\(data)/\(name)", toPath: "\(folder)/\(name)")
            }
            if moment.folder == "BASE" {
                // The state of before, whole or in part.
                try files.createDirectory(atPath: "\(data)/runs", withIntermediateDirectories: false)
                for name in ["FORMAT", "runs/MANIFEST", "REPLICA"] {
                    try Data("old".utf8).write(to: URL(fileURLWithPath: "\(data)/\(name)"))
                }
            }
            // What was received in part.
            try files.createDirectory(atPath: "\(data)/BASE.new/runs", withIntermediateDirectories: true)
            try BasePlacing.settle(data)
            try expectEqual(files.contentsOfDirectory(atPath: data).sorted(), names.sorted(), "\(moment)")
            try expectEqual(ReplicaFile.source(in: data), "source:1", "\(moment)")
            let replica = try StoreHarness(in: directory, clock: source.clock) { $0.leader = "source:1" }
            try expectEqual(replica.get("c/a")?.fields, fields(1), "\(moment)")
            try replica.finish()
        }
        try BasePlacing.settle(TemporaryDirectory("base-none").path(of: "none"))
        try source.finish()
    }

    @Test
    func `What a command changes of the server while a base takes its place stays`() async throws {
        let source = try StoreHarness()
        let base = try StoreBase(of: source.store)
        let directory = TemporaryDirectory("base-command")
        func contents(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
        for hasOwn in [true, false] {
            let data = directory.path(of: "data-\(hasOwn)")
            func write(_ text: String, _ folder: String, _ name: String) throws {
                let place = "\(folder)/identity"
                try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
                try Data(text.utf8).write(to: URL(fileURLWithPath: "\(place)/\(name)"))
            }
            if hasOwn { try write("before", data, "revocations.json") }
            let receiver = try BaseReceiver(directory: data)
            for part in base.parts {
                try receiver.begin(part.path)
                try base.read(part) { try receiver.append($0) }
            }
            try receiver.complete(source: "source:1") { folder in
                try write("of the source", folder, "other.json")
                try write("after", data, "revocations.json")
            }
            expectEqual(contents("\(data)/identity/revocations.json"), "after", "\(hasOwn)")
            let placed = hasOwn ? "other.json" : "other.json.placed"
            expectEqual(contents("\(data)/identity/\(placed)"), "of the source", "\(hasOwn)")
            try expectEqual(ReplicaFile.source(in: data), "source:1")
        }
        try source.finish()
    }

    @Test
    func `A replica that is copied again has the number for which its source may have stepped down`() async throws {
        let source = try StoreHarness()
        let base = try StoreBase(of: source.store)
        let directory = TemporaryDirectory("base-successor")
        let data = directory.path(of: "data")
        try receive(base, in: data)
        let number = try ReplicaFile.successor(in: data)
        try receive(base, in: data)
        try expectEqual(ReplicaFile.source(in: data), "source:1")
        try expectEqual(ReplicaFile.successor(in: data), number)
        try source.finish()
    }

    @Test
    func `A base takes no place in a directory that a process uses`() throws {
        let directory = TemporaryDirectory("base-locked")
        let data = directory.path(of: "data")
        for folder in ["BASE", "BASE.new"] {
            try FileManager.default.createDirectory(atPath: "\(data)/\(folder)", withIntermediateDirectories: true)
        }
        for name in ["FORMAT", "BASE/FORMAT", "BASE.new/FORMAT"] {
            try Data(name.utf8).write(to: URL(fileURLWithPath: "\(data)/\(name)"))
        }
        func code(_ body: () throws -> Void) -> StorageError.Code? {
            do { try body() } catch { return (error as? StorageError)?.code }
            return nil
        }
        try EmbeddedEngine.whileUnused(data) { _ in
            expectEqual(code { try BasePlacing.settle(data) }, .locked)
            expectEqual(code { _ = try BaseReceiver(directory: data) }, .locked)
        }
        try expectEqual(String(contentsOfFile: "\(data)/FORMAT", encoding: .utf8), "FORMAT")
        expect(FileManager.default.fileExists(atPath: "\(data)/BASE.new/FORMAT"))
        try BasePlacing.settle(data)
        try expectEqual(String(contentsOfFile: "\(data)/FORMAT", encoding: .utf8), "BASE/FORMAT")
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: data).sorted(), ["FORMAT", "LOCK"])
        // While a base is received nobody else gets the directory.
        let receiver = try BaseReceiver(directory: data)
        expectEqual(code { _ = try BaseReceiver(directory: data) }, .locked)
        expect(FileManager.default.fileExists(atPath: receiver.partial))
    }

    @Test
    func `A lock alone does not count as a state of a data directory`() throws {
        let directory = TemporaryDirectory("base-lock")
        try EmbeddedEngine.whileUnused(directory.path) { _ in }
        try expect(!BasePlacing.hasState(directory.path))
        try Data().write(to: URL(fileURLWithPath: directory.path(of: "TIMELINE")))
        try expect(BasePlacing.hasState(directory.path))
    }
}
