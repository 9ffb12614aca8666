// The header of a CSV file: which cell goes to which field.

import Basics
import DocumentJSON
import DocumentModel

/// The columns of a file, and the documents' shape that follows from their names.
struct CSVColumns {
    struct Column {
        /// As the header has it: a field path in the notation of queries, `__name__`, or ``CSVColumns/errorName``.
        var name: String
        /// Whether it names the documents.
        var isDocumentName: Bool
        var type: CSVType
    }
    private(set) var columns: [Column] = []
    private var root = Node()
    /// The types of the columns of an input whose header was not read yet; nil after that.
    private(set) var pending: CSVTypes?

    /// A member of an object.
    private struct Node {
        /// The column of this value, if there is one.
        var column: Int?
        /// Members in the order of the columns.
        var members: [(name: String, node: Node)] = []

        mutating func add(_ path: ArraySlice<String>, _ column: Int) {
            guard let name = path.first else { return self.column = column }
            if let place = members.firstIndex(where: { $0.name.hasSameUTF8(as: name) }) {
                members[place].node.add(path.dropFirst(), column)
            } else {
                var node = Node()
                node.add(path.dropFirst(), column)
                members.append((name, node))
            }
        }
    }

    /// The columns of an input that can be read once: its header names them, and columns without a type are strings.
    init(readOnce types: CSVTypes) { pending = types }

    /// The column of reasons in a file that `--skip-bad` has written. It is not stored.
    static let errorName = "__error__"

    /// - Parameter header: the first record.
    init(_ header: [CSVReader.Cell]) throws(CommandFailure) {
        var seen: Set<FieldPath> = []
        for (number, cell) in header.enumerated() {
            if cell.text == Self.errorName {
                columns.append(Column(name: cell.text, isDocumentName: false, type: .skip))
                continue
            }
            guard let path = Self.path(cell.text) else {
                throw CommandFailure("column \(number + 1): \(cell.beginning) is not the name of a field")
            }
            guard seen.insert(path).inserted else { throw CommandFailure("two columns have the name \(cell.text)") }
            columns.append(Column(name: cell.text, isDocumentName: path.isDocumentName, type: .string))
            root.add(path.segments[...], number)
        }
    }

    /// A path in the notation of queries, or names of any form between dots.
    private static func path(_ text: String) -> FieldPath? {
        if text == "__name__" { return .documentName }
        let segments = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        return (try? FieldPath(text)) ?? (try? FieldPath(segments: segments))
    }

    /// Sets the type of a column.
    mutating func set(_ type: CSVType, at column: Int) {
        if columns[column].name == Self.errorName { return }
        columns[column].type = columns[column].isDocumentName ? .string : type
    }

    /// The column with a name; nil if there is none.
    func column(named name: String) -> Int? { columns.firstIndex { $0.name.hasSameUTF8(as: name) } }

    /// A record as a line of JSON, without its line feed.
    func line(_ record: [CSVReader.Cell], _ reader: CSVReader) throws(CSVProblem) -> String {
        guard record.count == columns.count else {
            throw reader.problem("the record has \(record.count) cells, and the header \(columns.count)")
        }
        return "{\(try members(of: root, record, reader).joined(separator: ","))}"
    }

    private func members(
        of node: Node, _ record: [CSVReader.Cell], _ reader: CSVReader
    ) throws(CSVProblem) -> [String] {
        var members: [String] = []
        for (name, member) in node.members {
            var value: String?
            if let column = member.column { value = try json(record[column], columns[column], reader) }
            let inner = try self.members(of: member, record, reader)
            if !inner.isEmpty {
                if let column = member.column, value != nil {
                    throw reader.problem("\(columns[column].name) has a value and members of a map")
                }
                let object = "{\(inner.joined(separator: ","))}"
                // An object with one member that begins with $ is a value of another type.
                let isPlain = inner.count > 1 || !inner[0].hasPrefix("\"$")
                value = isPlain ? object : "{\"$map\":\(object)}"
            }
            if let value { members.append("\(JSONText.quoted(name)):\(value)") }
        }
        return members
    }

    private func json(
        _ cell: CSVReader.Cell, _ column: Column, _ reader: CSVReader
    ) throws(CSVProblem) -> String? {
        var cell = cell
        // An id may be the text null; a record without an id gets one.
        if column.isDocumentName { cell.isQuoted = !cell.text.isEmpty }
        let (text, failure) = column.type.json(cell)
        if let failure { throw reader.problem("\(column.name): \(failure)") }
        return text
    }

    /// The types as `--types` has them.
    var typesText: String {
        columns.filter { !$0.isDocumentName }.map { CSVTypes.text($0.name, $0.type) }.joined(separator: ",")
    }
}

/// What `--types` says: `inferred`, or names of columns with their types. A name may be in quotes, as in the header of
/// a file: `zip:string,"last, first":string`.
struct CSVTypes: FlagValue, Equatable {
    /// By the bytes of the names.
    private(set) var declared: [[UInt8]: CSVType] = [:]

    static func parse(_ text: String) throws(FlagTextError) -> CSVTypes {
        let names = CSVType.allCases.map(\.rawValue).joined(separator: ", ")
        let expected = FlagTextError(expected: "inferred, or COLUMN:TYPE,... with the types \(names)")
        var types = CSVTypes()
        if text == "inferred" { return types }
        var rest = Array(text.utf8)[...]
        while true {
            guard let name = takeName(&rest), rest.popFirst() == UInt8(ascii: ":") else { throw expected }
            let word = rest.prefix { $0 != UInt8(ascii: ",") }
            guard let type = CSVType(rawValue: String(decoding: word, as: UTF8.self)) else { throw expected }
            types.declared[name] = type
            rest.removeFirst(word.count)
            if rest.popFirst() == nil { return types }
        }
    }

    /// Takes the name of a column, up to the colon before its type.
    private static func takeName(_ text: inout ArraySlice<UInt8>) -> [UInt8]? {
        let quote = UInt8(ascii: "\"")
        guard text.first == quote else {
            // Without quotes a name may have colons, and no comma.
            let part = text.prefix { $0 != UInt8(ascii: ",") }
            guard let colon = part.lastIndex(of: UInt8(ascii: ":")) else { return nil }
            defer { text = text[colon...] }
            return Array(part[..<colon])
        }
        var name: [UInt8] = []
        text.removeFirst()
        while let byte = text.popFirst() {
            if byte == quote, text.first != quote { return name }
            if byte == quote { text.removeFirst() }
            name.append(byte)
        }
        return nil
    }

    /// A column with its type as `parse` reads it.
    static func text(_ name: String, _ type: CSVType) -> String {
        let isPlain = !name.utf8.contains { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "\"") }
        return "\(isPlain ? name : CSVReader.quoted(name)):\(type.rawValue)"
    }

    var flagText: String {
        declared.isEmpty
            ? "inferred"
            : declared.sorted { $0.key.lexicographicallyPrecedes($1.key) }
                .map { Self.text(String(decoding: $0.key, as: UTF8.self), $0.value) }.joined(separator: ",")
    }

    /// Sets the types of columns.
    func apply(to columns: inout CSVColumns) throws(CommandFailure) {
        for (bytes, type) in declared {
            let name = String(decoding: bytes, as: UTF8.self)
            guard let column = columns.column(named: name) else {
                throw CommandFailure("--types: there is no column \(JSONText.quoted(name))")
            }
            columns.set(type, at: column)
        }
    }
}
