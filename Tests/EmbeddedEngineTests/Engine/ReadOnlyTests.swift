// A check, and an engine that only reads: not one change of a file, so that a read-only file system will do.

import Basics
import EngineTestSupport
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine
@testable import FileSystem

/// Refuses each change of the files of a directory, as a read-only file system does, and counts them.
private final class ReadOnlyDisk: Sendable {
    private let changes = Monitor<[String]>([])
    private let watch: DiskWatch

    init(_ directory: String) {
        let changes = changes
        watch = DiskWatch.begin(directory) { change, call in
            switch change {
            case .open(_, writes: false, creates: false, truncates: false), .close: return call()
            default:
                changes.withLock { $0.append("\(change)") }
                return -1
            }
        }
    }

    /// What was tried.
    func end() -> [String] {
        watch.end()
        return changes.withLock { $0 }
    }
}

@Suite(.timeLimit(.minutes(20)))
struct ReadOnlyTests {
    let directory = TemporaryDirectory()

    /// A directory as a kill leaves it: runs, a log, and files that nothing names.
    private func makeKilled() throws -> String {
        let live = directory.path(of: "live")
        let store = try Store(live)
        for version in 1...6 as ClosedRange<UInt64> {
            try store.commit(version, [.put("key \(version)", "value \(version)")])
            if version % 2 == 1 { try store.engine.checkpointNow() }
        }
        let killed = directory.path(of: "killed")
        Files.copyTree(live, to: killed)
        try store.engine.close()
        Files.write([1], to: killed + "/runs/00000000000000ff.run")
        Files.write([1], to: killed + "/runs/MANIFEST.new")
        Files.write([1], to: killed + "/log/9.prepare")
        return killed
    }

    @Test(arguments: [true, false])
    func `A check changes nothing`(hasLockFile: Bool) throws {
        let path = try makeKilled()
        if !hasLockFile { Files.remove(path + "/LOCK") }
        let disk = ReadOnlyDisk(path)
        try expectClean(path)
        expectEqual(disk.end(), [])
        expectEqual(Files.names(in: path).contains("LOCK"), hasLockFile)
    }

    @Test
    func `An engine that only reads shows everything, keeps commits in memory, and changes nothing`() throws {
        let path = try makeKilled()
        let disk = ReadOnlyDisk(path)
        var options = EngineOptions.small
        options.isReadOnly = true
        do {
            let store = try Store(path, options)
            expectEqual(store.replayed, [6])
            try expectEqual(store.scan().map(\.version), [1, 2, 3, 4, 5, 6])
            try expectEqual(store.scan(at: 2).count, 2)
            try store.commit(7, [.put("more", "1")])
            try expectEqual(store.get("more"), "1")
            var refusal: StorageError?
            var version: UInt64 = 8
            while refusal == nil, version < 1_000 {
                do throws(StorageError) {
                    try store.commit(version, [Change(key: [9], value: Bytes(repeating: 1, count: 60 << 10))])
                } catch {
                    refusal = error
                }
                version += 1
            }
            expectEqual(refusal?.code, .refused)
            #expect(throws: StorageError.self) { try store.engine.checkpointNow() }
            #expect(throws: StorageError.self) { try store.engine.sweepHistoryNow() }
            let second = #expect(throws: StorageError.self) { try Store(path, options) }
            expectEqual(second?.code, .locked)
            try store.engine.close()
        }
        expectEqual(disk.end(), [])
        // Nothing was lost by looking.
        let store = try Store(path)
        expectEqual(store.replayed, [6])
        try store.engine.close()
        try expectClean(path)
    }

    @Test
    func `A damaged TIMELINE is refused, found by the check, and says that it may be deleted`() throws {
        try Store(directory.path).engine.close()
        let path = directory.path(of: "TIMELINE")
        let line = Files.read(path)
        for place in line.indices {
            var damaged = line
            damaged[place] ^= 1
            Files.write(damaged, to: path)
            let error = #expect(throws: StorageError.self) { try Store(directory.path) }
            expect(error?.code == .corrupt && error?.file == path)
            expectEqual(error?.description.contains("delete this file"), true)
            let problems = try EngineCheck.run(directory: directory.path).problems
            expect(problems.count == 1 && problems[0].contains("delete this file"))
        }
        Files.write(Bytes(line.dropLast()), to: path)
        #expect(throws: StorageError.self) { try Store(directory.path) }
        Files.remove(path)
        try Store(directory.path).engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `Damage says what can be done about it, other errors do not`() {
        for file in ["/d/runs/MANIFEST", "/d/runs/0000000000000001.run", "/d/log/0000000000000001.log", nil] {
            let error = StorageError(.corrupt, "why", file: file, offset: 7)
            expect(error.description.hasSuffix("restore a backup; `hearth check` lists all damage"))
            expect(error.descriptionOfPlace.hasPrefix("why") && !error.descriptionOfPlace.contains("restore"))
            expect(error.asFinalRefusal.message.contains("restore a backup"))
        }
        expectEqual(StorageError(.corrupt, "why", remedy: "delete this file").description, "why: delete this file")
        expectNil(StorageError(.inputOutput, "why", file: "/d/TIMELINE").remedy)
    }
}
