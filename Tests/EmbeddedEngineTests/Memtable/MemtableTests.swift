// The memtable against a sorted array.

import EngineTestSupport
import Foundation
import Storage
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct MemtableTests {
    private struct Item {
        var key: Bytes
        var version: UInt64
        var value: Bytes?
    }

    private func insert(_ item: Item, into memtable: Memtable) {
        item.key.withUnsafeBytes { key in
            guard let value = item.value else { return memtable.insert(key, version: item.version, value: nil) }
            value.withUnsafeBytes { memtable.insert(key, version: item.version, value: $0) }
        }
    }

    private func find(_ key: Bytes, at version: UInt64, in memtable: Memtable) -> (Bytes?, UInt64)? {
        let (entry, mayBeThere) = key.withUnsafeBytes {
            (memtable.find($0, atMost: version), memtable.mayContain(hash: memtable.hash($0)))
        }
        if entry == 0 { return nil }
        expect(mayBeThere, "the filter knows every key")
        return (memtable.value(entry).map { Bytes($0) }, memtable.version(entry))
    }

    private func walk(_ memtable: Memtable, at version: UInt64, _ direction: ScanDirection) -> [Bytes] {
        var cursor = MemtableCursor(memtable, version: CommitVersion(microseconds: version))
        if direction == .forward { cursor.seekForward(nil) } else { cursor.seekBackward(nil, inclusive: false) }
        var keys: [Bytes] = []
        while cursor.isAtEntry {
            keys.append(Bytes(cursor.key))
            cursor.step(direction)
        }
        return keys
    }

    @Test(arguments: UInt64(1)...6)
    func `Keys and versions are found as in a sorted array`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let memtable = try Memtable(reservedBytes: 4 << 20)
        defer { memtable.release() }
        var items: [Item] = []
        for version in 1...800 as ClosedRange<UInt64> {
            // Rising, falling and random keys, some of them with very many versions.
            let key: Bytes =
                switch random.below(4) {
                case 0: [1, UInt8(version >> 8), UInt8(truncatingIfNeeded: version)]
                case 1: [2, UInt8(255 - version >> 8), UInt8(truncatingIfNeeded: 255 - version % 256)]
                case 2: [3]
                default: (0..<(1 + random.below(3))).map { _ in random.pick([0, 1, 2, 3, 255]) }
                }
            let item = Item(
                key: key, version: version, value: random.oneIn(5) ? nil : Bytes(repeating: 9, count: random.below(20)))
            insert(item, into: memtable)
            items.append(item)
        }
        expectEqual(memtable.entryCount, items.count)
        expectEqual(memtable.versionMax.microseconds, 800)
        for _ in 0..<300 {
            let version = UInt64(random.below(802))
            let key = random.pick(items).key
            let expected = items.last { $0.key == key && $0.version <= version }
            let found = find(key, at: version, in: memtable)
            expectEqual(found?.0, expected?.value)
            expectEqual(found?.1, expected?.version)
        }
        for version in [0, 1, 5, 400, 799, 800, UInt64.max] {
            let keys = Set(items.filter { $0.version <= version }.map(\.key)).sorted {
                $0.lexicographicallyPrecedes($1)
            }
            expectEqual(walk(memtable, at: version, .forward), keys)
            expectEqual(walk(memtable, at: version, .backward), keys.reversed())
        }
    }

    @Test
    func `The same key at the same version is replaced`() throws {
        let memtable = try Memtable(reservedBytes: 1 << 16)
        defer { memtable.release() }
        insert(Item(key: [1], version: 5, value: [1]), into: memtable)
        insert(Item(key: [1], version: 5, value: [2, 2]), into: memtable)
        expectEqual(find([1], at: 5, in: memtable)?.0, [2, 2])
        insert(Item(key: [1], version: 5, value: nil), into: memtable)
        expectEqual(memtable.entryCount, 1)
        let found = try #require(find([1], at: 9, in: memtable))
        expectNil(found.0)
        expectEqual(found.1, 5)
    }

    /// Keys as indexes have them: few beginnings, long middles in common, some only as long as those.
    private func indexKey(_ random: inout SeededGenerator) -> Bytes {
        var key: Bytes = [21, UInt8(random.below(3)), UInt8(random.below(2))]
        if random.oneIn(3) { key += Bytes(repeating: 7, count: random.pick([0, 1, 7, 8, 9, 30])) }
        if random.oneIn(4) { return key }
        for _ in 0..<(1 + random.below(10)) { key.append(random.pick([0, 1, 2, 128, 255])) }
        return key
    }

    @Test(arguments: CaseShare.of(UInt64(1)...4, 2))
    func `Thousands of keys, alike at the beginning, rising, falling and random`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let count = 12_000
        let memtable = try Memtable(reservedBytes: Memtable.bytesNeeded(count: count, bytes: count * 60))
        defer { memtable.release() }
        var versions: [Bytes: [UInt64]] = [:]
        for version in 1...UInt64(count) {
            let key: Bytes =
                switch seed {
                case 1: [5, 5, 5, 5, 5, 5] + withUnsafeBytes(of: version.bigEndian) { Bytes($0) }
                case 2: [5, 5, 5, 5, 5, 5] + withUnsafeBytes(of: (UInt64.max - version).bigEndian) { Bytes($0) }
                default: indexKey(&random)
                }
            insert(Item(key: key, version: version, value: []), into: memtable)
            versions[key, default: []].append(version)
        }
        let keys = versions.keys.sorted { $0.lexicographicallyPrecedes($1) }
        expectEqual(walk(memtable, at: .max, .forward), keys)
        expectEqual(walk(memtable, at: .max, .backward), keys.reversed())
        for key in keys {
            for version in versions[key]! { expectEqual(find(key, at: version, in: memtable)?.1, version) }
            expect(find(key + [0], at: .max, in: memtable) == nil || versions[key + [0]] != nil)
        }
    }

    @Test
    func `Rising and random keys in turn fit into what was asked for`() throws {
        // The order that leaves the emptiest nodes: each full one is split again by a key between.
        var random = SeededGenerator(seed: 9)
        let count = 20_000
        let memtable = try Memtable(reservedBytes: Memtable.bytesNeeded(count: count, bytes: count * 8))
        defer { memtable.release() }
        for number in 0..<count {
            let value =
                number % 37 == 0 ? UInt64(random.below(number + 1)) << 20 + UInt64(number) : UInt64(number) << 20
            let key = withUnsafeBytes(of: value.bigEndian) { Bytes($0) }
            insert(Item(key: key, version: UInt64(number + 1), value: []), into: memtable)
        }
        expectEqual(memtable.entryCount, count)
    }

    private final class Progress: Sendable {
        let published = Atomic(0)
        let wrong = Atomic(0)
        let finished = DispatchSemaphore(value: 0)
    }

    @Test(arguments: UInt64(1)...3)
    func `Readers find what has been published while the writer inserts`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let keys = (0..<5_000).map { _ in
            indexKey(&random) + (seed == 1 ? [] : [UInt8(random.below(200)), UInt8(random.below(200))])
        }
        let memtable = try Memtable(reservedBytes: Memtable.bytesNeeded(count: keys.count, bytes: keys.count * 64))
        defer { memtable.release() }
        let progress = Progress()
        let readers = 2
        for reader in 0..<readers {
            Thread.detachNewThread {
                var random = SeededGenerator(seed: seed &* 100 + UInt64(reader))
                while true {
                    let count = progress.published.load(ordering: .acquiring)
                    if count > 0 {
                        let number = random.below(count)
                        let isFound = find(keys[number], at: UInt64(number + 1), in: memtable)?.1 == UInt64(number + 1)
                        let wrong = disorder(in: memtable, from: keys[number], at: UInt64(count)) + (isFound ? 0 : 1)
                        progress.wrong.add(wrong, ordering: .relaxed)
                    }
                    if count == keys.count { break }
                }
                progress.finished.signal()
            }
        }
        for (number, key) in keys.enumerated() {
            insert(Item(key: key, version: UInt64(number + 1), value: [1]), into: memtable)
            progress.published.store(number + 1, ordering: .releasing)
        }
        for _ in 0..<readers { try progress.finished.wait(until: "a reader has finished") }
        expectEqual(progress.wrong.load(ordering: .relaxed), 0)
    }

    /// How often a short walk in either direction meets a key out of order.
    private func disorder(in memtable: Memtable, from key: Bytes, at version: UInt64) -> Int {
        var wrong = 0
        for direction in [ScanDirection.forward, .backward] {
            var cursor = MemtableCursor(memtable, version: CommitVersion(microseconds: version))
            key.withUnsafeBytes {
                if direction == .forward { cursor.seekForward($0) } else { cursor.seekBackward($0, inclusive: true) }
            }
            var last: Bytes?
            for _ in 0..<20 where cursor.isAtEntry {
                let key = Bytes(cursor.key)
                if let last {
                    let (lower, higher) = direction == .forward ? (last, key) : (key, last)
                    if !lower.lexicographicallyPrecedes(higher) { wrong += 1 }
                }
                last = key
                cursor.step(direction)
            }
        }
        return wrong
    }
}
