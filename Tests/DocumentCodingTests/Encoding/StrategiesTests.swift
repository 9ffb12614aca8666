// Strategies of both coders.

import DocumentCoding
import DocumentModel
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct StrategiesTests {
    let date = Date(timeIntervalSince1970: 86_400)
    let encoder = FirestoreEncoder()
    let decoder = FirestoreDecoder()

    private func check<T: Codable & Equatable>(
        _ value: T, _ expected: Value, _ location: SourceLocation = #_sourceLocation
    ) throws {
        let fields = try encoder.fields(Field(v: value))
        expectEqual(fields, ["v": expected], sourceLocation: location)
        try expectEqual(decoder.decode(Field<T>.self, fields).v, value, sourceLocation: location)
    }

    @Test func `Dates are encoded as the strategy says`() throws {
        (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.deferredToDate, .deferredToDate)
        try check(date, .double(date.timeIntervalSinceReferenceDate))
        (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.secondsSince1970, .secondsSince1970)
        try check(date, .double(86_400))
        (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.millisecondsSince1970, .millisecondsSince1970)
        try check([date], [.double(86_400_000)])
        (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.iso8601, .iso8601)
        try check(date, "1970-01-02T00:00:00Z")
        #expect(throws: DecodingError.self) { try decoder.decode(Field<Date>.self, ["v": "yesterday"]) }
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "yyyy/MM/dd"
        (encoder.dateEncodingStrategy, decoder.dateDecodingStrategy) = (.formatted(formatter), .formatted(formatter))
        try check(date, "1970/01/02")
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode("day \(Int(date.timeIntervalSince1970) / 86_400)")
        }
        decoder.dateDecodingStrategy = .custom { decoder in
            let text = try decoder.singleValueContainer().decode(String.self)
            return Date(timeIntervalSince1970: Double(Int(text.dropFirst(4))! * 86_400))
        }
        try check(date, "day 1")
        encoder.dateEncodingStrategy = .custom { _, _ in }
        try expectEqual(encoder.fields(Field(v: date)), ["v": [:]])
    }

    @Test func `Data is encoded as the strategy says`() throws {
        let data = Data([1, 2, 255])
        (encoder.dataEncodingStrategy, decoder.dataDecodingStrategy) = (.base64, .base64)
        try check(data, "AQL/")
        (encoder.dataEncodingStrategy, decoder.dataDecodingStrategy) = (.deferredToData, .deferredToData)
        try check(data, [1, 2, 255])
        encoder.dataEncodingStrategy = .custom { data, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(data.count)
        }
        decoder.dataDecodingStrategy = .custom { decoder in
            Data(repeating: 7, count: try decoder.singleValueContainer().decode(Int.self))
        }
        try check(Data([7, 7]), 2)
        decoder.dataDecodingStrategy = .blob
        try expectEqual(decoder.decode(Field<Data>.self, ["v": "AQL/"]).v, data)
        #expect(throws: DecodingError.self) { try decoder.decode(Field<Data>.self, ["v": "not base64!"]) }
    }

    @Test func `Numbers that are not finite`() throws {
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "+", negativeInfinity: "-", nan: "?")
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "+", negativeInfinity: "-", nan: "?")
        try check([Double.infinity, -.infinity, 1], ["+", "-", .double(1)])
        let fields = try encoder.fields(Field(v: Float.nan))
        expectEqual(fields, ["v": "?"])
        try expect(decoder.decode(Field<Double>.self, fields).v.isNaN)
        #expect(throws: DecodingError.self) { try decoder.decode(Field<Double>.self, ["v": "++"]) }
        try expectEqual(FirestoreDecoder().decode(Field<Double>.self, ["v": .double(.infinity)]).v, .infinity)
    }

    struct Keyed: Codable, Equatable {
        var myURLProperty: Int
        var nestedValue: [String: Inner]
        struct Inner: Codable, Equatable { var someThing: Bool }
    }

    @Test func `Snake case for types' keys, never for dictionaries' keys`() throws {
        encoder.keyEncodingStrategy = .convertToSnakeCase
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let fields = try encoder.fields(Keyed(myURLProperty: 1, nestedValue: ["keyAsIs": .init(someThing: true)]))
        expectEqual(fields, ["my_url_property": 1, "nested_value": ["keyAsIs": ["some_thing": true]]])
        struct Back: Codable, Equatable {
            var myUrlProperty: Int
            var nestedValue: [String: Keyed.Inner]
        }
        try expectEqual(
            decoder.decode(Back.self, fields), Back(myUrlProperty: 1, nestedValue: ["keyAsIs": .init(someThing: true)]))
    }

    @Test(arguments: [
        ("simple", "simple"), ("twoWords", "two_words"), ("myURLProperty", "my_url_property"), ("URL", "url"),
        ("_outer_", "_outer_"), ("__twoWords_", "__two_words_"), ("aB", "a_b"), ("already_snake", "already_snake"),
    ])
    func `Snake case there`(key: String, expected: String) throws {
        struct AnyKey: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let fields = try encoder.fields(
            Encoding { encoder in
                var container = encoder.container(keyedBy: AnyKey.self)
                try container.encode(1, forKey: AnyKey(stringValue: key))
            })
        expectEqual(fields.entries.map(\.key), [expected])
    }

    @Test(arguments: [
        ("simple", "simple"), ("two_words", "twoWords"), ("my_url_property", "myUrlProperty"),
        ("ALLCAPS", "ALLCAPS"),
        ("ALL_CAPS", "allCaps"), ("_outer_", "_outer_"), ("__two_words_", "__twoWords_"), ("_", "_"),
    ])
    func `And back`(name: String, expected: String) throws {
        struct Keys: Decodable {
            var keys: [String]
            struct AnyKey: CodingKey {
                var stringValue: String
                var intValue: Int? { nil }
                init(stringValue: String) { self.stringValue = stringValue }
                init?(intValue: Int) { nil }
            }
            init(from decoder: any Decoder) throws {
                keys = try decoder.container(keyedBy: AnyKey.self).allKeys.map(\.stringValue)
            }
        }
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let fields = MapValue([(key: name, value: Value.integer(1))])
        try expectEqual(decoder.decode(Keys.self, fields).keys, [expected])
    }

    @Test func `Custom keys see paths in Swift names`() throws {
        let seen = Mutex<[String]>([])
        encoder.keyEncodingStrategy = .custom { path in
            seen.withLock { $0.append(path.map(\.stringValue).joined(separator: "/")) }
            return PathlessKey(stringValue: path.last!.stringValue.uppercased())
        }
        let fields = try encoder.fields(Keyed(myURLProperty: 1, nestedValue: ["asIs": .init(someThing: true)]))
        expectEqual(fields, ["MYURLPROPERTY": 1, "NESTEDVALUE": ["asIs": ["SOMETHING": true]]])
        expectEqual(seen.withLock { $0 }, ["myURLProperty", "nestedValue", "nestedValue/asIs/someThing"])
        decoder.keyDecodingStrategy = .custom { path in
            switch path.last!.stringValue {
            case "MYURLPROPERTY": PathlessKey(stringValue: "myURLProperty")
            case "NESTEDVALUE": PathlessKey(stringValue: "nestedValue")
            default: PathlessKey(stringValue: "someThing")
            }
        }
        try expectEqual(
            decoder.decode(Keyed.self, fields), Keyed(myURLProperty: 1, nestedValue: ["asIs": .init(someThing: true)]))
    }

    @Test
    func `A call uses the strategies as they are when it begins, also while other threads change them`() throws {
        struct Times: Codable, Equatable, Sendable { var all: [Date] }
        let (encoder, decoder, times) = (encoder, decoder, Times(all: Array(repeating: date, count: 20)))
        let seconds = try {
            let other = FirestoreEncoder()
            other.dateEncodingStrategy = .secondsSince1970
            return try other.documentBytes(times)
        }()
        let plain = try FirestoreEncoder().documentBytes(times)
        let failures = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for round in 0..<200 {
                if thread == 0 {
                    encoder.dateEncodingStrategy = round % 2 == 0 ? .secondsSince1970 : .timestamp
                    decoder.dateDecodingStrategy = round % 2 == 0 ? .secondsSince1970 : .timestamp
                    encoder.userInfo[CodingUserInfoKey(rawValue: "round")!] = round
                    continue
                }
                let bytes = try? encoder.documentBytes(times)
                if bytes != plain && bytes != seconds { failures.withLock { $0 += 1 } }
                // It cannot read the other form, and reads no mixture.
                let back = try? decoder.decode(Times.self, fromDocumentBytes: plain.span.bytes)
                if let back, back != times { failures.withLock { $0 += 1 } }
            }
        }
        expectEqual(failures.withLock { $0 }, 0)
    }

    struct PathlessKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
