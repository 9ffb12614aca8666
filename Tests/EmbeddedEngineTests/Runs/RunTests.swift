// Files of runs: what is written is found, by key and by range, at every version; merges keep what versions see; and
// damage is reported.

import EngineTestSupport
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct RunTests {
    let directory = TemporaryDirectory()

    /// What a version sees of entries in order.
    private func seen(_ entries: [RunEntry], at version: UInt64) -> [RunEntry] {
        var seen: [RunEntry] = []
        for entry in entries where entry.version <= version && seen.last?.key != entry.key { seen.append(entry) }
        return seen
    }

    @Test(arguments: CaseShare.of(UInt64(1)...12, 6))
    func `A run reads as it was written, at every version, by key and by range`(seed: UInt64) throws {
        var generator = EntryGenerator(random: SeededGenerator(seed: seed))
        let span: UInt64 = [1, 200, 70_000, 1 << 40][Int(seed % 4)]
        let base: UInt64 = seed % 3 == 0 ? 1 : 1_700_000_000_000_000
        let entries = generator.entries([1, 40, 3_000][Int(seed % 3)], versions: base...(base + span))
        let run = try TestRun(
            entries, in: directory.path, number: 1, entriesPerFile: [.max, 500][Int(seed % 2)],
            scannedSpaces: [nil, 0...2, 7...0xFF][Int(seed / 2 % 3)])
        try expectEqual(run.entries(), entries)
        for version in [base, base + span, base + span / 2, base - 1, .max] {
            let expected = seen(entries, at: version)
            try expectEqual(run.walk(version, from: nil, .forward), expected)
            try expectEqual(run.walk(version, from: nil, .backward), expected.reversed())
            for _ in 0..<60 {
                var key = generator.random.oneIn(2) ? generator.random.pick(entries).key : generator.key()
                if generator.random.oneIn(4), key.count < 500 { key.append(0) }
                try expectEqual(run.find(key, version), expected.first { $0.key == key })
                let after = expected.filter { !$0.key.lexicographicallyPrecedes(key) }
                try expectEqual(run.walk(version, from: key, .forward).prefix(5), after.prefix(5))
                let before = Array(expected.filter { $0.key.lexicographicallyPrecedes(key) }.reversed())
                try expectEqual(run.walk(version, from: key, .backward, inclusive: false).prefix(5), before.prefix(5))
                let upTo = Array(expected.filter { $0.key == key || $0.key.lexicographicallyPrecedes(key) }.reversed())
                try expectEqual(run.walk(version, from: key, .backward).prefix(5), upTo.prefix(5))
            }
        }
    }

    @Test(arguments: UInt64(1)...4)
    func `A run that a merge has taken the lower keys of ends where the rest begins`(seed: UInt64) throws {
        var generator = EntryGenerator(random: SeededGenerator(seed: seed))
        let entries = generator.entries(1_500, versions: 1...100)
        let whole = try TestRun(entries, in: directory.path, number: 1, entriesPerFile: 400)
        for _ in 0..<8 {
            let bound = generator.random.oneIn(2) ? generator.random.pick(entries).key : generator.key()
            let first = bound.withUnsafeBytes { whole.slices.slice(of: $0) }
            guard first < whole.files.count else { continue }
            let run = TestRun(Array(whole.files[first...]), lowerBound: bound)
            let rest = entries.filter { !$0.key.lexicographicallyPrecedes(bound) }
            try expectEqual(run.entries(), rest)
            let expected = seen(rest, at: 60)
            try expectEqual(run.walk(60, from: nil, .forward), expected)
            try expectEqual(run.walk(60, from: nil, .backward), expected.reversed())
            try expectEqual(run.walk(60, from: [0], .forward), expected)
            try expectEqual(run.walk(60, from: [0], .backward), [])
        }
    }

    @Test
    func `Keys in spaces without history are seen at every version`() throws {
        let entries = [
            RunEntry(key: [1, 1], version: 9, value: [9]), RunEntry(key: [2, 1], version: 9, value: [9]),
            RunEntry(key: [2, 1], version: 3, value: [3]), RunEntry(key: [3], version: 9, value: nil),
        ]
        let run = try TestRun(entries, in: directory.path, number: 1)
        try expectEqual(run.walk(5, from: nil, .forward, latestOnly: [1]), [entries[0], entries[2]])
        try expectEqual(run.walk(5, from: nil, .backward, latestOnly: [1]), [entries[2], entries[0]])
        try expectEqual(run.walk(5, from: [1, 1], .forward, latestOnly: [1]), [entries[0], entries[2]])
    }

    @Test func `A cursor stops beyond its end, also at an entry that it does not give`() throws {
        // Most keys are newer than the version.
        let entries = (0..<100).map { RunEntry(key: [UInt8($0)], version: $0 % 10 == 0 ? 1 : 2, value: [1]) }
        let run = try TestRun(entries, in: directory.path, number: 1)
        try expectEqual(run.walk(1, from: [51], .forward).count, 4)
        try expectEqual(run.walk(1, from: [51], .forward, end: [52]), [])
        try expectEqual(run.walk(1, from: [59], .backward).count, 6)
        try expectEqual(run.walk(1, from: [59], .backward, end: [58]), [])
    }

    @Test(arguments: CaseShare.of(UInt64(1)...16, 6))
    func `A merge keeps what every version from the horizon on sees`(seed: UInt64) throws {
        var generator = EntryGenerator(random: SeededGenerator(seed: seed))
        let count = 1 + generator.random.below(7)
        var runs: [TestRun] = []
        var all: [RunEntry] = []
        for index in 0..<count {
            // The newest run is the first.
            let low = UInt64(count - index) * 100
            let entries = generator.entries(200 + generator.random.below(800), versions: low...(low + 99))
            all += entries
            runs.append(
                try TestRun(
                    entries, in: directory.path, number: UInt64(index * 100),
                    entriesPerFile: generator.random.oneIn(2) ? 100 : .max))
        }
        all.sort(by: RunEntry.isBefore)
        let horizon = UInt64(generator.random.below(count * 100 + 200))
        let isLowest = seed % 2 == 0
        let latestOnly: Set<UInt8> = seed % 3 == 0 ? [UInt8(ascii: "c")] : []
        var merge = try RunMerge(
            runs.map(\.slices), horizon: horizon, isLowest: isLowest,
            latestOnly: LatestOnlySpaces(latestOnly))
        var writer = try RunWriter(
            directory: directory.path, number: 9_000, kind: .entries, versions: 1...1_000,
            latestOnly: LatestOnlySpaces([]), scannedSpaces: nil, hashSeed: 0)
        while !merge.isAtEnd { try merge.appendKey(to: &writer) }
        expectEqual(merge.readCount, all.count)
        _ = try writer.finish()
        let merged = TestRun([try RunFile(directory: directory.path, number: 9_000)])
        let found = try merged.entries()
        expectEqual(found, EntryGenerator.ordered(found))
        let hasHistory = all.filter { !latestOnly.contains($0.key[0]) }
        for version in horizon..<(horizon + 40) {
            let expected = seen(hasHistory, at: version).filter { $0.value != nil }
            let kept = seen(found.filter { !latestOnly.contains($0.key[0]) }, at: version).filter { $0.value != nil }
            expectEqual(kept, expected, "seed \(seed) at \(version)")
        }
        let newest = seen(all, at: .max)
        expectEqual(seen(found, at: .max).filter { $0.value != nil }, newest.filter { $0.value != nil })
        // Older runs may have what a tombstone hides.
        if !isLowest { expectEqual(Set(found.map(\.key)), Set(newest.map(\.key))) }
        // Of what no version sees nothing is left.
        for (entry, following) in zip(found, found.dropFirst()) where entry.key == following.key {
            expect(entry.version > horizon && !latestOnly.contains(entry.key[0]))
        }
        if isLowest { expect(seen(found.reversed(), at: .max).allSatisfy { $0.value != nil }) }
    }

    @Test(arguments: [false, true])
    func `A flipped bit anywhere is reported, and never changes what is read`(hasVersions: Bool) throws {
        var generator = EntryGenerator(random: SeededGenerator(seed: 5))
        let entries = generator.entries(1_000, versions: 1...(hasVersions ? 300 : 1))
        let path = directory.path(of: RunFormat.fileNames(1, .entries)[0])
        try TestRun.write(entries, in: directory.path, number: 1)
        let bytes = Files.read(path)
        let offsets =
            (0..<600).map { _ in generator.random.below(bytes.count) } + Array((bytes.count - 300)..<bytes.count)
        for offset in CaseShare.of(offsets.shuffled(using: &generator.random), 300) {
            var damaged = bytes
            damaged[offset] ^= 1 << UInt8(generator.random.below(8))
            Files.write(damaged, to: path)
            do {
                let file = try RunFile(directory: directory.path, number: 1)
                let run = TestRun([file])
                let keys = (0..<40).map { _ in generator.random.pick(entries).key }
                for key in keys {
                    try expectEqual(run.find(key, .max), seen(entries, at: .max).first { $0.key == key })
                }
                try expectEqual(run.entries(), entries)
                try file.part.verifyHashIndex()
                for block in 0..<file.part.blockCount { _ = try file.part.block(block) }
                // What is between blocks is zero and is not read.
                expect(damaged[offset].nonzeroBitCount == 1 && bytes[offset] == 0, "byte \(offset) of \(bytes.count)")
            } catch let error as StorageError {
                expectEqual(error.code, .corrupt)
                expectEqual(error.file, path)
            }
        }
    }

    @Test
    func `The hash index leads to every key, from a line near the one that its hash names`() throws {
        let keys = (0..<20_000).map { Bytes("\($0)".utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        try TestRun.write(keys.map { RunEntry(key: $0, version: 5, value: [1]) }, in: directory.path, number: 1)
        let file = try RunFile(directory: directory.path, number: 1)
        expectEqual(Int(file.footer.hashPageCount), RunHashIndex.pageCount(keys: keys.count))
        expectEven(file, keys.count)
        try expectFound(keys, in: file)
    }

    /// Slots of each line of a hash index that are filled.
    private func slotsFilled(_ file: RunFile) -> [Int] {
        let name = RunFormat.fileNames(file.number, file.kind).last!
        let bytes = Files.read(file.path.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/" + name)
        return (0..<(Int(file.footer.hashPageCount) * RunHashIndex.linesPerPage)).map { line in
            let start = Int(file.footer.hashOffset) + RunHashIndex.offset(ofLine: line)
            return stride(from: start, to: start + RunHashIndex.lineBytes, by: 8).count { slot in
                bytes[slot..<(slot + 8)].contains { $0 != 0 }
            }
        }
    }

    /// A hash that favours some lines fills them and those after them, and leaves others empty.
    private func expectEven(_ file: RunFile, _ keyCount: Int) {
        let filled = slotsFilled(file)
        expectEqual(filled.reduce(0, +), keyCount)
        expect(filled.count { $0 == RunHashIndex.slotsPerLine } < filled.count / 3)
        expect(filled.count { $0 == 0 } < filled.count / 10)
    }

    private func expectFound(_ keys: [Bytes], in file: RunFile) throws {
        func find(_ key: Bytes) throws -> UInt64? {
            try key.withUnsafeBytes {
                try file.part.findNewest($0, hash: RunHashIndex.hash($0, seed: file.footer.hashSeed))?.version
            }
        }
        for key in keys {
            try expectEqual(find(key), 0)
            try expectNil(find(key + [0]))
        }
    }

    /// Keys that a hash index with a seed has in one line.
    private func collidingKeys(_ count: Int, seed: UInt64) -> [Bytes] {
        let lines = RunHashIndex.pageCount(keys: count) * RunHashIndex.linesPerPage
        var random = SeededGenerator(seed: 3)
        var keys: [Bytes] = []
        var key = Bytes(repeating: 0, count: 20)
        while keys.count < count {
            let number = random.next()
            let isColliding = key.withUnsafeMutableBytes { key in
                key.storeBytes(of: number, toByteOffset: 8, as: UInt64.self)
                return RunHashIndex.line(
                    RunHashIndex.hash(UnsafeRawBufferPointer(key), seed: seed), lineCount: lines) == 7
            }
            if isColliding { keys.append(key) }
        }
        return keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    @Test
    func `Keys that collide under one seed do not under another, and colliding keys cost a bounded number of probes`()
        throws
    {
        let keys = collidingKeys(1_000, seed: 5)
        let entries = keys.map { RunEntry(key: $0, version: 5, value: [1]) }
        for (number, seed) in [(1, 5), (2, 6)] as [(UInt64, UInt64)] {
            try TestRun.write(entries, in: directory.path, number: number, hashSeed: seed)
            let file = try RunFile(directory: directory.path, number: number)
            expectEqual(file.footer.hashSeed, seed)
            if seed == 5 {
                // Building and searching look at so many lines; the other keys are found by the index of blocks.
                let filled = slotsFilled(file)
                expectEqual(filled.reduce(0, +), RunHashIndex.linesMax * RunHashIndex.slotsPerLine)
            } else {
                expectEven(file, keys.count)
            }
            try expectFound(keys, in: file)
        }
    }

    @Test
    func `The hash indexes of a store have a seed that no other store has, also after merges and in a backup`() throws {
        let keys = collidingKeys(1_000, seed: 0)
        var seeds: Set<UInt64> = []
        func look(_ path: String) throws {
            let manifest = try Manifest.read(in: path + "/runs")
            expect(!manifest.files.isEmpty)
            for part in manifest.runs.flatMap(\.parts) {
                let file = try RunFile(directory: path + "/runs", number: part.file, kind: part.kind)
                expectEqual(file.footer.hashSeed, manifest.hashSeed)
                expectEven(file, keys.count)
            }
            seeds.insert(manifest.hashSeed)
        }
        for name in ["a", "b"] {
            let path = directory.path(of: name)
            var options = EngineOptions.small
            options.retentionMicroseconds = 0
            let store = try Store(path, options)
            for version in 1...2 as ClosedRange<UInt64> {
                try store.commit(version, keys.map { Change(key: $0, value: Bytes("\(version)".utf8)) })
                try store.engine.checkpointNow()
                if version == 1 { try look(path) }
            }
            try store.engine.sweepHistoryNow()
            try look(path)
            try store.engine.backup(to: path + ".backup")
            try look(path + ".backup")
            try store.engine.close()
            try expectClean(path)
            try expectClean(path + ".backup")
        }
        expect(seeds.count == 4 && !seeds.contains(0))
    }

    @Test
    func `A key with the tag of another one is not found, at every length of the shared prefix`() throws {
        // Keys that are a prefix of the first key of the block and the suffix of another entry.
        let first = Bytes(repeating: 9, count: 300)
        let suffix = Bytes("suffix".utf8)
        let lengths = [0, 1, 100, 254, 255, 256, 299]
        let keys = [first] + lengths.map { Bytes(first.prefix($0)) + suffix }
        let entries = keys.map { RunEntry(key: $0, version: 1, value: $0) }.sorted(by: RunEntry.isBefore)
        let run = try TestRun(entries, in: directory.path, number: 1)
        for entry in entries {
            for length in 0...300 {
                let key = Bytes(first.prefix(length)) + suffix
                let expected = entries.first { $0.key == key }
                try expectEqual(run.find(key, 1), expected)
                // As if its hash were that of the other key.
                let hash = entry.key.withUnsafeBytes { RunHashIndex.hash($0, seed: 0) }
                let found = try key.withUnsafeBytes { try run.files[0].part.findNewest($0, hash: hash) }
                expectEqual(found != nil, key == entry.key)
            }
        }
    }

    @Test(arguments: [RunKind.entries, .documents])
    func `A file that is missing, too short or another one is refused`(kind: RunKind) throws {
        for number in 1...2 as ClosedRange<UInt64> {
            let entries = [RunEntry(key: [1], version: 1, value: [UInt8(number)])]
            try TestRun.write(entries, in: directory.path, number: number, kind: kind)
        }
        func open(identity: UInt64? = nil) throws(StorageError) -> RunFile {
            try RunFile(directory: directory.path, number: 1, kind: kind, identity: identity)
        }
        for (name, other) in zip(RunFormat.fileNames(1, kind), RunFormat.fileNames(2, kind)) {
            let path = directory.path(of: name)
            let bytes = Files.read(path)
            for length in [0, 1, 100, bytes.count - 1] {
                Files.write(Bytes(bytes.prefix(length)), to: path)
                let error = #expect(throws: StorageError.self) { try open() }
                expectEqual(error?.code, .corrupt)
            }
            Files.remove(path)
            #expect(throws: StorageError.self) { try open() }
            // Of another run.
            Files.write(Files.read(directory.path(of: other)), to: path)
            if kind == .documents {
                let file = try open()
                let error = #expect(throws: StorageError.self) { try file.part.verifyPages() }
                expectEqual(error?.code, .corrupt)
            }
            Files.write(bytes, to: path)
        }
        let error = #expect(throws: StorageError.self) { try open(identity: 1) }
        expectEqual(error?.code, .corrupt)
    }
}
