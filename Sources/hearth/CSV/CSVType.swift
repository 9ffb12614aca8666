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

    /// The JSON of a cell, as docs/json-lines.md has it; nil for a cell without a value.
    ///
    /// - Returns: `failure` says what the cell should be.
    func json(_ cell: CSVReader.Cell) -> (text: String?, failure: String?) {
        if self == .skip { return (nil, nil) }
        if !cell.isQuoted, cell.text == Self.null { return ("null", nil) }
        if cell.text.isEmpty { return (self == .string && cell.isQuoted ? "\"\"" : nil, nil) }
        if let text = value(cell.text) { return (text, nil) }
        return (nil, "\(cell.beginning) is not \(noun)")
    }

    private func value(_ text: String) -> String? {
        switch self {
        case .string: JSONText.quoted(text)
        case .integer: Int64(text).map(String.init)
        case .double: Self.double(text)
        case .boolean: Self.boolean(text).map { "\($0)" }
        case .timestamp: Self.isTimestamp(text) ? #"{"$timestamp":\#(JSONText.quoted(text))}"# : nil
        case .reference: text.utf8.contains(UInt8(ascii: "/")) ? #"{"$reference":\#(JSONText.quoted(text))}"# : nil
        case .bytes:
            Base64.decode(Array(text.utf8).span) == nil ? nil : #"{"$bytes":\#(JSONText.quoted(text))}"#
        case .json: (try? JSONValue.read(Array(text.utf8))) == nil ? nil : Self.inOneLine(text)
        case .skip: nil
        }
    }

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

    /// JSON has line feeds and carriage returns between values alone. Other line ends of Unicode may be in its strings.
    private static func inOneLine(_ text: String) -> String {
        String(decoding: text.utf8.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }, as: UTF8.self)
    }

    private static func boolean(_ text: String) -> Bool? {
        switch text {
        case "true", "TRUE", "True": true
        case "false", "FALSE", "False": false
        default: nil
        }
    }

    private static func isTimestamp(_ text: String) -> Bool { RFC3339.timestamp(Array(text.utf8).span) != nil }

    /// The types that a cell may have by its look, the most special one first; `string` is always possible.
    fileprivate static let inferred: [CSVType] = [.boolean, .integer, .double, .timestamp, .json]

    fileprivate func looksLike(_ text: String) -> Bool {
        switch self {
        // A leading zero or sign is a part of a name: a postal code, a telephone number.
        case .integer: Int64(text).map { String($0) == text } ?? false
        case .double:
            text.first != "+" && !(text.hasPrefix("0") && !text.hasPrefix("0.") && text != "0")
                && text.utf8.contains { (0x30...0x39).contains($0) } && value(text) != nil
        case .json: (text.hasPrefix("[") || text.hasPrefix("{")) && value(text) != nil
        default: value(text) != nil
        }
    }
}

/// Finds the type of a column by its cells.
struct CSVInference {
    private var candidates = CSVType.inferred
    /// Cells with a value other than null.
    private(set) var count = 0

    mutating func add(_ cell: CSVReader.Cell) {
        if cell.text.isEmpty || (!cell.isQuoted && cell.text == CSVType.null) { return }
        count += 1
        candidates.removeAll { !$0.looksLike(cell.text) }
    }

    var type: CSVType { count == 0 ? .string : candidates.first ?? .string }
}

extension CSVReader.Cell {
    /// The beginning of the text, in quotation marks, for errors.
    var beginning: String { JSONText.quoted(String(text.prefix(40))) }
}
