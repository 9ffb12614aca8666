// Cases for a ruleset in a small text format.
//
//     # Everything after # at the beginning of a line is a comment.
//     rules firestore.rules                          or indented lines of rules after a line "rules"
//     time 2026-01-01T00:00:00Z
//     document users/alice {"role": "admin"}         JSON as hearth load reads it
//     user alice {"email": "a@example.com"}          claims of the token; "user none" for nobody
//     allow get users/alice
//     deny delete users/alice
//     deny update users/alice {"role": "owner"}      all fields after the write
//     allow list posts where owner == "alice" and n >= 1 order n limit 10
//     deny list group posts
//
// A line applies to those after it. Documents stay as they are: cases do not change them.

internal import Basics
internal import DocumentJSON
internal import DocumentModel
internal import Expressions

/// A line of a test file that cannot be read.
package struct RulesTestError: Error, CustomStringConvertible {
    /// From 1.
    package let line: Int
    package let message: String

    package var description: String { "line \(line): \(message)" }
}

/// One case: a request, and whether it is to be allowed.
package struct RulesTestCase: Sendable {
    /// From 1.
    package let line: Int
    package let text: String
    package let isAllowed: Bool
    package let request: RulesRequest
    /// The documents at the case, by path.
    package let documents: [DocumentAddress: [UInt8]]
}

/// The rules and the cases of a test file.
package struct RulesTestFile: Sendable {
    /// The rules, if the file has them.
    package private(set) var rules: String?
    /// The file of the rules, if the test file names one.
    package private(set) var rulesFile: String?
    package private(set) var cases: [RulesTestCase] = []

    private var documents: [DocumentAddress: [UInt8]] = [:]
    private var auth = Operand.null
    private var time = TimestampValue(seconds: 1_767_225_600, nanoseconds: 0)

    /// Reads a test file.
    package init(_ text: String) throws(RulesTestError) {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().map {
            (number: $0.offset + 1, text: String($0.element))
        }[...]
        while let (number, text) = lines.popFirst() {
            if text.allSatisfy(\.isWhitespace) || text.hasPrefix("#") { continue }
            do {
                if text == "rules" {
                    let own = lines.prefix { $0.text.allSatisfy(\.isWhitespace) || $0.text.hasPrefix(" ") }
                    rules = own.map(\.text).joined(separator: "\n")
                    lines = lines.dropFirst(own.count)
                } else {
                    try read(text, number)
                }
            } catch {
                throw RulesTestError(line: number, message: error.message)
            }
        }
    }

    /// Why a line cannot be read.
    private struct Problem: Error {
        let message: String
    }

    private mutating func read(_ line: String, _ number: Int) throws(Problem) {
        var words = TestWords(line)
        switch words.next() {
        case "rules": rulesFile = words.rest
        case "time":
            guard let moment = RFC3339.timestamp(Array(words.rest.utf8).span) else {
                throw Problem(message: "\(words.rest) is not a time such as 2026-01-01T00:00:00Z")
            }
            time = moment
        case "document":
            let path = try path(words.next(), isDocument: true)
            documents[DocumentAddress(path)] = try fields(words.rest)
        case "user":
            guard let uid = words.next() else { throw Problem(message: "a user has an id, or is none") }
            auth = uid == "none" ? .null : try user(uid, words.rest)
        case "allow": try addCase(line, number, isAllowed: true, &words)
        case "deny": try addCase(line, number, isAllowed: false, &words)
        case let word:
            throw Problem(
                message: "\(word ?? "") is not one of rules, time, document, user, allow, deny")
        }
    }

    private func user(_ uid: String, _ json: String) throws(Problem) -> Operand {
        let claims = try fields(json.isEmpty ? "{}" : json)
        return RulesRequest.user(uid, token: EncodedSlice(documentFields: claims).entries)
    }

    private mutating func addCase(
        _ line: String, _ number: Int, isAllowed: Bool, _ words: inout TestWords
    ) throws(Problem) {
        guard let method = words.next().flatMap(RulesRequest.Method.init) else {
            throw Problem(message: "after allow or deny stands get, list, create, update or delete")
        }
        var query: StructuredQuery?
        var first = words.next()
        let isGroup = method == .list && first == "group"
        if isGroup { first = words.next() }
        let path = try path(first, isDocument: method != .list)
        if method == .list {
            var reader = TestQuery(words: words, collection: path.last ?? "", isGroup: isGroup)
            query = try reader.read()
        }
        var request = RulesRequest(method, path: path, auth: auth, time: time, query: query)
        request.resource = method == .list ? .unread : .known(documents[DocumentAddress(path)])
        switch method {
        case .get, .list: break
        case .delete: request.newResource = .deleted
        case .create, .update: request.newResource = .fields(try fields(words.rest))
        }
        cases.append(
            RulesTestCase(
                line: number, text: line, isAllowed: isAllowed, request: request, documents: documents))
    }

    private func path(_ text: String?, isDocument: Bool) throws(Problem) -> [String] {
        let segments = (text ?? "").split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        if segments.contains(where: \.isEmpty) || (segments.count % 2 == 0) != isDocument {
            throw Problem(message: "\(text ?? "") is not the path of a \(isDocument ? "document" : "collection")")
        }
        return segments
    }

    private func fields(_ json: String) throws(Problem) -> [UInt8] {
        do {
            return try TestValue.fields(json)
        } catch {
            throw Problem(message: "the JSON is invalid: \(error)")
        }
    }

    /// The clauses of a query after the collection.
    private struct TestQuery {
        var words: TestWords
        let collection: String
        let isGroup: Bool

        private static let operators: [String: FieldOperator] = [
            "==": .equal, "!=": .notEqual, "<": .lessThan, "<=": .lessThanOrEqual, ">": .greaterThan,
            ">=": .greaterThanOrEqual, "in": .isIn, "not-in": .notIn, "array-contains": .arrayContains,
            "array-contains-any": .arrayContainsAny,
        ]

        mutating func read() throws(Problem) -> StructuredQuery {
            var query = StructuredQuery(
                from: [CollectionSelector(collectionID: collection, allDescendants: isGroup)])
            var filters: [Filter] = []
            while let word = words.next() {
                switch word {
                case "where", "and": filters.append(try condition())
                case "order": query.orderBy.append(Order(field: try field()))
                case "limit": query.limit = try number()
                case "offset": query.offset = try number()
                default: throw Problem(message: "\(word) is not one of where, and, order, limit, offset")
                }
            }
            if !filters.isEmpty { query.filter = filters.count == 1 ? filters[0] : .and(filters) }
            return query
        }

        private mutating func condition() throws(Problem) -> Filter {
            let field = try field()
            guard let operation = words.next().flatMap({ Self.operators[$0] }) else {
                throw Problem(message: "a condition is FIELD OPERATOR VALUE")
            }
            guard let text = words.nextJSON(), let value = try? TestValue.value(text) else {
                throw Problem(message: "the value of a condition is JSON")
            }
            return .field(field, operation, EncodedValue(value))
        }

        private mutating func field() throws(Problem) -> FieldPath {
            guard let text = words.next(), let path = try? FieldPath(text) else {
                throw Problem(message: "a field is missing or invalid")
            }
            return path
        }

        private mutating func number() throws(Problem) -> Int32 {
            guard let number = words.next().flatMap({ Int32($0) }), number >= 0 else {
                throw Problem(message: "a number is missing or negative")
            }
            return number
        }
    }
}

/// The words of a line.
private struct TestWords {
    private var text: Substring

    init(_ line: String) { text = line[...] }

    /// What is left of the line.
    var rest: String { String(text.drop { $0 == " " }) }

    mutating func next() -> String? {
        text = text.drop { $0 == " " }
        let word = text.prefix { $0 != " " }
        text = text.dropFirst(word.count)
        return word.isEmpty ? nil : String(word)
    }

    /// A JSON value: a word, or everything up to the end of a string, a list or a map.
    mutating func nextJSON() -> String? {
        text = text.drop { $0 == " " }
        var depth = 0
        var isQuoted = false
        var isEscaped = false
        var end = text.startIndex
        while end < text.endIndex {
            let character = text[end]
            if depth == 0, !isQuoted, character == " " { break }
            if isEscaped {
                isEscaped = false
            } else if character == "\\" {
                isEscaped = isQuoted
            } else if character == "\"" {
                isQuoted.toggle()
            } else if !isQuoted {
                if "[{".contains(character) { depth += 1 }
                if "]}".contains(character) { depth -= 1 }
            }
            end = text.index(after: end)
        }
        defer { text = text[end...] }
        return end == text.startIndex ? nil : String(text[..<end])
    }
}

/// JSON of test files.
private enum TestValue {
    private static let database = "projects/test/databases/(default)"

    /// The canonical bytes of a document.
    static func fields(_ json: String) throws(JSONLineError) -> [UInt8] {
        var parser = JSONLineParser(database: database)
        _ = try parser.parse(Array(json.utf8).span)
        return parser.documentBytes
    }

    static func value(_ json: String) throws -> Value? {
        let bytes = try fields("{\"value\":\(json)}")
        return try MapValue(documentBytes: bytes.byteSpan)["value"]
    }
}
