// A message with a field of every kind that protobuf-c has, made by hand, as JSON and on the wire.

import Basics
import CFirestoreProto
import DocumentModel
import TestSupport
import Testing

@testable import FirestoreJSON

@Suite(.timeLimit(.minutes(20))) struct FieldKindTests {
    private static let types: [(name: String, type: ProtobufCType, kind: FieldKind)] = [
        ("int32", PROTOBUF_C_TYPE_INT32, .int32), ("sint32", PROTOBUF_C_TYPE_SINT32, .sint32),
        ("sfixed32", PROTOBUF_C_TYPE_SFIXED32, .sfixed32), ("int64", PROTOBUF_C_TYPE_INT64, .int64),
        ("sint64", PROTOBUF_C_TYPE_SINT64, .sint64), ("sfixed64", PROTOBUF_C_TYPE_SFIXED64, .sfixed64),
        ("uint32", PROTOBUF_C_TYPE_UINT32, .uint32), ("fixed32", PROTOBUF_C_TYPE_FIXED32, .fixed32),
        ("uint64", PROTOBUF_C_TYPE_UINT64, .uint64), ("fixed64", PROTOBUF_C_TYPE_FIXED64, .fixed64),
        ("float", PROTOBUF_C_TYPE_FLOAT, .float), ("double", PROTOBUF_C_TYPE_DOUBLE, .double),
        ("bool", PROTOBUF_C_TYPE_BOOL, .bool), ("enum", PROTOBUF_C_TYPE_ENUM, .enumeration),
        ("string", PROTOBUF_C_TYPE_STRING, .string), ("bytes", PROTOBUF_C_TYPE_BYTES, .bytes),
        ("message", PROTOBUF_C_TYPE_MESSAGE, .message),
    ]
    /// `test.Kinds` has field 1 + index of each type, and field 101 + index with the same type repeated; `test.Map`
    /// is an entry {1 key: string, 2 value: uint64}.
    private static let file = makeFile()
    private static let schema = Schema([file])
    private static let kinds = schema.message("test.Kinds")

    @Test func `Every kind that protobuf-c has is known`() {
        expectEqual(Self.types.map(\.type.rawValue).sorted(), Array(0..<UInt32(Self.types.count)))
        expectEqual(Set(Self.types.map(\.kind)), Set(FieldKind.allCases))
        let fields = Self.file.messages[0].fields
        expectEqual(fields.map(\.kind), Self.types.map(\.kind) + Self.types.map(\.kind))
        expectEqual(fields.map(\.isRepeated), Self.types.map { _ in false } + Self.types.map { _ in true })
        for field in fields {
            let expected = field.kind == .message ? "test.Kinds" : field.kind == .enumeration ? "test.Enum" : ""
            expectEqual(field.typeName, expected, "\(field.name)")
        }
    }

    @Test(
        arguments: [
            // The kind, JSON, and its wire bytes after the tag (protobuf.dev, "Encoding").
            ("int32", "-1", [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]), ("int32", "2147483647", nil),
            ("int32", "-2147483648", nil), ("sint32", "-1", [0x01]), ("sint32", "1", [0x02]),
            ("sint32", "2147483647", [0xFE, 0xFF, 0xFF, 0xFF, 0x0F]),
            ("sint32", "-2147483648", [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]), ("sfixed32", "-2", [0xFE, 0xFF, 0xFF, 0xFF]),
            ("uint32", "4294967295", [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]),
            ("fixed32", "4294967294", [0xFE, 0xFF, 0xFF, 0xFF]),
            ("int64", #""-9223372036854775808""#, nil), ("int64", #""9223372036854775807""#, nil),
            ("sint64", #""-9223372036854775808""#, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
            ("sint64", #""-1""#, [0x01]), ("sfixed64", #""-2""#, [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
            ("uint64", #""18446744073709551615""#, [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
            ("fixed64", #""18446744073709551614""#, [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
            ("float", "0.1", [0xCD, 0xCC, 0xCC, 0x3D]), ("float", "3.4028235e+38", nil),
            ("float", #""-Infinity""#, [0, 0, 0x80, 0xFF]), ("float", #""NaN""#, nil),
            ("double", "0.1", [0x9A, 0x99, 0x99, 0x99, 0x99, 0x99, 0xB9, 0x3F]), ("bool", "true", [1]),
            ("enum", #""ONE""#, [1]), ("string", #""é""#, [2, 0xC3, 0xA9]), ("bytes", #""AQI=""#, [2, 1, 2]),
            ("message", #"{"bool":true}"#, nil),
        ] as [(String, String, [UInt8]?)])
    func `A value of each kind has its JSON and its bytes, alone and repeated`(
        name: String, json: String, bytes: [UInt8]?
    ) throws {
        for text in ["{\"\(name)\":\(json)}", "{\"\(name)s\":[\(json),\(json)]}"] {
            let wire = try wire(text)
            try expectEqual(self.json(wire), text)
        }
        guard let bytes else { return }
        let index = try #require(Self.types.firstIndex { $0.name == name })
        var expected = ByteBuffer()
        expected.appendTag(field: index + 1, Self.types[index].kind.wireType)
        expected.append(bytes)
        try expectEqual(wire("{\"\(name)\":\(json)}"), expected.copyBytes())
        // The same bytes as an element of a packed field.
        guard Self.types[index].kind.wireType != .lengthDelimited else { return }
        var packed = ByteBuffer()
        packed.appendField(index + 101, bytes: bytes + bytes)
        try expectEqual(self.json(packed.copyBytes()), "{\"\(name)s\":[\(json),\(json)]}")
        // A last element that ends too early is refused.
        let isVarint = Self.types[index].kind.wireType == .varint
        var short = ByteBuffer()
        short.appendField(index + 101, bytes: Array(bytes.dropLast()) + (isVarint ? [0x80] : []))
        let isRefused = (try? self.json(short.copyBytes())) == nil
        expect(isRefused)
    }

    @Test(arguments: [
        ("int32", "2147483648"), ("sint32", "-2147483649"), ("sfixed32", "2147483648"), ("uint32", "4294967296"),
        ("uint32", "-1"), ("fixed32", "-1"), ("int64", "9223372036854775808"), ("sint64", "9223372036854775808"),
        ("sfixed64", "1.5"), ("uint64", "18446744073709551616"), ("uint64", "-1"), ("fixed64", "\"0x10\""),
        ("float", "1e39"), ("float", "\"inf\""), ("double", "1e309"), ("bool", "1"), ("enum", "\"TWO\""),
    ])
    func `A value outside of the range of its kind is refused, in a body and in a URL`(name: String, json: String) {
        #expect(throws: RequestError.self) { try wire("{\"\(name)\":\(json)}") }
        let text = json.replacing("\"", with: "")
        #expect(throws: RequestError.self) { try parameters(name, name == "bool" ? "yes" : text) }
    }

    @Test func `Parameters of a URL have the same bytes as a body`() throws {
        for (name, value) in [
            ("sint32", "-7"), ("fixed32", "7"), ("uint64", "18446744073709551615"), ("sfixed64", "-7"),
            ("float", "Infinity"), ("uint32", "1e3"),
        ] {
            try expectEqual(parameters(name, value), wire("{\"\(name)\":\"\(value)\"}"), "\(name)")
        }
    }

    @Test func `A map whose entry has no value has the default of its kind`() throws {
        var writer = ByteBuffer()
        writer.appendField(1, bytes: [0x0A, 1, UInt8(ascii: "a")])
        try expectEqual(json(writer.copyBytes(), "test.Map"), #"{"counts":{"a":"0"}}"#)
    }

    // MARK: Conversions

    private func wire(_ json: String) throws -> [UInt8] {
        var reader = JSONMessageReader(schema: Self.schema)
        var output = ByteBuffer()
        let bytes = Array(json.utf8)
        try reader.append(bytes.byteSpan, Self.kinds, to: &output)
        return output.copyBytes()
    }

    private func json(_ wire: [UInt8], _ type: String = "test.Kinds") throws -> String {
        var output = ByteBuffer()
        try JSONMessageWriter(schema: Self.schema).append(wire.byteSpan, Self.schema.message(type), to: &output)
        return String(repairingUTF8: output.bytes)
    }

    private func parameters(_ name: String, _ value: String) throws -> [UInt8] {
        var output = ByteBuffer()
        try ParameterReader(schema: Self.schema).append([Parameter(name, value)], Self.kinds, to: &output)
        return output.copyBytes()
    }

    // MARK: Descriptors

    /// Constants, as the generated ones are: their memory is never freed.
    private static func makeFile() -> FileDescriptor {
        let kinds = UnsafeMutablePointer<ProtobufCMessageDescriptor>.allocate(capacity: 1)
        let entry = UnsafeMutablePointer<ProtobufCMessageDescriptor>.allocate(capacity: 1)
        let map = UnsafeMutablePointer<ProtobufCMessageDescriptor>.allocate(capacity: 1)
        let enumeration = UnsafeMutablePointer<ProtobufCEnumDescriptor>.allocate(capacity: 1)
        var zero = ProtobufCEnumValue()
        var one = ProtobufCEnumValue()
        (zero.name, zero.value, one.name, one.value) = (constant("ZERO"), 0, constant("ONE"), 1)
        enumeration.initialize(to: ProtobufCEnumDescriptor())
        enumeration.pointee.name = constant("test.Enum")
        (enumeration.pointee.n_values, enumeration.pointee.values) = (2, constant([zero, one]))
        let fields = [PROTOBUF_C_LABEL_NONE, PROTOBUF_C_LABEL_REPEATED].enumerated().flatMap { block, label in
            types.enumerated().map { index, entry in
                let target: UnsafeRawPointer? =
                    entry.kind == .message
                    ? UnsafeRawPointer(kinds) : entry.kind == .enumeration ? UnsafeRawPointer(enumeration) : nil
                return field(
                    entry.name + (block == 0 ? "" : "s"), block * 100 + index + 1, label, entry.type, target)
            }
        }
        kinds.initialize(to: message("test.Kinds", fields))
        entry.initialize(
            to: message(
                "test.Map.CountsEntry",
                [
                    field("key", 1, PROTOBUF_C_LABEL_NONE, PROTOBUF_C_TYPE_STRING),
                    field("value", 2, PROTOBUF_C_LABEL_NONE, PROTOBUF_C_TYPE_UINT64),
                ]))
        map.initialize(
            to: message(
                "test.Map", [field("counts", 1, PROTOBUF_C_LABEL_REPEATED, PROTOBUF_C_TYPE_MESSAGE, entry)]))
        var file = FirestoreProtoFile()
        file.name = constant("test.proto")
        file.imports = constant([nil])
        file.messages = constant([UnsafePointer(kinds), UnsafePointer(map), UnsafePointer(entry), nil])
        file.enumerations = constant([UnsafePointer(enumeration), nil])
        file.services = constant([nil])
        return FileDescriptor(file, OneofNames())
    }

    private static func message(_ name: String, _ fields: [ProtobufCFieldDescriptor]) -> ProtobufCMessageDescriptor {
        var message = ProtobufCMessageDescriptor()
        (message.name, message.package_name) = (constant(name), constant("test"))
        (message.n_fields, message.fields) = (UInt32(fields.count), constant(fields))
        return message
    }

    private static func field(
        _ name: String, _ number: Int, _ label: ProtobufCLabel, _ type: ProtobufCType,
        _ target: UnsafeRawPointer? = nil
    ) -> ProtobufCFieldDescriptor {
        var field = ProtobufCFieldDescriptor()
        (field.name, field.id, field.label) = (constant(name), UInt32(number), label)
        (field.type, field.descriptor) = (type, target)
        return field
    }

    private static func constant(_ text: String) -> UnsafePointer<CChar> { constant(Array(text.utf8CString)) }

    private static func constant<Element>(_ elements: [Element]) -> UnsafePointer<Element> {
        let memory = UnsafeMutablePointer<Element>.allocate(capacity: elements.count)
        memory.initialize(from: elements, count: elements.count)
        return UnsafePointer(memory)
    }
}
