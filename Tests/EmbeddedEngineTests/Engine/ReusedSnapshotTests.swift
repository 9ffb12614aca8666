// Reading the same keys again and again through one reader, while the runs change under it.

import EngineTestSupport
import Storage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ReusedSnapshotTests {
    @Test(arguments: [false, true], [nil, UInt8(ascii: "3")...UInt8(ascii: "5")])
    func `A reader sees every version, whether it keeps its view or not`(
        keepsViews: Bool, scannedSpaces: ClosedRange<UInt8>?
    ) throws {
        let directory = TemporaryDirectory()
        var options = EngineOptions.small
        options.scannedSpaces = scannedSpaces
        options.retentionMicroseconds = 1 << 40
        let store = try Store(directory.path, options)
        var model = Model()
        var random = SeededGenerator(seed: keepsViews ? 1 : 2)
        // Lengths on both sides of what fits into a leaf, and keys that end alike.
        let keys = (0..<3_000).map { Bytes("\($0 % 7)/key-\($0)".utf8) }
        let reader = try store.engine.makeReader()
        if keepsViews { reader.reuseSnapshots() }

        func commit(_ count: Int) throws {
            let changes = (0..<count).map { _ in
                let length = random.oneIn(50) ? 1_800 + random.below(300) : random.below(100)
                return Change(
                    key: random.pick(keys),
                    value: random.oneIn(10) ? nil : Bytes(repeating: UInt8(random.below(256)), count: length))
            }
            try store.commit(model.last + 1, changes)
            model.commit(model.last + 1, changes)
        }

        func readAll(at version: UInt64) throws {
            for key in keys {
                let snapshot = try reader.snapshot(at: CommitVersion(microseconds: version))
                let found = try snapshot.bytes(key)
                if found != model.value(key, at: version) {
                    Issue.record("\(String(decoding: key, as: UTF8.self)) at \(version)")
                    return
                }
            }
        }

        for _ in 0..<4 {
            for _ in 0..<20 { try commit(100) }
            try store.engine.checkpointNow()
            try readAll(at: model.last)
            try readAll(at: max(1, model.last / 2))
            // Seen through the memtable although the runs have older values.
            try commit(200)
            try readAll(at: model.last)
            if random.oneIn(2) { reader.releaseSnapshots() }
        }
        reader.releaseSnapshots()
        try store.engine.close()
    }

    @Test(arguments: [false, true])
    func `What the writer reads stays readable while runs and memtables are replaced`(isBackward: Bool) throws {
        let directory = TemporaryDirectory()
        var options = EngineOptions.small
        options.retentionMicroseconds = 0
        let store = try Store(directory.path, options)
        let keys = (0..<3_000).map { Bytes("key \(10_000 + $0)".utf8) }
        let value = Bytes(repeating: 7, count: 100)
        for version in 1...4 as ClosedRange<UInt64> {
            try store.commit(version, keys.map { Change(key: $0, value: value) })
            try store.engine.checkpointNow()
        }
        // Some of it is in the memtable, which is frozen below.
        try store.commit(5, [Change(key: keys[0], value: value)])
        let latest = store.writer.latest
        var cursor = try latest.cursor(direction: isBackward ? .backward : .forward)
        var count = 0
        while try cursor.next() {
            if count == 1 {
                try store.engine.checkpointNow()
                try store.engine.sweepHistoryNow()
            }
            // Reads beside the cursor must not replace what it reads.
            if count % 100 == 1 { try expectEqual(latest.bytes(keys[count]), value) }
            expectEqual(Bytes(copying: cursor.key), isBackward ? keys[2_999 - count] : keys[count])
            expectEqual(Bytes(copying: cursor.value), value)
            count += 1
        }
        expectEqual(count, 3_000)
        store.writer.finishReading()
        try store.engine.close()
    }
}
