// What decoding refuses, with which error at which path.

import DocumentCoding
import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct DecodingErrorsTests {
    let decoder = FirestoreDecoder()

    enum Failure: Equatable {
        case typeMismatch(String)
        case valueNotFound(String)
        case keyNotFound(String)
        case dataCorrupted(String)
        case other(String)
    }

    private func failure<T: Decodable>(
        _ type: T.Type, _ fields: MapValue, by decoder: FirestoreDecoder? = nil
    ) -> (Failure, String)? {
        let decoder = decoder ?? self.decoder
        func path(_ context: DecodingError.Context) -> String {
            context.codingPath.map(\.stringValue).joined(separator: "/")
        }
        do {
            _ = try decoder.decode(type, fields)
            return nil
        } catch let error as DecodingError {
            switch error {
            case .typeMismatch(_, let context): return (.typeMismatch(path(context)), context.debugDescription)
            case .valueNotFound(_, let context): return (.valueNotFound(path(context)), context.debugDescription)
            case .keyNotFound(_, let context): return (.keyNotFound(path(context)), context.debugDescription)
            case .dataCorrupted(let context): return (.dataCorrupted(path(context)), context.debugDescription)
            @unknown default: return (.other("\(error)"), "")
            }
        } catch {
            return (.other("\(error)"), "")
        }
    }

    private func expectError<T: Decodable>(
        _ type: T.Type, _ value: Value, _ expected: Failure, _ text: String? = nil,
        _ location: SourceLocation = #_sourceLocation
    ) {
        let found = failure(Field<T>.self, ["v": value])
        expectEqual(found?.0, expected, sourceLocation: location)
        if let text { expectEqual(found?.1, text, sourceLocation: location) }
    }

    @Test func `Values of another type`() {
        expectError(Int.self, "1", .typeMismatch("v"), "Expected to decode Int but found a string/data instead.")
        expectError(Int.self, true, .typeMismatch("v"), "Expected to decode Int but found a number instead.")
        expectError(Bool.self, 1, .typeMismatch("v"), "Expected to decode Bool but found a number instead.")
        expectError(String.self, 1, .typeMismatch("v"), "Expected to decode String but found a number instead.")
        expectError(String.self, [1], .typeMismatch("v"), "Expected to decode String but found an array instead.")
        expectError(
            String.self, ["a": 1], .typeMismatch("v"), "Expected to decode String but found a dictionary instead.")
        expectError(
            Double.self, .geoPoint(GeoPointValue(latitude: 1, longitude: 1)), .typeMismatch("v"),
            "Expected to decode Double but found GeoPoint instead.")
        expectError(Date.self, "2020-01-01", .typeMismatch("v"))
        expectError(Date.self, 5, .typeMismatch("v"))
        expectError([Int].self, "a", .typeMismatch("v"))
        expectError([String: Int].self, [1], .typeMismatch("v"))
        expectError(Field<Int>.self, 1, .typeMismatch("v"))
        expectError(DocumentReference.self, "a/b", .typeMismatch("v"))
        expectError([Field<Int>].self, [["v": 1], ["v": "x"]], .typeMismatch("v/Index 1/v"))
        expectError([String: [Int]].self, ["k": [1, "x"]], .typeMismatch("v/k/Index 1"))
    }

    @Test func `Numbers that do not fit`() throws {
        expectError(Int.self, .double(45.55), .dataCorrupted("v"), "Parsed number <45.55> does not fit in Int.")
        expectError(UInt.self, -1, .dataCorrupted("v"))
        expectError(Int8.self, 128, .dataCorrupted("v"))
        expectError(Int.self, .double(.nan), .dataCorrupted("v"))
        expectError(Int64.self, .double(0x1p63), .dataCorrupted("v"))
        expectError(Float.self, .double(1e300), .dataCorrupted("v"))
        expectError(Float.self, .double(.nan), .dataCorrupted("v"))
        for double in [.infinity, -.infinity, 1e300, .leastNonzeroMagnitude] as [Double] {
            expectError(
                Decimal.self, .double(double), .dataCorrupted("v"),
                "Parsed number <\(double)> does not fit in Decimal.")
        }
        try expect(decoder.decode(Field<Decimal>.self, ["v": .double(.nan)]).v.isNaN)
        let odd = try decoder.decode(Field<Decimal>.self, ["v": .integer(1 << 53 + 1)]).v
        expectEqual(odd, Decimal(string: "9007199254740993"))
        try expectEqual(decoder.decode(Field<Int>.self, ["v": .double(3)]).v, 3)
        try expectEqual(decoder.decode(Field<Double>.self, ["v": 3]).v, 3)
        try expectEqual(decoder.decode(Field<Float>.self, ["v": 3]).v, 3)
        try expectEqual(decoder.decode(Field<UInt64>.self, ["v": .double(0x1p62)]).v, 1 << 62)
    }

    @Test func `Null and absent values`() throws {
        expectError(Int.self, nil, .valueNotFound("v"))
        expectError([Int].self, [1, nil], .valueNotFound("v/Index 1"))
        expectError([String: Int].self, ["a": nil], .valueNotFound("v/a"))
        expectError(Field<Int>.self, nil, .valueNotFound("v"))
        expectEqual(failure(Field<Int>.self, [:])?.0, .keyNotFound(""))
        expectEqual(failure(Field<Field<Int>>.self, ["v": [:]])?.0, .keyNotFound("v"))
        expectEqual(failure(Field<ExplicitNull<Int>>.self, [:])?.0, .keyNotFound(""))
        let dropped: MapValue = ["v": ["a": nil, "b": .timestamp(TimestampValue(seconds: 1, nanoseconds: 0))]]
        try expectEqual(decoder.decode(Field<[String: Date]>.self, dropped).v.keys.sorted(), ["b"])
        try expect(decoder.decode(Field<[String: URL]>.self, ["v": ["a": nil]]).v.isEmpty)
        try expect(decoder.decode(Field<[String: [String: Int]]>.self, ["v": ["a": nil]]).v.isEmpty)
        try expectEqual(decoder.decode(Field<[String: Int?]>.self, ["v": ["a": nil]]).v, ["a": nil])
    }

    @Test func `Texts that mean nothing`() {
        expectError(URL.self, "", .dataCorrupted("v"), "Invalid URL string.")
        expectError(UUID.self, "x", .dataCorrupted("v"))
        expectError(EncodedTypesTests.Named.self, "third", .dataCorrupted("v"))
        expectError(EncodedTypesTests.Numbered.self, 2, .dataCorrupted("v"))
    }

    @Test func `Firestore's types from their maps`() throws {
        let time = try decoder.decode(Field<Timestamp>.self, ["v": ["seconds": 5, "nanoseconds": 6]]).v
        expectEqual(time, Timestamp(seconds: 5, nanoseconds: 6))
        let date = try decoder.decode(Field<Date>.self, ["v": ["seconds": 5, "nanoseconds": 0]]).v
        expectEqual(date, Date(timeIntervalSince1970: 5))
        let point = try decoder.decode(Field<GeoPoint>.self, ["v": ["latitude": 5, "longitude": .double(6)]]).v
        expectEqual(point, GeoPoint(latitude: 5, longitude: 6))
        let vector = try decoder.decode(Field<VectorValue>.self, ["v": ["array": [1, .double(2)]]]).v
        expectEqual(vector, VectorValue([1, 2]))
        expectError(GeoPoint.self, ["latitude": 91, "longitude": 0], .dataCorrupted("v"))
        expectError(Timestamp.self, ["seconds": 0, "nanoseconds": -1], .dataCorrupted("v"))
    }

    @Test func `A failed attempt leaves the decoder clean`() throws {
        struct Either: Decodable {
            var number: Int?
            var fields: [String: [Int]]?
            var list: [String]?
            init(from decoder: any Decoder) throws {
                let single = try decoder.singleValueContainer()
                number = try? single.decode(Int.self)
                fields = try? single.decode([String: [Int]].self)
                list = try? single.decode([String].self)
            }
        }
        let decoded = try decoder.decode(
            [String: [Either]].self, ["v": [1, ["a": [1], "b": [2]], ["a": ["x"]], 2], "w": [7]])
        expectEqual(decoded["v"]?.map(\.number), [1, nil, nil, 2])
        expectEqual(decoded["v"]?[1].fields, ["a": [1], "b": [2]])
        expectNil(decoded["v"]?[2].fields)
        expectEqual(decoded["w"]?.first?.number, 7)
    }

    @Test func `An unkeyed container stays at an element that failed`() throws {
        struct Mixed: Decodable {
            var texts: [String] = []
            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                expectEqual(list.count, 4)
                while !list.isAtEnd {
                    if try list.decodeNil() {
                        texts.append("null")
                    } else if let number = try? list.decode(Int.self) {
                        texts.append("\(number)")
                    } else if let nested = try? list.decode(Field<Int>.self) {
                        texts.append("{\(nested.v)}")
                    } else {
                        texts.append(try list.decode(String.self))
                    }
                }
                expectEqual(list.currentIndex, 4)
                #expect(throws: DecodingError.self) { try list.decode(Int.self) }
            }
        }
        try expectEqual(
            decoder.decode(Field<Mixed>.self, ["v": [1, nil, "x", ["v": 2]]]).v.texts, ["1", "null", "x", "{2}"])
    }

    enum Keys: String, CodingKey { case a, b, c }

    /// A key with any name.
    struct Name: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Opens its nested containers, then reads `b`, and then what it has opened.
    struct Late: Decodable {
        enum Way: Int, Decodable { case keyed, unkeyed, decoder, element }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            let way = try container.decode(Way.self, forKey: .c)
            switch way {
            case .keyed:
                let nested = try container.nestedContainer(keyedBy: Name.self, forKey: .a)
                _ = try container.decode(Int.self, forKey: .b)
                expectEqual(nested.codingPath.map(\.stringValue), ["v", "a"])
                _ = try nested.decode(Int.self, forKey: Name(stringValue: "x"))
            case .unkeyed:
                var nested = try container.nestedUnkeyedContainer(forKey: .a)
                _ = try container.decode(Int.self, forKey: .b)
                expectEqual(nested.codingPath.map(\.stringValue), ["v", "a"])
                _ = try nested.decode(Int.self)
            case .decoder:
                let nested = try container.superDecoder(forKey: .a)
                _ = try container.decode(Int.self, forKey: .b)
                expectEqual(nested.codingPath.map(\.stringValue), ["v", "a"])
                _ = try Int(from: nested)
            case .element:
                var list = try container.nestedUnkeyedContainer(forKey: .a)
                let first = try list.nestedContainer(keyedBy: Name.self)
                var second = try list.nestedUnkeyedContainer()
                let third = try list.superDecoder()
                _ = try list.decode(Int.self)
                expectEqual(second.codingPath.map(\.stringValue), ["v", "a", "Index 1"])
                expectEqual(third.codingPath.map(\.stringValue), ["v", "a", "Index 2"])
                _ = try second.decode(Int.self)
                _ = try first.decode(Int.self, forKey: Name(stringValue: "x"))
            }
        }
    }

    @Test func `An error names the value that was read, also if its container was opened before others were read`() {
        func late(_ way: Late.Way, _ value: Value) -> Failure? {
            let value: Value = ["a": value, "b": 1, "c": .integer(Int64(way.rawValue))]
            return failure(Field<Late>.self, ["v": value])?.0
        }
        expectEqual(late(.keyed, ["x": "text"]), .typeMismatch("v/a/x"))
        expectEqual(late(.keyed, [:]), .keyNotFound("v/a"))
        expectEqual(late(.unkeyed, ["text"]), .typeMismatch("v/a/Index 0"))
        expectEqual(late(.decoder, "text"), .typeMismatch("v/a"))
        expectEqual(late(.element, [["x": "text"], [1], 2, 3]), .typeMismatch("v/a/Index 0/x"))
        expectEqual(late(.element, [["x": 1], ["text"], 2, 3]), .typeMismatch("v/a/Index 1/Index 0"))
    }

    @Test func `The decoder of an absent value has its key in the path`() {
        struct OfClass: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Keys.self)
                _ = try container.decodeIfPresent(Int.self, forKey: .c)
                _ = try Int(from: container.superDecoder())
            }
        }
        struct OfKey: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Keys.self)
                _ = try Int(from: container.superDecoder(forKey: .b))
            }
        }
        struct OfName: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Name.self)
                _ = try container.decodeIfPresent(Int.self, forKey: Name(stringValue: "a"))
                _ = try Int(from: container.superDecoder(forKey: Name(stringValue: "z")))
            }
        }
        for fields: MapValue in [[:], ["a": 1, "c": 3]] {
            expectEqual(failure(OfClass.self, fields)?.0, .valueNotFound("super"))
            expectEqual(failure(OfKey.self, fields)?.0, .valueNotFound("b"))
            expectEqual(failure(OfName.self, fields)?.0, .valueNotFound("z"))
            expectEqual(failure(Field<OfName>.self, ["v": .map(fields)])?.0, .valueNotFound("v/z"))
        }
        let snake = FirestoreDecoder()
        snake.keyDecodingStrategy = .convertFromSnakeCase
        expectEqual(failure(OfClass.self, ["a": 1], by: snake)?.0, .valueNotFound("super"))
    }

    @Test func `An array of as many maps as a document can have is read with nested containers`() throws {
        struct Counted: Decodable {
            var count = 0
            init(from decoder: any Decoder) throws {
                var list = try decoder.unkeyedContainer()
                while !list.isAtEnd {
                    _ = try list.nestedContainer(keyedBy: Keys.self)
                    count += 1
                }
            }
        }
        // An empty map counts 32 bytes, and the array of them is in a document.
        let count = (1 << 20) / 32 - 2
        let maps = [Value](repeating: [:], count: count)
        try expectEqual(decoder.decode(Field<Counted>.self, ["v": .array(maps)]).v.count, count)
    }

    @Test func `A missing document is nil for an optional, an error otherwise`() throws {
        let none: Field<Int>? = try decoder.decodeMissing(Field<Int>?.self)
        expectNil(none)
        #expect(throws: DecodingError.self) { try decoder.decodeMissing(Field<Int>.self) }
        try expectEqual(decoder.decode(Field<Int>?.self, ["v": 1])?.v, 1)
    }

    @Test func `A value that is decoded by itself has no key in the path`() throws {
        func path<T: Decodable>(_ type: T.Type, _ value: Any) -> String? {
            let error = #expect(throws: DecodingError.self) { try decoder.decode(type, from: value) }
            switch error {
            case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
                .dataCorrupted(let context):
                return context.codingPath.map(\.stringValue).joined(separator: "/")
            default: return nil
            }
        }
        expectEqual(path(Int.self, "x"), "")
        expectEqual(path(Int8.self, 300), "")
        expectEqual(path([Int].self, [1, "x"]), "Index 1")
        expectEqual(path([Field<Int>].self, [["v": 1], ["v": "x"]]), "Index 1/v")
        expectEqual(path([String: Int].self, ["a": "x"]), "a")
        try expectEqual(decoder.decode([Int].self, from: [1, 2]), [1, 2])
    }

    @Test func `The value at the top is a map`() {
        expectEqual(failure(Int.self, ["v": 1])?.0, .typeMismatch(""))
        expectEqual(failure(String.self, ["v": 1])?.0, .typeMismatch(""))
        expectEqual(failure([Int].self, ["v": 1])?.0, .typeMismatch(""))
        expectNil(failure([String: Int].self, ["v": 1]))
    }
}
