package import Basics
internal import DocumentJSON
internal import DocumentModel

/// Converts JSON text to the wire bytes of a message, by protobuf's mapping ("ProtoJSON Format"), in one pass.
///
/// Names may be in lowerCamelCase or as in `proto/`. The reader rejects unknown names, a second member of a oneof, and
/// a member that occurs twice. Errors are INVALID_ARGUMENT and name the place as Google's APIs do:
///
///     Invalid JSON payload received. Unknown name "limt" at 'structured_query': Cannot find field.
///
/// One instance reads any number of messages, one after the other.
package struct JSONMessageReader {
    /// Objects and arrays within each other. A document at its limit of nesting needs some 70.
    private static let depthMax = 200

    let schema: Schema
    /// Whether timestamps and wrappers may also be objects with the fields of their messages:
    /// `{"seconds": 1, "nanos": 2}` and `{"value": 3}`. Libraries that do not know the mapping write them so.
    package var acceptsMessageForms = false
    /// Where in the message reading stands, for errors.
    private var path: [Step] = []
    /// An escaped string, unescaped.
    var scratch: [UInt8] = []

    private enum Step {
        case field(message: Int, field: Int)
        case element(Int)
        /// The key of a map, as the range of its text.
        case key(Int, Int)
    }

    package init(schema: Schema = .shared) {
        self.schema = schema
    }

    /// Appends the message that `json` spells. Nothing at all counts as an object without members.
    ///
    /// - Throws: INVALID_ARGUMENT; what was appended then is worthless.
    package mutating func append(_ json: RawSpan, _ type: MessageType, to output: inout ByteBuffer) throws(RequestError)
    {
        path.removeAll(keepingCapacity: true)
        var scanner = JSONScanner(json.byteElements)
        scanner.skipSpace()
        if scanner.position == json.byteCount { return }
        do throws(Failure) {
            try message(type.number, &scanner, 0, &output)
            scanner.skipSpace()
            guard scanner.position == json.byteCount else {
                throw .syntax(JSONLineError("unexpected text after the value", at: scanner.position))
            }
        } catch {
            throw requestError(error, json)
        }
    }

    // MARK: Messages

    mutating func message(
        _ number: Int, _ scanner: inout JSONScanner, _ depth: Int, _ output: inout ByteBuffer
    ) throws(Failure) {
        guard depth < Self.depthMax else { throw .tooDeep }
        switch schema.messages[number].form {
        case .object: try object(number, &scanner, depth, &output)
        case .timestamp where isMessageForm(&scanner), .wrapper where isMessageForm(&scanner):
            try object(number, &scanner, depth, &output)
        case .timestamp:
            let text = try stringBytes(&scanner)
            guard let time = RFC3339.timestamp(text.span) else {
                throw .value(String(decoding: text, as: UTF8.self), "an RFC 3339 timestamp")
            }
            output.writeIfSet(FieldNumber.Protobuf.Timestamp.seconds, int64: time.seconds)
            output.writeIfSet(FieldNumber.Protobuf.Timestamp.nanos, int64: Int64(time.nanoseconds))
        case .wrapper: try single(schema.messages[number].fields[0], &scanner, depth, &output)
        case .fieldMask: FieldMaskText.append(String(decoding: try stringBytes(&scanner), as: UTF8.self), as: &output)
        case .duration:
            let text = String(decoding: try stringBytes(&scanner), as: UTF8.self)
            guard DurationText.append(text, as: &output) else { throw .value(text, "a number of seconds with an s") }
        // These stand in replies alone; no request has one.
        case .any, .structure, .value, .list: throw .cannotBeSet(schema.messages[number].name)
        }
    }

    private func isMessageForm(_ scanner: inout JSONScanner) -> Bool {
        acceptsMessageForms && scanner.peek() == UInt8(ascii: "{")
    }

    private mutating func object(
        _ number: Int, _ scanner: inout JSONScanner, _ depth: Int, _ output: inout ByteBuffer
    ) throws(Failure) {
        try expect(UInt8(ascii: "{"), &scanner)
        if scanner.skip(UInt8(ascii: "}")) { return }
        let table = schema.messages[number]
        // A bit for each field, and one for each oneof, that has been set.
        var fieldsSet: UInt64 = 0
        var oneofsSet: UInt64 = 0
        repeat {
            let key = try keyText(&scanner)
            guard let index = try field(key, of: table, scanner) else { throw .unknownName(key.start, key.end) }
            let field = table.fields[index]
            path.append(.field(message: number, field: index))
            if try skipNull(field, &scanner) {
                path.removeLast()
                continue
            }
            guard fieldsSet & 1 << UInt64(index) == 0 else { throw .repeatedName }
            fieldsSet |= 1 << UInt64(index)
            if let oneof = field.oneof {
                guard oneofsSet & 1 << UInt64(oneof) == 0 else { throw .oneofSet(table.oneofs[oneof]) }
                oneofsSet |= 1 << UInt64(oneof)
            }
            if field.isMap {
                try map(field, &scanner, depth + 1, &output)
            } else if field.isRepeated {
                try array(field, &scanner, depth + 1, &output)
            } else {
                try single(field, &scanner, depth + 1, &output)
            }
            path.removeLast()
        } while try hasNext(UInt8(ascii: "}"), &scanner)
    }

    /// Steps over a null, which is like no member at all, except where null is what the field is about.
    private func skipNull(_ field: FieldTable, _ scanner: inout JSONScanner) throws(Failure) -> Bool {
        guard scanner.peek() == UInt8(ascii: "n") else { return false }
        if field.kind == .enumeration, !field.isRepeated, isNullValue(field) { return false }
        try literal("null", &scanner)
        return true
    }

    private func isNullValue(_ field: FieldTable) -> Bool {
        schema.enumerations[field.type].name == "google.protobuf.NullValue"
    }

    private mutating func array(
        _ field: FieldTable, _ scanner: inout JSONScanner, _ depth: Int, _ output: inout ByteBuffer
    ) throws(Failure) {
        guard depth < Self.depthMax else { throw .tooDeep }
        try expect(UInt8(ascii: "["), &scanner)
        if scanner.skip(UInt8(ascii: "]")) { return }
        var index = 0
        repeat {
            path.append(.element(index))
            try single(field, &scanner, depth + 1, &output)
            path.removeLast()
            index += 1
        } while try hasNext(UInt8(ascii: "]"), &scanner)
    }

    /// The members of an object as entries {1 key, 2 value} of a map, whose keys are strings throughout `proto/`.
    private mutating func map(
        _ field: FieldTable, _ scanner: inout JSONScanner, _ depth: Int, _ output: inout ByteBuffer
    ) throws(Failure) {
        guard depth < Self.depthMax else { throw .tooDeep }
        try expect(UInt8(ascii: "{"), &scanner)
        if scanner.skip(UInt8(ascii: "}")) { return }
        let valueField = schema.messages[field.type].fields[1]
        repeat {
            let key = try keyText(&scanner)
            path.append(.key(key.start, key.end))
            output.appendTag(field: field.number, .lengthDelimited)
            let place = output.beginLength()
            output.appendTag(field: FieldNumber.MapEntry.key, .lengthDelimited)
            try appendText(key, scanner, &output)
            try single(valueField, &scanner, depth + 1, &output)
            output.endLength(at: place)
            path.removeLast()
        } while try hasNext(UInt8(ascii: "}"), &scanner)
    }

    // MARK: Single values

    /// A value with its tag.
    private mutating func single(
        _ field: FieldTable, _ scanner: inout JSONScanner, _ depth: Int, _ output: inout ByteBuffer
    ) throws(Failure) {
        switch field.kind {
        case .message:
            output.appendTag(field: field.number, .lengthDelimited)
            let place = output.beginLength()
            try message(field.type, &scanner, depth, &output)
            output.endLength(at: place)
        case .string:
            output.appendTag(field: field.number, .lengthDelimited)
            try appendText(try stringExtent(&scanner), scanner, &output)
        case .bytes:
            let text = try stringBytes(&scanner)
            guard let bytes = Base64.decodeAnyForm(text.span) else {
                throw .value(String(decoding: text, as: UTF8.self), "base64")
            }
            output.appendField(field.number, bytes: bytes)
        case .bool: output.appendField(field.number, boolean: try boolean(&scanner))
        case .enumeration: output.appendField(field.number, int64: Int64(try enumeration(field.type, &scanner)))
        default: output.appendNumber(field, bits: try number(field.kind, &scanner))
        }
    }

    // MARK: Names

    private func field(
        _ key: JSONScanner.StringRange, of table: MessageSchema, _ scanner: borrowing JSONScanner
    ) throws(Failure) -> Int? {
        guard key.isEscaped else { return table.field(named: scanner.line.extracting(key.start..<key.end).rawBytes) }
        var name: [UInt8] = []
        try Failure.wrapped { () throws(JSONLineError) in try scanner.append(key, to: &name) }
        return table.field(named: name.byteSpan)
    }

    /// A member's name and the colon after it.
    private func keyText(_ scanner: inout JSONScanner) throws(Failure) -> JSONScanner.StringRange {
        scanner.skipSpace()
        let key = try stringExtent(&scanner)
        try expect(UInt8(ascii: ":"), &scanner)
        return key
    }

    /// Whether a comma follows. Otherwise the closing bracket must follow.
    private func hasNext(_ bracket: UInt8, _ scanner: inout JSONScanner) throws(Failure) -> Bool {
        if scanner.skip(UInt8(ascii: ",")) { return true }
        try expect(bracket, &scanner)
        return false
    }

    /// Appends length and text of a string.
    private mutating func appendText(
        _ text: JSONScanner.StringRange, _ scanner: borrowing JSONScanner, _ output: inout ByteBuffer
    ) throws(Failure) {
        guard text.isEscaped else {
            output.appendVarint(UInt64(text.end - text.start))
            return output.append(scanner.line.extracting(text.start..<text.end).rawBytes)
        }
        scratch.removeAll(keepingCapacity: true)
        do throws(JSONLineError) { try scanner.append(text, to: &scratch) } catch { throw .syntax(error) }
        output.appendVarint(UInt64(scratch.count))
        output.append(scratch)
    }

    // MARK: Errors

    /// What can be wrong, before it is put into a sentence with its place.
    enum Failure: Error {
        case syntax(JSONLineError)
        case unknownName(Int, Int)
        case repeatedName
        case oneofSet(String)
        /// A value that is not what is expected here.
        case value(String, String)
        case cannotBeSet(String)
        case tooDeep

        static func wrapped(_ body: () throws(JSONLineError) -> Void) throws(Failure) {
            do throws(JSONLineError) { try body() } catch { throw .syntax(error) }
        }
    }

    /// Bytes of a name or of a value that an error repeats.
    private static let bytesShown = 100

    private static func shown(_ json: RawSpan, _ start: Int, _ end: Int) -> String {
        String(repairingUTF8: json.extracting(start..<min(end, start + bytesShown)))
    }

    /// One character may have any number of bytes.
    private static func shown(_ value: String) -> String {
        String(decoding: value.utf8.prefix(bytesShown), as: UTF8.self)
    }

    private func requestError(_ failure: Failure, _ json: RawSpan) -> RequestError {
        let place = placeText(json)
        let at = place.isEmpty ? "" : " at '\(place)'"
        let text =
            switch failure {
            case .syntax(let error): "\(error.reason) (byte \(error.offset))\(at)."
            case .unknownName(let start, let end):
                "Unknown name \"\(Self.shown(json, start, end))\"\(at): Cannot find field."
            case .repeatedName: "The field '\(place)' is set twice."
            case .oneofSet(let oneof): "Invalid value\(at) (oneof), oneof field '\(oneof)' is already set."
            case .value(let value, let expected):
                "Invalid value\(at): \"\(Self.shown(value))\" is not \(expected)."
            case .cannotBeSet(let type): "Invalid value\(at): a \(type) cannot be part of a request."
            case .tooDeep: "Objects and arrays are nested more than \(Self.depthMax) levels deep."
            }
        return .invalidArgument("Invalid JSON payload received. \(text)")
    }

    /// The place as `structured_query.from[0].fields["a"]`.
    private func placeText(_ json: RawSpan) -> String {
        var text = ""
        for step in path {
            switch step {
            case .field(let message, let field):
                let name = String(decoding: schema.messages[message].fields[field].name, as: UTF8.self)
                text += text.isEmpty ? name : ".\(name)"
            case .element(let index): text += "[\(index)]"
            case .key(let start, let end): text += "[\"\(Self.shown(json, start, end))\"]"
            }
        }
        return text
    }
}
