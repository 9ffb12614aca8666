// What the cells of a column mean.

import Basics
import DocumentJSON

/// The type of a column.
enum CSVType: String, CaseIterable {
    case string
    case integer
    case double
    case boolean
    /// RFC 3339.
    case timestamp
    /// A path relative to the database, or a full name.
    case reference
    /// Base64.
    case bytes
    /// A value of the format of JSON lines: arrays, maps, vectors, geo points, and columns of several types.
    case json
    /// The column is not stored.
    case skip

    /// The cell that is the value null, if it is not quoted.
    static let null = "null"

    /// What a cell is.
    enum Outcome {
        case value
        /// The document gets no field.
        case noValue
        /// What the cell should be.
        case failure(String)
    }

    /// Appends the JSON of a cell, as docs/json-lines.md has it; nothing unless it is a value.
    func append(_ cell: CSVCell, to output: inout [UInt8]) -> Outcome {
        if self == .skip { return .noValue }
        if CSVType.isNull(cell) {
            output += Self.null.utf8
            return .value
        }
        if cell.text.isEmpty {
            guard self == .string, cell.isQuoted else { return .noValue }
            output += "\"\"".utf8
            return .value
        }
        if append(cell.text, to: &output) { return .value }
        return .failure("\(cell.beginning) is not \(noun)")
    }

    /// - Returns: whether the text is a value of the type; if not, nothing has been appended.
    private func append(_ text: RawSpan, to output: inout [UInt8]) -> Bool {
        switch self {
        case .string: JSONText.appendQuoted(text, to: &output)
        case .reference:
            if text.firstOffset(of: UInt8(ascii: "/")) == nil { return false }
            appendObject("$reference", text, to: &output)
        case .timestamp:
            if RFC3339.timestamp([UInt8](copying: text).span) == nil { return false }
            appendObject("$timestamp", text, to: &output)
        case .bytes:
            if Base64.decode([UInt8](copying: text).span) == nil { return false }
            appendObject("$bytes", text, to: &output)
        case .json:
            if (try? JSONValue.read([UInt8](copying: text))) == nil { return false }
            // JSON has line feeds and carriage returns between values alone. Other line ends of Unicode may be in its
            // strings.
            output += [UInt8](copying: text).map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }
        case .integer, .double, .boolean:
            guard let json = scalar(String(repairingUTF8: text)) else { return false }
            output += json.utf8
        case .skip: return false
        }
        return true
    }

    /// Appends an object with one member.
    private func appendObject(_ name: StaticString, _ text: RawSpan, to output: inout [UInt8]) {
        output += "{\"\(name)\":".utf8
        JSONText.appendQuoted(text, to: &output)
        output.append(UInt8(ascii: "}"))
    }

    /// The JSON of a number or of a truth value.
    private func scalar(_ text: String) -> String? {
        switch self {
        case .integer: Int64(text).map(String.init)
        case .double: Self.double(text)
        case .boolean: Self.boolean(text).map { "\($0)" }
        default: nil
        }
    }

    fileprivate static func isNull(_ cell: CSVCell) -> Bool { !cell.isQuoted && cell.text.equalsUTF8(of: null) }

    private var noun: String {
        switch self {
        case .string, .skip: "a text"
        case .integer: "an integer of 64 bits"
        case .double: "a number"
        case .boolean: "true or false"
        case .timestamp: "a time such as 2031-05-02T08:15:30Z"
        case .reference: "a path such as users/ada"
        case .bytes: "base64"
        case .json: "JSON"
        }
    }

    private static func double(_ text: String) -> String? {
        switch text {
        case "NaN", "Infinity", "-Infinity": return #"{"$double":"\#(text)"}"#
        default: break
        }
        // Not the other forms that Swift reads: hexadecimal digits, inf, nan.
        guard text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }), let number = Double(text),
            number.isFinite
        else { return nil }
        return number.description
    }

    private static func boolean(_ text: String) -> Bool? {
        switch text {
        case "true", "TRUE", "True": true
        case "false", "FALSE", "False": false
        default: nil
        }
    }

    /// The types that a cell may have by its look, the most special one first; `string` is always possible.
    fileprivate static let inferred: [CSVType] = [.boolean, .integer, .double, .timestamp, .json]

    fileprivate func looksLike(_ text: RawSpan) -> Bool {
        let first = text[byteAt: 0]
        switch self {
        // A leading zero or sign is a part of a name: a postal code, a telephone number.
        case .integer: return Int64(String(repairingUTF8: text)).map { text.equalsUTF8(of: String($0)) } ?? false
        case .double:
            let isPadded = first == UInt8(ascii: "0") && text.byteCount > 1 && text[byteAt: 1] != UInt8(ascii: ".")
            return first != UInt8(ascii: "+") && !isPadded && text.firstOffset(in: Self.digits) != nil
                && isValue(text)
        case .json: return (first == UInt8(ascii: "[") || first == UInt8(ascii: "{")) && isValue(text)
        default: return isValue(text)
        }
    }

    private static let digits = ByteSet(UInt8(ascii: "0")...UInt8(ascii: "9"))

    private func isValue(_ text: RawSpan) -> Bool {
        var output: [UInt8] = []
        return append(text, to: &output)
    }
}

/// Finds the type of a column by its cells.
struct CSVInference {
    private var candidates = CSVType.inferred
    /// Cells with a value other than null.
    private(set) var count = 0

    mutating func add(_ cell: CSVCell) {
        if cell.text.isEmpty || CSVType.isNull(cell) { return }
        count += 1
        candidates.removeAll { !$0.looksLike(cell.text) }
    }

    var type: CSVType { count == 0 ? .string : candidates.first ?? .string }
}
