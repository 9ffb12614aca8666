// Against protobuf-c's generated code: it reads our bytes, and we read what it packs.

import CFirestoreProto
import DocumentCoding
import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ProtobufCInteropTests {
    @Test("protobuf-c unpacks random documents and packs the same bytes", arguments: [11, 12, 13] as [UInt64])
    func packsTheSame(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for number in 0..<200 {
            let fields = random.fields(depth: 5).withFiniteDoubles
            let ours = try FirestoreEncoder().documentBytes(CodableValue(.map(fields)))
            let document = try #require(google__firestore__v1__document__unpack(nil, ours.count, ours))
            defer { google__firestore__v1__document__free_unpacked(document, nil) }
            // Its strings end at a zero byte: documents with one inside come back cut, so those are compared by fields.
            expectEqual(document.pointee.n_fields, fields.count, "document \(number) of seed \(seed)")
            guard !fields.holdsZeroBytes else { continue }
            var packed = [UInt8](repeating: 0, count: google__firestore__v1__document__get_packed_size(document))
            let size = google__firestore__v1__document__pack(document, &packed)
            expectEqual(size, packed.count)
            // protobuf-c leaves out a zero double of a LatLng whatever its sign; everything else is the same to the
            // byte.
            if fields.holdsNegativeZeroPoints { continue }
            expectEqual(packed, ours, "document \(number) of seed \(seed)")
            let back = try FirestoreDecoder().decode(CodableValue.self, fromDocumentBytes: packed.span.bytes)
            try expectEqual(back, FirestoreDecoder().decode(CodableValue.self, fromDocumentBytes: ours.span.bytes))
        }
    }

    @Test("protobuf-c sees the types and values we wrote") func seesValues() throws {
        struct All: Encodable {
            var a = true
            var b = -5
            var c = 2.5
            var d = Timestamp(seconds: -7, nanoseconds: 8000)
            var e = "text"
            var f = Data([1, 0, 2])
            var g = DocumentReference(name: "projects/p/databases/d/documents/x/y", owner: nil)!
            var h = GeoPoint(latitude: 1.5, longitude: -2.5)
            var i = ["one", "two"]
            var j = ["k": 1]
            @ExplicitNull var k: Int?
        }
        let bytes = try FirestoreEncoder().documentBytes(All())
        let document = try #require(google__firestore__v1__document__unpack(nil, bytes.count, bytes))
        defer { google__firestore__v1__document__free_unpacked(document, nil) }
        var values: [String: Google__Firestore__V1__Value] = [:]
        for index in 0..<document.pointee.n_fields {
            let entry = document.pointee.fields[index]!.pointee
            values[String(cString: entry.key)] = entry.value.pointee
        }
        expectEqual(values.keys.sorted(), "abcdefghijk".map(String.init))
        let a = try #require(values["a"])
        let b = try #require(values["b"])
        let c = try #require(values["c"])
        expect(a.value_type_case == GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_BOOLEAN_VALUE && a.boolean_value == 1)
        expect(b.value_type_case == GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_INTEGER_VALUE && b.integer_value == -5)
        expect(c.value_type_case == GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_DOUBLE_VALUE && c.double_value == 2.5)
        let time = try #require(values["d"]?.timestamp_value).pointee
        expect(time.seconds == -7 && time.nanos == 8000)
        expectEqual(String(cString: try #require(values["e"]?.string_value)), "text")
        let data = try #require(values["f"]?.bytes_value)
        expectEqual(Array(UnsafeBufferPointer(start: data.data, count: data.len)), [1, 0, 2])
        expect(String(cString: try #require(values["g"]?.reference_value)).hasSuffix("documents/x/y"))
        let point = try #require(values["h"]?.geo_point_value).pointee
        expect(point.latitude == 1.5 && point.longitude == -2.5)
        let list = try #require(values["i"]?.array_value).pointee
        expect(list.n_values == 2 && String(cString: list.values[1]!.pointee.string_value) == "two")
        let map = try #require(values["j"]?.map_value).pointee
        expect(map.n_fields == 1 && map.fields[0]!.pointee.value.pointee.integer_value == 1)
        expectEqual(values["k"]?.value_type_case, GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_NULL_VALUE)
    }
}

extension Value {
    fileprivate func contains(_ isWanted: (Value) -> Bool, key: (String) -> Bool) -> Bool {
        if isWanted(self) { return true }
        switch self {
        case .array(let elements): return elements.contains { $0.contains(isWanted, key: key) }
        case .map(let map): return map.entries.contains { key($0.key) || $0.value.contains(isWanted, key: key) }
        default: return false
        }
    }
}

extension MapValue {
    fileprivate var holdsZeroBytes: Bool {
        func holdsZero(_ text: String) -> Bool { text.utf8.contains(0) }
        return Value.map(self).contains(
            { value in
                switch value {
                case .string(let text), .reference(let text): holdsZero(text)
                default: false
                }
            }, key: holdsZero)
    }

    fileprivate var holdsNegativeZeroPoints: Bool {
        func isNegativeZero(_ double: Double) -> Bool { double == 0 && double.sign == .minus }
        return Value.map(self).contains(
            { value in
                if case .geoPoint(let point) = value {
                    isNegativeZero(point.latitude) || isNegativeZero(point.longitude)
                } else {
                    false
                }
            }, key: { _ in false })
    }
}
