// The skip list against a sorted array.

import TestSupport
import Testing

@testable import KeyValueStore

@Suite("Overlay")
struct OverlayTests {
    private struct Item {
        var key: Bytes
        var version: UInt64
        var value: Bytes?
    }

    private func insert(_ item: Item, into overlay: Overlay) {
        item.key.withUnsafeBytes { key in
            guard let value = item.value else { return overlay.insert(key, version: item.version, value: nil) }
            value.withUnsafeBytes { overlay.insert(key, version: item.version, value: $0) }
        }
    }

    private func find(_ key: Bytes, at version: UInt64, in overlay: Overlay) -> (Bytes?, UInt64)? {
        let (node, mayBeThere) = key.withUnsafeBytes {
            (overlay.find($0, atMost: version), overlay.mayContain(hash: Overlay.hash($0)))
        }
        if node == 0 { return nil }
        #expect(mayBeThere, "the filter knows every key")
        return (overlay.value(node).map { Bytes($0) }, overlay.version(node))
    }

    private func walk(_ overlay: Overlay, at version: UInt64, _ direction: ScanDirection) -> [Bytes] {
        var cursor = OverlayCursor(overlay, version: CommitVersion(microseconds: version))
        if direction == .forward { cursor.seekForward(nil) } else { cursor.seekBackward(nil, inclusive: false) }
        var keys: [Bytes] = []
        while cursor.isAtEntry {
            keys.append(Bytes(cursor.key))
            cursor.step(direction)
        }
        return keys
    }

    @Test("Keys and versions are found as in a sorted array", arguments: UInt64(1)...6)
    func model(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let overlay = try Overlay(reservedBytes: 4 << 20)
        defer { overlay.release() }
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
            let item = Item(key: key, version: version, value: random.oneIn(5) ? nil : Bytes(repeating: 9, count: random.below(20)))
            insert(item, into: overlay)
            items.append(item)
        }
        #expect(overlay.entryCount == items.count)
        #expect(overlay.versionMax.microseconds == 800)
        for _ in 0..<300 {
            let version = UInt64(random.below(802))
            let key = random.pick(items).key
            let expected = items.last { $0.key == key && $0.version <= version }
            let found = find(key, at: version, in: overlay)
            #expect(found?.0 == expected?.value)
            #expect(found?.1 == expected?.version)
        }
        for version in [0, 1, 5, 400, 799, 800, UInt64.max] {
            let keys = Set(items.filter { $0.version <= version }.map(\.key)).sorted { $0.lexicographicallyPrecedes($1) }
            #expect(walk(overlay, at: version, .forward) == keys)
            #expect(walk(overlay, at: version, .backward) == keys.reversed())
        }
    }

    @Test("The same key at the same version is replaced")
    func sameVersion() throws {
        let overlay = try Overlay(reservedBytes: 1 << 16)
        defer { overlay.release() }
        insert(Item(key: [1], version: 5, value: [1]), into: overlay)
        insert(Item(key: [1], version: 5, value: [2, 2]), into: overlay)
        #expect(find([1], at: 5, in: overlay)?.0 == [2, 2])
        insert(Item(key: [1], version: 5, value: nil), into: overlay)
        #expect(overlay.entryCount == 1)
        let found = try #require(find([1], at: 9, in: overlay))
        #expect(found.0 == nil)
        #expect(found.1 == 5)
    }
}
