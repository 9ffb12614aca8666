// The same document written in other ways that protobuf allows: what foreign encoders, or hostile ones, may send.

import Basics
package import DocumentModel

extension RandomDocuments {
    /// Bytes that decode to the same fields but are (mostly) not canonical: shuffled and repeated entries, unknown
    /// fields, overridden types, long varints, explicit zeros, other NaNs, values before keys, nanoseconds below a
    /// microsecond.
    package mutating func irregularDocumentBytes(of fields: MapValue) -> [UInt8] {
        var writer = ByteBuffer()
        irregular(entries: fields, field: 2, into: &writer)
        return writer.copyBytes()
    }

    /// The irregular form of one `Value` message; see ``irregularDocumentBytes(of:)``.
    package mutating func irregularValueBytes(of value: Value) -> [UInt8] {
        var writer = ByteBuffer()
        irregular(value, into: &writer)
        return writer.copyBytes()
    }

    private mutating func irregular(entries: MapValue, field: Int, into writer: inout ByteBuffer) {
        // An earlier entry with the same key loses.
        for entry in entries.entries where generator.oneIn(6) && entry.key != Value.vectorTypeKey {
            var replaced = ByteBuffer()
            replaced.appendField(1, string: entry.key)
            replaced.appendField(2, bytes: [0x08, 0x01])
            append(field, message: replaced.copyBytes(), into: &writer)
        }
        for entry in entries.entries.shuffled(using: &generator) {
            unknownField(into: &writer)
            var value = ByteBuffer()
            irregular(entry.value, into: &value)
            var parts = ByteBuffer()
            if generator.oneIn(4) {
                append(2, message: value.copyBytes(), into: &parts)
                if !entry.key.isEmpty { append(1, message: Array(entry.key.utf8), into: &parts) }
            } else {
                append(1, message: Array(entry.key.utf8), into: &parts)
                unknownField(into: &parts)
                append(2, message: value.copyBytes(), into: &parts)
            }
            append(field, message: parts.copyBytes(), into: &writer)
        }
    }

    private mutating func irregular(_ value: Value, into writer: inout ByteBuffer) {
        unknownField(into: &writer)
        if generator.oneIn(6) { writer.appendField(17, string: "overridden") }
        switch value {
        case .boolean(let boolean):
            writer.appendTag(field: 1, .varint)
            longVarint(boolean ? UInt64(1 + generator.below(300)) : 0, into: &writer)
        case .integer(let integer):
            writer.appendTag(field: 2, .varint)
            longVarint(UInt64(bitPattern: integer), into: &writer)
        case .null:
            writer.appendTag(field: 11, .varint)
            longVarint(UInt64(generator.below(2)), into: &writer)
        case .double(let double) where double.isNaN:
            writer.appendTag(field: 3, .fixed64)
            writer.append(littleEndian: 0xfff0_0000_0000_0001 as UInt64)
        case .timestamp(let time):
            var parts = ByteBuffer()
            let nanoseconds = UInt64(time.nanoseconds) + UInt64(generator.below(1000))
            if generator.oneIn(2) { parts.appendField(2, varint: nanoseconds) }
            parts.appendTag(field: 1, .varint)
            longVarint(UInt64(bitPattern: time.seconds), into: &parts)
            unknownField(into: &parts)
            parts.appendField(2, varint: nanoseconds)
            append(10, message: parts.copyBytes(), into: &writer)
        case .geoPoint(let point):
            var parts = ByteBuffer()
            parts.appendField(2, double: point.longitude)
            unknownField(into: &parts)
            parts.appendField(1, double: point.latitude)
            append(8, message: parts.copyBytes(), into: &writer)
        case .array(let elements):
            var parts = ByteBuffer()
            for element in elements {
                var bytes = ByteBuffer()
                irregular(element, into: &bytes)
                append(1, message: bytes.copyBytes(), into: &parts)
                unknownField(into: &parts)
            }
            append(9, message: parts.copyBytes(), into: &writer)
        case .map(let map):
            var parts = ByteBuffer()
            irregular(entries: map, field: 1, into: &parts)
            append(6, message: parts.copyBytes(), into: &writer)
        case .string(let text): append(17, message: Array(text.utf8), into: &writer)
        case .bytes(let bytes): append(18, message: bytes, into: &writer)
        case .reference(let name): append(5, message: Array(name.utf8), into: &writer)
        case .double: value.encode(into: &writer)
        }
        unknownField(into: &writer)
    }

    /// Tag, a length that may be longer than needed, and the contents.
    private mutating func append(_ field: Int, message: [UInt8], into writer: inout ByteBuffer) {
        writer.appendTag(field: field, .lengthDelimited)
        longVarint(UInt64(message.count), into: &writer)
        writer.append(message)
    }

    /// A varint, sometimes with zeros at its end.
    private mutating func longVarint(_ value: UInt64, into writer: inout ByteBuffer) {
        let size = ByteBuffer.varintSize(value)
        guard size < 9, generator.oneIn(4) else { return writer.appendVarint(value) }
        for index in 0..<size { writer.append(byte: UInt8(truncatingIfNeeded: value >> UInt64(7 * index)) | 0x80) }
        if generator.oneIn(2) { writer.append(byte: 0x80) }
        writer.append(byte: 0)
    }

    /// Sometimes a field that no message here has, of any wire type.
    private mutating func unknownField(into writer: inout ByteBuffer) {
        guard generator.oneIn(8) else { return }
        switch generator.below(4) {
        case 0: writer.appendField(500, varint: generator.next())
        case 1: writer.appendField(501, double: 1)
        case 2: writer.appendField(502, bytes: byteArray())
        default:
            writer.appendTag(field: 503, .fixed32)
            writer.append(littleEndian: 7 as UInt32)
        }
    }
}
