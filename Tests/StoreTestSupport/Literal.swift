// Values as scripts write them: JSON, and calls for the types that JSON lacks.
//
//     null true 1 1.0 NaN -Infinity "text" [1, 2] {a: 1, "b c": 2}
//     ts(1000000) in microseconds, bytes(00ff), ref(users/a), geo(1.5, 2.5), vector(1, 2)

package import DocumentModel
import QueryEngine

/// Reads words, values and signs from a line of a script.
package struct LiteralParser {
    private let text: [Character]
    private var position = 0

    package init(_ text: String) { self.text = Array(text) }

    private mutating func skipSpace() {
        while position < text.count, text[position] == " " { position += 1 }
    }

    package var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return position == text.count
        }
    }

    /// Takes the sign or word if it comes next.
    package mutating func take(_ sign: String) -> Bool {
        skipSpace()
        let signs = Array(sign)
        guard position + signs.count <= text.count, Array(text[position..<position + signs.count]) == signs else {
            return false
        }
        if let last = signs.last, last.isLetter, position + signs.count < text.count,
            Self.isWord(text[position + signs.count])
        {
            return false
        }
        position += signs.count
        return true
    }

    package mutating func expect(_ sign: String) throws {
        if !take(sign) { throw ScriptError("expected \(sign) at \(String(text[position...]))") }
    }

    private static func isWord(_ character: Character) -> Bool {
        !character.isASCII || character.isLetter || character.isNumber || "_-.+`/:".contains(character)
    }

    /// A name, path, operator or number; backticks quote.
    package mutating func word() throws -> String {
        skipSpace()
        var word = ""
        var isQuoted = false
        while position < text.count, isQuoted || Self.isWord(text[position]) {
            if text[position] == "`" { isQuoted.toggle() }
            word.append(text[position])
            position += 1
        }
        if word.isEmpty { throw ScriptError("expected a word at \(String(text[position...]))") }
        return word
    }

    /// Everything that is left.
    package mutating func rest() -> String {
        skipSpace()
        defer { position = text.count }
        return String(text[position...])
    }

    private mutating func raw(until end: Character) throws -> String {
        var result = ""
        while position < text.count, text[position] != end {
            result.append(text[position])
            position += 1
        }
        try expect(String(end))
        return result
    }

    private mutating func string() throws -> String {
        var result = ""
        while position < text.count, text[position] != "\"" {
            if text[position] == "\\", position + 1 < text.count {
                position += 1
                result.append(text[position] == "0" ? "\0" : text[position])
            } else {
                result.append(text[position])
            }
            position += 1
        }
        try expect("\"")
        return result
    }

    package mutating func list(until end: String) throws -> [Value] {
        var values: [Value] = []
        while !take(end) {
            values.append(try value())
            if !take(",") {
                try expect(end)
                break
            }
        }
        return values
    }

    /// Values separated by commas to the end of the line.
    package mutating func listToEnd() throws -> [Value] {
        var values: [Value] = []
        while !isAtEnd {
            values.append(try value())
            if !take(",") { break }
        }
        return values
    }

    package mutating func map() throws -> MapValue {
        try expect("{")
        var map = MapValue()
        while !take("}") {
            let key = take("\"") ? try string() : try raw(until: ":")
            if text[position - 1] == "\"" { try expect(":") }
            map[key] = try value()
            if !take(",") {
                try expect("}")
                break
            }
        }
        return map
    }

    package mutating func value() throws -> Value {
        skipSpace()
        if take("\"") { return .string(try string()) }
        if take("[") { return .array(try list(until: "]")) }
        if position < text.count, text[position] == "{" { return .map(try map()) }
        if take("ts(") { return .timestamp(TimestampValue(microseconds: Int64(try raw(until: ")")) ?? 0)) }
        if take("ref(") { return .reference("\(testRoot)/\(try raw(until: ")"))".replacing("\\0", with: "\0")) }
        if take("name(") { return .reference(try raw(until: ")")) }
        if take("bytes(") {
            let digits = Array(try raw(until: ")"))
            return .bytes(
                stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(String(digits[$0...$0 + 1]), radix: 16) ?? 0 })
        }
        if take("geo(") {
            let parts = try list(until: ")").compactMap(Self.number)
            guard parts.count == 2 else { throw ScriptError("geo takes two numbers") }
            return .geoPoint(GeoPointValue(latitude: parts[0], longitude: parts[1]))
        }
        if take("vector(") { return .vector(try list(until: ")").compactMap(Self.number)) }
        let word = try word()
        switch word {
        case "null": return .null
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        case "NaN": return .double(.nan)
        case "Infinity": return .double(.infinity)
        case "-Infinity": return .double(-.infinity)
        default:
            if let integer = Int64(word) { return .integer(integer) }
            if let double = Double(word) { return .double(double) }
            throw ScriptError("not a value: \(word)")
        }
    }

    private static func number(_ value: Value) -> Double? {
        switch value {
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }
}

extension Value {
    /// The value as scripts write it.
    package var literal: String {
        switch self {
        case .null, .boolean, .integer, .double: return scalarText
        case .timestamp(let value): return "ts(\(value.microseconds))"
        case .string(let value): return "\"" + value.replacing("\0", with: "\\0") + "\""
        case .bytes(let value):
            return "bytes(" + value.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + ")"
        case .reference(let value):
            return value.hasPrefix(testRoot) ? "ref(\(value.dropFirst(testRoot.count + 1)))" : "name(\(value))"
        case .geoPoint(let value): return "geo(\(value.latitude), \(value.longitude))"
        case .array(let elements): return "[" + elements.map(\.literal).joined(separator: ", ") + "]"
        case .map(let map): return map.literal
        }
    }
}

extension MapValue {
    /// The fields as scripts write them.
    package var literal: String {
        "{" + entries.map { "\($0.key.literalKey): \($0.value.literal)" }.joined(separator: ", ") + "}"
    }
}

extension String {
    fileprivate var literalKey: String {
        allSatisfy { $0.isLetter || $0.isNumber || $0 == "_" } ? self : "\"\(self)\""
    }
}
