package import Basics
internal import DocumentJSON
package import DocumentModel

/// Converts the wire bytes of a message to JSON text, by protobuf's mapping ("ProtoJSON Format").
///
/// Fields have the order of their first occurrence on the wire. A scalar on the wire is written even if it has its
/// default value. Unknown fields are left out. The writer throws only if the bytes are not such a message, or are
/// nested too deeply.
package struct JSONMessageWriter: Sendable {
    /// Objects and arrays within each other. A document at its limit of nesting needs some 70.
    private static let depthMax = 200

    private let schema: Schema
    /// Whether every member is on a separate line, indented by two spaces per level.
    private let isPretty: Bool

    package init(schema: Schema = .shared, isPretty: Bool = false) {
        self.schema = schema
        self.isPretty = isPretty
    }

    /// Appends the message as JSON.
    package func append(_ message: RawSpan, _ type: MessageType, to output: inout ByteBuffer) throws(InvalidDocument) {
        try appendMessage(message, type.number, 0, &output)
    }

    // MARK: Messages

    private func appendMessage(
        _ bytes: RawSpan, _ number: Int, _ depth: Int, _ output: inout ByteBuffer
    ) throws(InvalidDocument) {
        guard depth < Self.depthMax else { throw InvalidDocument(.nestedTooDeeply, offset: 0) }
        switch schema.messages[number].form {
        case .object: try appendObject(bytes, number, depth, &output)
        case .timestamp:
            var reader = WireReader(bytes)
            let time = try TimestampValue(reading: &reader)
            guard time.isValid else { throw InvalidDocument(.timestampOutOfRange, offset: 0) }
            var text: [UInt8] = []
            RFC3339.append(time, to: &text)
            output.appendQuoted(text)
        case .duration: try appendDuration(bytes, &output)
        case .fieldMask: try FieldMaskText.append(bytes, to: &output)
        case .any: try appendAny(bytes, depth, &output)
        case .wrapper: try appendWrapped(bytes, number, &output)
        case .structure: try appendStructure(bytes, number, depth, &output)
        case .value: try appendLooseValue(bytes, number, depth, &output)
        case .list: try appendList(bytes, number, depth, &output)
        }
    }

    /// Appends the message in an `Any`, with its type. Other types than those of `proto/` that are objects are appended
    /// without their fields.
    private func appendAny(_ bytes: RawSpan, _ depth: Int, _ output: inout ByteBuffer) throws(InvalidDocument) {
        var (url, value) = ("", bytes.extracting(0..<0))
        var reader = WireReader(bytes)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.Protobuf.AnyMessage.typeUrl: url = try reader.string(tag)
            case FieldNumber.Protobuf.AnyMessage.value: value = try reader.span(tag)
            default: try reader.skip(tag)
            }
        }
        let name = url.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        let number = schema.messageNumber(String(name))
        if let number, schema.messages[number].form == .object {
            return try appendObject(value, number, depth, type: url, &output)
        }
        output.append(byte: UInt8(ascii: "{"))
        appendType(url, depth, &output)
        end(UInt8(ascii: "}"), isEmpty: false, depth, &output)
    }

    private func appendType(_ url: String, _ depth: Int, _ output: inout ByteBuffer) {
        startMember(isFirst: true, depth, &output)
        output.append(utf8: "\"@type\"")
        appendColon(&output)
        output.appendQuoted(Array(url.utf8))
    }

    /// - Parameter type: written as a member `@type`; nil writes none.
    private func appendObject(
        _ bytes: RawSpan, _ number: Int, _ depth: Int, type: String? = nil, _ output: inout ByteBuffer
    ) throws(InvalidDocument) {
        let table = schema.messages[number]
        output.append(byte: UInt8(ascii: "{"))
        if let type { appendType(type, depth, &output) }
        // A bit for each field that has been written.
        var written: UInt64 = 0
        var reader = WireReader(bytes)
        while let tag = try reader.nextTag() {
            guard let index = table.field(numbered: tag.fieldNumber), written & 1 << UInt64(index) == 0 else {
                try reader.skip(tag)
                continue
            }
            let field = table.fields[index]
            startMember(isFirst: written == 0 && type == nil, depth, &output)
            written |= 1 << UInt64(index)
            output.appendQuoted(field.jsonName)
            appendColon(&output)
            if field.isRepeated {
                // All further values of the same field belong here, also those after other fields.
                try appendRepeated(field, tag: tag, from: reader, depth: depth + 1, to: &output)
                try reader.skip(tag)
            } else {
                try appendSingle(field, tag: tag, from: &reader, depth: depth + 1, to: &output)
            }
        }
        end(UInt8(ascii: "}"), isEmpty: written == 0 && type == nil, depth, &output)
    }

    /// Appends all occurrences of a field from the reader's on as an array, or an object for a map.
    private func appendRepeated(
        _ field: FieldTable, tag first: WireTag, from start: WireReader, depth: Int, to output: inout ByteBuffer
    ) throws(InvalidDocument) {
        guard depth < Self.depthMax else { throw InvalidDocument(.nestedTooDeeply, offset: 0) }
        output.append(byte: UInt8(ascii: field.isMap ? "{" : "["))
        var isFirst = true
        var reader = WireReader(start.bytes)
        reader.position = start.position
        var tag: WireTag? = first
        while let current = tag {
            if current.fieldNumber != field.number {
                try reader.skip(current)
            } else if field.isMap {
                startMember(isFirst: isFirst, depth, &output)
                isFirst = false
                try appendEntry(field, try reader.span(current), depth, &output)
            } else if field.kind.wireType != .lengthDelimited, current.wireType == .lengthDelimited {
                var packed = WireReader(try reader.span(current))
                while !packed.isAtEnd {
                    startMember(isFirst: isFirst, depth, &output)
                    isFirst = false
                    appendScalar(try packed.bits(field.kind.wireType), field, &output)
                }
            } else {
                startMember(isFirst: isFirst, depth, &output)
                isFirst = false
                try appendSingle(field, tag: current, from: &reader, depth: depth + 1, to: &output)
            }
            tag = try reader.nextTag()
        }
        end(UInt8(ascii: field.isMap ? "}" : "]"), isEmpty: isFirst, depth, &output)
    }

    /// Appends an entry {1 key, 2 value} of a map, whose keys are strings throughout `proto/`.
    private func appendEntry(
        _ field: FieldTable, _ entry: RawSpan, _ depth: Int, _ output: inout ByteBuffer
    ) throws(InvalidDocument) {
        let valueField = schema.messages[field.type].fields[1]
        var key = entry.extracting(first: 0)
        var value = 0
        var valueTag: WireTag?
        var reader = WireReader(entry)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.MapEntry.key {
                key = try reader.span(tag)
            } else {
                if tag.fieldNumber == FieldNumber.MapEntry.value { (valueTag, value) = (tag, reader.position) }
                try reader.skip(tag)
            }
        }
        try output.appendQuoted(checking: key)
        appendColon(&output)
        guard let valueTag else { return appendDefault(valueField, &output) }
        reader.position = value
        try appendSingle(valueField, tag: valueTag, from: &reader, depth: depth + 1, to: &output)
    }

    // MARK: Values

    private func appendSingle(
        _ field: FieldTable, tag: WireTag, from reader: inout WireReader, depth: Int, to output: inout ByteBuffer
    ) throws(InvalidDocument) {
        switch field.kind {
        case .message: try appendMessage(try reader.span(tag), field.type, depth, &output)
        case .string: try output.appendQuoted(checking: try reader.span(tag))
        case .bytes:
            var text: [UInt8] = []
            Base64.append(try reader.span(tag), to: &text)
            output.appendQuoted(text)
        default:
            try reader.expect(tag, field.kind.wireType)
            appendScalar(try reader.bits(field.kind.wireType), field, &output)
        }
    }

    /// Appends a number, a Boolean value or a value of an enumeration that has these bits on the wire.
    private func appendScalar(_ bits: UInt64, _ field: FieldTable, _ output: inout ByteBuffer) {
        switch field.kind {
        case .bool: output.append(utf8: bits != 0 ? "true" : "false")
        case .enumeration:
            let number = Int32(truncatingIfNeeded: bits)
            let table = schema.enumerations[field.type]
            if table.name == "google.protobuf.NullValue" {
                output.append(utf8: "null")
            } else if let value = table.values.first(where: { $0.number == number }) {
                output.append(utf8: "\"\(value.name)\"")
            } else {
                output.append(utf8: "\(number)")
            }
        default: output.append(utf8: field.kind.numberText(bits))
        }
    }

    /// Appends the value of a field that is not on the wire.
    private func appendDefault(_ field: FieldTable, _ output: inout ByteBuffer) {
        switch field.kind {
        case .message: output.append(utf8: "{}")
        case .string, .bytes: output.append(utf8: "\"\"")
        default: appendScalar(0, field, &output)
        }
    }

    private func appendWrapped(_ bytes: RawSpan, _ number: Int, _ output: inout ByteBuffer) throws(InvalidDocument) {
        let field = schema.messages[number].fields[0]
        var reader = WireReader(bytes)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == field.number {
                return try appendSingle(field, tag: tag, from: &reader, depth: 0, to: &output)
            }
            try reader.skip(tag)
        }
        appendDefault(field, &output)
    }

    /// Seconds and their fraction, for example `1.500s`.
    private func appendDuration(_ bytes: RawSpan, _ output: inout ByteBuffer) throws(InvalidDocument) {
        var reader = WireReader(bytes)
        let parts = try TimestampValue(reading: &reader)
        var text: [UInt8] = []
        if parts.seconds < 0 || parts.nanoseconds < 0 { text.append(UInt8(ascii: "-")) }
        text += Array(String(parts.seconds.magnitude).utf8)
        RFC3339.appendFraction(Int(parts.nanoseconds.magnitude % 1_000_000_000), to: &text)
        text.append(UInt8(ascii: "s"))
        output.appendQuoted(text)
    }

    // MARK: Loosely typed values

    private func appendStructure(
        _ bytes: RawSpan, _ number: Int, _ depth: Int, _ output: inout ByteBuffer
    ) throws(InvalidDocument) {
        var reader = WireReader(bytes)
        guard let tag = try reader.nextTag() else { return output.append(utf8: "{}") }
        try appendRepeated(schema.messages[number].fields[0], tag: tag, from: reader, depth: depth, to: &output)
    }

    private func appendList(
        _ bytes: RawSpan, _ number: Int, _ depth: Int, _ output: inout ByteBuffer
    ) throws(InvalidDocument) {
        var reader = WireReader(bytes)
        guard let tag = try reader.nextTag() else { return output.append(utf8: "[]") }
        try appendRepeated(schema.messages[number].fields[0], tag: tag, from: reader, depth: depth, to: &output)
    }

    /// `google.protobuf.Value` is written as what it holds.
    private func appendLooseValue(
        _ bytes: RawSpan, _ number: Int, _ depth: Int, _ output: inout ByteBuffer
    ) throws(InvalidDocument) {
        let table = schema.messages[number]
        var reader = WireReader(bytes)
        while let tag = try reader.nextTag() {
            if let index = table.field(numbered: tag.fieldNumber) {
                return try appendSingle(table.fields[index], tag: tag, from: &reader, depth: depth, to: &output)
            }
            try reader.skip(tag)
        }
        output.append(utf8: "null")
    }

    // MARK: Layout

    private func startMember(isFirst: Bool, _ depth: Int, _ output: inout ByteBuffer) {
        if !isFirst { output.append(byte: UInt8(ascii: ",")) }
        startLine(depth + 1, &output)
    }

    private func end(_ bracket: UInt8, isEmpty: Bool, _ depth: Int, _ output: inout ByteBuffer) {
        if !isEmpty { startLine(depth, &output) }
        output.append(byte: bracket)
    }

    private func startLine(_ depth: Int, _ output: inout ByteBuffer) {
        guard isPretty else { return }
        output.append(byte: UInt8(ascii: "\n"))
        for _ in 0..<depth { output.append(utf8: "  ") }
    }

    private func appendColon(_ output: inout ByteBuffer) {
        output.append(utf8: isPretty ? ": " : ":")
    }
}
