// Value trees: equality by what is stored, byte vectors of every type, timestamps.

import Basics
import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ValueTests {
    static let typeVectors: [(Value, [UInt8])] = [
        (.null, [0x58, 0x00]),
        (false, [0x08, 0x00]),
        (true, [0x08, 0x01]),
        (0, [0x10, 0x00]),
        (300, [0x10, 0xac, 0x02]),
        (-1, [0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        (1.5, [0x19, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f]),
        (.double(-.nan), [0x19, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]),
        ("", [0x8a, 0x01, 0x00]),
        ("é", [0x8a, 0x01, 0x02, 0xc3, 0xa9]),
        (.bytes([0, 255]), [0x92, 0x01, 0x02, 0x00, 0xff]),
        (.reference("r"), [0x2a, 0x01, 0x72]),
        (.timestamp(TimestampValue(seconds: 0, nanoseconds: 0)), [0x52, 0x00]),
        (.timestamp(TimestampValue(seconds: 1, nanoseconds: 1999)), [0x52, 0x05, 0x08, 0x01, 0x10, 0xe8, 0x07]),
        (.geoPoint(GeoPointValue(latitude: 0, longitude: 1)), [0x42, 0x09, 0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
        ([], [0x4a, 0x00]),
        ([1, "a"], [0x4a, 0x0a, 0x0a, 0x02, 0x10, 0x01, 0x0a, 0x04, 0x8a, 0x01, 0x01, 0x61]),
        ([:], [0x32, 0x00]),
        (
            ["b": 1, "a": nil],
            [0x32, 0x12, 0x0a, 0x07, 0x0a, 0x01, 0x61, 0x12, 0x02, 0x58, 0x00]
                + [0x0a, 0x07, 0x0a, 0x01, 0x62, 0x12, 0x02, 0x10, 0x01]
        ),
    ]

    @Test(arguments: typeVectors)
    func `Every type has the bytes of the public schema`(value: Value, bytes: [UInt8]) throws {
        expectEqual(value.wireBytes, bytes)
        let read = try Value(wire: bytes.span.bytes)
        switch value {
        case .timestamp(let time): expectEqual(read, .timestamp(time.flooredToMicroseconds))
        default: expectEqual(read, value)
        }
    }

    @Test
    func `The last type set in a value counts, whatever the ones before it have`() throws {
        // A string that is not UTF-8, then an integer.
        let bytes: [UInt8] = [0x8a, 0x01, 0x01, 0xff, 0x10, 0x07]
        try expectEqual(Value(wire: bytes.span.bytes), 7)
        try expect(!DocumentValidator.validate(value: bytes.span.bytes).isCanonical)
    }

    @Test
    func `The document that docs/values.md spells out`() {
        let fields: MapValue = ["a": 1, "b": ["x"]]
        let first: [UInt8] = [0x12, 0x07, 0x0a, 0x01, 0x61, 0x12, 0x02, 0x10, 0x01]
        let second: [UInt8] = [
            0x12, 0x0d, 0x0a, 0x01, 0x62, 0x12, 0x08, 0x4a, 0x06, 0x0a, 0x04, 0x8a, 0x01, 0x01, 0x78,
        ]
        expectEqual(fields.documentBytes, first + second)
    }

    @Test
    func `Equality is that of stored bytes`() {
        expect(Value.integer(3) != .double(3))
        expectEqual(Value.double(.nan), .double(-.nan))
        expect(Value.double(0) != .double(-0.0))
        expect(Value.string("\u{e9}") != .string("e\u{301}"))
    }

    @Test
    func `Map entries stand sorted by bytes and the last of equal keys wins`() {
        let map: MapValue = ["z": 1, "é": 2, "\u{10000}": 3, "\u{ffff}": 4, "z": 5]
        expectEqual(map.entries.map(\.key), ["z", "é", "\u{ffff}", "\u{10000}"])
        expectEqual(map["z"], 5)
        var changed = map
        changed["z"] = nil
        expectEqual(changed.count, 3)
    }

    @Test
    func `A large map in the worst order, every key twice, is read all the same`() throws {
        let count = 50_000
        let keys = (0..<count).map { "\(2_000_000 - $0)" }
        var writer = ByteBuffer()
        for round in 0..<2 {
            for key in keys {
                writer.withLengthPrefix(field: 2) { writer in
                    writer.appendField(1, string: key)
                    writer.withLengthPrefix(field: 2) { $0.appendField(2, int64: Int64(round)) }
                }
            }
        }
        let map = try MapValue(documentBytes: writer.bytes)
        expectEqual(map.count, count)
        expectEqual(map.entries.first?.key, keys.last)
        expect(map.entries.allSatisfy { $0.value == 1 })
    }

    @Test
    func `Nesting beyond any document's is refused, not followed`() {
        var bytes: [UInt8] = [0x58, 0x00]
        for _ in 0..<5000 {
            var writer = ByteBuffer()
            writer.withLengthPrefix(field: 9) { $0.appendField(1, bytes: bytes) }
            bytes = writer.copyBytes()
        }
        let copy = bytes
        #expect(throws: InvalidDocument.self) { try Value(wire: copy.span.bytes) }
    }

    static let times: [(Int64, Int64, Int32)] = [
        (0, 0, 0), (1_500_000, 1, 500_000_000), (-1, -1, 999_999_000), (-1_000_000, -1, 0),
        (253_402_300_799_999_999, 253_402_300_799, 999_999_000), (-62_135_596_800_000_000, -62_135_596_800, 0),
    ]

    @Test(arguments: times)
    func `Microseconds are rounded down, also before 1970`(microseconds: Int64, seconds: Int64, nanoseconds: Int32) {
        let time = TimestampValue(microseconds: microseconds)
        expectEqual(time, TimestampValue(seconds: seconds, nanoseconds: nanoseconds))
        expectEqual(time.microseconds, microseconds)
        expect(time.isValid)
    }

    @Test
    func `Conversions of impossible timestamps saturate`() {
        expectEqual(TimestampValue(seconds: .max, nanoseconds: 0).microseconds, .max)
        expectEqual(TimestampValue(seconds: .min, nanoseconds: 0).microseconds, .min)
        expectEqual(TimestampValue(microseconds: .min).microseconds, .min)
        expectEqual(TimestampValue(microseconds: .max).microseconds, .max)
    }
}
