// The descriptors as flat tables: messages, their fields and enumerations, by number.

internal import DocumentModel

/// Every message and enumeration of `proto/`, made once from the descriptors.
package struct Schema: Sendable {
    package static let shared = Schema(DescriptorSet.files)

    let messages: [MessageSchema]
    let enumerations: [EnumTable]
    private let messageNumbers: [String: Int]

    init(_ files: [FileDescriptor]) {
        let descriptors = files.flatMap(\.messages)
        let enumDescriptors = files.flatMap(\.enumerations)
        var numbers: [String: Int] = [:]
        for (number, message) in descriptors.enumerated() { numbers[message.fullName] = number }
        var enumNumbers: [String: Int] = [:]
        for (number, enumeration) in enumDescriptors.enumerated() { enumNumbers[enumeration.fullName] = number }
        messageNumbers = numbers
        enumerations = enumDescriptors.map { EnumTable(name: $0.fullName, values: $0.values) }
        messages = descriptors.map { message in
            MessageSchema(
                name: message.fullName, form: MessageForm(message.fullName),
                fields: message.fields.map { field in
                    FieldTable(field, type: numbers[field.typeName] ?? enumNumbers[field.typeName] ?? 0)
                },
                oneofs: message.oneofs)
        }
    }

    /// The number of the message of this full name; nil if `proto/` declares none.
    func messageNumber(_ name: String) -> Int? { messageNumbers[name] }

    /// The message of this full name, for example `google.firestore.v1.Document`.
    package func message(_ name: String) -> MessageType {
        guard let number = messageNumbers[name] else { preconditionFailure("proto/ declares no message \(name)") }
        return MessageType(number: number)
    }
}

/// A message of the schema, by its index in the tables.
package struct MessageType: Equatable, Sendable {
    let number: Int
}

/// A message: its fields and the names of its oneofs. A class, since it is looked up for each value that is converted.
final class MessageSchema: Sendable {
    let name: String
    let form: MessageForm
    let fields: [FieldTable]
    let oneofs: [String]

    init(name: String, form: MessageForm, fields: [FieldTable], oneofs: [String]) {
        self.name = name
        self.form = form
        self.fields = fields
        self.oneofs = oneofs
    }

    /// The index in `fields` of the field with this number.
    func field(numbered number: Int) -> Int? { fields.firstIndex { $0.number == number } }

    /// The index in `fields` of the field with this JSON name, in lowerCamelCase or as in `proto/`.
    func field(named name: RawSpan) -> Int? {
        // Plain loops: the tables are short, and nothing is allocated.
        for index in fields.indices where fields[index].isNamed(name) { return index }
        return nil
    }
}

/// A field of a message. A class, as the message is.
final class FieldTable: Sendable {
    let number: Int
    let name: [UInt8]
    let jsonName: [UInt8]
    let kind: FieldKind
    let isRepeated: Bool
    let isMap: Bool
    let oneof: Int?
    /// The index of the message or enumeration in the schema; 0 for scalars.
    let type: Int

    init(_ field: FieldDescriptor, type: Int) {
        number = field.number
        name = Array(field.name.utf8)
        jsonName = Array(field.jsonName.utf8)
        kind = field.kind
        isRepeated = field.isRepeated
        isMap = field.isMap
        oneof = field.oneofIndex
        self.type = type
    }

    func isNamed(_ text: RawSpan) -> Bool {
        let (jsonName, name) = (jsonName, name)
        return text.equalsBytes(jsonName.byteSpan) || text.equalsBytes(name.byteSpan)
    }
}

/// An enumeration: the names and numbers of its values.
struct EnumTable: Sendable {
    let name: String
    let values: [(name: String, number: Int32)]
}

/// How protobuf's JSON mapping writes a message.
enum MessageForm: Sendable {
    /// As an object of its fields.
    case object
    /// As RFC 3339 text.
    case timestamp
    /// As seconds with an `s`.
    case duration
    /// As paths in lowerCamelCase, separated by commas.
    case fieldMask
    /// As the message within, with its type as the member `@type`.
    case any
    /// As the value of its one field.
    case wrapper
    /// As the loosely typed JSON that it holds.
    case structure, value, list

    init(_ name: String) {
        switch name {
        case "google.protobuf.Timestamp": self = .timestamp
        case "google.protobuf.Duration": self = .duration
        case "google.protobuf.FieldMask": self = .fieldMask
        case "google.protobuf.Any": self = .any
        case "google.protobuf.Int32Value", "google.protobuf.UInt32Value", "google.protobuf.FloatValue",
            "google.protobuf.Int64Value", "google.protobuf.UInt64Value", "google.protobuf.DoubleValue",
            "google.protobuf.BoolValue", "google.protobuf.StringValue", "google.protobuf.BytesValue":
            self = .wrapper
        case "google.protobuf.Struct": self = .structure
        case "google.protobuf.Value": self = .value
        case "google.protobuf.ListValue": self = .list
        default: self = .object
        }
    }
}
