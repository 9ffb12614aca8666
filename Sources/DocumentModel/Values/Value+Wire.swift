// Value trees to and from the wire.

package import Basics

extension Value {
    private typealias Field = FieldNumber.Value

    /// Reads the bytes of a `Value` message; of several set fields the last wins, unknown fields are skipped.
    ///
    /// Only what a tree needs is checked: the form of the message, UTF-8 and nesting. The rules for stored documents
    /// are ``DocumentValidator``'s.
    package init(wire: RawSpan) throws(InvalidDocument) {
        try self.init(wire: wire, depth: 0)
    }

    fileprivate init(wire: RawSpan, depth: Int) throws(InvalidDocument) {
        // Deeper than any stored value, to serve messages that are not checked yet, and bounded.
        if depth > Limits.nestingDepth * 2 { throw InvalidDocument(.nestedTooDeeply, offset: 0) }
        var reader = WireReader(wire)
        let tag = try reader.seekLastTypedField()
        switch tag.rawValue {
        case ValueTag.null:
            _ = try reader.varint()
            self = .null
        case ValueTag.boolean: self = .boolean(try reader.boolean(tag))
        case ValueTag.integer: self = .integer(try reader.int64(tag))
        case ValueTag.double: self = .double(try reader.double(tag))
        case ValueTag.timestamp: self = .timestamp(try reader.timestamp(tag))
        case ValueTag.string: self = .string(try reader.string(tag))
        case ValueTag.bytes: self = .bytes(try reader.byteArray(tag))
        case ValueTag.reference: self = .reference(try reader.string(tag))
        case ValueTag.geoPoint: self = .geoPoint(try GeoPointValue(wire: try reader.span(tag)))
        case ValueTag.array:
            var array = try reader.message(tag)
            var elements: [Value] = []
            while let element = try array.nextTag() {
                if element.fieldNumber == FieldNumber.ArrayValue.values {
                    elements.append(try Value(wire: try array.span(element), depth: depth + 1))
                } else {
                    try array.skip(element)
                }
            }
            self = .array(elements)
        case ValueTag.map:
            let map = try reader.span(tag)
            self = .map(try MapValue(entries: map, field: FieldNumber.MapValue.fields, depth: depth + 1))
        default:
            throw InvalidDocument(.wrongWireType, offset: reader.position)
        }
    }

    /// Appends the value as the canonical bytes of a `Value` message, without tag and length.
    package func encode(into writer: inout ByteBuffer) {
        switch self {
        case .null: writer.appendField(Field.nullValue, varint: 0)
        case .boolean(let value): writer.appendField(Field.booleanValue, boolean: value)
        case .integer(let value): writer.appendField(Field.integerValue, int64: value)
        case .double(let value): writer.appendField(Field.doubleValue, double: value.isNaN ? .nan : value)
        case .timestamp(let value): writer.appendField(Field.timestampValue, timestamp: value.flooredToMicroseconds)
        case .string(let value): writer.appendField(Field.stringValue, string: value)
        case .bytes(let value): writer.appendField(Field.bytesValue, bytes: value)
        case .reference(let value): writer.appendField(Field.referenceValue, string: value)
        case .geoPoint(let value):
            writer.withLengthPrefix(field: Field.geoPointValue) { writer in
                writer.writeIfSet(FieldNumber.CommonType.LatLng.latitude, double: value.latitude)
                writer.writeIfSet(FieldNumber.CommonType.LatLng.longitude, double: value.longitude)
            }
        case .array(let elements):
            writer.withLengthPrefix(field: Field.arrayValue) { writer in
                for element in elements {
                    writer.withLengthPrefix(field: FieldNumber.ArrayValue.values) { element.encode(into: &$0) }
                }
            }
        case .map(let map):
            writer.withLengthPrefix(field: Field.mapValue) { map.encode(field: FieldNumber.MapValue.fields, into: &$0) }
        }
    }

    /// The canonical bytes of the `Value` message.
    package var wireBytes: [UInt8] {
        var writer = ByteBuffer()
        encode(into: &writer)
        return writer.copyBytes()
    }
}

extension MapValue {
    private typealias Field = FieldNumber.MapValue.FieldsEntry

    /// Reads document bytes: the concatenated `fields` entries of a `Document` message. Other fields are skipped.
    package init(documentBytes: RawSpan) throws(InvalidDocument) {
        try self.init(entries: documentBytes, field: FieldNumber.Document.fields, depth: 0)
    }

    init(entries: RawSpan, field: Int, depth: Int) throws(InvalidDocument) {
        var list: [Entry] = []
        var reader = WireReader(entries)
        while let tag = try reader.nextTag() {
            guard tag.fieldNumber == field else {
                try reader.skip(tag)
                continue
            }
            try reader.expect(tag, .lengthDelimited)
            let entry = try reader.mapEntry()
            guard let key = String(validatingUTF8: entries.extracting(entry.key)) else {
                throw InvalidDocument(.invalidUTF8, offset: entry.key.lowerBound)
            }
            list.append((key, try Value(wire: entries.extracting(entry.value), depth: depth)))
        }
        self.init(list)
    }

    /// Appends the entries as field `field` of a message: that of `Document` or of `MapValue`.
    func encode(field: Int, into writer: inout ByteBuffer) {
        for (key, value) in entries {
            writer.withLengthPrefix(field: field) { writer in
                writer.appendField(Field.key, string: key)
                writer.withLengthPrefix(field: Field.value) { value.encode(into: &$0) }
            }
        }
    }

    /// Appends the canonical document bytes of these fields.
    package func encodeDocument(into writer: inout ByteBuffer) {
        encode(field: FieldNumber.Document.fields, into: &writer)
    }

    /// The canonical document bytes of these fields.
    package var documentBytes: [UInt8] {
        var writer = ByteBuffer()
        encodeDocument(into: &writer)
        return writer.copyBytes()
    }
}

extension GeoPointValue {
    private typealias Field = FieldNumber.CommonType.LatLng

    /// Reads a `google.type.LatLng` message.
    package init(wire: RawSpan) throws(InvalidDocument) {
        self.init(latitude: 0, longitude: 0)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.latitude: latitude = try reader.double(tag)
            case Field.longitude: longitude = try reader.double(tag)
            default: try reader.skip(tag)
            }
        }
    }
}
