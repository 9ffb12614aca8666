// Containers and decoders used in the ways the protocols allow, and kept for later.

import DocumentCoding
import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct DecodingContainersTests {
    enum Keys: String, CodingKey { case a, b, c }
    let decoder = FirestoreDecoder()

    /// Keeps its container and reads it later.
    struct Lazy: Decodable {
        let container: KeyedDecodingContainer<Keys>
        let decoder: any Decoder
        init(from decoder: any Decoder) throws {
            container = try decoder.container(keyedBy: Keys.self)
            self.decoder = decoder
        }
    }

    @Test func `A container that was kept is good until the document has been decoded`() throws {
        struct Holder: Decodable {
            var values: [Int] = []
            var paths: [String] = []
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Keys.self)
                let lazy = try container.decode([Lazy].self, forKey: .a)
                let other = try container.decode(Field<[Field<Int>]>.self, forKey: .b)
                for element in lazy {
                    values.append(try element.container.decode(Int.self, forKey: .c))
                    values.append(try element.decoder.container(keyedBy: Keys.self).decode(Int.self, forKey: .c))
                    do {
                        _ = try element.container.decode(String.self, forKey: .c)
                    } catch DecodingError.typeMismatch(_, let context) {
                        paths.append(context.codingPath.map(\.stringValue).joined(separator: "."))
                    }
                }
                values.append(other.v[0].v)
            }
        }
        let fields: MapValue = ["a": [["b": "x", "c": 1], ["c": 2], ["a": 0, "c": 3]], "b": ["v": [["v": 9]]]]
        for _ in 0..<3 {
            let holder = try decoder.decode(Holder.self, fields)
            expectEqual(holder.values, [1, 1, 2, 2, 3, 3, 9])
            expectEqual(holder.paths, ["a.Index 0.c", "a.Index 1.c", "a.Index 2.c"])
        }
    }

    /// Keeps the decoder of its value alone.
    struct Extracted: Decodable {
        let decoder: any Decoder
        init(from decoder: any Decoder) { self.decoder = decoder }
    }

    @Test func `The decoder of an element is good after its array has been read, also for errors`() throws {
        struct Holder: Decodable {
            var numbers: [Int] = []
            var failures = 0
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Keys.self)
                let list = try container.decode([Extracted].self, forKey: .a).map(\.decoder)
                numbers = [try Int(from: list[0]), try Field<Int>(from: list[1]).v, try [Int](from: list[2])[1]]
                for wrong in [list[0], list[1], list[2]] {
                    for read: () throws -> Void in [
                        { _ = try String(from: wrong) }, { _ = try Field<String>(from: wrong) },
                        { _ = try [String](from: wrong) }, { _ = try [String: Field<Bool>](from: wrong) },
                    ] {
                        #expect(throws: DecodingError.self) { try read() }
                        failures += 1
                    }
                }
                numbers.append(try container.decode(Int.self, forKey: .b))
            }
        }
        let fields: MapValue = ["a": [1, ["v": 2], [0, 3]], "b": 4]
        for _ in 0..<2 {
            let data: [String: Any] = ["a": [1, ["v": 2], [0, 3]], "b": 4]
            let holder = try decoder.decode([Holder].self, from: [data])
            expect(holder[0].numbers == [1, 2, 3, 4] && holder[0].failures == 12)
            try expectEqual(decoder.decode(Holder.self, fields).numbers, [1, 2, 3, 4])
        }
    }

    @Test func `After that it throws`() throws {
        let lazy = try decoder.decode(Lazy.self, ["a": 1])
        #expect(throws: DecodingError.self) { try lazy.container.decode(Int.self, forKey: .a) }
        #expect(throws: DecodingError.self) { try lazy.decoder.container(keyedBy: Keys.self) }
        expect(!lazy.container.contains(.a))
        expect(lazy.container.allKeys.isEmpty)
        // Also while another document is being decoded.
        struct Nosy: Decodable {
            let lazy: Lazy
            init(from decoder: any Decoder) throws { lazy = try Lazy(from: decoder) }
        }
        let nosy = try decoder.decode(Nosy.self, ["a": 2])
        #expect(throws: DecodingError.self) { try lazy.container.decode(Int.self, forKey: .a) }
        #expect(throws: DecodingError.self) { try nosy.lazy.decoder.singleValueContainer() }
    }

    @Test func `Nested containers and super decoders`() throws {
        class Base: Decodable {
            var base: Int
            enum Keys: CodingKey { case base }
            required init(from decoder: any Decoder) throws {
                base = try decoder.container(keyedBy: Keys.self).decode(Int.self, forKey: .base)
            }
        }
        final class Derived: Base {
            var own = 0
            enum Keys: CodingKey { case own, missing, list }
            enum ListKeys: CodingKey { case v }
            required init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Keys.self)
                own = try container.decode(Int.self, forKey: .own)
                let missing = try container.superDecoder(forKey: .missing)
                try expect(missing.singleValueContainer().decodeNil())
                var list = try container.nestedUnkeyedContainer(forKey: .list)
                expectEqual(list.codingPath.map(\.stringValue), ["list"])
                let inner = try list.nestedContainer(keyedBy: ListKeys.self)
                expectEqual(inner.codingPath.map(\.stringValue), ["list", "Index 0"])
                own += try inner.decode(Int.self, forKey: .v)
                let last = try list.superDecoder()
                own += try Int(from: last)
                try super.init(from: container.superDecoder())
            }
        }
        let derived = try decoder.decode(Derived.self, ["own": 1, "super": ["base": 5], "list": [["v": 10], 100]])
        expect(derived.own == 111 && derived.base == 5)
    }

    @Test func `Keys are all there, presence and null differ`() throws {
        struct Look: Decodable {
            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: Keys.self)
                expectEqual(container.allKeys.map(\.stringValue).sorted(), ["a", "b"])
                expect(container.contains(.a) && container.contains(.b) && !container.contains(.c))
                try expect(container.decodeNil(forKey: .a) && !container.decodeNil(forKey: .b))
                #expect(throws: DecodingError.self) { try container.decodeNil(forKey: .c) }
                try expectNil(container.decodeIfPresent(Int.self, forKey: .a))
                try expectEqual(container.decodeIfPresent(Int.self, forKey: .b), 1)
                try expectNil(container.decodeIfPresent(Int.self, forKey: .c))
                #expect(throws: DecodingError.self) { try container.decodeIfPresent(String.self, forKey: .b) }
            }
        }
        _ = try decoder.decode(Look.self, ["a": nil, "b": 1, "unknown": 2])
    }

    @Test func `Documents of one type in other shapes are read as well`() throws {
        struct Shape: Codable, Equatable {
            var a: Int?
            var b: Int?
            var c: Int?
        }
        let shapes: [(MapValue, Shape)] = [
            (["a": 1, "b": 2, "c": 3], Shape(a: 1, b: 2, c: 3)), (["c": 3], Shape(c: 3)), ([:], Shape()),
            (["_": 0, "a": 1, "aa": 0, "c": 3], Shape(a: 1, c: 3)), (["b": 2, "bb": 0, "c": 3], Shape(b: 2, c: 3)),
        ]
        for _ in 0..<2 {
            for (fields, shape) in shapes { try expectEqual(decoder.decode(Shape.self, fields), shape) }
        }
    }

    @Test func `Single-key and empty key types`() throws {
        struct One: Codable, Equatable { var only: String }
        try expectEqual(decoder.decode([One].self, from: [["only": "x"]]), [One(only: "x")])
        try expectEqual(decoder.decode(One.self, ["only": "y"]).only, "y")
        try expectEqual(FirestoreEncoder().fields(One(only: "z")), ["only": "z"])
    }

    class Shape: Decodable {
        let sides: Int
        enum CodingKeys: String, CodingKey { case sides }
        required init(from decoder: any Decoder) throws {
            sides = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .sides)
        }
    }

    final class Square: Shape {
        let edge: Int
        enum MoreKeys: String, CodingKey { case edge }
        required init(from decoder: any Decoder) throws {
            edge = try decoder.container(keyedBy: MoreKeys.self).decode(Int.self, forKey: .edge)
            try super.init(from: decoder)
        }
    }

    /// Decodes shapes of the type that a field names. Keyed containers are left out: the standard library's hand over
    /// the static type only, with any decoder.
    struct Drawing: Decodable {
        var listed: Shape
        var nested: Shape
        enum CodingKeys: String, CodingKey { case kind, list }
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            let isSquare = try container.decode(String.self, forKey: .kind) == "square"
            let type: Shape.Type = isSquare ? Square.self : Shape.self
            var list = try container.nestedUnkeyedContainer(forKey: .list)
            listed = try list.decode(type)
            nested = try list.superDecoder().singleValueContainer().decode(type)
        }
    }

    @Test func `A type that is only known at run time is decoded as itself`() throws {
        let square: MapValue = ["sides": 4, "edge": 2]
        let types: [Shape.Type] = [Shape.self, Square.self]
        for type in types {
            expect(Swift.type(of: try decoder.decode(type, square)) == type)
            expect(Swift.type(of: try decoder.decode(type, from: ["sides": 4, "edge": 2])) == type)
        }
        let some: any Decodable.Type = Square.self
        try expect(decoder.decode(some, from: ["sides": 4, "edge": 2]) is Square)
        let fields: MapValue = ["kind": "square", "list": .array([.map(square), .map(square)])]
        let drawing = try decoder.decode(Drawing.self, fields)
        expectEqual((drawing.listed as? Square)?.edge, 2)
        expectEqual((drawing.nested as? Square)?.edge, 2)
    }
}
