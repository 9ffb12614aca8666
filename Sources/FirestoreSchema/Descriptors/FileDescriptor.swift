// The descriptors of files, messages, enumerations and services. Field numbers: google/protobuf/descriptor.proto.

internal import DocumentModel

/// One `.proto` file.
package struct FileDescriptor: Sendable {
    /// The path by which other files import it, for example `google/firestore/v1/firestore.proto`.
    package private(set) var name = ""
    /// The package that its names are in, for example `google.firestore.v1`.
    package private(set) var package = ""
    /// The names of the files it imports.
    package private(set) var dependencies: [String] = []
    /// The whole `FileDescriptorProto`, as server reflection sends it.
    package let bytes: [UInt8]
    /// Nested ones too, each after the one it stands in.
    package private(set) var messages: [MessageDescriptor] = []
    package private(set) var enumerations: [EnumDescriptor] = []
    package private(set) var services: [ServiceDescriptor] = []

    /// The full name of everything declared here that can be asked for: messages, enumerations, services, methods.
    package var symbols: [String] {
        messages.map(\.fullName) + enumerations.map(\.fullName)
            + services.flatMap { service in [service.fullName] + service.methods.map { "\(service.fullName).\($0.name)" } }
    }

    /// Reads a `FileDescriptorSet`: 1 file*.
    static func all(in set: RawSpan) throws(InvalidDocument) -> [FileDescriptor] {
        var files: [FileDescriptor] = []
        var reader = WireReader(set)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == 1 {
                files.append(try FileDescriptor(wire: try reader.span(tag)))
            } else {
                try reader.skip(tag)
            }
        }
        return files
    }

    /// `FileDescriptorProto`: 1 name, 2 package, 3 dependency*, 4 message_type*, 5 enum_type*, 6 service*.
    private init(wire: RawSpan) throws(InvalidDocument) {
        bytes = [UInt8](copying: wire)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: name = try reader.string(tag)
            case 2: package = try reader.string(tag)
            case 3: dependencies.append(try reader.string(tag))
            case 4: try addMessage(try reader.span(tag), in: package)
            case 5: enumerations.append(try EnumDescriptor(wire: try reader.span(tag), in: package))
            case 6: services.append(try ServiceDescriptor(wire: try reader.span(tag), in: package))
            default: try reader.skip(tag)
            }
        }
    }

    /// `DescriptorProto`: 3 nested_type*, 4 enum_type*; what the message itself is, its descriptor reads.
    private mutating func addMessage(_ wire: RawSpan, in scope: String) throws(InvalidDocument) {
        let message = try MessageDescriptor(wire: wire, in: scope)
        messages.append(message)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 3: try addMessage(try reader.span(tag), in: message.fullName)
            case 4: enumerations.append(try EnumDescriptor(wire: try reader.span(tag), in: message.fullName))
            default: try reader.skip(tag)
            }
        }
    }
}

/// One message type.
package struct MessageDescriptor: Sendable {
    /// With package and enclosing messages, for example `google.firestore.v1.StructuredQuery.Order`.
    package private(set) var fullName = ""
    package private(set) var fields: [FieldDescriptor] = []
    /// Its oneofs, in the order that ``FieldDescriptor/oneofIndex`` counts.
    package private(set) var oneofs: [String] = []
    /// Whether it stands for the entries {1 key, 2 value} of a map field.
    package private(set) var isMapEntry = false

    /// `DescriptorProto`: 1 name, 2 field*, 7 options {7 map_entry}, 8 oneof_decl* {1 name}.
    init(wire: RawSpan, in scope: String) throws(InvalidDocument) {
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: fullName = "\(scope).\(try reader.string(tag))"
            case 2: fields.append(try FieldDescriptor(wire: try reader.span(tag)))
            case 7: isMapEntry = try lastInteger(7, in: try reader.span(tag)) == 1
            case 8: oneofs.append(try lastString(1, in: try reader.span(tag)))
            default: try reader.skip(tag)
            }
        }
    }
}

/// One field of a message.
package struct FieldDescriptor: Sendable {
    package private(set) var name = ""
    /// The name in lowerCamelCase.
    package private(set) var jsonName = ""
    /// 1 ... 536,870,911.
    package private(set) var number = 0
    package private(set) var kind = FieldKind.message
    package private(set) var isRepeated = false
    /// The full name of the message or enumeration, without the leading dot that descriptors write; else empty.
    package private(set) var typeName = ""
    /// Which of the message's oneofs it is a member of; nil for none.
    package private(set) var oneofIndex: Int?

    /// `FieldDescriptorProto`: 1 name, 3 number, 4 label, 5 type, 6 type_name, 9 oneof_index, 10 json_name.
    init(wire: RawSpan) throws(InvalidDocument) {
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: name = try reader.string(tag)
            case 3: number = Int(try reader.int32(tag))
            case 4: isRepeated = try reader.int32(tag) == 3
            case 5:
                guard let known = FieldKind(rawValue: try reader.int32(tag)) else {
                    throw InvalidDocument(.wrongWireType, offset: reader.position)
                }
                kind = known
            case 6: typeName = String(try reader.string(tag).drop(while: { $0 == "." }))
            case 9: oneofIndex = Int(try reader.int32(tag))
            case 10: jsonName = try reader.string(tag)
            default: try reader.skip(tag)
            }
        }
    }
}

/// The types that fields of `proto/` have; the numbers are those of `FieldDescriptorProto.Type`.
package enum FieldKind: Int32, Sendable {
    case double = 1
    case int64 = 3
    case int32 = 5
    case bool = 8
    case string = 9
    case message = 11
    case bytes = 12
    case enumeration = 14
}

/// One enumeration.
package struct EnumDescriptor: Sendable {
    /// With package and enclosing messages.
    package private(set) var fullName = ""
    package private(set) var values: [(name: String, number: Int32)] = []

    /// `EnumDescriptorProto`: 1 name, 2 value* {1 name, 2 number}.
    init(wire: RawSpan, in scope: String) throws(InvalidDocument) {
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: fullName = "\(scope).\(try reader.string(tag))"
            case 2:
                let value = try reader.span(tag)
                values.append((try lastString(1, in: value), Int32(truncatingIfNeeded: try lastInteger(2, in: value))))
            default: try reader.skip(tag)
            }
        }
    }
}

/// One service.
package struct ServiceDescriptor: Sendable {
    /// With its package, for example `google.firestore.v1.Firestore`.
    package private(set) var fullName = ""
    package private(set) var methods: [MethodDescriptor] = []

    /// `ServiceDescriptorProto`: 1 name, 2 method*.
    init(wire: RawSpan, in scope: String) throws(InvalidDocument) {
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: fullName = "\(scope).\(try reader.string(tag))"
            case 2: methods.append(try MethodDescriptor(wire: try reader.span(tag)))
            default: try reader.skip(tag)
            }
        }
    }
}

/// One RPC of a service.
package struct MethodDescriptor: Sendable {
    package private(set) var name = ""
    /// Full names of the messages it takes and gives.
    package private(set) var inputType = ""
    package private(set) var outputType = ""

    /// `MethodDescriptorProto`: 1 name, 2 input_type, 3 output_type.
    init(wire: RawSpan) throws(InvalidDocument) {
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: name = try reader.string(tag)
            case 2: inputType = String(try reader.string(tag).drop(while: { $0 == "." }))
            case 3: outputType = String(try reader.string(tag).drop(while: { $0 == "." }))
            default: try reader.skip(tag)
            }
        }
    }
}

/// The last value of an integer field, 0 when it is absent.
private func lastInteger(_ field: Int, in wire: RawSpan) throws(InvalidDocument) -> UInt64 {
    var value: UInt64 = 0
    var reader = WireReader(wire)
    while let tag = try reader.nextTag() {
        if tag.fieldNumber == field { value = try reader.uint64(tag) } else { try reader.skip(tag) }
    }
    return value
}

/// The last value of a string field, empty when it is absent.
private func lastString(_ field: Int, in wire: RawSpan) throws(InvalidDocument) -> String {
    var value = ""
    var reader = WireReader(wire)
    while let tag = try reader.nextTag() {
        if tag.fieldNumber == field { value = try reader.string(tag) } else { try reader.skip(tag) }
    }
    return value
}
