// Opening, closing, limits: what is refused, and with which code.

import EngineTestSupport
import Glibc
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct RefusalTests {
    let directory = TemporaryDirectory()

    private func code(_ body: () throws -> Void) -> StorageError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? StorageError)?.code
        }
    }

    @Test
    func `A directory is open once at a time, in one process or several`() throws {
        let store = try Store(directory.path)
        expectEqual(code { _ = try Store(directory.path) }, .locked)
        expectEqual(code { _ = try EngineCheck.run(directory: directory.path) }, .locked)
        try store.engine.close()
        let again = try Store(directory.path)
        try again.engine.close()
        try expectClean(directory.path)
    }

    /// Root alone may give files away, and is who this is about.
    @Test
    func `Root is refused where another user keeps data, and may read it`() throws {
        try Store(directory.path).engine.close()
        let other: uid_t = 65_534
        try #require(chown(directory.path(of: "FORMAT"), other, other) == 0)
        let error = #expect(throws: StorageError.self) { try Store(directory.path) }
        expect(error?.code == .inputOutput && error?.remedy?.contains("sudo -u '") == true)
        expectEqual(code { try EmbeddedEngine.whileUnused(directory.path) { _ in } }, .inputOutput)
        try expectClean(directory.path)
        // A directory that is to get a state.
        try #require(chown(directory.path, other, other) == 0)
        expectEqual(code { try EmbeddedEngine.checkOwner(ofNew: directory.path) }, .inputOutput)
        expectNil(code { try EmbeddedEngine.checkOwner(ofNew: directory.path(of: "none")) })
        try #require(chown(directory.path(of: "FORMAT"), 0, 0) == 0)
        try Store(directory.path).engine.close()
    }

    @Test
    func `An unknown format is refused and left alone`() throws {
        try Store(directory.path).engine.close()
        Files.write(Bytes("hearth key-value store, format 99\n".utf8), to: directory.path(of: "FORMAT"))
        expectEqual(code { _ = try Store(directory.path) }, .unsupportedFormat)
        expectEqual(code { _ = try EngineCheck.run(directory: directory.path) }, .unsupportedFormat)
        Files.remove(directory.path(of: "FORMAT"))
        expectEqual(code { _ = try Store(directory.path) }, .unsupportedFormat)
    }

    @Test(arguments: 1...4, [false, true])
    func `A directory of a former format is refused with its number, and left alone`(number: Int, isReadOnly: Bool)
        throws
    {
        try Store(directory.path).engine.close()
        let line = Bytes("hearth key-value store, format \(number)\n".utf8)
        Files.write(line, to: directory.path(of: "FORMAT"))
        var options = EngineOptions.small
        options.isReadOnly = isReadOnly
        let error = #expect(throws: StorageError.self) { try Store(directory.path, options) }
        expectEqual(error?.code, .unsupportedFormat)
        expectEqual(error?.message.contains("format \(number),"), true)
        expectEqual(error?.message.contains("export"), true)
        expectEqual(code { _ = try EngineCheck.run(directory: directory.path) }, .unsupportedFormat)
        expectEqual(Files.read(directory.path(of: "FORMAT")), line)
    }

    @Test(arguments: [true, false], [true, false])
    func `A directory whose manifest or run is missing or empty is refused, and nothing is made in its place`(
        isClean: Bool, isManifest: Bool
    ) throws {
        let original = directory.path(of: "original")
        let copy = directory.path(of: "copy")
        let store = try Store(original)
        try store.commit(1, [.put("a", "1")])
        try store.engine.checkpointNow()
        if isClean { try store.engine.close() }
        Files.copyTree(original, to: copy)
        let names = Files.names(in: copy + "/runs")
        let name = try #require(names.first { isManifest ? $0 == "MANIFEST" : $0.hasSuffix(".run") })
        let file = copy + "/runs/" + name
        for isThere in [true, false] {
            if isThere { Files.write([], to: file) } else { Files.remove(file) }
            let error = #expect(throws: StorageError.self) { try Store(copy) }
            expectEqual(error?.code, .corrupt)
            expectEqual(error?.file, file)
            try expectEqual(EngineCheck.run(directory: copy).problems.count, 1)
            expectEqual(Files.names(in: copy + "/runs").contains(name), isThere)
        }
        Files.remove(copy + "/runs")
        expectEqual(code { _ = try Store(copy) }, .corrupt)
        expect(!Files.names(in: copy).contains("runs"))
    }

    @Test(arguments: [true, false])
    func `A directory whose log is missing is refused`(hasCheckpoint: Bool) throws {
        let original = directory.path(of: "original")
        let copy = directory.path(of: "copy")
        let store = try Store(original)
        try store.commit(1, [.put("a", "1")])
        if hasCheckpoint { try store.engine.checkpointNow() }
        try store.commit(2, [.put("b", "1")])
        Files.copyTree(original, to: copy)
        for name in Files.names(in: copy + "/log") { Files.remove(copy + "/log/" + name) }
        expectEqual(code { _ = try Store(copy) }, .corrupt)
        try expect(!EngineCheck.run(directory: copy).isClean)
        Files.remove(copy + "/log")
        expectEqual(code { _ = try Store(copy) }, .corrupt)
        try expect(!EngineCheck.run(directory: copy).isClean)
    }

    @Test
    func `A directory whose creation was interrupted is created again`() throws {
        try Store(directory.path(of: "whole")).engine.close()
        let states: [(String, [String])] = [
            ("marked", ["NEW"]), ("runs", ["NEW", "runs"]), ("formatted", ["NEW", "FORMAT", "runs"]),
        ]
        for (name, kept) in states {
            let path = directory.path(of: name)
            Files.copyTree(directory.path(of: "whole"), to: path)
            Files.write([], to: path + "/NEW")
            for entry in Files.names(in: path) where !kept.contains(entry) { Files.remove(path + "/" + entry) }
            if name == "runs" { Files.write([1, 2, 3], to: path + "/runs/MANIFEST") }
            // The log of the whole directory is gone; a process that got as far as FORMAT had not begun one.
            if name == "formatted" { try RunStore.create(path + "/runs") }
            let store = try Store(path)
            try store.commit(1, [.put("a", "1")])
            try store.engine.close()
            expect(!Files.names(in: path).contains("NEW"))
            try expectEqual(Store(path).get("a"), "1")
            try expectClean(path)
        }
    }

    @Test
    func `Versions must increase, also beyond a restart and whatever the clock says`() throws {
        let store = try Store(directory.path)
        try store.commit(100, [.put("a", "1")])
        expectEqual(code { try store.stage(100, [.put("a", "2")]) }, .versionNotIncreasing)
        expectEqual(code { try store.stage(99, [.put("a", "2")]) }, .versionNotIncreasing)
        expect(!store.writer.hasStaged)
        try store.stage(101, [.put("a", "2")])
        expectEqual(code { try store.stage(101, [.put("a", "3")]) }, .versionNotIncreasing)
        try store.writer.commitGroup()
        try store.engine.close()
        let again = try Store(directory.path)
        expectEqual(again.writer.lastVersion.microseconds, 101)
        expectEqual(code { try again.commit(50, [.put("a", "4")]) }, .versionNotIncreasing)
        try expectEqual(again.get("a"), "2")
        try again.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `A commit that fits no group is refused whole`() throws {
        let store = try Store(directory.path)
        let record = Bytes(repeating: 0, count: EngineLimits.recordBytesMax + 1)
        let batch = MutationBatch()
        expectEqual(
            code {
                try store.writer.stage(
                    version: CommitVersion(microseconds: 1), record: record.span.bytes, mutations: batch)
            }, .valueTooLong)
        try store.commit(1, [.put("a", "1")])
        try expectEqual(store.scan().count, 1)
        try store.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `A batch is said to need at least what the memtable takes`() {
        var batch = MutationBatch()
        for number in UInt32(0)..<1_000 {
            let key = withUnsafeBytes(of: number.bigEndian) { Bytes($0) }
            batch.put(key: key.span.bytes, value: key.span.bytes)
        }
        expect(batch.bytesNeeded >= Memtable.bytesNeeded(count: batch.count, bytes: batch.byteCount))
        expect(MutationBatch().bytesNeeded >= Memtable.bytesNeeded(count: 0, bytes: 0))
    }

    @Test
    func `After close everything is refused, and closing again does nothing`() throws {
        let store = try Store(directory.path)
        let reader = try store.engine.makeReader()
        try store.commit(1, [.put("a", "1")])
        _ = try store.writer.latest.bytes(Bytes("a".utf8))
        try store.engine.close()
        try store.engine.close()
        expectEqual(code { _ = try reader.snapshot() }, .closed)
        expectEqual(code { _ = try store.engine.makeReader() }, .closed)
        expectEqual(code { try store.commit(2, [.put("a", "2")]) }, .closed)
        expectEqual(code { try store.engine.checkpointNow() }, .closed)
        expectEqual(code { try store.engine.sweepHistoryNow() }, .closed)
        expectEqual(code { try store.engine.backup(to: directory.path + "-backup") }, .closed)
        try expectClean(directory.path)
    }

    @Test
    func `What is staged and never sealed is gone after close, and nothing else is`() throws {
        let store = try Store(directory.path)
        try store.commit(1, [.put("a", "1")])
        try store.stage(2, [.put("a", "2")])
        try store.engine.close()
        let again = try Store(directory.path)
        expectEqual(again.engine.publishedVersion.microseconds, 1)
        try expectEqual(again.get("a"), "1")
        try again.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `A snapshot open at close keeps working, and the lock stays until it goes`() throws {
        do {
            let store = try Store(directory.path)
            try store.commit(1, [.put("a", "1")])
            let reader = try store.engine.makeReader()
            let snapshot = try reader.snapshot()
            try store.engine.close()
            try expectEqual(snapshot.text("a"), "1")
            expectEqual(code { _ = try Store(directory.path) }, .locked)
        }
        let again = try Store(directory.path)
        try expectEqual(again.get("a"), "1")
        try again.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `Bounds and keys of odd lengths do not trap`() throws {
        let store = try Store(directory.path)
        let longest = Bytes(repeating: 255, count: EngineLimits.keyBytesMax)
        try store.commit(1, [Change(key: longest, value: []), .put("a", "")])
        try store.engine.checkpointNow()
        try store.commit(2, [Change(key: longest, value: [1])])
        let snapshot = try store.engine.makeReader().snapshot()
        try expectNil(snapshot.bytes([]))
        try expectNil(snapshot.bytes(longest + [0]))
        try expectEqual(snapshot.bytes(longest), [1])
        try expectEqual(snapshot.text("a"), "")
        try expectEqual(snapshot.entries([], longest).count, 1)
        try expectEqual(snapshot.entries([], []).count, 0)
        try expectEqual(snapshot.entries([], [], .backward).count, 0)
        try expectEqual(snapshot.entries(longest, [97]).count, 0)
        try expectEqual(snapshot.entries(longest, [97], .backward).count, 0)
        expectEqual(code { _ = try snapshot.entries(longest + [0], nil) }, .keyTooLong)
        try expectNil(store.get("a", at: 0))
    }
}
