// Sorted batches of a memtable against a dictionary: lookups, cursors at every version, and the walk of a checkpoint.

import EngineTestSupport
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct BatchTests {
    /// A memtable whose groups go to the list or to batches in turn, and what it must hold.
    private struct Filled {
        let memtable: Memtable
        var values: [VersionedKey: Bytes?] = [:]

        init(count: Int) throws {
            memtable = try Memtable(reservedBytes: count * 800, scannedSpaces: 0...255)
        }

        /// Writes a group of commits with one change each.
        mutating func add(_ changes: [(name: VersionedKey, value: Bytes?)], batchEntriesMin: Int) {
            let collected = CollectedEntries(batchEntriesMin: batchEntriesMin)
            for (name, value) in changes {
                let entry = name.key.withUnsafeBytes { key in
                    guard let value else { return memtable.makeEntry(key, name.version, nil) }
                    return value.withUnsafeBytes { memtable.makeEntry(key, name.version, $0) }
                }
                collected.append(entry)
                values[name] = .some(value)
            }
            collected.settle(into: memtable)
            expect(collected.isEmpty)
        }

        func newest(_ key: Bytes, atMost version: UInt64) -> VersionedKey? {
            values.keys.filter { $0.key == key && $0.version <= version }.max { $0.version < $1.version }
        }

        var sorted: [VersionedKey] { values.keys.sorted() }

        /// The newest entry of each key that a version sees.
        func seen(at version: UInt64) -> [VersionedKey] {
            var last: Bytes?
            return sorted.filter { name in
                guard name.version <= version, name.key != last else { return false }
                last = name.key
                return true
            }
        }
    }

    /// Keys that are prefixes of each other, end in zeros, share long beginnings, or are as long as keys may be.
    private static func key(_ random: inout SeededGenerator) -> Bytes {
        let start: Bytes = random.pick([
            [0], [0, 0], Bytes(repeating: 0, count: 9), Bytes(repeating: 7, count: 30),
            Bytes(repeating: 255, count: 16),
            Bytes(repeating: 3, count: 480),
        ])
        return start + (0..<random.below(12)).map { _ in random.pick([0, 0, 1, 128, 255]) }
    }

    private static func filled(_ random: inout SeededGenerator, count: Int) throws -> Filled {
        var filled = try Filled(count: count)
        var version: UInt64 = 0
        while filled.values.count < count {
            var changes: [(VersionedKey, Bytes?)] = []
            for _ in 0..<(1 + random.below(count / 8)) {
                // The same key may be changed twice by a commit.
                if !random.oneIn(6) { version += 1 }
                let key = changes.isEmpty || !random.oneIn(6) ? key(&random) : changes[changes.count - 1].0.key
                let value = random.oneIn(5) ? nil : Bytes(repeating: UInt8(random.below(256)), count: random.below(9))
                changes.append((VersionedKey(key: key, version: version), value))
            }
            filled.add(changes.map { (name: $0.0, value: $0.1) }, batchEntriesMin: random.pick([1, 1, .max]))
            version += 1
        }
        return filled
    }

    private static func walk(_ memtable: Memtable, at version: UInt64, _ direction: ScanDirection, from: Bytes?)
        -> [VersionedKey]
    {
        var cursor = MemtableCursor(memtable, version: CommitVersion(microseconds: version))
        func seek(_ key: UnsafeRawBufferPointer?) {
            if direction == .forward { cursor.seekForward(key) } else { cursor.seekBackward(key, inclusive: true) }
        }
        if let from { from.withUnsafeBytes { seek($0) } } else { seek(nil) }
        var found: [VersionedKey] = []
        while cursor.isAtEntry {
            found.append(VersionedKey(key: Bytes(cursor.key), version: cursor.entryVersion))
            cursor.step(direction)
        }
        return found
    }

    @Test(arguments: [1, Int.max])
    func `A cursor stops beyond its end, also at an entry that it does not give`(batchEntriesMin: Int) throws {
        // Most keys are newer than the version.
        let changes: [(name: VersionedKey, value: Bytes?)] = (0..<100).map { (number: UInt8) in
            (VersionedKey(key: [number], version: number % 10 == 0 ? 1 : 2), [1])
        }
        var filled = try Filled(count: 100)
        filled.add(changes, batchEntriesMin: batchEntriesMin)
        for direction in [ScanDirection.forward, .backward] {
            let (from, end): (Bytes, Bytes) = direction == .forward ? ([51], [52]) : ([59], [58])
            var cursor = MemtableCursor(filled.memtable, version: CommitVersion(microseconds: 1), end: end)
            from.withUnsafeBytes {
                if direction == .forward { cursor.seekForward($0) } else { cursor.seekBackward($0, inclusive: true) }
            }
            expect(!cursor.isAtEntry)
        }
    }

    @Test(arguments: CaseShare.of(UInt64(1)...6, 2))
    func `Lookups and cursors find in list and batches what each version sees`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let filled = try Self.filled(&random, count: 2_000)
        let memtable = filled.memtable
        defer { memtable.release() }
        expect(memtable.batchCount > 2)
        let names = filled.sorted
        for version in [0, 1, 700, 1_500, UInt64.max] {
            let seen = filled.seen(at: version)
            expectEqual(Self.walk(memtable, at: version, .forward, from: nil), seen)
            expectEqual(Self.walk(memtable, at: version, .backward, from: nil), seen.reversed())
            let from = random.pick(names).key
            let tail = seen.filter { !$0.key.lexicographicallyPrecedes(from) }
            expectEqual(Self.walk(memtable, at: version, .forward, from: from), tail)
            let head = seen.filter { $0.key == from || $0.key.lexicographicallyPrecedes(from) }
            expectEqual(Self.walk(memtable, at: version, .backward, from: from), head.reversed())
        }
        for _ in 0..<200 {
            let (key, version) = (random.pick(names).key, UInt64(random.below(2_500)))
            let entry = key.withUnsafeBytes {
                memtable.newest($0, atMost: version, listed: memtable.find($0, atMost: version))
            }
            let expected = filled.newest(key, atMost: version)
            expectEqual(entry == 0 ? nil : memtable.version(entry), expected?.version)
            if entry != 0, let expected {
                expectEqual(memtable.value(entry).map { Bytes($0) }, filled.values[expected]!)
            }
        }
    }

    @Test(arguments: UInt64(1)...4)
    func `A checkpoint's walk has every version of every key once, in order`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let filled = try Self.filled(&random, count: 3_000)
        defer { filled.memtable.release() }
        var found: [VersionedKey] = []
        var walk = MemtableWalk(filled.memtable)
        while walk.entry != 0 {
            let entry = walk.entry
            let name = VersionedKey(key: Bytes(filled.memtable.key(entry)), version: filled.memtable.version(entry))
            found.append(name)
            expectEqual(filled.memtable.value(entry).map { Bytes($0) }, filled.values[name]!)
            walk.next()
        }
        expectEqual(found, filled.sorted)
        expectEqual(filled.memtable.entryCount, found.count)
    }

    @Test
    func `Keys of which each begins like all longer ones do not exhaust the stack`() throws {
        var filled = try Filled(count: 20_000)
        defer { filled.memtable.release() }
        var changes: [(name: VersionedKey, value: Bytes?)] = []
        // Each byte divides the keys once more, with enough left for another part.
        for depth in 0..<480 {
            for other in 0..<20 as Range<UInt8> {
                let key = Bytes(repeating: 1, count: depth) + [2, other]
                changes.append((VersionedKey(key: key, version: UInt64(changes.count + 1)), []))
            }
        }
        var random = SeededGenerator(seed: 5)
        changes.shuffle(using: &random)
        filled.add(changes, batchEntriesMin: 1)
        expectEqual(Self.walk(filled.memtable, at: .max, .forward, from: nil), filled.sorted)
    }

    @Test
    func `When there are many batches further groups go to the list`() throws {
        var filled = try Filled(count: 400)
        defer { filled.memtable.release() }
        for number in 1...200 as ClosedRange<UInt64> {
            let key: Bytes = [UInt8(number % 7), UInt8(number)]
            filled.add([(VersionedKey(key: key, version: number), [1])], batchEntriesMin: 1)
        }
        expectEqual(filled.memtable.batchCount, 128)
        expectEqual(Self.walk(filled.memtable, at: .max, .backward, from: nil), filled.sorted.reversed())
    }
}
