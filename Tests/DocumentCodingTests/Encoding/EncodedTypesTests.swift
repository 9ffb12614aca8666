// What each Swift type is encoded as, and decoded from.

import DocumentCoding
import DocumentModel
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct EncodedTypesTests {
    let encoder = FirestoreEncoder()
    let decoder = FirestoreDecoder()

    /// Encodes a field of the value, compares, decodes it again, compares; and the same through `[String: Any]`.
    private func check<T: Codable & Equatable>(
        _ value: T, _ expected: Value, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let fields = try encoder.fields(Field(v: value))
        expectEqual(fields, ["v": expected], sourceLocation: location)
        let decoded = try decoder.decode(Field<T>.self, fields)
        expectEqual(decoded.v, value, sourceLocation: location)
        let dictionary = try encoder.encode(Field(v: value))
        let fromDictionary = try decoder.decode(Field<T>.self, from: dictionary)
        expectEqual(fromDictionary.v, value, sourceLocation: location)
        try expectEqual(DocumentFields.set(dictionary).fields, fields.documentBytes, sourceLocation: location)
    }

    @Test func `Booleans and integers of every width`() throws {
        try check(true, true)
        try check(false, false)
        try check(Int.min, .integer(.min))
        try check(Int8(-128), -128)
        try check(Int16(-32768), -32768)
        try check(Int32.max, 2_147_483_647)
        try check(Int64.max, .integer(.max))
        try check(UInt8(255), 255)
        try check(UInt16(65535), 65535)
        try check(UInt32.max, 4_294_967_295)
        try check(UInt(7), 7)
        try check(UInt64(Int64.max), .integer(.max))
    }

    @Test func `Doubles stay doubles, floats are widened`() throws {
        try check(1.0, .double(1))
        try check(-0.0, .double(-0.0))
        try check(0.1 as Float, .double(0.10000000149011612))
        try check(Decimal(string: "2.5")!, .double(2.5))
        for cents in 1...2_000 {
            let text = "\(cents / 100).\(cents % 100 < 10 ? "0" : "")\(cents % 100)"
            try check(Decimal(string: text)!, .double(Double(text)!))
        }
        try check(Decimal(string: "-1e120")!, .double(-1e120))
        try expectEqual(
            DocumentFields.set(["v": NSDecimalNumber(string: "0.07"), "w": Decimal(string: "0.14")!]).fields,
            documentBytes(["v": .double(0.07), "w": .double(0.14)]))
    }

    @Test func `Text, bytes, addresses, identifiers`() throws {
        try check("", "")
        try check("日本 😀", "日本 😀")
        try check(String(repeating: "long ", count: 100), .string(String(repeating: "long ", count: 100)))
        try check(Data(), .bytes([]))
        try check(Data([0, 255]), .bytes([0, 255]))
        try check(URL(string: "https://a.example/b?c#d")!, "https://a.example/b?c#d")
        let identifier = UUID()
        try check(identifier, .string(identifier.uuidString))
    }

    @Test func `Times are cut to microseconds`() throws {
        try check(Date(timeIntervalSince1970: -1.5), .timestamp(TimestampValue(seconds: -2, nanoseconds: 500_000_000)))
        try check(Date(timeIntervalSince1970: 0), .timestamp(TimestampValue(seconds: 0, nanoseconds: 0)))
        try check(
            Timestamp(seconds: 5, nanoseconds: 123_456_000),
            .timestamp(TimestampValue(seconds: 5, nanoseconds: 123_456_000)))
        let fields = try encoder.fields(Field(v: Timestamp(seconds: -5, nanoseconds: 999_999_999)))
        expectEqual(fields, ["v": .timestamp(TimestampValue(seconds: -5, nanoseconds: 999_999_000))])
        let untouched = try encoder.encode(Field(v: Timestamp(seconds: -5, nanoseconds: 999_999_999)))
        expect(untouched["v"] as? Timestamp == Timestamp(seconds: -5, nanoseconds: 999_999_999))
    }

    @Test func `Firestore's own types`() throws {
        try check(GeoPoint(latitude: -0.0, longitude: 180), .geoPoint(GeoPointValue(latitude: -0.0, longitude: 180)))
        try check(VectorValue([1, 2.5]), .vector([1, 2.5]))
        try check(VectorValue([]), .vector([]))
        try check(VectorValue(Array(repeating: 0.5, count: 300)), .vector(Array(repeating: 0.5, count: 300)))
        let name = "projects/p/databases/(default)/documents/a/b"
        try check(DocumentReference(name: name, owner: nil)!, .reference(name))
    }

    @Test func `Collections are encoded element by element`() throws {
        try check([1, 2, 3], [1, 2, 3])
        try check([] as [String], [])
        try check(["a", nil] as [String?], ["a", nil])
        try check([true, false], [true, false])
        try check([1.5, 2], [.double(1.5), .double(2)])
        try check([Date(timeIntervalSince1970: 1)], [.timestamp(TimestampValue(seconds: 1, nanoseconds: 0))])
        try check(Set(["only"]), ["only"])
        try check(["b": 1, "a": 2, "é": 3], ["a": 2, "b": 1, "é": 3])
        try check([:] as [String: Int], [:])
        try check(["a": nil, "b": 1] as [String: Int?], ["a": nil, "b": 1])
        try check([7: "x", -1: "y"], ["7": "x", "-1": "y"])
        try check(["my_key.with dots": ["in_ner": 1]], ["my_key.with dots": ["in_ner": 1]])
        try check([Field(v: [Field(v: 1)])], [["v": [["v": 1]]]])
        let identifier = UUID()
        try check([identifier: 1], [.string(identifier.uuidString), 1])
    }

    enum Named: String, Codable { case first, second }
    enum Numbered: Int, Codable { case one = 1 }
    enum Loaded: Codable, Equatable {
        case nothing
        case plain(Int)
        case labelled(name: String)
    }
    struct Empty: Codable, Equatable {}

    @Test func `Enumerations and empty structures`() throws {
        try check(Named.second, "second")
        try check(Numbered.one, 1)
        try check(Loaded.nothing, ["nothing": [:]])
        try check(Loaded.plain(3), ["plain": ["_0": 3]])
        try check(Loaded.labelled(name: "n"), ["labelled": ["name": "n"]])
        try check(Empty(), [:])
        try check([Named.first: 1], ["first", 1])
    }

    struct Person: Codable, Equatable {
        var zip: Int?
        var name: String
        var friends: [Person]?
    }

    @Test func `Absent optionals are left out, nested values are sorted at every level`() throws {
        try check(
            Person(zip: nil, name: "a", friends: [Person(zip: 1, name: "b", friends: nil)]),
            ["friends": [["name": "b", "zip": 1]], "name": "a"])
        try expectEqual(
            decoder.decode(Person.self, ["name": "x", "zip": nil, "friends": nil]),
            Person(zip: nil, name: "x", friends: nil))
    }

    struct LongNames: Codable, Equatable {
        var publishedBy = 1
        var publishedAt = 2
        var published = 3
        var publisher = 4
        var p = 5
    }

    @Test func `Names that share their first eight bytes are sorted too`() throws {
        let bytes = try encoder.documentBytes(LongNames())
        expectEqual(bytes, documentBytes(["p": 5, "published": 3, "publishedAt": 2, "publishedBy": 1, "publisher": 4]))
        try expect(DocumentValidator.validate(fields: bytes.span.bytes).isCanonical)
    }

    @Test func `Large documents are sorted and measured right`() throws {
        var map: [String: [String: String]] = [:]
        for index in 0..<2000 { map["key \(index * 7919 % 2000)"] = ["inner": String(repeating: "x", count: index)] }
        let fields = try encoder.fields(map)
        expectEqual(fields.count, 2000)
        let bytes = try encoder.documentBytes(map)
        // As a value, for which there is no limit of size.
        let value = Value.map(fields).wireBytes
        try expect(DocumentValidator.validate(value: value.span.bytes).isCanonical)
        expectEqual(bytes, fields.documentBytes)
        try expectEqual(decoder.decode([String: [String: String]].self, fields), map)
    }

    @Test(arguments: 1...3)
    func `Lengths of one, two and three bytes follow each other under one key`(seed: Int) throws {
        struct Pair: Encodable {
            var second: String
            var first: String
            var value: Value { ["second": .string(second), "first": .string(first)] }
        }
        struct Inner: Encodable {
            var text: String
            var pair: Pair
        }
        struct Outer: Encodable {
            var text: String
            var inner: Inner
            var pairs: [Pair]
            var map: [String: String]
            var fails: Failing?
        }
        struct Failing: Encodable {
            var text: String
            var number = Double.nan
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                try container.encode(text, forKey: .text)
                throw EncodingError.invalidValue(self, .init(codingPath: container.codingPath, debugDescription: "no"))
            }
            enum Keys: String, CodingKey { case text }
        }
        var random = SeededGenerator(seed: UInt64(seed))
        func text() -> String {
            // Around what makes the lengths of strings, maps, entries and arrays longer by a byte.
            let base = random.pick([0, 10, 25, 90, 105, 118, 16_340, 16_370])
            return String(repeating: "t", count: base + random.below(16))
        }
        func pair() -> Pair { Pair(second: text(), first: text()) }
        for _ in 0..<1_000 {
            let outer = Outer(
                text: text(), inner: Inner(text: text(), pair: pair()),
                pairs: (0..<random.below(4)).map { _ in pair() },
                map: ["k": text()], fails: random.oneIn(5) ? Failing(text: text()) : nil)
            if outer.fails != nil {
                do {
                    _ = try encoder.documentBytes(outer)
                    Issue.record("encoded a value that throws")
                } catch EncodingError.invalidValue(_, let context) {
                    expectEqual(context.codingPath.map(\.stringValue), ["fails"])
                }
                continue
            }
            let expected = documentBytes([
                "text": .string(outer.text),
                "inner": ["text": .string(outer.inner.text), "pair": outer.inner.pair.value],
                "pairs": .array(outer.pairs.map(\.value)), "map": ["k": .string(outer.map["k"]!)],
            ])
            let bytes = try encoder.documentBytes(outer)
            expectEqual(bytes, expected, "seed \(seed)")
        }
    }

    @Test func `One encoder serves several threads`() {
        let shared = encoder
        let failures = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<200 {
                let friend = Person(zip: nil, name: "f", friends: [])
                let person = Person(zip: round, name: "thread \(thread)", friends: [friend])
                let bytes = (try? shared.documentBytes(person)) ?? []
                let back = try? FirestoreDecoder().decode(Person.self, fromDocumentBytes: bytes.span.bytes)
                if back != person { failures.withLock { $0 += 1 } }
            }
        }
        expectEqual(failures.withLock { $0 }, 0)
    }
}
