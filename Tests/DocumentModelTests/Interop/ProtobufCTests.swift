// Interoperation with protobuf-c's generated code: it reads our bytes, and we read its.
//
// Two things are kept out of its way: strings with NUL, which its C strings cut, and minus zero in geo points, which it
// takes for the default and leaves out.

import Basics
import CFirestoreProto
import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ProtobufCTests {
    @Test("protobuf-c reads our documents and packs them into the same bytes", arguments: [1, 2, 3] as [UInt64])
    func ours(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for round in 0..<300 {
            let fields = portable(random.fields(depth: random.generator.below(5)))
            let bytes = fields.documentBytes
            let document = try #require(google__firestore__v1__document__unpack(nil, bytes.count, bytes))
            defer { google__firestore__v1__document__free_unpacked(document, nil) }
            expectEqual(tree(document), fields, "seed \(seed), round \(round)")
            var packed = [UInt8](repeating: 0, count: google__firestore__v1__document__get_packed_size(document))
            _ = google__firestore__v1__document__pack(document, &packed)
            expectEqual(packed, bytes, "seed \(seed), round \(round)")
        }
    }

    @Test("protobuf-c and we take irregular bytes for the same document", arguments: [4, 5, 6] as [UInt64])
    func irregular(seed: UInt64) throws {
        var random = RandomDocuments(seed: seed)
        for round in 0..<300 {
            let fields = portable(random.fields(depth: random.generator.below(4)))
            let bytes = random.irregularDocumentBytes(of: fields)
            let document = try #require(google__firestore__v1__document__unpack(nil, bytes.count, bytes))
            defer { google__firestore__v1__document__free_unpacked(document, nil) }
            expectEqual(tree(document), fields, "seed \(seed), round \(round)")
            // What it packs of that is a document of ours again, canonical after our rewriting.
            var packed = [UInt8](repeating: 0, count: google__firestore__v1__document__get_packed_size(document))
            _ = google__firestore__v1__document__pack(document, &packed)
            let copy = packed
            _ = try DocumentValidator.validate(fields: copy.span.bytes)
            var rewritten = ByteBuffer()
            try DocumentCanonicalizer.canonicalize(fields: copy.span.bytes, into: &rewritten)
            expectEqual(rewritten.copyBytes(), fields.documentBytes, "seed \(seed), round \(round)")
        }
    }

    // MARK: Conversion of protobuf-c's structures

    private typealias CValue = Google__Firestore__V1__Value

    private func tree(_ document: UnsafePointer<Google__Firestore__V1__Document>) -> MapValue {
        MapValue(
            (0..<document.pointee.n_fields).map { index in
                let entry = document.pointee.fields[index]!.pointee
                return (String(cString: entry.key), tree(entry.value.pointee))
            })
    }

    private func tree(_ value: CValue) -> Value {
        switch value.value_type_case {
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_NULL_VALUE: return .null
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_BOOLEAN_VALUE: return .boolean(value.boolean_value != 0)
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_INTEGER_VALUE: return .integer(value.integer_value)
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_DOUBLE_VALUE: return .double(value.double_value)
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_STRING_VALUE: return .string(String(cString: value.string_value))
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_REFERENCE_VALUE:
            return .reference(String(cString: value.reference_value))
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_BYTES_VALUE:
            return .bytes(Array(UnsafeBufferPointer(start: value.bytes_value.data, count: value.bytes_value.len)))
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_TIMESTAMP_VALUE:
            let time = value.timestamp_value.pointee
            return .timestamp(TimestampValue(seconds: time.seconds, nanoseconds: time.nanos).flooredToMicroseconds)
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_GEO_POINT_VALUE:
            let point = value.geo_point_value.pointee
            return .geoPoint(GeoPointValue(latitude: point.latitude, longitude: point.longitude))
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_ARRAY_VALUE:
            let array = value.array_value.pointee
            return .array((0..<array.n_values).map { tree(array.values[$0]!.pointee) })
        case GOOGLE__FIRESTORE__V1__VALUE__VALUE_TYPE_MAP_VALUE:
            let map = value.map_value.pointee
            return .map(
                MapValue(
                    (0..<map.n_fields).map { index in
                        let entry = map.fields[index]!.pointee
                        return (String(cString: entry.key), tree(entry.value.pointee))
                    }))
        default:
            Issue.record("no value type set")
            return .null
        }
    }

    // MARK: Strings of C

    private func portable(_ map: MapValue) -> MapValue {
        MapValue(map.entries.map { (portable($0.key), portable($0.value)) })
    }

    private func portable(_ text: String) -> String { text.replacing("\u{0}", with: "0") }

    private func portable(_ value: Value) -> Value {
        switch value {
        case .string(let text): .string(portable(text))
        case .reference(let name): .reference(portable(name))
        case .geoPoint(let point):
            .geoPoint(GeoPointValue(latitude: point.latitude + 0, longitude: point.longitude + 0))
        case .array(let elements): .array(elements.map { portable($0) })
        case .map(let map): .map(portable(map))
        default: value
        }
    }
}
