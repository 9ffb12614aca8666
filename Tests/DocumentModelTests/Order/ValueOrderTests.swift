// The order of values: the published table, a referee on random pairs, and "byte order of keys = order of values".

import Basics
import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ValueOrderTests {
    static func document(_ path: String) -> Value { .reference("projects/p/databases/d/documents/\(path)") }

    /// One value per line of the order, ascending; values in one group are equal.
    static let ascending: [[Value]] = [
        [nil], [false], [true], [.double(.nan)], [.double(-.infinity)], [.double(-0x1p64)],
        [.integer(.min), .double(-0x1p63)], [.integer(.min + 1)], [-2], [-1, -1.0], [-0.5], [0, 0.0, .double(-0.0)],
        [.double(.leastNonzeroMagnitude)], [1, 1.0], [.integer(1 << 53), .double(0x1p53)], [.integer(1 << 53 + 1)],
        [.integer(1 << 53 + 2), .double(0x1p53 + 2)], [.integer(.max - 1)], [.integer(.max)], [.double(0x1p63)],
        [.double(.infinity)],
        [.timestamp(TimestampValue(microseconds: -1))], [.timestamp(TimestampValue(microseconds: 0))],
        [""], ["\u{0}"], ["a"], ["a\u{0}"], ["aa"], ["e\u{301}"], ["é"], ["\u{ffff}"], ["\u{10000}"],
        [.bytes([])], [.bytes([0])], [.bytes([0, 0])], [.bytes([0, 1])], [.bytes([1])], [.bytes([255])],
        [.reference("projects/a/databases/z/documents/z/z")],
        [document("c/__id-5__")], [document("c/__id7__")], [document("c/__id10__")], [document("c/a")],
        [document("c/a/b/c")], [document("c/a!")],
        [.reference("projects/p/databases/d!/documents/a/a")],
        [.geoPoint(GeoPointValue(latitude: -1, longitude: 9))],
        [.geoPoint(GeoPointValue(latitude: 0, longitude: 0)), .geoPoint(GeoPointValue(latitude: -0.0, longitude: 0))],
        [.geoPoint(GeoPointValue(latitude: 0, longitude: 1))],
        [[]], [[nil]], [[1], [1.0]], [[1, nil]], [[2]], [["a"]],
        [.vector([])], [.vector([.nan])], [.vector([100])], [.vector([1, 2])], [.vector([1, 3])],
        [[:]], [["a": 1]], [["a": 1, "b": nil]], [["a": 2]], [["aa": 0]], [["b": 0]],
    ]

    @Test
    func `The published order, pair by pair`() {
        let flat = Self.ascending.enumerated().flatMap { rank, values in values.map { (rank: rank, value: $0) } }
        for left in flat {
            for right in flat {
                let expected = Ordering(sign: left.rank - right.rank)
                expectEqual(
                    ValueOrder.compare(left.value, right.value), expected, "\(left.value) against \(right.value)")
                expectEqual(ValueOrder.equal(left.value, right.value), expected == .equal)
                expectEqual(Ordering(sign: ReferenceOrder.compare(left.value, right.value)), expected)
                let keys = order(ValueKey.key(of: left.value), ValueKey.key(of: right.value))
                expectEqual(keys, expected, "keys of \(left.value) against \(right.value)")
            }
        }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `Byte order of keys is the order of values`(seed: UInt64) {
        var random = RandomDocuments(seed: seed)
        var values = (0..<120).map { _ in random.value(depth: 2) }
        values += RandomDocuments.integers.map { .integer($0) }
        values += RandomDocuments.doubles.map { .double($0) }
        values += RandomDocuments.texts.map { .string($0) }
        let keys = values.map { ValueKey.key(of: $0) }
        let descending = values.map { descendingKey($0) }
        let wires = values.map { $0.wireBytes }
        for left in values.indices {
            for right in values.indices {
                let expected = Ordering(sign: ReferenceOrder.compare(values[left], values[right]))
                let (leftWire, rightWire) = (wires[left], wires[right])
                let wire = ValueOrder.compare(wireA: leftWire.span.bytes, wireB: rightWire.span.bytes)
                let byKeys = order(keys[left], keys[right])
                let byDescendingKeys = order(descending[left], descending[right])
                if wire != expected || byKeys != expected || byDescendingKeys != expected.reversed {
                    Issue.record(
                        """
                        seed \(seed): \(values[left]) against \(values[right]): expected \(expected), wire \(wire), \
                        keys \(byKeys), descending \(byDescendingKeys)
                        """)
                    return
                }
                // Keys can be joined: none begins another.
                if left != right, keys[right].starts(with: keys[left]) { expectEqual(expected, .equal) }
            }
        }
    }

    static let numberKeys: [(Number, [UInt8])] = [
        (.integer(0), [0x80]),
        (.double(-0.0), [0x80]),
        (.integer(1), [0xbf, 0xf8]),
        (.double(1), [0xbf, 0xf8]),
        (.integer(-1), [0x41, 0x08]),
        (.integer(304), [0xc1, 0x39, 0xc0]),
    ]

    @Test(arguments: numberKeys.indices)
    func `Keys never change: byte vectors of numbers`(index: Int) {
        let (number, bytes) = Self.numberKeys[index]
        var writer = ByteBuffer()
        KeyEncoding.append(number: number, into: &writer)
        let written = writer.copyBytes()
        expectEqual(written, bytes)
    }

    static let valueKeys: [(Value, [UInt8])] = [
        (nil, [0x05]), (true, [0x0a, 1]), (.double(.nan), [0x0d]), (0, [0x0f, 0x80]),
        (.timestamp(TimestampValue(microseconds: 1)), [0x14, 0x80, 0, 0, 0, 0, 0, 0, 1]),
        ("a\u{0}b\u{1}", [0x19, 0x61, 1, 1, 0x62, 1, 2, 0]),
        (.bytes([2, 0xff]), [0x1e, 2, 0xff, 0]),
        (
            document("c/__id-1__"),
            [0x25, 0x70, 0, 0x64, 0, 0x3c, 0x63, 0, 0x3a, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]
        ),
        (.geoPoint(GeoPointValue(latitude: 0, longitude: 1)), [0x2d, 0x80, 0xbf, 0xf8]),
        ([0, ""], [0x32, 0x0f, 0x80, 0x19, 0, 2]),
        (.vector([0, .nan]), [0x35, 0, 2, 0x0f, 0x80, 0x0d]),
        (["a": nil], [0x37, 0x19, 0x61, 0, 0x05, 2]),
    ]

    @Test(arguments: valueKeys.indices)
    func `Keys never change: byte vectors of every type`(index: Int) {
        let (value, bytes) = Self.valueKeys[index]
        expectEqual(ValueKey.key(of: value), bytes)
    }

    @Test(arguments: [11, 12, 13] as [UInt64])
    func `Comparing and keying malformed bytes does no harm`(seed: UInt64) {
        var random = RandomDocuments(seed: seed)
        var previous: [UInt8] = [0x58, 0]
        for _ in 0..<2000 {
            var bytes = random.value().wireBytes
            for _ in 0..<1 + random.generator.below(4) where !bytes.isEmpty {
                bytes[random.generator.below(bytes.count)] = UInt8(truncatingIfNeeded: random.generator.next())
            }
            bytes.removeLast(random.generator.below(bytes.count + 1))
            let (left, right) = (bytes, previous)
            let there = ValueOrder.compare(wireA: left.span.bytes, wireB: right.span.bytes)
            let back = ValueOrder.compare(wireA: right.span.bytes, wireB: left.span.bytes)
            expectEqual(there, back.reversed, "seed \(seed)")
            var writer = ByteBuffer()
            ValueKey.append(wireValue: left.span.bytes, into: &writer)
            previous = bytes
        }
    }

    private func order(_ left: [UInt8], _ right: [UInt8]) -> Ordering {
        Ordering(sign: left.span.bytes.compareBytes(right.span.bytes))
    }

    private func descendingKey(_ value: Value) -> [UInt8] {
        let wire = value.wireBytes
        var writer = ByteBuffer()
        ValueKey.append(wireValue: wire.span.bytes, descending: true, into: &writer)
        return writer.copyBytes()
    }
}
