// The engine against a dictionary that remembers every version: random commits, checkpoints, sweeps, clean and unclean
// reopening, and after each step reads at random versions, by key and by range, both ways.

import EngineTestSupport
import MemoryEngine
import Storage
import StorageEngines
import Synchronization
import TestSupport
import Testing

/// One random run.
private final class ModelRun {
    /// Before or after the spaces that have history: 0x10 of documents, 0x21 to 0x23 of entries.
    let latestOnlySpace: UInt8

    let directory = TemporaryDirectory()
    var random: SeededGenerator
    var model = Model()
    var store: Store?
    var options: EngineOptions
    /// Set for the engine in memory.
    let volume: MemoryVolume?
    /// A reader that lives as long as the store: it remembers places in the runs, and may keep its view between reads.
    var lasting: EngineReader?
    let now = Clock()
    let keys: [Bytes]

    final class Clock: Sendable {
        let microseconds = Atomic<UInt64>(0)
    }

    init(seed: UInt64, inMemory: Bool) throws {
        random = SeededGenerator(seed: seed)
        latestOnlySpace = seed % 2 == 0 ? 0 : 0x80
        keys = Self.makeKeys(&random, latestOnlySpace)
        options = .small
        // Memtables that fill up in the middle of things, files of a few blocks, segments of a few groups.
        options.memtableBytesMax = 24 << 10
        options.runFileBytesMax = random.pick([4 << 10, 24 << 10, 1 << 20])
        options.logSegmentBytes = 16 << 10
        options.latestOnlySpaces = [latestOnlySpace]
        options.scannedSpaces = random.pick([nil, 0x22...0x23, 0...255])
        options.batchEntriesMin = random.pick([1, 4, 20])
        options.retentionMicroseconds = 1_000
        options.sweepPauseMicroseconds = 1 << 40
        let now = now
        options.clock = { now.microseconds.load(ordering: .relaxed) }
        volume = inMemory ? MemoryVolume(replaysRecords: true) : nil
        store = try Store(directory.path, options, volume: volume)
        try makeLongLived()
    }

    func makeLongLived() throws {
        lasting = try store!.engine.makeReader()
        if random.oneIn(2) { lasting!.reuseSnapshots() }
    }

    /// Keys that are prefixes of each other and bytes at both ends, where order goes wrong first. Among documents with
    /// history no key is a prefix of another.
    static func makeKeys(_ random: inout SeededGenerator, _ latestOnlySpace: UInt8) -> [Bytes] {
        var keys: Set<Bytes> = []
        while keys.count < 60 {
            let space = random.oneIn(8) ? latestOnlySpace : random.pick([0x10, 0x10, 0x21, 0x22, 0x23])
            // Bounds of ranges have one byte more than a key.
            let length = random.oneIn(10) ? random.below(EngineLimits.keyBytesMax - 2) : random.below(5)
            let end: Bytes = space == 0x10 ? [2] : []
            keys.insert([space] + (0..<length).map { _ in random.pick([0, 0, 1, 97, 254, 255, 255]) } + end)
        }
        return keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    func run(steps: Int) throws {
        for _ in 0..<steps {
            try step()
            try compare()
        }
        lasting = nil
        try store!.engine.close()
        store = nil
        if volume == nil { try expectClean(directory.path) }
    }

    func step() throws {
        switch random.below(20) {
        case 0: try store!.engine.checkpointNow()
        case 1: try sweep()
        case 2: try reopen()
        case 3: try crash()
        default: try commitGroup()
        }
    }

    func commitGroup() throws {
        for _ in 0..<(1 + random.below(3)) {
            let version = model.last + 1 + UInt64(random.below(100))
            let changes = (0..<(1 + random.below(6))).map { _ in change() }
            try store!.stage(version, changes)
            model.commit(version, changes)
            let key = random.pick(keys)
            let expected = model.value(key, at: version)
            let found = try store!.writer.latest.bytes(key)
            expectEqual(found, expected, "the writer reads \(key) at \(version)")
            guard random.oneIn(6) else { continue }
            let ranges: [(lower: Bytes, upper: Bytes)] = [
                ([0], [255]), ([0x10], [0x11]), ([0x21], [0x23]), ([0x23, 0], [0x23, 255]),
            ]
            let (lower, upper) = random.pick(ranges)
            let scanned = try store!.writer.latest.entries(lower, upper)
            let all = model.entries(lower, upper, at: version, .forward)
            expectEqual(scanned, all, "the writer scans \(lower)..<\(upper) at \(version)")
        }
        if random.oneIn(2) {
            try store!.writer.commitGroup()
        } else {
            try store!.writer.commitGroup { _ in }
            store!.writer.waitForGroup()
        }
        now.microseconds.store(model.last, ordering: .relaxed)
    }

    func change() -> Change {
        let length = random.oneIn(20) ? random.below(9_000) : random.below(60)
        let value = Bytes(repeating: UInt8(random.below(256)), count: length)
        return Change(key: random.pick(keys), value: random.oneIn(4) ? nil : value)
    }

    func sweep() throws {
        try store!.engine.sweepHistoryNow()
        expect(store!.engine.oldestReadableVersion.microseconds <= model.last)
    }

    func reopen() throws {
        lasting = nil
        try store!.engine.close()
        store = nil
        if volume == nil, random.oneIn(3) { try expectClean(directory.path) }
        store = try Store(directory.path, options, volume: volume)
        expectEqual(store!.replayed, [])
        try makeLongLived()
    }

    /// Opens a copy of what is durable now: what a kill leaves.
    func crash() throws {
        if let volume {
            let copy = try Store(directory.path, options, volume: volume.copy())
            try compare(copy)
            return try copy.engine.close()
        }
        let copy = directory.path(of: "copy")
        Files.copyTree(directory.path, to: copy)
        let engine = try Store(copy, options)
        defer { Files.remove(copy) }
        try compare(engine)
        try engine.engine.close()
        try expectClean(copy)
    }

    func compare() throws { try compare(store!) }

    func compare(_ store: Store) throws {
        expectEqual(store.engine.publishedVersion.microseconds, model.last)
        expectEqual(store.writer.lastVersion.microseconds, model.last)
        let oldest = store.engine.oldestReadableVersion.microseconds
        let latest = model.last
        try compare(store, at: latest, isLatest: true)
        let older = UInt64.random(in: oldest...max(oldest, latest), using: &random)
        try compare(store, at: older, isLatest: older >= latest)
    }

    func compare(_ store: Store, at version: UInt64, isLatest: Bool) throws {
        let reader =
            if let lasting, store === self.store, random.oneIn(2) { lasting } else { try store.engine.makeReader() }
        if random.oneIn(3) { reader.releaseSnapshots() }
        let snapshot = try reader.snapshot(at: CommitVersion(microseconds: version))
        var lower = random.oneIn(3) ? [] : random.pick(keys)
        var upper = random.oneIn(3) ? [255] : random.pick(keys) + [0]
        if upper.lexicographicallyPrecedes(lower) { swap(&lower, &upper) }
        if !isLatest { (lower, upper) = (max(lower, [1]), min(upper, [0x40])) }
        for direction in [ScanDirection.forward, .backward] {
            let found = try snapshot.entries(lower, upper, direction)
            let expected = model.entries(lower, upper, at: version, direction)
            expectEqual(found, expected, "seed \(random.seed): \(direction) scan of \(lower)..<\(upper) at \(version)")
        }
        for _ in 0..<5 {
            let key = random.pick(keys)
            if !isLatest && key[0] == latestOnlySpace { continue }
            let found = try snapshot.bytes(key)
            expectEqual(found, model.value(key, at: version), "seed \(random.seed): \(key) at \(version)")
        }
        try compareSeek(snapshot, at: version, isLatest: isLatest)
    }

    func compareSeek(_ snapshot: borrowing EngineSnapshot, at version: UInt64, isLatest: Bool) throws {
        let upper: Bytes = isLatest ? [255] : [0x40]
        let target = random.pick(keys)
        let low: Bytes = isLatest ? [0] : [1]
        var forward = try snapshot.cursor(from: low.span.bytes, to: upper.span.bytes, direction: .forward)
        _ = try forward.next()
        try forward.seek(to: target.span.bytes)
        let found = try forward.next() ? forward.entry : nil
        let expected = model.entries(max(low, target), upper, at: version, .forward).first
        expectEqual(found, expected, "seed \(random.seed): seek to \(target) at \(version)")
        var backward = try snapshot.cursor(from: low.span.bytes, to: upper.span.bytes, direction: .backward)
        _ = try backward.next()
        try backward.seek(to: target.span.bytes)
        let foundBackward = try backward.next() ? backward.entry : nil
        let expectedBackward = model.entries(low, min(target + [0], upper), at: version, .backward).first
        expectEqual(foundBackward, expectedBackward, "seed \(random.seed): seek back to \(target) at \(version)")
    }

    func max(_ left: Bytes, _ right: Bytes) -> Bytes { left.lexicographicallyPrecedes(right) ? right : left }
    func min(_ left: Bytes, _ right: Bytes) -> Bytes { left.lexicographicallyPrecedes(right) ? left : right }
    func max(_ left: UInt64, _ right: UInt64) -> UInt64 { left < right ? right : left }
}

@Suite(.timeLimit(.minutes(20)))
struct ModelTests {
    @Test(arguments: CaseShare.of(UInt64(1)...8, 4), [false, true])
    func `Random histories read the same at every version`(seed: UInt64, inMemory: Bool) throws {
        try ModelRun(seed: seed, inMemory: inMemory).run(steps: 150)
    }

    @Test(arguments: [false, true])
    func `A random history with a seed of today`(inMemory: Bool) throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("model seed \(seed)")
        try ModelRun(seed: seed, inMemory: inMemory).run(steps: 150)
    }
}
