// Documents and their fields as the words of a command line.

import Basics
import DocumentJSON
import DocumentModel
import Glibc

/// What a path names.
enum PlaceWord {
    case root
    case collection(CollectionPath)
    case document(DocumentPath)

    /// - Parameter word: a path such as `books` or `books/ulysses`, with or without slashes at its ends, or a full
    ///   name.
    static func read(_ word: String, _ database: DatabaseName) throws -> PlaceWord {
        var path = word.hasSuffix("/") ? String(word.dropLast()) : word
        let root = database.documentsRoot + "/"
        if path.hasUTF8Prefix(root) { path = path.dropping(prefix: root) }
        path = PathWords.path(path)
        if path.isEmpty { return .root }
        if path.utf8.count(where: { $0 == UInt8(ascii: "/") }).isMultiple(of: 2) {
            return .collection(try CollectionPath(database: database, path: path))
        }
        return .document(try DocumentPath(database: database, path: path))
    }

    /// A document.
    static func document(_ word: String, _ database: DatabaseName) throws -> DocumentPath {
        switch try read(word, database) {
        case .document(let path): return path
        case .collection(let path):
            throw UsageError(
                message: "\"\(word)\" is a collection, not a document; hearth ls \(path.path) lists its documents")
        case .root: throw UsageError(message: "\"\(word)\" is not the path of a document, such as books/ulysses")
        }
    }
}

/// The fields of one document as JSON.
struct DocumentText {
    let fields: MapValue

    /// Bytes of standard input that are read; a document has at most 1 MiB, its JSON some more.
    private static let bytesMax = 16 << 20

    /// - Parameters:
    ///   - word: JSON of one object; nil or `-` for standard input.
    ///   - path: the document that it is for. A member `__name__`, as in the output of `hearth get`, must name it.
    init(_ word: String?, for path: DocumentPath) throws {
        let text = try word.flatMap { $0 == "-" ? nil : Array($0.utf8) } ?? Self.standardInput()
        var parser = JSONLineParser(database: path.database.description)
        let name: JSONLineParser.Name
        do throws(JSONLineError) {
            name = try parser.parse(text.span)
        } catch {
            throw CommandFailure("the document is not valid JSON: \(error)")
        }
        if case .path(let name) = name, name != path.path {
            throw CommandFailure("the document's __name__ is \"\(name)\", not \"\(path.path)\"")
        }
        fields = try parser.withDocumentBytes { try MapValue(documentBytes: $0) }
    }

    private static func standardInput() throws -> [UInt8] {
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = piece.withUnsafeMutableBytes { Glibc.read(STDIN_FILENO, $0.baseAddress!, $0.count) }
            if count == 0 { return text }
            if count < 0 {
                if errno == EINTR { continue }
                throw CommandFailure("cannot read standard input: \(String(cString: strerror(errno)))")
            }
            text += piece[..<count]
            if text.count > bytesMax { throw CommandFailure("standard input has more than \(bytesMax) bytes") }
        }
    }
}

/// Changes of fields as words: `year=1922`, `urls.cover=https://...`.
struct FieldChanges {
    /// What the fields become, as a tree.
    private(set) var fields = MapValue()
    /// The fields that change, those to remove included.
    private(set) var paths: [DocumentModel.FieldPath] = []

    /// - Parameters:
    ///   - assignments: `FIELD=VALUE`, with values as in conditions of `hearth query`.
    ///   - removals: fields to remove.
    init(assignments: some Sequence<String>, removals: some Sequence<String>, _ database: DatabaseName) throws {
        for word in assignments { try assign(word, database) }
        for word in removals { try note(try PathWords.field(word, of: "--remove")) }
        if paths.isEmpty { throw UsageError(message: "nothing to change: write FIELD=VALUE, or --remove FIELD") }
    }

    private mutating func assign(_ word: String, _ database: DatabaseName) throws {
        var quotes = BackquoteScanner()
        let name = word.unicodeScalars.prefix { quotes.covers($0) || $0 != "=" }
        guard name.endIndex < word.endIndex, !name.isEmpty else {
            throw UsageError(message: "\"\(word)\" is not a change: write FIELD=VALUE, such as year=1922")
        }
        let field = try PathWords.field(String(name), of: "\"\(word)\"")
        try note(field)
        do throws(ValueWordError) {
            let value = try ValueWord.read(
                String(word.unicodeScalars[name.endIndex...].dropFirst()), database)
            Self.set(value, at: field.segments[...], in: &fields)
        } catch {
            throw UsageError(message: "the value of \"\(word)\" is invalid: \(error.reason)")
        }
    }

    /// Two changes of one field, or of a field and a part of it, contradict each other.
    private mutating func note(_ field: DocumentModel.FieldPath) throws {
        if let other = paths.first(where: { $0.isPrefix(of: field) || field.isPrefix(of: $0) }) {
            throw UsageError(message: "\(field) and \(other) cannot both be changed: one is the other or a part of it")
        }
        paths.append(field)
    }

    private static func set(_ value: Value, at segments: ArraySlice<String>, in map: inout MapValue) {
        guard let name = segments.first else { return }
        if segments.count == 1 {
            map[name] = value
            return
        }
        var inner = MapValue()
        if case .map(let present)? = map[name] { inner = present }
        set(value, at: segments.dropFirst(), in: &inner)
        map[name] = .map(inner)
    }
}

extension MapValue {
    /// The paths of all values that are not maps with entries: what a merge changes.
    var mergePaths: [DocumentModel.FieldPath] {
        get throws { try mergePaths(below: []) }
    }

    private func mergePaths(below segments: [String]) throws -> [DocumentModel.FieldPath] {
        try entries.flatMap { key, value throws -> [DocumentModel.FieldPath] in
            if case .map(let inner) = value, !inner.isEmpty { return try inner.mergePaths(below: segments + [key]) }
            return [try DocumentModel.FieldPath(segments: segments + [key])]
        }
    }
}
