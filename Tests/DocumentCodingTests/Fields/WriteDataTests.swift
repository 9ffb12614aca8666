// What writes become: fields, masks, transforms; from dictionaries and from Codable values.

import DocumentCoding
import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct WriteDataTests {
    let database: Substring = "projects/p/databases/(default)"

    private func fields(_ data: DocumentWriteData) throws -> MapValue {
        try expect(DocumentValidator.validate(fields: data.fields.span.bytes).isCanonical)
        return try MapValue(documentBytes: data.fields.span.bytes)
    }

    @Test func `A set takes keys literally and every accepted type`() throws {
        let data = try DocumentFields.set([
            "a.b": 1, "bool": true, "number": NSNumber(value: true), "double": NSNumber(value: 2.5), "int8": Int8(-3),
            "null": NSNull(), "none": Int?.none as Any, "some": Optional("x") as Any, "float": Float(0.5),
            "nan": Double.nan,
            "date": Date(timeIntervalSince1970: 1), "data": Data([1]), "list": [1, "x", ["k": []]] as [Any],
            "typed": ["x": [1.5]], "vector": VectorValue([1]), "point": GeoPoint(latitude: 1, longitude: 2),
            "ref": DocumentReference(name: "\(database)/documents/a/b", owner: nil)!,
        ])
        expect(data.mask == nil && data.transforms.isEmpty)
        try expectEqual(
            fields(data),
            [
                "a.b": 1, "bool": true, "number": true, "double": .double(2.5), "int8": -3, "null": nil, "none": nil,
                "some": "x", "float": .double(0.5), "nan": .double(.nan),
                "date": .timestamp(TimestampValue(seconds: 1, nanoseconds: 0)), "data": .bytes([1]),
                "list": [1, "x", ["k": []]], "typed": ["x": [.double(1.5)]], "vector": .vector([1]),
                "point": .geoPoint(GeoPointValue(latitude: 1, longitude: 2)),
                "ref": .reference("\(database)/documents/a/b"),
            ])
    }

    @Test
    func `What no document can hold is refused by field`() {
        struct Strange {}
        let cases: [([String: Any], String)] = [
            (["a": ["b": Strange()]], "Unsupported type: Strange (found in field a.b)"),
            (["a": [[1]]], "Nested arrays are not supported. (found in field a)"),
            (["": 1], "Document fields must not be empty."),
            (
                ["x": ["__y__": 1]],
                "Document fields cannot begin and end with \"__\" (found field __y__). (found in field x)"
            ),
            (
                ["a": FieldValue.delete()],
                "FieldValue.delete() can only be used with updateData() and setData() with merge:true "
                    + "(found in field a)"
            ),
            (
                ["a": [FieldValue.serverTimestamp()]],
                "FieldValue.serverTimestamp() is not currently supported inside arrays. (found in field a)"
            ),
            (
                ["a": UInt64.max],
                "18446744073709551615 is too large: Firestore integers are signed 64-bit integers. (found in field a)"
            ),
            (["a": FieldValue.arrayUnion([[1]])], "Nested arrays are not supported. (found in field a)"),
            (
                ["a": FieldValue.arrayUnion([FieldValue.delete()])],
                "FieldValue.delete() can only be used with updateData() and setData() (found in field a)"
            ),
        ]
        for (data, message) in cases {
            #expect(throws: InvalidUserData(message)) { try DocumentFields.set(data) }
        }
        let foreign = DocumentReference(name: "projects/q/databases/d/documents/a/b", owner: nil)!
        #expect(throws: InvalidUserData.self) { try DocumentFields.set(["r": foreign], database: database) }
    }

    @Test func `Sentinels become transforms`() throws {
        let data = try DocumentFields.set([
            "stamp": FieldValue.serverTimestamp(),
            "deep": ["count": FieldValue.increment(Int64(5)), "kept": 1],
        ])
        try expectEqual(fields(data), ["deep": ["kept": 1]])
        expectEqual(
            data.transforms.sorted { $0.path.count < $1.path.count },
            [
                FieldTransformData(path: ["stamp"], operation: [0x10, 1]),
                FieldTransformData(path: ["deep", "count"], operation: [0x1a, 2, 0x10, 5]),
            ])
        func operation(_ sentinel: FieldValue) throws -> [UInt8] {
            try DocumentFields.set(["a": sentinel]).transforms[0].operation
        }
        try expectEqual(operation(.increment(1.5)), [0x1a, 9, 0x19, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f])
        try expectEqual(operation(.maximum(Int64(1))), [0x22, 2, 0x10, 1])
        try expectEqual(operation(.minimum(Int64(1))), [0x2a, 2, 0x10, 1])
        try expectEqual(operation(.arrayUnion([1, true])), [0x32, 8, 0x0a, 2, 0x10, 1, 0x0a, 2, 0x08, 1])
        try expectEqual(operation(.arrayRemove([])), [0x3a, 0])
    }

    /// Encodes values under one key, one after the other.
    private struct Repeated: Encodable {
        enum Keys: String, CodingKey { case a, b, z }
        var values: [any Encodable]
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(0, forKey: .z)
            for value in values { try container.encode(value, forKey: .a) }
            try container.encode(1, forKey: .b)
        }
    }

    @Test func `Of a sentinel and a value under one key the last one is written`() throws {
        let (stamp, gone) = (FieldValue.serverTimestamp(), FieldValue.delete())
        let encoder = FirestoreEncoder()
        for nested in [false, true] {
            func data(_ values: [any Encodable]) throws -> DocumentWriteData {
                try encoder.mergeData(
                    from: nested ? Repeated(values: [Repeated(values: values)]) : Repeated(values: values))
            }
            func expected(_ a: Value?) -> MapValue {
                var fields: MapValue = ["b": 1, "z": 0]
                if let a { fields["a"] = a }
                return nested ? ["a": .map(fields), "b": 1, "z": 0] : fields
            }
            let path = nested ? ["a", "a"] : ["a"]
            let name = path.joined(separator: ".")
            for values: [any Encodable] in [[1, stamp], [gone, stamp], [1, gone, 2, stamp], [["x": 1], stamp]] {
                let data = try data(values)
                try expectEqual(fields(data), expected(nil))
                expect(data.transforms.map(\.path) == [path] && data.mask?.contains(name) == false)
            }
            for (values, last) in [([stamp, 7], 7), ([gone, 7], 7), ([5, stamp, 7], 7)] as [([any Encodable], Value)] {
                let data = try data(values)
                try expectEqual(fields(data), expected(last))
                expect(data.transforms.isEmpty && data.mask?.filter { $0 == name }.count == 1)
            }
            let removed = try data([stamp, 5, gone])
            try expectEqual(fields(removed), expected(nil))
            expect(removed.transforms.isEmpty && removed.mask?.filter { $0 == name }.count == 1)
        }
    }

    @Test func `A merge names its leaves`() throws {
        let data = try DocumentFields.merge([
            "a": ["b": 1, "c d": ["e": [1, 2]]], "empty": [:] as [String: Any], "gone": FieldValue.delete(),
            "only": ["stamp": FieldValue.serverTimestamp()], "v": VectorValue([1]),
            "nested": ["gone": FieldValue.delete(), "kept": 2],
        ])
        expectEqual(data.mask, ["a.`c d`.e", "a.b", "empty", "gone", "nested.gone", "nested.kept", "v"].sorted())
        expectEqual(data.transforms.map(\.path), [["only", "stamp"]])
        try expectEqual(DocumentFields.merge([:]).mask, [])
    }

    @Test func `A merge of named fields takes those`() throws {
        let all: [String: Any] = [
            "a": ["b": 1, "c": 2], "n": FieldValue.increment(Int64(1)), "m": FieldValue.serverTimestamp(),
            "gone": FieldValue.delete(),
        ]
        let data = try DocumentFields.merge(
            all, fields: [FieldPath(["a", "b"]), FieldPath(["n"]), FieldPath(["gone"]), FieldPath(["a", "b"])])
        expectEqual(data.mask, ["a.b", "gone"])
        expectEqual(data.transforms.map(\.path), [["n"]])
        #expect(throws: InvalidUserData("Field 'a.x' is specified in your field mask but not in your input data.")) {
            try DocumentFields.merge(all, fields: [FieldPath(["a", "x"])])
        }
        try expectEqual(DocumentFields.merge(all, fields: []).mask, [])
    }

    @Test func `An update splits dotted keys and keeps the mask to them`() throws {
        let data = try DocumentFields.update([
            "a.b": 1, FieldPath(["a", "c.d"]): ["whole": true], "gone": FieldValue.delete(),
            "x.gone": FieldValue.delete(),
            "n.count": FieldValue.increment(Int64(1)), "list": [1],
        ])
        expectEqual(data.mask, ["a.`c.d`", "a.b", "gone", "list", "x.gone"])
        expectEqual(data.transforms.map(\.path), [["n", "count"]])
        let written = try fields(data)
        expectEqual(written["a"], ["b": 1, "c.d": ["whole": true]])
        expect(written["list"] == [1] && written["gone"] == nil)
        #expect(throws: InvalidUserData.self) { try DocumentFields.update(["a": ["b": FieldValue.delete()]]) }
        #expect(throws: InvalidUserData.self) { try DocumentFields.update(["a": 1, "a.b": 2]) }
        #expect(throws: InvalidUserData.self) { try DocumentFields.update(["a..b": 1]) }
        #expect(throws: InvalidUserData.self) { try DocumentFields.update([5: 1]) }
        try expectEqual(DocumentFields.update([:]).mask, [])
    }

    @Test func `Fields whose names are the same text in other bytes are different fields`() throws {
        let (composed, decomposed) = (FieldPath(["\u{e9}"]), FieldPath(["e\u{301}"]))
        let data = try DocumentFields.update([composed: 1, decomposed: FieldValue.serverTimestamp()])
        expectEqual(data.mask.map { $0.map { Array($0.utf8) } }, [Array("`\u{e9}`".utf8)])
        expectEqual(data.transforms.map { Array($0.path[0].utf8) }, [Array("e\u{301}".utf8)])
        let inside = try DocumentFields.update([FieldPath(["\u{e9}", "a"]): 1, decomposed: 2])
        expectEqual(inside.mask?.count, 2)
        #expect(throws: InvalidUserData.self) {
            try DocumentFields.update([
                FieldPath(["\u{e9}", "a"]): FieldValue.delete(), decomposed: ["a": FieldValue.delete()],
            ])
        }
        #expect(throws: InvalidUserData.self) { try DocumentFields.merge(["\u{e9}": 1], fields: [decomposed]) }
        #expect(throws: InvalidUserData.self) {
            try DocumentFields.merge(["\u{e9}": FieldValue.delete()], fields: [decomposed])
        }
    }

    @Test func `Operands of queries hold no sentinels`() throws {
        try expectEqual(DocumentFields.value(5), [0x10, 5])
        try expectEqual(DocumentFields.value(["a": [1]]), Value.map(["a": [1]]).wireBytes)
        try expectEqual(DocumentFields.value(NSNull()), [0x58, 0])
        #expect(throws: InvalidUserData.self) { try DocumentFields.value(FieldValue.delete()) }
        #expect(throws: InvalidUserData.self) { try DocumentFields.value(["a": FieldValue.serverTimestamp()]) }
    }

    @Test func `Reading gives the SDK's types`() throws {
        let owner = NSObject()
        let bytes = documentBytes([
            "b": true, "i": 3, "d": .double(1.5), "n": nil, "s": "text",
            "t": .timestamp(TimestampValue(seconds: 1, nanoseconds: 5000)),
            "y": .bytes([9]), "v": .vector([1, 2]), "l": [1, ["k": "v"]], "r": .reference("\(database)/documents/a/b"),
            "g": .geoPoint(GeoPointValue(latitude: 1, longitude: 2)),
        ])
        let data = try DocumentFields.dictionary(from: bytes.span.bytes, owner: owner)
        expect(
            data["b"] as? Bool == true && data["i"] as? Int == 3 && data["i"] as? Double == 3
                && data["d"] as? Double == 1.5)
        expect(data["n"] is NSNull && data["s"] as? String == "text")
        expect(data["t"] as? Timestamp == Timestamp(seconds: 1, nanoseconds: 5000))
        expect(data["y"] as? Data == Data([9]) && data["v"] as? VectorValue == VectorValue([1, 2]))
        expectEqual((data["l"] as? [Any])?.count, 2)
        expect((data["r"] as? DocumentReference)?.owner === owner)
        expect(data["g"] as? GeoPoint == GeoPoint(latitude: 1, longitude: 2))
        let inner = documentBytes(["a": ["b.c": [7, 8]]])
        try expect(
            DocumentFields.value(at: FieldPath(["a", "b.c"]), in: inner.span.bytes, owner: nil) as? [Int] == [7, 8])
        try expectNil(DocumentFields.value(at: FieldPath(["a", "b"]), in: inner.span.bytes, owner: nil))
        try expect(DocumentFields.dictionary(from: [UInt8]().span.bytes, owner: nil).isEmpty)
    }

    struct Person: Codable {
        var name: String
        var age: Int?
        @ServerTimestamp var seen: Timestamp?
        var tags: FieldValueBox?
        var address: [String: String]?
    }
    struct FieldValueBox: Codable {
        var value: FieldValue
        init(_ value: FieldValue) { self.value = value }
        init(from decoder: any Decoder) throws { fatalError("only encoded") }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(value)
        }
    }

    @Test func `Codable values for sets and merges`() throws {
        let encoder = FirestoreEncoder()
        let person = Person(name: "n", tags: FieldValueBox(.arrayUnion(["x"])), address: ["street": "s"])
        let set = try encoder.setData(from: person)
        try expectEqual(fields(set), ["address": ["street": "s"], "name": "n"])
        expectEqual(Set(set.transforms.map(\.path)), [["seen"], ["tags"]])
        let merge = try encoder.mergeData(from: person)
        expectEqual(merge.mask, ["address.street", "name"])
        let named = try encoder.mergeData(from: person, fields: [FieldPath(["name"]), FieldPath(["seen"])])
        expect(named.mask == ["name"] && named.transforms.map(\.path) == [["seen"]])
        #expect(throws: InvalidUserData.self) { try encoder.mergeData(from: person, fields: [FieldPath(["age"])]) }
        let deleting = Person(name: "n", tags: FieldValueBox(.delete()))
        #expect(throws: EncodingError.self) { try encoder.setData(from: deleting) }
        try expectEqual(encoder.mergeData(from: deleting).mask, ["name", "tags"])
        #expect(throws: EncodingError.self) { try encoder.setData(from: ["a": [FieldValueBox(.serverTimestamp())]]) }
    }

    @Test func `Codable and dictionary forms give the same document`() throws {
        let encoder = FirestoreEncoder()
        let person = Person(
            name: "n", age: 3, tags: FieldValueBox(.increment(Int64(1))), address: ["b": "1", "a": "2"])
        let direct = try encoder.setData(from: person)
        let throughDictionary = try DocumentFields.set(try encoder.encode(person))
        expectEqual(direct.fields, throughDictionary.fields)
        expectEqual(Set(direct.transforms.map(\.path)), Set(throughDictionary.transforms.map(\.path)))
    }
}
