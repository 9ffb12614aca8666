// What is particular to the engine in memory; `StorageEnginesTests` compares both engines with a model.

import EngineTestSupport
import MemoryEngine
import Storage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct MemoryEngineTests {
    @Test
    func `An estimate counts the entries of the range`() throws {
        let store = try Store("", volume: MemoryVolume())
        for version in UInt64(1)...3 {
            try store.commit(version, (0..<100).map { .put("\(version) \($0)", "value") })
        }
        let (lower, upper) = (Bytes("2 10".utf8), Bytes("2 12".utf8))
        let found = try store.engine.estimate(from: lower.span.bytes, to: upper.span.bytes)
        expectEqual(found.entries, 2)
        try store.engine.close()
    }

    @Test
    func `One engine at a time has a volume open, and the next one has what was published`() throws {
        let volume = MemoryVolume()
        let store = try Store("", volume: volume)
        try store.commit(1, [.put("a", "1")])
        try store.stage(2, [.put("b", "2")])
        #expect(throws: StorageError(.locked, "another engine has the volume open")) { try Store("", volume: volume) }
        try store.engine.close()
        let next = try Store("", volume: volume)
        try expectEqual(next.get("a"), "1")
        try expectNil(next.get("b"))
        try next.engine.close()
    }

    @Test
    func `A backup is refused: there are no files to copy`() throws {
        let store = try Store("", volume: MemoryVolume())
        let directory = TemporaryDirectory()
        let error = #expect(throws: StorageError.self) { try store.engine.backup(to: directory.path(of: "copy")) }
        expectEqual(error?.code, .unsupported)
        try store.engine.close()
    }
}
