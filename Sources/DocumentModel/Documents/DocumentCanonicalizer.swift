package import Basics

/// Rewrites valid document bytes into their canonical form.
///
/// The canonical form has one spelling for each document, so equal documents have equal bytes:
///
/// - Map entries are sorted by the UTF-8 bytes of their keys. No key occurs twice; the last of several entries wins.
/// - Each entry has a key and then a value, even if the value is zero or empty.
/// - Each value has exactly one type. Zero values are written. Unknown fields are dropped. Varints have minimal length.
/// - Timestamps are rounded down to microseconds. Their zero fields are left out; seconds come before nanoseconds.
/// - Geo points leave out coordinates that are plus zero; latitude comes before longitude.
/// - The infinities and NaN of a BSON decimal are `"Infinity"`, `"-Infinity"` and `"NaN"`.
/// - Every NaN is `0x7ff8000000000000`. Minus zero is kept, and so is the difference of integers and doubles.
package enum DocumentCanonicalizer {
    /// Appends the canonical form of document bytes.
    ///
    /// The bytes must have passed ``DocumentValidator``; others throw or give some bytes, but do no harm.
    package static func canonicalize(fields: RawSpan, into writer: inout ByteBuffer) throws(InvalidDocument) {
        try entries(fields, field: FieldNumber.Document.fields, into: &writer, depth: 0)
    }

    /// Appends the canonical form of a `Value` message that has passed ``DocumentValidator``.
    package static func canonicalize(value: RawSpan, into writer: inout ByteBuffer) throws(InvalidDocument) {
        try self.value(value, into: &writer, depth: 0)
    }

    /// Where one entry's key and value stand in the bytes of its map.
    private struct Entry {
        var key: Range<Int>
        var value: Range<Int>
    }

    private static func entries(
        _ bytes: RawSpan, field: Int, into writer: inout ByteBuffer, depth: Int
    ) throws(InvalidDocument) {
        var entries: [Entry] = []
        var isSorted = true
        var reader = WireReader(bytes)
        while let tag = try reader.nextTag() {
            guard tag == WireTag(field: field, .lengthDelimited) else {
                try reader.skip(tag)
                continue
            }
            let (key, value) = try reader.mapEntry()
            let entry = Entry(key: key, value: value)
            if isSorted, let last = entries.last {
                isSorted = bytes.extracting(last.key).compareBytes(bytes.extracting(entry.key)) < 0
            }
            entries.append(entry)
        }
        if !isSorted {
            entries.sort { left, right in
                let order = bytes.extracting(left.key).compareBytes(bytes.extracting(right.key))
                return order != 0 ? order < 0 : left.key.lowerBound < right.key.lowerBound
            }
        }
        for (index, entry) in entries.enumerated() {
            let key = bytes.extracting(entry.key)
            // Of entries with one key the last stands last.
            if index + 1 < entries.count, bytes.extracting(entries[index + 1].key).equalsBytes(key) { continue }
            try writer.withLengthPrefix(field: field) { (writer) throws(InvalidDocument) in
                writer.appendField(FieldNumber.MapEntry.key, bytes: key)
                try writer.withLengthPrefix(field: FieldNumber.MapEntry.value) { (writer) throws(InvalidDocument) in
                    let isDecimal = field == FieldNumber.MapValue.fields && key.equalsUTF8(SentinelKind.decimal128.key)
                    if isDecimal, case .string(let text)? = try? Value(wire: bytes.extracting(entry.value)),
                        let spelling = SentinelKind.canonicalDecimal(text)
                    {
                        return writer.appendField(FieldNumber.Value.stringValue, string: spelling)
                    }
                    try value(bytes.extracting(entry.value), into: &writer, depth: depth)
                }
            }
        }
    }

    private static func value(_ bytes: RawSpan, into writer: inout ByteBuffer, depth: Int) throws(InvalidDocument) {
        if depth > Limits.nestingDepth { throw InvalidDocument(.nestedTooDeeply, offset: 0) }
        var reader = WireReader(bytes)
        let tag = try reader.seekLastTypedField()
        switch tag.rawValue {
        case ValueTag.boolean: writer.appendField(FieldNumber.Value.booleanValue, boolean: try reader.varint() != 0)
        case ValueTag.null: writer.appendField(FieldNumber.Value.nullValue, varint: 0)
        case ValueTag.double:
            let number = try reader.double(tag)
            writer.appendField(FieldNumber.Value.doubleValue, double: number.isNaN ? .nan : number)
        case ValueTag.timestamp:
            writer.appendField(
                FieldNumber.Value.timestampValue, timestamp: try reader.timestamp(tag).flooredToMicroseconds)
        case ValueTag.geoPoint:
            Value.geoPoint(try GeoPointValue(wire: try reader.lengthDelimited())).encode(into: &writer)
        case ValueTag.array:
            var elements = WireReader(try reader.lengthDelimited())
            try writer.withLengthPrefix(field: FieldNumber.Value.arrayValue) { (writer) throws(InvalidDocument) in
                while let element = try elements.nextTag() {
                    guard element == WireTag(field: FieldNumber.ArrayValue.values, .lengthDelimited) else {
                        try elements.skip(element)
                        continue
                    }
                    let bytes = try elements.lengthDelimited()
                    try writer.withLengthPrefix(field: FieldNumber.ArrayValue.values) {
                        (writer) throws(InvalidDocument) in
                        try value(bytes, into: &writer, depth: depth + 1)
                    }
                }
            }
        case ValueTag.map:
            let map = try reader.lengthDelimited()
            try writer.withLengthPrefix(field: FieldNumber.Value.mapValue) { (writer) throws(InvalidDocument) in
                try entries(map, field: FieldNumber.MapValue.fields, into: &writer, depth: depth + 1)
            }
        case ValueTag.integer: writer.appendField(FieldNumber.Value.integerValue, varint: try reader.varint())
        default: writer.appendField(tag.fieldNumber, bytes: try reader.lengthDelimited())
        }
    }
}
