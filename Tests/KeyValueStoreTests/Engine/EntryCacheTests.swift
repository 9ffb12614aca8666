// Reading the same keys again and again through one reader, while the runs change under it.

import KeyValueStore
import TestSupport
import Testing

@Suite("Entry cache", .timeLimit(.minutes(20)))
struct EntryCacheTests {
    @Test(
        "A reader that remembers places sees what one that remembers nothing sees",
        arguments: [0, 16 << 10, 64 << 10, 4 << 20], [false, true])
    func rereading(cacheBytes: Int, keepsViews: Bool) throws {
        let directory = TemporaryDirectory()
        var options = EngineOptions.small
        options.entryCacheBytesMax = cacheBytes
        options.retentionMicroseconds = 1 << 40
        let store = try Store(directory.path, options)
        var model = Model()
        var random = SeededGenerator(seed: UInt64(cacheBytes) + 1)
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
                    Issue.record("\(String(decoding: key, as: UTF8.self)) at \(version) with \(cacheBytes) bytes")
                    return
                }
            }
        }

        for _ in 0..<4 {
            for _ in 0..<20 { try commit(100) }
            try store.engine.checkpointNow()
            // Twice, so that the second time goes through the cache; then the past, which the runs have too.
            try readAll(at: model.last)
            try readAll(at: model.last)
            try readAll(at: max(1, model.last / 2))
            // Seen through the memtable although the cache knows older places.
            try commit(200)
            try readAll(at: model.last)
            if random.oneIn(2) { reader.releaseSnapshots() }
        }
        reader.releaseSnapshots()
        try store.engine.close()
    }
}
