internal import Basics
internal import CFirestoreProto
internal import DocumentModel

/// Checks the bytes of a message against generated descriptors before protobuf-c unpacks them.
///
/// protobuf-c recurses as deep as the bytes say, allocates for every field, keeps unknown fields, and copies all
/// elements again for each repetition of a message that it merges; it does not check UTF-8. The walk bounds all of that
/// and throws the errors of ``WireReader``. What passes it is unpacked in memory linear in the message's size.
///
/// A message has two descriptors: the one it is *held* by, in which strings, documents, values and queries are bytes,
/// and the one that is *declared* in `proto/`, in which strings differ from other bytes. Their fields correspond one to
/// one.
struct MessageWalk {
    /// Fields of one message, nested and unknown ones included. The memory that unpacking takes is at most about 160
    /// bytes for each, and the bytes of the message once.
    static var fieldsMax: Int { 1 << 16 }
    /// Messages around a field.
    static var depthMax: Int { 32 }
    /// Occurrences of fields that are one message, past the first of each. Each is merged into the one before.
    static var mergesMax: Int { 16 }

    private var fields = 0
    private var merges = 0

    /// Throws unless the bytes can be unpacked.
    static func check(
        _ wire: RawSpan, held: UnsafePointer<ProtobufCMessageDescriptor>,
        declared: UnsafePointer<ProtobufCMessageDescriptor>
    ) throws(InvalidDocument) {
        var walk = MessageWalk()
        try unsafe walk.message(wire, held, declared, depth: 0)
    }

    private mutating func message(
        _ wire: RawSpan, _ held: UnsafePointer<ProtobufCMessageDescriptor>,
        _ declared: UnsafePointer<ProtobufCMessageDescriptor>, depth: Int
    ) throws(InvalidDocument) {
        if depth > Self.depthMax { throw InvalidDocument(.messageTooDeep, offset: 0) }
        var seen: UInt64 = 0
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            fields += 1
            if fields > Self.fieldsMax { throw InvalidDocument(.tooManyFields, offset: reader.position) }
            guard let index = unsafe Self.index(of: tag.fieldNumber, in: held) else {
                try reader.skip(tag)
                continue
            }
            // In bounds: the index was found in the first, and both have the same fields.
            let (field, type) = unsafe (held.pointee.fields + index, declared.pointee.fields[index].type)
            switch unsafe field.pointee.type {
            case PROTOBUF_C_TYPE_MESSAGE:
                if unsafe field.pointee.label != PROTOBUF_C_LABEL_REPEATED {
                    if seen & 1 << UInt64(index) != 0 { merges += 1 }
                    seen |= 1 << UInt64(index)
                    if merges > Self.mergesMax { throw InvalidDocument(.tooManyFields, offset: reader.position) }
                }
                let inner = try reader.span(tag)
                try unsafe message(
                    inner, Self.messageDescriptor(field.pointee),
                    Self.messageDescriptor(declared.pointee.fields[index]), depth: depth + 1)
            case PROTOBUF_C_TYPE_BYTES:
                let start = reader.position
                let bytes = try reader.span(tag)
                if type == PROTOBUF_C_TYPE_STRING, !UTF8Validation.isValid(bytes) {
                    throw InvalidDocument(.invalidUTF8, offset: start)
                }
            default:
                try unsafe scalar(tag, field.pointee, &reader)
            }
        }
    }

    /// A number, or a packed run of them where the field is repeated.
    private mutating func scalar(
        _ tag: WireTag, _ field: ProtobufCFieldDescriptor, _ reader: inout WireReader
    ) throws(InvalidDocument) {
        if unsafe field.label == PROTOBUF_C_LABEL_REPEATED, tag.wireType == .lengthDelimited {
            var packed = try reader.message(tag)
            while !packed.isAtEnd {
                fields += 1
                if fields > Self.fieldsMax { throw InvalidDocument(.tooManyFields, offset: reader.position) }
                try unsafe Self.skipScalar(field.type, &packed)
            }
            return
        }
        try unsafe reader.expect(tag, field.type == PROTOBUF_C_TYPE_DOUBLE ? .fixed64 : .varint)
        try unsafe Self.skipScalar(field.type, &reader)
    }

    private static func skipScalar(_ type: ProtobufCType, _ reader: inout WireReader) throws(InvalidDocument) {
        if type == PROTOBUF_C_TYPE_DOUBLE { _ = try reader.fixed64() } else { _ = try reader.varint() }
    }

    private static func index(of number: Int, in message: UnsafePointer<ProtobufCMessageDescriptor>) -> Int? {
        // A plain loop: messages have at most 13 fields, which `seen` above relies on.
        for index in 0..<Int(unsafe message.pointee.n_fields) where unsafe message.pointee.fields[index].id == number {
            return index
        }
        return nil
    }

    private static func messageDescriptor(
        _ field: ProtobufCFieldDescriptor
    ) -> UnsafePointer<ProtobufCMessageDescriptor> {
        // The descriptor of a message field is its message's, never null.
        unsafe field.descriptor.assumingMemoryBound(to: ProtobufCMessageDescriptor.self)
    }
}
