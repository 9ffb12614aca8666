// Operands as the bytes of values.

package import Basics
internal import DocumentModel

extension Operand {
    /// Levels of lists and maps that expressions may build around each other.
    package static let builtDepthMax = 20
    /// Bytes of one encoded value. A value that expressions build may have the same part many times.
    package static let encodedBytesMax = 16 << 20

    /// Appends the `Value` message of the operand: canonical, if what it holds of documents is.
    ///
    /// - Parameters:
    ///   - writer: holds this value and those around it, nothing else.
    ///   - depth: lists and maps around it.
    /// - Throws: `exhausted` beyond ``encodedBytesMax``; `failed` for absent, for a value that only one language has,
    ///   and for one that is nested too deep.
    package func encode(into writer: inout ByteBuffer, depth: Int = 0) throws(ExpressionError) {
        if depth > Operand.builtDepthMax {
            throw .failed("A value is nested more than \(Operand.builtDepthMax) levels deep.")
        }
        if writer.count > Operand.encodedBytesMax {
            throw .exhausted("A value has more than \(Operand.encodedBytesMax) bytes.")
        }
        switch self {
        case .absent: throw .failed("The value is absent.")
        case .null: Value.null.encode(into: &writer)
        case .boolean(let value): Value.boolean(value).encode(into: &writer)
        case .integer(let value): Value.integer(value).encode(into: &writer)
        case .double(let value): Value.double(value).encode(into: &writer)
        case .string(let value): Value.string(value).encode(into: &writer)
        case .bytes(let value): Value.bytes(value).encode(into: &writer)
        case .timestamp(let value): Value.timestamp(value).encode(into: &writer)
        case .geoPoint(let value): Value.geoPoint(value).encode(into: &writer)
        case .reference(let value): Value.reference(value).encode(into: &writer)
        case .list(let elements):
            try writer.withLengthPrefix(field: FieldNumber.Value.arrayValue) { (list) throws(ExpressionError) in
                for element in elements {
                    try list.withLengthPrefix(field: FieldNumber.ArrayValue.values) {
                        (value) throws(ExpressionError) in
                        try element.encode(into: &value, depth: depth + 1)
                    }
                }
            }
        case .encodedList(let slice): writer.appendField(FieldNumber.Value.arrayValue, bytes: slice.contents)
        case .map, .encodedMap:
            try writer.withLengthPrefix(field: FieldNumber.Value.mapValue) { (map) throws(ExpressionError) in
                try appendEntries(field: FieldNumber.MapValue.fields, into: &map, depth: depth)
            }
        case .object: throw .failed("The value has no form in documents.")
        }
    }

    /// Appends the entries of a map as those of a message's field: of a document's fields, of a map value. Appends
    /// nothing for an operand that is not a map.
    package func appendEntries(
        field: Int, into writer: inout ByteBuffer, depth: Int = 0
    ) throws(ExpressionError) {
        switch self {
        case .map(let map):
            for entry in map.entries {
                try writer.withLengthPrefix(field: field) { (writer) throws(ExpressionError) in
                    writer.appendField(FieldNumber.MapValue.FieldsEntry.key, string: entry.key)
                    try writer.withLengthPrefix(field: FieldNumber.MapValue.FieldsEntry.value) {
                        (value) throws(ExpressionError) in
                        try entry.value.encode(into: &value, depth: depth + 1)
                    }
                }
            }
        case .encodedMap(let slice): slice.appendEntries(field: field, into: &writer)
        default: break
        }
    }

    /// The bytes of the `Value` message, to be compared with others.
    package func wireBytes() throws(ExpressionError) -> [UInt8] {
        var writer = ByteBuffer(capacity: 64)
        try encode(into: &writer)
        return writer.copyBytes()
    }

    /// The operand with its lists and maps encoded, so that comparing it again costs no encoding.
    package func encoded() throws(ExpressionError) -> Operand {
        switch self {
        case .list, .map: Operand(EncodedValue(canonical: try wireBytes()))
        default: self
        }
    }
}

extension EncodedSlice {
    /// Appends the entries of a map, with the tag of a field.
    fileprivate func appendEntries(field: Int, into writer: inout ByteBuffer) {
        if WireTag.byte(field, .lengthDelimited) == entryTag { return writer.append(contents) }
        var reader = WireReader(contents)
        while let tag = try? reader.nextTag(), let entry = try? reader.span(tag) {
            writer.appendField(field, bytes: entry)
        }
    }
}
