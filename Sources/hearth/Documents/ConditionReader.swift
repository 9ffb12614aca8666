// Conditions as people write them on a command line: `year >= 1922`, `author == Joyce`, `tags array-contains-any
// novel,short`.

import Basics
import DocumentJSON
import DocumentModel

/// Reads conditions on the documents of one query.
struct ConditionReader {
    let database: DatabaseName
    /// The collection's path, which ids are in; nil for a collection group.
    let collection: String?

    private static let operators: [String: FieldOperator] = [
        "==": .equal, "=": .equal, "!=": .notEqual, "<": .lessThan, "<=": .lessThanOrEqual, ">": .greaterThan,
        ">=": .greaterThanOrEqual, "in": .isIn, "not-in": .notIn, "array-contains": .arrayContains,
        "array-contains-any": .arrayContainsAny,
    ]

    /// Reads `FIELD OPERATOR VALUE`. The parts are separated by spaces, which may be left out beside signs.
    func read(_ text: String) throws -> DocumentModel.Filter {
        guard let (name, sign, rest) = Self.parts(of: text) else {
            throw UsageError(
                message: "\"\(text)\" is not a condition: write FIELD OPERATOR VALUE, such as 'year >= 1922'")
        }
        guard let meaning = Self.operators[sign] else {
            let known = "== != < <= > >= in not-in array-contains array-contains-any"
            throw UsageError(message: "\"\(sign)\" in \"\(text)\" is not an operator; the operators are \(known)")
        }
        let field = try PathWords.field(name, of: "\"\(text)\"")
        let value: Value
        do throws(ValueWordError) {
            value = try meaning.takesList ? list(rest) : ValueWord.read(rest, database)
        } catch {
            throw UsageError(message: "the value of \"\(text)\" is invalid: \(error.reason)")
        }
        return try filter(field, meaning, field.isDocumentName ? names(value, in: text) : value)
    }

    /// Field, operator and value; nil where one is missing. The field ends at a space or a sign that is not within
    /// backticks.
    private static func parts(of text: String) -> (field: String, sign: String, value: String)? {
        let signs: Set<Unicode.Scalar> = ["=", "!", "<", ">"]
        let text = text.trimmingSpaces
        var rest = text.unicodeScalars[...]
        var quotes = BackquoteScanner()
        let field = rest.prefix { quotes.covers($0) || ($0 != " " && !signs.contains($0)) }
        rest = rest.dropFirst(field.count).drop { $0 == " " }
        let sign = rest.prefix { signs.contains($0) }
        let word = sign.isEmpty ? rest.prefix { $0 != " " } : sign
        let value = rest.dropFirst(word.count)
        guard !field.isEmpty, !word.isEmpty, !value.allSatisfy({ $0 == " " }) else { return nil }
        return (String(field), String(word), String(value).trimmingSpaces)
    }

    /// A JSON list, or values with commas between.
    private func list(_ text: String) throws(ValueWordError) -> Value {
        if text.hasPrefix("[") { return try ValueWord.read(text, database) }
        return .array(
            try text.split(separator: ",", omittingEmptySubsequences: false).map { (part) throws(ValueWordError) in
                try ValueWord.read(String(part).trimmingSpaces, database)
            })
    }

    /// What `__name__` is compared with: strings become references, to an id in the collection or by a path.
    private func names(_ value: Value, in text: String) throws -> Value {
        switch value {
        case .array(let members): return .array(try members.map { try names($0, in: text) })
        case .string(let name):
            if let document = try? DocumentPath(name) { return .reference(document.description) }
            if name.utf8.contains(UInt8(ascii: "/")) {
                return .reference(try DocumentPath(database: database, path: name).description)
            }
            guard let collection else {
                throw UsageError(
                    message: "\"\(text)\": with --group a document is named by its path, not by its id alone")
            }
            return .reference(try DocumentPath(database: database, path: "\(collection)/\(name)").description)
        default: return value
        }
    }

    /// Equality with null and NaN uses special operators.
    private func filter(_ field: DocumentModel.FieldPath, _ meaning: FieldOperator, _ value: Value)
        -> DocumentModel.Filter
    {
        let encoded = EncodedValue(value)
        let isNull = encoded == EncodedValue(.null)
        let isNaN = encoded == EncodedValue(.double(.nan))
        switch meaning {
        case .equal where isNull: return .unary(field, .isNull)
        case .equal where isNaN: return .unary(field, .isNaN)
        case .notEqual where isNull: return .unary(field, .isNotNull)
        case .notEqual where isNaN: return .unary(field, .isNotNaN)
        default: return .field(field, meaning, encoded)
        }
    }
}

extension FieldOperator {
    fileprivate var takesList: Bool {
        switch self {
        case .isIn, .notIn, .arrayContainsAny: true
        default: false
        }
    }
}

/// Why a value was not understood.
struct ValueWordError: Error {
    let reason: String
}

/// A value as it is written on a command line: JSON, or a word that needs no quotes. `hearth query --help` has the
/// rules.
enum ValueWord {
    static func read(_ text: String, _ database: DatabaseName) throws(ValueWordError) -> Value {
        if isJSON(text) { return try json(text, database) }
        if ["NaN", "Infinity", "-Infinity"].contains(text) { return try json("{\"$double\":\"\(text)\"}", database) }
        if text.hasPrefix("/") {
            do {
                return .reference(try DocumentPath(database: database, path: String(text.dropFirst())).description)
            } catch {
                throw ValueWordError(
                    reason: "\(text) is not the path of a document; put it in quotes to make it a string")
            }
        }
        let looksLikeTime = text.first?.isNumber == true && text.allSatisfy { $0.isASCII && $0 != "\"" && $0 != "\\" }
        if looksLikeTime, let time = try? json("{\"$timestamp\":\"\(text)\"}", database) { return time }
        return .string(text)
    }

    /// Whether the text must be read as JSON, and is wrong if it cannot be.
    private static func isJSON(_ text: String) -> Bool {
        if ["null", "true", "false"].contains(text) { return true }
        if let first = text.first, "\"{[".contains(first) { return true }
        return text.wholeMatch(of: /-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?/) != nil
    }

    /// The parser of lines reads the value as the one member of a document.
    private static func json(_ json: String, _ database: DatabaseName) throws(ValueWordError) -> Value {
        var parser = JSONLineParser(database: database.description)
        let line = Array("{\"value\":\(json)}".utf8)
        let name: JSONLineParser.Name
        do throws(JSONLineError) {
            name = try parser.parse(line.span)
        } catch {
            throw ValueWordError(reason: error.reason)
        }
        // A text such as `1,"other":2` must not pass as a further member.
        let document = parser.withDocumentBytes { try? MapValue(documentBytes: $0) }
        guard name == .none, let document, document.count == 1, let value = document["value"] else {
            throw ValueWordError(reason: "it is more than one value")
        }
        return value
    }
}

extension String {
    /// The text without spaces at its ends.
    var trimmingSpaces: String {
        let start = drop { $0 == " " }
        return String(start.reversed().drop { $0 == " " }.reversed())
    }
}
