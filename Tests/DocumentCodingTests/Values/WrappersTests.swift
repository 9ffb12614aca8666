// The property wrappers with both coders, and with Foundation's.

import DocumentCoding
import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct WrappersTests {
    let encoder = FirestoreEncoder()
    let decoder = FirestoreDecoder()
    let reference = DocumentReference(name: "projects/p/databases/(default)/documents/books/b1", owner: nil)!

    struct Book: Codable, Equatable {
        @DocumentID var id: String?
        @DocumentID var reference: DocumentReference?
        var title: String
        var inner: Inner?
        struct Inner: Codable, Equatable { @DocumentID var id: String? }
    }

    @Test func `A document id is never written and comes from the document`() throws {
        var book = Book(title: "t", inner: .init())
        book.id = "ignored"
        try expectEqual(encoder.fields(book), ["inner": [:], "title": "t"])
        let decoded = try decoder.decode(Book.self, ["id": 5, "title": "t", "inner": ["id": nil]], of: reference)
        expectEqual(decoded.id, "b1")
        expectEqual(decoded.reference, reference)
        expectEqual(decoded.inner?.id, "b1")
    }

    @Test func `A document id has no meaning elsewhere`() throws {
        #expect(throws: FirestoreDecodingError.self) { try decoder.decode(Book.self, ["title": "t"]) }
        #expect(throws: FirestoreDecodingError.self) {
            try JSONDecoder().decode(Book.self, from: Data(#"{"title": "t"}"#.utf8))
        }
        #expect(throws: FirestoreEncodingError.self) { try JSONEncoder().encode(Book(title: "t")) }
        #expect(throws: FirestoreEncodingError.self) {
            try encoder.documentBytes(["a": [DocumentID<String>(wrappedValue: nil)]])
        }
    }

    @Test func `A custom type can wrap a document's identity`() throws {
        struct Path: Codable, DocumentIDWrappable {
            var path: String
            static func wrap(_ reference: DocumentReference) throws -> Path { Path(path: reference.path) }
        }
        struct Item: Codable { @DocumentID var path: Path? }
        try expectEqual(decoder.decode(Item.self, [:], of: reference).path?.path, "books/b1")
    }

    struct Stamped: Codable, Equatable {
        @ServerTimestamp var at: Date?
        @ExplicitNull var note: String?
    }

    @Test func `Nil is a server timestamp or an explicit null`() throws {
        let data = try encoder.setData(from: Stamped())
        try expectEqual(MapValue(documentBytes: data.fields.span.bytes), ["note": nil])
        expectEqual(data.transforms, [FieldTransformData(path: ["at"], operation: [0x10, 1])])
        #expect(throws: EncodingError.self) { try encoder.documentBytes(Stamped()) }
        let dictionary = try encoder.encode(Stamped())
        expect(dictionary["at"] as? FieldValue === FieldValue.serverTimestamp())
        expect(dictionary["note"] is NSNull)
        try expectEqual(decoder.decode(Stamped.self, ["at": nil, "note": nil]), Stamped())
        #expect(throws: DecodingError.self) { try decoder.decode(Stamped.self, ["note": nil]) }
        #expect(throws: DecodingError.self) { try decoder.decode(Stamped.self, ["at": nil]) }
    }

    @Test func `Values are written as themselves`() throws {
        let stamped = Stamped(at: Date(timeIntervalSince1970: 7), note: "n")
        let fields = try encoder.fields(stamped)
        expectEqual(fields, ["at": .timestamp(TimestampValue(seconds: 7, nanoseconds: 0)), "note": "n"])
        try expectEqual(decoder.decode(Stamped.self, fields), stamped)
        try expectEqual(decoder.decode(Stamped.self, from: try encoder.encode(stamped)), stamped)
    }

    @Test func `Values are keyed objects for JSON`() throws {
        struct All: Codable, Equatable {
            var time = Timestamp(seconds: 1, nanoseconds: 2)
            var point = GeoPoint(latitude: 3, longitude: 4)
            var vector = VectorValue([5])
        }
        let json = JSONEncoder()
        json.outputFormatting = .sortedKeys
        let data = try json.encode(All())
        expectEqual(
            String(decoding: data, as: UTF8.self),
            #"{"point":{"latitude":3,"longitude":4},"time":{"nanoseconds":2,"seconds":1},"#
                + #""vector":{"array":[5]}}"#)
        try expectEqual(JSONDecoder().decode(All.self, from: data), All())
        #expect(throws: FirestoreEncodingError.self) { try json.encode(["a": reference]) }
        #expect(throws: FirestoreEncodingError.self) { try json.encode(["a": FieldValue.delete()]) }
        #expect(throws: FirestoreDecodingError.self) {
            try JSONDecoder().decode([DocumentReference].self, from: Data("[{}]".utf8))
        }
    }

    @Test func `A printed model shows the wrapped values`() {
        struct Model: Codable {
            @DocumentID var id: String?
            @ServerTimestamp var added: Timestamp?
            @ExplicitNull var note: String?
        }
        var model = Model()
        expectEqual("\(model)", "Model(_id: nil, _added: nil, _note: nil)")
        model.id = "b1"
        model.added = Timestamp(seconds: 1, nanoseconds: 2)
        model.note = "n"
        expectEqual(
            "\(model)", "Model(_id: Optional(\"b1\"), _added: Optional(\(model.added!)), _note: Optional(\"n\"))")
    }
}
