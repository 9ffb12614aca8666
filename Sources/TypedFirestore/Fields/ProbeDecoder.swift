import DocumentCoding
import FirebaseFirestore

/// A decoder that gives made-up values to whatever asks.
struct ProbeDecoder: Decoder {
    let probe: FieldProbe
    var path: [String] = []

    var codingPath: [any CodingKey] { [] }

    /// `@DocumentID` takes its document from here.
    var userInfo: [CodingUserInfoKey: Any] { [.documentReference: probe.document(at: path)] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(ProbeKeyedContainer(probe: probe, path: path))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        ProbeUnkeyedContainer(probe: probe, path: path, elements: probe.isVaried(path) ? 1 : 0)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        ProbeSingleValueContainer(probe: probe, path: path)
    }
}

/// The fields of a type, or of a dictionary.
struct ProbeKeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let probe: FieldProbe
    let path: [String]

    var codingPath: [any CodingKey] { [] }

    /// Dictionaries ask for this: theirs is empty, or has one key.
    var allKeys: [Key] { probe.isVaried(path) ? [Key(stringValue: "1")].compactMap(\.self) : [] }

    private func path(_ key: Key) -> [String] { path + [key.stringValue] }

    func contains(_ key: Key) -> Bool { true }
    func decodeNil(forKey key: Key) throws -> Bool { false }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try probe.value(type, at: path(key))
    }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        probe.optionalValue(type, at: path(key))
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        KeyedDecodingContainer(ProbeKeyedContainer<Nested>(probe: probe, path: path(key)))
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try superDecoder(forKey: key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { ProbeDecoder(probe: probe, path: path + ["super"]) }
    func superDecoder(forKey key: Key) throws -> any Decoder { ProbeDecoder(probe: probe, path: path(key)) }
}

/// The elements of an array, none or one.
struct ProbeUnkeyedContainer: UnkeyedDecodingContainer {
    let probe: FieldProbe
    let path: [String]
    let elements: Int

    var codingPath: [any CodingKey] { [] }
    var count: Int? { elements }
    var isAtEnd: Bool { currentIndex >= elements }
    private(set) var currentIndex = 0

    init(probe: FieldProbe, path: [String], elements: Int) {
        self.probe = probe
        self.path = path
        self.elements = elements
    }

    mutating func decodeNil() throws -> Bool { false }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        currentIndex += 1
        return try probe.element { try probe.value(type, at: path + ["element"]) }
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        currentIndex += 1
        return KeyedDecodingContainer(ProbeKeyedContainer<Nested>(probe: probe, path: path))
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        currentIndex += 1
        return ProbeUnkeyedContainer(probe: probe, path: path, elements: 0)
    }

    mutating func superDecoder() throws -> any Decoder {
        currentIndex += 1
        return ProbeDecoder(probe: probe, path: path)
    }
}

/// A type that stores one value.
struct ProbeSingleValueContainer: SingleValueDecodingContainer {
    let probe: FieldProbe
    let path: [String]

    var codingPath: [any CodingKey] { [] }
    func decodeNil() -> Bool { false }
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try probe.value(type, at: path) }
}
