// Snapshots and versions while the memtables and the runs change beneath them.

import Dispatch
import EngineTestSupport
import Storage
import StorageEngines
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct SnapshotTests {
    let directory = TemporaryDirectory()

    @Test
    func `A version reads the same through many checkpoints`() throws {
        let store = try Store(directory.path)
        for version in 1...40 as ClosedRange<UInt64> {
            var changes: [Change] = [.put("counter", "\(version)"), .put("only \(version)", "x")]
            if version % 3 == 0 { changes.append(.delete("flag")) } else { changes.append(.put("flag", "\(version)")) }
            try store.commit(version, changes)
            if version % 5 == 0 { try store.engine.checkpointNow() }
        }
        for version in 1...40 as ClosedRange<UInt64> {
            try expectEqual(store.get("counter", at: version), "\(version)")
            try expectEqual(store.get("flag", at: version), version % 3 == 0 ? nil : "\(version)")
            try expectNil(store.get("only \(version)", at: version - 1))
            let count = 1 + Int(version) + (version % 3 == 0 ? 0 : 1)
            try expectEqual(store.scan(at: version).count, count)
            try expectEqual(store.scan(at: version, .backward).reversed(), store.scan(at: version))
        }
        expectEqual(store.engine.statistics.checkpoints, 8)
        try store.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `An open snapshot keeps its state while commits, checkpoints and sweeps go by`() throws {
        var options = EngineOptions.small
        options.retentionMicroseconds = 0
        options.clock = { 1 << 40 }
        let store = try Store(directory.path, options)
        try store.commit(1, [.put("a", "1"), .put("b", "1")])
        try store.engine.checkpointNow()
        try store.commit(2, [.put("b", "2"), .put("c", "2")])
        do {
            let reader = try store.engine.makeReader()
            let snapshot = try reader.snapshot()
            let before = try snapshot.entries()
            for version in 3...30 as ClosedRange<UInt64> {
                try store.commit(version, [.put("a", "\(version)"), .delete("b"), .put("d", "\(version)")])
                if version % 4 == 0 { try store.engine.checkpointNow() }
                if version % 8 == 0 { try store.engine.sweepHistoryNow() }
            }
            try expectEqual(snapshot.entries(), before)
            try expectEqual(snapshot.text("b"), "2")
            // A second one of the same reader sees the newest.
            let second = try reader.snapshot()
            try expectEqual(second.text("a"), "30")
            try expectNil(second.text("b"))
        }
        #expect(throws: StorageError.self) { try store.get("a", at: 2) }
        try expectEqual(store.get("a", at: 30), "30")
        try store.engine.close()
        try expectClean(directory.path)
    }

    /// Every commit sets all of the keys to its version, or deletes them all, so any snapshot in which two keys differ
    /// is wrong.
    @Test
    func `Readers racing commits, checkpoints and sweeps see whole commits only`() throws {
        let race = Race()
        var options = EngineOptions.small
        options.memtableBytesMax = 40 << 10
        options.logSegmentBytes = 32 << 10
        options.retentionMicroseconds = 150
        options.sweepPauseMicroseconds = 1_000
        options.clock = { race.lastVersion.load(ordering: .relaxed) }
        let store = try Store(directory.path, options)
        let engine = store.engine
        let writer = WriterBox(store)
        DispatchQueue.concurrentPerform(iterations: 4) { index in
            do {
                if index == 0 {
                    defer { race.isOver.store(true, ordering: .releasing) }
                    try race.write(writer.store)
                } else {
                    try race.read(try engine.makeReader(), seed: UInt64(index))
                }
            } catch {
                Issue.record("\(error)")
            }
        }
        let statistics = store.engine.statistics
        expect(statistics.checkpoints > 20)
        expect(statistics.historyEntriesSwept > 0)
        try store.engine.close()
        try expectClean(directory.path)
    }
}

/// The store is handed to the one thread that writes.
private final class WriterBox: @unchecked Sendable {
    let store: Store

    init(_ store: Store) { self.store = store }
}

private final class Race: Sendable {
    static let commits: UInt64 = 1_500
    let keys = (0..<30).map { Bytes("key \($0 * 7919 % 100)".utf8) }
    let isOver = Atomic<Bool>(false)
    let lastVersion = Atomic<UInt64>(0)

    func write(_ store: Store) throws {
        for version in 1...Self.commits {
            let value = version % 7 == 0 ? nil : Bytes("\(version)".utf8)
            try store.stage(version, keys.map { Change(key: $0, value: value) })
            if version % 3 == 0 {
                try store.writer.commitGroup { _ in }
                lastVersion.store(version, ordering: .relaxed)
            }
        }
        try store.writer.commitGroup()
        store.writer.waitForGroup()
    }

    func read(_ reader: EngineReader, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var rounds = 0
        while !isOver.load(ordering: .acquiring) || rounds < 10 {
            rounds += 1
            let newest = try reader.snapshot()
            try look(newest, &random)
            // Also a little back in time, as long as the history is kept.
            let older = newest.version.microseconds - min(newest.version.microseconds, UInt64(random.below(140)))
            do {
                try look(try reader.snapshot(at: CommitVersion(microseconds: older)), &random)
            } catch let error as StorageError where error.code == .versionTooOld {
                continue
            }
        }
    }

    func look(_ snapshot: borrowing EngineSnapshot, _ random: inout SeededGenerator) throws {
        let version = snapshot.version.microseconds
        let isDeleted = version == 0 || version % 7 == 0
        let entries = try snapshot.entries(nil, nil, random.oneIn(2) ? .forward : .backward)
        let expected = Bytes("\(version)".utf8)
        let isRight =
            entries.count == (isDeleted ? 0 : keys.count)
            && entries.allSatisfy { $0.value == expected && $0.version == version }
        expect(isRight, "at \(version): \(entries)")
        for _ in 0..<10 {
            let value = try snapshot.bytes(random.pick(keys))
            expectEqual(value, isDeleted ? nil : expected, "at \(version)")
        }
    }
}
