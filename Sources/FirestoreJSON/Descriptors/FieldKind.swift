internal import CFirestoreProto
internal import DocumentModel

/// The types of fields that protobuf has, except groups, which proto3 and protobuf-c do not have.
package enum FieldKind: Sendable, CaseIterable {
    case int32, sint32, sfixed32, uint32, fixed32
    case int64, sint64, sfixed64, uint64, fixed64
    case float, double, bool, enumeration
    case string, bytes, message

    init(_ type: ProtobufCType) {
        switch type {
        case PROTOBUF_C_TYPE_INT32: self = .int32
        case PROTOBUF_C_TYPE_SINT32: self = .sint32
        case PROTOBUF_C_TYPE_SFIXED32: self = .sfixed32
        case PROTOBUF_C_TYPE_UINT32: self = .uint32
        case PROTOBUF_C_TYPE_FIXED32: self = .fixed32
        case PROTOBUF_C_TYPE_INT64: self = .int64
        case PROTOBUF_C_TYPE_SINT64: self = .sint64
        case PROTOBUF_C_TYPE_SFIXED64: self = .sfixed64
        case PROTOBUF_C_TYPE_UINT64: self = .uint64
        case PROTOBUF_C_TYPE_FIXED64: self = .fixed64
        case PROTOBUF_C_TYPE_FLOAT: self = .float
        case PROTOBUF_C_TYPE_DOUBLE: self = .double
        case PROTOBUF_C_TYPE_BOOL: self = .bool
        case PROTOBUF_C_TYPE_ENUM: self = .enumeration
        case PROTOBUF_C_TYPE_STRING: self = .string
        case PROTOBUF_C_TYPE_BYTES: self = .bytes
        case PROTOBUF_C_TYPE_MESSAGE: self = .message
        default: preconditionFailure("protobuf-c has no field type \(type.rawValue)")
        }
    }

    /// How a value is encoded that is not packed.
    var wireType: WireType {
        switch self {
        case .int32, .sint32, .uint32, .int64, .sint64, .uint64, .bool, .enumeration: .varint
        case .sfixed32, .fixed32, .float: .fixed32
        case .sfixed64, .fixed64, .double: .fixed64
        case .string, .bytes, .message: .lengthDelimited
        }
    }

    /// The full name of what a field's descriptor points to; empty for scalars.
    func typeName(_ descriptor: UnsafeRawPointer?) -> String {
        guard let descriptor = unsafe descriptor else { return "" }
        switch self {
        case .message:
            let message = unsafe descriptor.assumingMemoryBound(to: ProtobufCMessageDescriptor.self)
            return unsafe String(cString: message.pointee.name)
        case .enumeration:
            let enumeration = unsafe descriptor.assumingMemoryBound(to: ProtobufCEnumDescriptor.self)
            return unsafe String(cString: enumeration.pointee.name)
        default: return ""
        }
    }
}
