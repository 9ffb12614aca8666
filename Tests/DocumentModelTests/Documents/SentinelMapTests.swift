// BSON values: which sentinel maps are accepted, how they are kept, and where they stand in the order.

import Basics
import TestSupport
import Testing

@testable import DocumentModel

@Suite(.timeLimit(.minutes(20)))
struct SentinelMapTests {
    private static func map(_ key: String, _ content: Value) -> Value { .map(MapValue([(key, content)])) }

    private static func regex(_ pattern: String, _ options: String) -> Value {
        map("__regex__", .map(MapValue([("pattern", .string(pattern)), ("options", .string(options))])))
    }

    private static func timestamp(_ seconds: Int64, _ increment: Int64) -> Value {
        map(
            "__request_timestamp__",
            .map(MapValue([("seconds", .integer(seconds)), ("increment", .integer(increment))])))
    }

    /// In increasing order.
    private static let ordered: [Value] = [
        .null, map("__min__", .null), .boolean(true), map("__decimal128__", .string("NaN")),
        map("__decimal128__", .string("-Infinity")), .double(-2.5), map("__int__", .integer(-2)), .integer(7),
        map("__decimal128__", .string("7.25")), map("__int__", .integer(8)), map("__decimal128__", .string("Infinity")),
        .timestamp(TimestampValue(seconds: 9, nanoseconds: 0)), timestamp(1, 9), timestamp(2, 1), timestamp(2, 2),
        .string("z"), .bytes([0xff]), map("__binary__", .bytes([1])), map("__binary__", .bytes([1, 0])),
        map("__binary__", .bytes([2])), .reference("projects/p/databases/d/documents/c/x"),
        map("__oid__", .string("507f191e810c19729de860ea")), map("__oid__", .string("607f191e810c19729de860ea")),
        .geoPoint(GeoPointValue(latitude: 1, longitude: 1)), regex("a", "i"), regex("a", "m"), regex("b", ""),
        .array([.integer(1)]), .vector([1]), .map(MapValue([("a", .null)])), map("__max__", .null),
    ]

    private func validate(_ value: Value) throws -> DocumentValidator.Result {
        var writer = ByteBuffer()
        value.encode(into: &writer)
        return try DocumentValidator.validate(value: writer.bytes)
    }

    @Test
    func `They are accepted, canonical, and sorted among the other values, in order and in keys`() throws {
        for value in Self.ordered { try expect(validate(value).isCanonical, "\(value)") }
        for (index, left) in Self.ordered.enumerated() {
            for (other, right) in Self.ordered.enumerated() {
                let wanted: Ordering = index < other ? .less : index > other ? .greater : .equal
                expectEqual(ValueOrder.compare(left, right), wanted, "\(left) and \(right)")
                let leftKey = ValueKey.key(of: left)
                let rightKey = ValueKey.key(of: right)
                expectEqual(
                    Ordering(sign: leftKey.span.bytes.compareBytes(rightKey.span.bytes)), wanted, "\(left) and \(right)"
                )
            }
        }
    }

    @Test
    func `Numbers are equal whatever their type`() {
        let sevens: [Value] = [
            .integer(7), .double(7), Self.map("__int__", .integer(7)), Self.map("__decimal128__", .string("7.0")),
            Self.map("__decimal128__", .string("70e-1")),
        ]
        for left in sevens {
            for right in sevens {
                expect(ValueOrder.equal(left, right))
                expectEqual(ValueKey.key(of: left), ValueKey.key(of: right))
            }
        }
    }

    @Test(arguments: [
        map("__min__", .integer(1)), map("__int__", .integer(1 << 31)), map("__int__", .double(1)),
        map("__decimal128__", .string("one")), map("__decimal128__", .string("1e")),
        map("__decimal128__", .string("")),
        map("__oid__", .string("507f")), map("__oid__", .string("507f191e810c19729de860eg")),
        map("__binary__", .bytes([])),
        map("__regex__", .string("a")), map("__regex__", .map(MapValue([("pattern", .string("a"))]))),
        timestamp(-1, 0), timestamp(0, 1 << 32), .map(MapValue([("__min__", .null), ("a", .null)])),
        .map(MapValue([("__max__", .null), ("__min__", .null)])), map("__other__", .null),
    ])
    func `What is not exactly a sentinel map is refused`(value: Value) {
        #expect(throws: InvalidDocument.self) { try validate(value) }
    }

    @Test
    func `An unknown regex option is named as such`() {
        do {
            _ = try validate(Self.regex("hello", "l"))
            Issue.record("an unknown option was accepted")
        } catch {
            expectEqual((error as? InvalidDocument)?.message.contains("Invalid regex option"), true)
        }
    }

    @Test
    func `As a field of the document itself the keys stay reserved`() {
        let fields = MapValue([("__min__", .null)]).documentBytes
        #expect(throws: InvalidDocument.self) { try DocumentValidator.validate(fields: fields.span.bytes) }
    }

    @Test(arguments: [("inf", "Infinity"), ("-INF", "-Infinity"), ("nan", "NaN")])
    func `Infinities and NaN of decimals have one spelling`(given: String, kept: String) throws {
        let value = Self.map("__decimal128__", .string(given))
        try expect(!validate(value).isCanonical)
        var wire = ByteBuffer()
        value.encode(into: &wire)
        var canonical = ByteBuffer()
        try DocumentCanonicalizer.canonicalize(value: wire.bytes, into: &canonical)
        try expectEqual(Value(wire: canonical.bytes), Self.map("__decimal128__", .string(kept)))
        try expect(DocumentValidator.validate(value: canonical.bytes).isCanonical)
    }
}
