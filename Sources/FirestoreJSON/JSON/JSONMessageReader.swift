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
/// One instance reads any number of messages, one after the other: each at once, or in steps with other work in
/// between.
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
    /// The message whose text has not begun; nil once it has.
    private var awaited: MessageType?
    /// Objects and arrays whose ends have not come, the innermost last.
    private var open: [Open] = []
    /// Where in the text reading stands.
    private var position = 0

    private enum Step {
        case field(message: Int, field: Int)
        case element(Int)
        /// The key of a map, as the range of its text.
        case key(Int, Int)
    }

    /// An object or an array whose end has not come.
    private struct Open {
        enum Kind { case message, map, array }

        let kind: Kind
        /// The message whose members these are. Of a map or an array, the message that has it.
        let message: Int
        /// The field that is the map or the array.
        var field = 0
        /// The place of this message's length in the output; nil for the outermost, and for maps and arrays.
        var length: Int?
        /// A bit for each field, and one for each oneof, that has been set.
        var fieldsSet: UInt64 = 0
        var oneofsSet: UInt64 = 0
        /// Elements of an array that are whole.
        var count = 0
        /// The place of the length of a map's present entry in the output.
        var entry = 0

        var opening: UInt8 { kind == .array ? UInt8(ascii: "[") : UInt8(ascii: "{") }
        var closing: UInt8 { kind == .array ? UInt8(ascii: "]") : UInt8(ascii: "}") }
    }

    package init(schema: Schema = .shared) {
        self.schema = schema
    }

    /// Appends the message that `json` spells. Nothing at all counts as an object without members.
    ///
    /// - Throws: INVALID_ARGUMENT; what was appended then is worthless.
    package mutating func append(_ json: RawSpan, _ type: MessageType, to output: inout ByteBuffer) throws(RequestError)
    {
        begin(type)
        _ = try read(json, upTo: json.byteCount, to: &output)
    }

    /// Begins a message, whatever was read before. ``read(_:upTo:to:)`` follows.
    package mutating func begin(_ type: MessageType) {
        path.removeAll(keepingCapacity: true)
        open.removeAll(keepingCapacity: true)
        position = 0
        awaited = type
    }

    /// Reads on from where it stopped, and appends what it has read.
    ///
    /// - Parameters:
    ///   - json: the whole text, the same each time.
    ///   - limit: the offset in it after which reading stops, at the end of the value that it is in.
    ///   - output: the same each time, with nothing appended meanwhile.
    /// - Returns: whether the message is whole.
    /// - Throws: INVALID_ARGUMENT; what was appended then is worthless.
    package mutating func read(
        _ json: RawSpan, upTo limit: Int, to output: inout ByteBuffer
    ) throws(RequestError) -> Bool {
        var scanner = JSONScanner(json.byteElements, at: position)
        defer { position = scanner.position }
        do throws(Failure) {
            if let type = awaited {
                scanner.skipSpace()
                if scanner.position == json.byteCount { return true }
                awaited = nil
                _ = try message(type.number, &scanner, length: nil, &output)
            }
            while !open.isEmpty {
                if scanner.position >= limit, limit < json.byteCount { return false }
                try member(&scanner, &output)
            }
            scanner.skipSpace()
            guard scanner.position == json.byteCount else {
                throw .syntax(JSONLineError("unexpected text after the value", at: scanner.position))
            }
            return true
        } catch {
            throw requestError(error, json)
        }
    }

    // MARK: Objects and arrays

    /// Reads the next member or element of the innermost object or array. One that is an object or array itself is
    /// entered only.
    private mutating func member(_ scanner: inout JSONScanner, _ output: inout ByteBuffer) throws(Failure) {
        let place = open.count - 1
        let isWhole =
            switch open[place].kind {
            case .message: try field(at: place, &scanner, &output)
            case .map: try entry(at: place, &scanner, &output)
            case .array: try element(at: place, &scanner, &output)
            }
        if isWhole { try valueEnded(&scanner, &output) }
    }

    /// Enters an object or an array.
    /// - Returns: whether it is whole: it is empty.
    private mutating func enter(
        _ next: Open, _ scanner: inout JSONScanner, _ output: inout ByteBuffer
    ) throws(Failure) -> Bool {
        guard open.count < Self.depthMax else { throw .tooDeep }
        try expect(next.opening, &scanner)
        guard scanner.skip(next.closing) else {
            open.append(next)
            return false
        }
        if let length = next.length { output.endLength(at: length) }
        return true
    }

    /// A member or element is whole: another one follows, or the end of what it is in, which then is whole too.
    private mutating func valueEnded(_ scanner: inout JSONScanner, _ output: inout ByteBuffer) throws(Failure) {
        while let last = open.last {
            path.removeLast()
            switch last.kind {
            case .message: break
            case .map: output.endLength(at: last.entry)
            case .array: open[open.count - 1].count += 1
            }
            if scanner.skip(UInt8(ascii: ",")) { return }
            try expect(last.closing, &scanner)
            open.removeLast()
            if let length = last.length { output.endLength(at: length) }
        }
    }

    // The functions below return whether the value that they have begun is whole.

    private mutating func field(
        at place: Int, _ scanner: inout JSONScanner, _ output: inout ByteBuffer
    ) throws(Failure) -> Bool {
        let message = open[place].message
        let table = schema.messages[message]
        let key = try keyText(&scanner)
        guard let index = try field(key, of: table, scanner) else { throw .unknownName(key.start, key.end) }
        let field = table.fields[index]
        path.append(.field(message: message, field: index))
        if try skipNull(field, &scanner) { return true }
        guard open[place].fieldsSet & 1 << UInt64(index) == 0 else { throw .repeatedName }
        open[place].fieldsSet |= 1 << UInt64(index)
        if let oneof = field.oneof {
            guard open[place].oneofsSet & 1 << UInt64(oneof) == 0 else { throw .oneofSet(table.oneofs[oneof]) }
            open[place].oneofsSet |= 1 << UInt64(oneof)
        }
        guard field.isMap || field.isRepeated else { return try single(field, &scanner, &output) }
        let kind: Open.Kind = field.isMap ? .map : .array
        return try enter(Open(kind: kind, message: message, field: index), &scanner, &output)
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

    private mutating func element(
        at place: Int, _ scanner: inout JSONScanner, _ output: inout ByteBuffer
    ) throws(Failure) -> Bool {
        let array = open[place]
        path.append(.element(array.count))
        return try single(schema.messages[array.message].fields[array.field], &scanner, &output)
    }

    /// A member of an object as an entry {1 key, 2 value} of a map, whose keys are strings throughout `proto/`.
    private mutating func entry(
        at place: Int, _ scanner: inout JSONScanner, _ output: inout ByteBuffer
    ) throws(Failure) -> Bool {
        let field = schema.messages[open[place].message].fields[open[place].field]
        let key = try keyText(&scanner)
        path.append(.key(key.start, key.end))
        output.appendTag(field: field.number, .lengthDelimited)
        open[place].entry = output.beginLength()
        output.appendTag(field: FieldNumber.MapEntry.key, .lengthDelimited)
        try appendText(key, scanner, &output)
        return try single(schema.messages[field.type].fields[1], &scanner, &output)
    }

    // MARK: Messages

    /// - Parameter length: the place of the message's length in the output; nil for the outermost.
    private mutating func message(
        _ number: Int, _ scanner: inout JSONScanner, length: Int?, _ output: inout ByteBuffer
    ) throws(Failure) -> Bool {
        guard open.count < Self.depthMax else { throw .tooDeep }
        switch schema.messages[number].form {
        case .object: return try enter(Open(kind: .message, message: number, length: length), &scanner, &output)
        case .timestamp where isMessageForm(&scanner), .wrapper where isMessageForm(&scanner):
            return try enter(Open(kind: .message, message: number, length: length), &scanner, &output)
        case .timestamp:
            let text = try stringBytes(&scanner)
            guard let time = RFC3339.timestamp(text.span) else {
                throw .value(String(decoding: text, as: UTF8.self), "an RFC 3339 timestamp")
            }
            output.writeIfSet(FieldNumber.Protobuf.Timestamp.seconds, int64: time.seconds)
            output.writeIfSet(FieldNumber.Protobuf.Timestamp.nanos, int64: Int64(time.nanoseconds))
        case .wrapper: _ = try single(schema.messages[number].fields[0], &scanner, &output)
        case .fieldMask: FieldMaskText.append(String(decoding: try stringBytes(&scanner), as: UTF8.self), as: &output)
        case .duration:
            let text = String(decoding: try stringBytes(&scanner), as: UTF8.self)
            guard DurationText.append(text, as: &output) else { throw .value(text, "a number of seconds with an s") }
        // These stand in replies alone; no request has one.
        case .any, .structure, .value, .list: throw .cannotBeSet(schema.messages[number].name)
        }
        if let length { output.endLength(at: length) }
        return true
    }

    private func isMessageForm(_ scanner: inout JSONScanner) -> Bool {
        acceptsMessageForms && scanner.peek() == UInt8(ascii: "{")
    }

    // MARK: Single values

    /// A value with its tag.
    private mutating func single(
        _ field: FieldTable, _ scanner: inout JSONScanner, _ output: inout ByteBuffer
    ) throws(Failure) -> Bool {
        switch field.kind {
        case .message:
            output.appendTag(field: field.number, .lengthDelimited)
            let place = output.beginLength()
            return try message(field.type, &scanner, length: place, &output)
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
        return true
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
