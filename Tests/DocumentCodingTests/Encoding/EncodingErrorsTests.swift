// What cannot be encoded, with which error at which path.

import DocumentCoding
import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct EncodingErrorsTests {
    struct Outer<T: Encodable>: Encodable {
        var fine = 1
        var list: [Field<T>]
    }

    private func error<T: Encodable>(_ value: T, _ encoder: FirestoreEncoder = FirestoreEncoder()) -> (
        path: String, text: String
    )? {
        do {
            _ = try encoder.documentBytes(value)
            return nil
        } catch EncodingError.invalidValue(_, let context) {
            return (context.codingPath.map(\.stringValue).joined(separator: "/"), context.debugDescription)
        } catch {
            return ("?", "\(error)")
        }
    }

    @Test func `Values no document can hold are refused at their path`() {
        expectEqual(error(Outer(list: [Field(v: Double.nan)]))?.path, "list/Index 0/v")
        expectEqual(error(Outer(list: [Field(v: 1.0), Field(v: -.infinity)]))?.path, "list/Index 1/v")
        expectEqual(error(Field(v: Float.infinity))?.path, "v")
        expectEqual(error(Field(v: UInt64.max))?.text.contains("too large"), true)
        expectEqual(error(Field(v: [UInt64.max]))?.path, "v/Index 0")
        expectEqual(error(Field(v: [[1]]))?.text.contains("Nested arrays"), true)
        expectEqual(error(Field(v: [Optional([1])]))?.text.contains("Nested arrays"), true)
        expectEqual(error(Field(v: Date(timeIntervalSince1970: 1e15)))?.path, "v")
        expectEqual(error(Field(v: Date(timeIntervalSince1970: .nan)))?.path, "v")
        expectEqual(error(["": 1])?.text.contains("must not be empty"), true)
        expectEqual(error(Field(v: ["__a__": 1]))?.path, "v")
        expectNil(error(["____": 1]))
        expectNil(error(["__a": 1]))
        expectEqual(error([String(repeating: "k", count: 1501): 1])?.text.contains("1500"), true)
    }

    @Test func `Only maps can stand at the top`() {
        for refused: (path: String, text: String)? in [
            error(1), error([1]), error("text"), error(Date()), error(Int?.none), error(Timestamp()), error(Data()),
            error(FieldValue.serverTimestamp()), error(VectorValue([1])), error(GeoPoint(latitude: 0, longitude: 0)),
        ] {
            expectEqual(refused?.path, "")
            expectEqual(refused?.text.contains("Top-level"), true)
        }
        struct Nothing: Encodable { func encode(to encoder: any Encoder) throws {} }
        expectEqual(error(Nothing())?.text.contains("did not encode any values"), true)
        expectNil(error(Optional(Field(v: 1))))
        expectNil(error(["a": 1]))
    }

    @Test func `Nesting without end is refused`() {
        final class Endless: Encodable {
            enum CodingKeys: CodingKey { case next }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(self, forKey: .next)
            }
        }
        expectEqual(error(Endless())?.text.contains("nested"), true)
        struct Nested: Encodable {
            var depth: Int
            enum CodingKeys: CodingKey { case next }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                if depth > 0 { try container.encode(Nested(depth: depth - 1), forKey: .next) }
            }
        }
        expectNil(error(Nested(depth: 30)))
    }

    @Test func `A failed attempt has no effect on what is encoded after it`() throws {
        struct Failing: Encodable {
            enum CodingKeys: CodingKey { case a, b, c, list }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(1, forKey: .c)
                try? container.encode(Double.nan, forKey: .a)
                try? container.encode([Field(v: 1.0), Field(v: .nan)], forKey: .b)
                try? container.encode(Sentinels(), forKey: .b)
                var list = container.nestedUnkeyedContainer(forKey: .list)
                try? list.encode(Field(v: Double.nan))
                try list.encode(5)
                try? list.encode(Double.infinity)
            }
            struct Sentinels: Encodable {
                enum CodingKeys: CodingKey { case stamp, broken }
                func encode(to encoder: any Encoder) throws {
                    var container = encoder.container(keyedBy: CodingKeys.self)
                    try container.encode(FieldValue.serverTimestamp(), forKey: .stamp)
                    try container.encode(Double.nan, forKey: .broken)
                }
            }
        }
        let data = try FirestoreEncoder().setData(from: Failing())
        try expectEqual(MapValue(documentBytes: data.fields.span.bytes), ["c": 1, "list": [5]])
        expect(data.transforms.isEmpty)
        // And a failed document leaves nothing for the next.
        let encoder = FirestoreEncoder()
        #expect(throws: EncodingError.self) { try encoder.documentBytes(Outer(list: [Field(v: Double.nan)])) }
        try expectEqual(encoder.fields(Field(v: 1)), ["v": 1])
    }

    @Test func `References of another database are refused when a database is named`() throws {
        let reference = DocumentReference(name: "projects/p/databases/other/documents/a/b", owner: nil)!
        #expect(throws: EncodingError.self) {
            try FirestoreEncoder().setData(from: Field(v: reference), database: "projects/p/databases/(default)")
        }
        _ = try FirestoreEncoder().setData(from: Field(v: reference), database: "projects/p/databases/other")
    }
}
