import Basics
import DocumentModel
import Glibc

/// Converts lines of JSON to the canonical bytes of documents, without a tree in between. The format is
/// docs/json-lines.md.
///
/// The parser writes values in the order of the text. Protobuf puts the length of a value before it, but the length is
/// known only after the value; so the parser leaves one byte free and moves the few values that are longer than 127
/// bytes. Canonical form sorts fields by name; so the parser sorts the members of an object at its closing brace if
/// they are out of order. Both move memory within one buffer, which is reused from line to line.
package struct JSONLineParser: ~Copyable {
    /// The member that names the document, when it is not `__name__`.
    package let idField: [UInt8]?
    /// `projects/P/databases/D/documents/`, put before relative references.
    private let documentsRoot: [UInt8]

    /// Canonical document bytes of the line being read.
    private var output = ByteBuffer(capacity: 64 << 10)
    /// Members of the objects that are open, innermost last.
    private var members: [Member] = []
    private var reordered = ByteBuffer(capacity: 4 << 10)
    private var text: [UInt8] = []
    private var name: [UInt8] = []

    /// One member of an object, as a range of `output`.
    private struct Member {
        /// The entry: tag, length, key and value.
        var entry: Range<Int>
        /// The key's bytes.
        var key: Range<Int>
        /// Where the key began in the line.
        var column: Int
    }

    /// What a line says beside the fields.
    package enum Name: Equatable {
        /// A path below the loaded collection: `id`, or `id/collection/id` and so on.
        case path(String)
        /// The line names no document.
        case none
    }

    /// - Parameters:
    ///   - database: `projects/P/databases/D`, what relative references are relative to.
    ///   - idField: the top-level member that holds the document's id; nil for `__name__`.
    package init(database: String, idField: String? = nil) {
        documentsRoot = Array("\(database)/documents/".utf8)
        self.idField = idField.map { Array($0.utf8) }
    }

    /// The canonical document bytes of the line last read.
    package var documentBytes: [UInt8] { output.copyBytes() }

    /// Lends the canonical document bytes of the line last read.
    package func withDocumentBytes<Result>(_ body: (RawSpan) throws -> Result) rethrows -> Result {
        try body(output.bytes)
    }

    /// Reads one line, which must be one JSON object. Afterwards `documentBytes` holds the document.
    package mutating func parse(_ line: Span<UInt8>) throws(JSONLineError) -> Name {
        output.reset()
        members.removeAll(keepingCapacity: true)
        name.removeAll(keepingCapacity: true)
        var scanner = JSONScanner(line)
        guard scanner.peek() == 0x7B else {
            throw JSONLineError("a line must contain one JSON object", at: scanner.position)
        }
        try object(&scanner, entryTag: DocumentTag.field, depth: 0)
        if scanner.peek() != 0 || scanner.position < line.count {
            throw JSONLineError("text after the object", at: scanner.position)
        }
        return name.isEmpty ? .none : .path(String(decoding: name, as: UTF8.self))
    }

    // MARK: Objects

    /// Reads `{...}` as map entries. Depth 0 is the document itself.
    private mutating func object(_ scanner: inout JSONScanner, entryTag: UInt8, depth: Int) throws(JSONLineError) {
        try scanner.expect(0x7B)
        let firstMember = members.count
        let start = output.count
        var isSorted = true
        if !scanner.skip(0x7D) {
            repeat {
                _ = scanner.peek()
                let column = scanner.position
                let keyText = try scanner.string()
                if depth == 0, try isName(keyText, scanner) {
                    try scanner.expect(0x3A)
                    try documentName(&scanner)
                    continue
                }
                let member = try self.member(keyText, column, &scanner, entryTag: entryTag, depth: depth)
                if isSorted, members.count > firstMember {
                    isSorted = compareKeys(members[members.count - 1], member) < 0
                }
                members.append(member)
            } while scanner.skip(0x2C)
            try scanner.expect(0x7D)
        }
        if !isSorted { try sortMembers(from: firstMember, start: start) }
        if depth == 0, let idField { try takeID(from: idField, among: members[firstMember...]) }
        members.removeSubrange(firstMember...)
    }

    /// Reads `: value` of the member whose key was just read, and writes the whole entry.
    private mutating func member(
        _ keyText: JSONScanner.StringRange, _ column: Int, _ scanner: inout JSONScanner, entryTag: UInt8, depth: Int
    ) throws(JSONLineError) -> Member {
        let entryStart = output.count
        output.append(byte: entryTag)
        let entryLength = output.beginLength()
        output.append(byte: DocumentTag.entryKey)
        let keyLength = output.beginLength()
        try appendText(keyText, scanner)
        if output.count == keyLength + 1 { throw JSONLineError("a field name must not be empty", at: column) }
        let keyBytes = output.count - (keyLength + 1)
        output.endLength(at: keyLength)
        let keyEnd = output.count
        try scanner.expect(0x3A)
        output.append(byte: DocumentTag.entryValue)
        let valueLength = output.beginLength()
        try value(&scanner, depth: depth + 1)
        output.endLength(at: valueLength)
        let end = output.count
        output.endLength(at: entryLength)
        // A length that needs more than the reserved byte moves everything after it.
        let moved = output.count - end
        return Member(
            entry: entryStart..<output.count, key: keyEnd - keyBytes + moved..<keyEnd + moved, column: column)
    }

    /// Orders by the keys' UTF-8 bytes.
    private func compareKeys(_ left: Member, _ right: Member) -> Int {
        let bytes = output.bytes
        return bytes.extracting(left.key).compareBytes(bytes.extracting(right.key))
    }

    /// Puts the entries of one object, which fill `output` from `start`, in the order of their keys.
    private mutating func sortMembers(from first: Int, start: Int) throws(JSONLineError) {
        var sorted = Array(members[first...])
        // The keys' offsets lie within `output`, which is not changed meanwhile.
        unsafe output.bytes.withUnsafeBytes { bytes in
            sorted.sort { left, right in
                let order = unsafe memcmp(
                    bytes.baseAddress! + left.key.lowerBound, bytes.baseAddress! + right.key.lowerBound,
                    min(left.key.count, right.key.count))
                return order == 0 ? left.key.count < right.key.count : order < 0
            }
        }
        for index in sorted.indices.dropFirst() where compareKeys(sorted[index - 1], sorted[index]) == 0 {
            throw JSONLineError("duplicate member", at: max(sorted[index - 1].column, sorted[index].column))
        }
        reordered.reset()
        for (offset, member) in sorted.enumerated() {
            let movedBy = start + reordered.count - member.entry.lowerBound
            Self.copy(member.entry, of: output, to: &reordered)
            members[first + offset] = Member(
                entry: member.entry.lowerBound + movedBy..<member.entry.upperBound + movedBy,
                key: member.key.lowerBound + movedBy..<member.key.upperBound + movedBy, column: member.column)
        }
        output.truncate(to: start)
        Self.copy(0..<reordered.count, of: reordered, to: &output)
    }

    private static func copy(_ range: Range<Int>, of source: borrowing ByteBuffer, to target: inout ByteBuffer) {
        target.append(source.bytes.extracting(range))
    }

    // MARK: Values

    /// Reads a value as the bytes of a `Value` message.
    private mutating func value(_ scanner: inout JSONScanner, depth: Int) throws(JSONLineError) {
        switch scanner.peek() {
        case 0x22:
            let range = try scanner.string()
            appendTag(ValueTag.string)
            let length = output.beginLength()
            try appendText(range, scanner)
            output.endLength(at: length)
        case 0x7B:
            if let form = try ExtendedForm(at: scanner) { return try extended(form, &scanner, depth: depth) }
            try map(&scanner, depth: depth)
        case 0x5B: try array(&scanner, depth: depth)
        case 0x74:
            try scanner.literal("true")
            output.append(byte: UInt8(ValueTag.boolean))
            output.append(byte: 1)
        case 0x66:
            try scanner.literal("false")
            output.append(byte: UInt8(ValueTag.boolean))
            output.append(byte: 0)
        case 0x6E:
            try scanner.literal("null")
            output.append(byte: UInt8(ValueTag.null))
            output.append(byte: 0)
        case 0x2D, 0x30...0x39:
            switch try scanner.number() {
            case .integer(let integer):
                output.append(byte: UInt8(ValueTag.integer))
                output.appendVarint(UInt64(bitPattern: integer))
            case .double(let double): appendDouble(double)
            }
        default: throw JSONLineError("expected a value", at: scanner.position)
        }
    }

    private mutating func map(_ scanner: inout JSONScanner, depth: Int) throws(JSONLineError) {
        try checkDepth(depth, scanner)
        output.append(byte: UInt8(ValueTag.map))
        let length = output.beginLength()
        try object(&scanner, entryTag: DocumentTag.mapEntry, depth: depth)
        output.endLength(at: length)
    }

    private mutating func array(_ scanner: inout JSONScanner, depth: Int) throws(JSONLineError) {
        try checkDepth(depth, scanner)
        output.append(byte: UInt8(ValueTag.array))
        let length = output.beginLength()
        try scanner.expect(0x5B)
        if !scanner.skip(0x5D) {
            repeat {
                if scanner.peek() == 0x5B {
                    throw JSONLineError("an array must not directly contain an array", at: scanner.position)
                }
                output.append(byte: DocumentTag.arrayElement)
                let elementLength = output.beginLength()
                try value(&scanner, depth: depth + 1)
                output.endLength(at: elementLength)
            } while scanner.skip(0x2C)
            try scanner.expect(0x5D)
        }
        output.endLength(at: length)
    }

    private func checkDepth(_ depth: Int, _ scanner: borrowing JSONScanner) throws(JSONLineError) {
        if depth > Limits.nestingDepth {
            throw JSONLineError(
                "maps and arrays are nested more than \(Limits.nestingDepth) levels deep", at: scanner.position)
        }
    }

    // MARK: Values that JSON lacks

    private mutating func extended(_ form: ExtendedForm, _ scanner: inout JSONScanner, depth: Int) throws(JSONLineError)
    {
        try scanner.expect(0x7B)
        _ = scanner.peek()
        _ = try scanner.string()
        try scanner.expect(0x3A)
        _ = scanner.peek()
        let start = scanner.position
        switch form {
        case .double:
            switch try unescapedText(&scanner) {
            case "NaN": appendDouble(.nan)
            case "Infinity": appendDouble(.infinity)
            case "-Infinity": appendDouble(-.infinity)
            default: throw JSONLineError("$double must be \"NaN\", \"Infinity\" or \"-Infinity\"", at: start)
            }
        case .bytes:
            _ = try unescapedText(&scanner)
            guard let bytes = Base64.decode(text.span) else {
                throw JSONLineError("$bytes must be padded base64", at: start)
            }
            output.appendField(FieldNumber.Value.bytesValue, bytes: bytes)
        case .timestamp:
            _ = try unescapedText(&scanner)
            guard let microseconds = RFC3339.microseconds(text.span) else {
                throw JSONLineError("$timestamp must be an RFC 3339 time in the years 0001 to 9999", at: start)
            }
            output.appendField(
                FieldNumber.Value.timestampValue, timestamp: TimestampValue(microseconds: microseconds))
        case .reference:
            _ = try unescapedText(&scanner)
            output.append(byte: UInt8(ValueTag.reference))
            let length = output.beginLength()
            if unsafe !ReferenceText.isFullName(text.span.bytes) { output.append(documentsRoot) }
            output.append(text)
            output.endLength(at: length)
        case .geoPoint:
            let point = try numbers(&scanner)
            guard point.count == 2, abs(point[0]) <= 90, abs(point[1]) <= 180 else {
                throw JSONLineError("$geoPoint must be [latitude, longitude] within 90 and 180 degrees", at: start)
            }
            output.withLengthPrefix(field: FieldNumber.Value.geoPointValue) { writer in
                writer.writeIfSet(FieldNumber.CommonType.LatLng.latitude, double: point[0])
                writer.writeIfSet(FieldNumber.CommonType.LatLng.longitude, double: point[1])
            }
        case .vector: Value.vector(try numbers(&scanner)).encode(into: &output)
        case .map: try map(&scanner, depth: depth)
        }
        try scanner.expect(0x7D)
    }

    /// Reads a string into `text` and, for comparing, as a `String`.
    private mutating func unescapedText(_ scanner: inout JSONScanner) throws(JSONLineError) -> String {
        _ = scanner.peek()
        let range = try scanner.string()
        text.removeAll(keepingCapacity: true)
        try scanner.append(range, to: &text)
        return text.count <= 9 ? String(decoding: text, as: UTF8.self) : ""
    }

    /// Reads `[number, ...]`; integers count as doubles, and `{"$double": ...}` is allowed.
    private mutating func numbers(_ scanner: inout JSONScanner) throws(JSONLineError) -> [Double] {
        var result: [Double] = []
        try scanner.expect(0x5B)
        if scanner.skip(0x5D) { return result }
        repeat {
            switch scanner.peek() {
            case 0x2D, 0x30...0x39:
                switch try scanner.number() {
                case .integer(let integer): result.append(Double(integer))
                case .double(let double): result.append(double)
                }
            default:
                // {"$double": "NaN"}: write it as a value, then take the double back.
                let start = output.count
                guard try ExtendedForm(at: scanner) == .double else {
                    throw JSONLineError("expected a number", at: scanner.position)
                }
                try extended(.double, &scanner, depth: 0)
                result.append(double(from: start))
                output.truncate(to: start)
            }
        } while scanner.skip(0x2C)
        try scanner.expect(0x5D)
        return result
    }

    /// The double of the `Value` message that fills `output` from `start`.
    private func double(from start: Int) -> Double {
        var bits: UInt64 = 0
        for offset in (1...8).reversed() { bits = bits << 8 | UInt64(output.bytes[byteAt: start + offset]) }
        return Double(bitPattern: bits)
    }

    // MARK: Names

    private func isName(_ key: JSONScanner.StringRange, _ scanner: borrowing JSONScanner) throws(JSONLineError) -> Bool
    {
        guard key.end - key.start == 8 else { return false }
        return unsafe scanner.line.extracting(key.start..<key.end).bytes.equalsUTF8(of: "__name__")
    }

    private mutating func documentName(_ scanner: inout JSONScanner) throws(JSONLineError) {
        _ = scanner.peek()
        let start = scanner.position
        let range = try scanner.string()
        if !name.isEmpty { throw JSONLineError("__name__ appears twice", at: start) }
        try scanner.append(range, to: &name)
        if name.isEmpty { throw JSONLineError("__name__ is empty", at: start) }
    }

    private mutating func takeID(from field: [UInt8], among members: ArraySlice<Member>) throws(JSONLineError) {
        let fieldName = String(decoding: field, as: UTF8.self)
        if !name.isEmpty { throw JSONLineError("the line has both __name__ and \(fieldName)", at: 0) }
        for member in members where output.bytes.extracting(member.key).equalsBytes(unsafe field.span.bytes) {
            // The entry's value: tag, length, then the Value message.
            do {
                var entry = WireReader(output.bytes.extracting(member.key.upperBound..<member.entry.upperBound))
                guard let valueTag = try entry.nextTag() else { break }
                var value = try entry.message(valueTag)
                guard let tag = try value.nextTag() else { break }
                switch tag.rawValue {
                case ValueTag.string: name = try value.byteArray(tag)
                case ValueTag.integer: name = Array(String(try value.int64(tag)).utf8)
                default:
                    throw JSONLineError(
                        "\(fieldName) must be a string or an integer to name the document", at: member.column)
                }
            } catch let error as JSONLineError {
                throw error
            } catch {
                fatalError("the parser wrote a value that does not read back: \(error)")
            }
            if name.isEmpty { throw JSONLineError("\(fieldName) is empty", at: member.column) }
            if name.contains(0x2F) {
                throw JSONLineError("\(fieldName) contains a slash, so it cannot be an id", at: member.column)
            }
            return
        }
        throw JSONLineError("no member \(fieldName) to name the document", at: 0)
    }
}

// MARK: - Wire bytes

extension JSONLineParser {
    /// Appends the characters that `range` spells.
    private mutating func appendText(_ range: JSONScanner.StringRange, _ scanner: borrowing JSONScanner)
        throws(JSONLineError)
    {
        guard range.isEscaped else {
            // The line's bytes are lent for as long as the scanner is.
            unsafe output.append(scanner.line.extracting(range.start..<range.end).bytes)
            return
        }
        text.removeAll(keepingCapacity: true)
        try scanner.append(range, to: &text)
        output.append(text)
    }

    private mutating func appendTag(_ tag: UInt32) { output.appendVarint(UInt64(tag)) }

    private mutating func appendDouble(_ value: Double) {
        // Canonical form knows one NaN.
        output.appendField(FieldNumber.Value.doubleValue, double: value.isNaN ? .nan : value)
    }
}
