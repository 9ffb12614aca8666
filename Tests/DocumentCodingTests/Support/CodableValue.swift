// A value of any type as a Codable type: it takes every road through the coders' containers.

import DocumentCoding
import DocumentModel
import Foundation

/// Encodes a `Value` tree through keyed, unkeyed and single-value containers, and decodes any value by trying types.
struct CodableValue: Codable, Equatable {
    var value: Value

    struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(_ value: Value) { self.value = value }

    func encode(to encoder: any Encoder) throws {
        switch value {
        case .map(let map) where value.vectorElements == nil:
            var container = encoder.container(keyedBy: Key.self)
            for (name, value) in map.entries { try container.encode(CodableValue(value), forKey: Key(name)) }
        case .array(let elements):
            var container = encoder.unkeyedContainer()
            for element in elements { try container.encode(CodableValue(element)) }
        default:
            var container = encoder.singleValueContainer()
            switch value {
            case .null: try container.encodeNil()
            case .boolean(let boolean): try container.encode(boolean)
            case .integer(let integer): try container.encode(integer)
            case .double(let double): try container.encode(double)
            case .timestamp(let time):
                try container.encode(Timestamp(seconds: time.seconds, nanoseconds: time.nanoseconds))
            case .string(let string): try container.encode(string)
            case .bytes(let bytes): try container.encode(Data(bytes))
            case .reference(let name): try container.encode(DocumentReference(name: name, owner: nil)!)
            case .geoPoint(let point):
                try container.encode(GeoPoint(latitude: point.latitude, longitude: point.longitude))
            case .map: try container.encode(VectorValue(value.vectorElements!))
            case .array: break
            }
        }
    }

    init(from decoder: any Decoder) throws {
        let single = try decoder.singleValueContainer()
        if single.decodeNil() {
            value = .null
        } else if let boolean = try? single.decode(Bool.self) {
            value = .boolean(boolean)
        } else if let string = try? single.decode(String.self) {
            value = .string(string)
        } else if let time = try? single.decode(Timestamp.self) {
            value = .timestamp(TimestampValue(seconds: time.seconds, nanoseconds: time.nanoseconds))
        } else if let reference = try? single.decode(DocumentReference.self) {
            value = .reference(reference.name)
        } else if let point = try? single.decode(GeoPoint.self) {
            value = .geoPoint(GeoPointValue(latitude: point.latitude, longitude: point.longitude))
        } else if let vector = try? single.decode(VectorValue.self) {
            value = .vector(vector.array)
        } else if let data = try? single.decode(Data.self) {
            value = .bytes(Array(data))
        } else if var array = try? decoder.unkeyedContainer() {
            var elements: [Value] = []
            while !array.isAtEnd { elements.append(try array.decode(CodableValue.self).value) }
            value = .array(elements)
        } else if let map = try? decoder.container(keyedBy: Key.self) {
            value = .map(
                MapValue(try map.allKeys.map { ($0.stringValue, try map.decode(CodableValue.self, forKey: $0).value) }))
        } else if let integer = try? single.decode(Int64.self) {
            value = .integer(integer)
        } else {
            value = .double(try single.decode(Double.self))
        }
    }
}

extension Value {
    /// The value with doubles replaced; vectors keep theirs.
    func replacingDoubles(_ replace: (Double) -> Value) -> Value {
        if vectorElements != nil { return self }
        switch self {
        case .double(let double): return replace(double)
        case .array(let elements): return .array(elements.map { $0.replacingDoubles(replace) })
        case .map(let map): return .map(map.replacingDoubles(replace))
        default: return self
        }
    }
}

extension MapValue {
    /// The map with doubles replaced; vectors keep theirs.
    func replacingDoubles(_ replace: (Double) -> Value) -> MapValue {
        MapValue(entries.map { ($0.key, $0.value.replacingDoubles(replace)) })
    }

    /// What a program that asks for integers first sees: doubles without a fraction are integers.
    var preferringIntegers: MapValue {
        replacingDoubles { double in Int64(exactly: double).map { Value.integer($0) } ?? .double(double) }
    }

    /// Without the doubles that the encoder refuses.
    var withFiniteDoubles: MapValue { replacingDoubles { $0.isFinite ? .double($0) : .double(0.25) } }
}

/// The bytes of a document of the given fields, as the model writes them.
func documentBytes(_ fields: KeyValuePairs<String, Value>) -> [UInt8] {
    MapValue(fields.map { ($0.key, $0.value) }).documentBytes
}

extension FirestoreEncoder {
    /// The fields that a value is encoded as.
    func fields<T: Encodable>(_ value: T) throws -> MapValue {
        try withDocumentBytes(value) { try MapValue(documentBytes: $0) }
    }
}

extension FirestoreDecoder {
    /// Decodes from fields.
    func decode<T: Decodable>(_ type: T.Type, _ fields: MapValue, of document: DocumentReference? = nil) throws -> T {
        try decode(type, fromDocumentBytes: fields.documentBytes.span.bytes, of: document)
    }
}

/// A wrapper for types that cannot stand at the top.
struct Field<T> { var v: T }
extension Field: Encodable where T: Encodable {}
extension Field: Decodable where T: Decodable {}
extension Field: Equatable where T: Equatable {}
