// Which field a key path reads, found by decoding: a model is made several times, each time with another value in one
// of its fields, and the key path shows which field it follows.

import FirebaseFirestore

/// One decoding of a model from made-up values. Collects the fields that the model asks for, in the order of the calls.
final class FieldProbe {
    /// A field with a value that can be varied.
    struct Leaf {
        let path: [String]
        /// Whether the value is the identity of the document.
        let isDocumentID: Bool
        /// The value, encoded; `nil` if it cannot be compared.
        let bytes: [UInt8]?
    }

    /// The leaf that has its second value; `nil` if none has.
    private let varied: Int?
    private let firestore: Firestore
    private(set) var leaves: [Leaf] = []
    /// The types that were decoded at each path.
    private(set) var types: [[String]: [ObjectIdentifier]] = [:]
    /// Within an element of an array, which has no path.
    private var elementDepth = 0

    /// Levels of nested types; a type that contains itself ends here.
    private static let depthMax = 20

    init(varying varied: Int?, on firestore: Firestore) {
        self.varied = varied
        self.firestore = firestore
    }

    /// Makes a model.
    func make<Model: Decodable>(_ type: Model.Type) throws -> Model { try Model(from: ProbeDecoder(probe: self)) }

    func value<Value: Decodable>(_ type: Value.Type, at path: [String]) throws -> Value {
        guard path.count <= Self.depthMax else { throw Self.tooDeep(path) }
        if elementDepth == 0 { types[path, default: []].append(ObjectIdentifier(type)) }
        if let (first, second) = ProbeValues.pair(type, on: firestore) {
            return isVaried(path, bytes: Self.bytes(of: first)) ? second : first
        }
        return try Value(from: ProbeDecoder(probe: self, path: path))
    }

    /// A value that may be missing. One that cannot be made up is left out.
    func optionalValue<Value: Decodable>(_ type: Value.Type, at path: [String]) -> Value? {
        let before = leaves.count
        if let value = try? value(type, at: path) { return value }
        leaves.removeSubrange(before...)
        return nil
    }

    /// Counts a leaf.
    ///
    /// - Returns: whether it has its second value.
    func isVaried(_ path: [String], isDocumentID: Bool = false, bytes: [UInt8]? = nil) -> Bool {
        guard elementDepth == 0 else { return false }
        leaves.append(Leaf(path: path, isDocumentID: isDocumentID, bytes: bytes))
        return leaves.count - 1 == varied
    }

    /// The document that the identity of the model is taken from.
    func document(at path: [String]) -> DocumentReference {
        firestore.document(isVaried(path, isDocumentID: true) ? "probe/second" : "probe/first")
    }

    func element<Value>(_ body: () throws -> Value) rethrows -> Value {
        elementDepth += 1
        defer { elementDepth -= 1 }
        return try body()
    }

    static func bytes(of value: some Any) -> [UInt8]? {
        guard let value = value as? any Encodable else { return nil }
        return encoded(value)
    }

    private static func encoded<Value: Encodable>(_ value: Value) -> [UInt8]? {
        try? Firestore.Encoder().documentBytes(["value": value])
    }

    private static func tooDeep(_ path: [String]) -> DecodingError {
        .dataCorrupted(
            .init(codingPath: [], debugDescription: "The type contains itself: \(path.joined(separator: "."))"))
    }
}

/// Two different values of the types that documents store as one value.
enum ProbeValues {
    /// The values of a type; `nil` for types that consist of others.
    static func pair<Value>(_ type: Value.Type, on firestore: Firestore) -> (Value, Value)? {
        let pair: (Any, Any)? =
            switch type {
            case is Bool.Type: (false, true)
            // In capital and small letters, so that a computed property that changes them is not taken for the field.
            case is String.Type: ("aB0", "aB1")
            case is Date.Type: (Date(timeIntervalSince1970: 1), Date(timeIntervalSince1970: 2))
            case is Data.Type: (Data([1]), Data([2]))
            case is URL.Type: (URL(fileURLWithPath: "/a"), URL(fileURLWithPath: "/b"))
            case is UUID.Type: (UUID(uuid: uuid(1)), UUID(uuid: uuid(2)))
            case is Decimal.Type: (Decimal(3), Decimal(5))
            case is Timestamp.Type: (Timestamp(seconds: 1, nanoseconds: 0), Timestamp(seconds: 2, nanoseconds: 0))
            case is GeoPoint.Type: (GeoPoint(latitude: 1, longitude: 2), GeoPoint(latitude: 3, longitude: 4))
            case is VectorValue.Type: (VectorValue([1]), VectorValue([2]))
            case is DocumentReference.Type: (firestore.document("probe/a"), firestore.document("probe/b"))
            case let number as any BinaryInteger.Type: integers(number)
            case let number as any BinaryFloatingPoint.Type: numbers(number)
            case let cases as any CaseIterable.Type: ends(of: cases)
            default: nil
            }
        guard let (first, second) = pair, let first = first as? Value, let second = second as? Value else { return nil }
        return (first, second)
    }

    private static func integers<Number: BinaryInteger>(_ type: Number.Type) -> (Any, Any) {
        (Number(3), Number(5))
    }

    private static func numbers<Number: BinaryFloatingPoint>(_ type: Number.Type) -> (Any, Any) {
        (Number(3), Number(5))
    }

    private static func ends<Cases: CaseIterable>(of type: Cases.Type) -> (Any, Any)? {
        let all = Array(type.allCases)
        guard let first = all.first, let last = all.last, all.count > 1 else { return nil }
        return (first, last)
    }

    private static func uuid(_ last: UInt8) -> uuid_t { (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last) }
}
