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
    private struct Member {
        let name: String
        var node: Node
        /// The name in quotes and a colon.
        let key: [UInt8]

        init(_ name: String, _ node: Node) {
            (self.name, self.node) = (name, node)
            key = Array("\(JSONText.quoted(name)):".utf8)
        }

        /// Whether an object with this member alone would be a value of another type.
        var isMark: Bool { name.utf8.first == UInt8(ascii: "$") }
    }

    /// A value, or an object.
    private struct Node {
        /// The column of this value, if there is one.
        var column: Int?
        /// Members in the order of the columns.
        var members: [Member] = []

        mutating func add(_ path: ArraySlice<String>, _ column: Int) {
            guard let name = path.first else { return self.column = column }
            if let place = members.firstIndex(where: { $0.name.hasSameUTF8(as: name) }) {
                members[place].node.add(path.dropFirst(), column)
            } else {
                var node = Node()
                node.add(path.dropFirst(), column)
                members.append(Member(name, node))
            }
        }
    }

    /// The columns of an input that can be read once: its header names them, and columns without a type are strings.
    init(readOnce types: CSVTypes) { pending = types }

    /// The column of reasons in a file that `--skip-bad` has written. It is not stored.
    static let errorName = "__error__"

    /// - Parameter header: the first record.
    init(_ header: [String]) throws(CommandFailure) {
        var seen: Set<FieldPath> = []
        for (number, name) in header.enumerated() {
            if name == Self.errorName {
                columns.append(Column(name: name, isDocumentName: false, type: .skip))
                continue
            }
            guard let path = Self.path(name) else {
                let beginning = CSVCell.beginning(of: name)
                throw CommandFailure("column \(number + 1): \(beginning) is not the name of a field")
            }
            guard seen.insert(path).inserted else { throw CommandFailure("two columns have the name \(name)") }
            columns.append(Column(name: name, isDocumentName: path.isDocumentName, type: .string))
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

    /// Appends the record that was read last as a line of JSON, without its line feed.
    func appendLine(_ reader: CSVReader, to output: inout [UInt8]) throws(CSVProblem) {
        guard reader.record.count == columns.count else {
            throw reader.problem("the record has \(reader.record.count) cells, and the header \(columns.count)")
        }
        output.append(UInt8(ascii: "{"))
        _ = try appendMembers(of: root, reader, to: &output)
        output.append(UInt8(ascii: "}"))
    }

    /// - Returns: the members that have a value, and the first of them.
    private func appendMembers(
        of node: Node, _ reader: CSVReader, to output: inout [UInt8]
    ) throws(CSVProblem) -> (count: Int, first: Int?) {
        var written: (count: Int, first: Int?) = (0, nil)
        for (number, member) in node.members.enumerated() {
            let start = output.count
            if written.count > 0 { output.append(UInt8(ascii: ",")) }
            output += member.key
            guard try append(member.node, reader, to: &output) else {
                output.removeLast(output.count - start)
                continue
            }
            written = (written.count + 1, written.first ?? number)
        }
        return written
    }

    /// - Returns: false if there is no value; some bytes may have been appended then.
    private func append(_ node: Node, _ reader: CSVReader, to output: inout [UInt8]) throws(CSVProblem) -> Bool {
        var hasValue = false
        if let column = node.column { hasValue = try append(column, reader, to: &output) }
        if node.members.isEmpty { return hasValue }
        let start = output.count
        output.append(UInt8(ascii: "{"))
        let (count, first) = try appendMembers(of: node, reader, to: &output)
        output.append(UInt8(ascii: "}"))
        guard let first else {
            output.removeLast(output.count - start)
            return hasValue
        }
        if let column = node.column, hasValue {
            throw reader.problem("\(columns[column].name) has a value and members of a map")
        }
        // An object with one member that begins with $ is a value of another type.
        if count == 1, node.members[first].isMark {
            output.insert(contentsOf: #"{"$map":"#.utf8, at: start)
            output.append(UInt8(ascii: "}"))
        }
        return true
    }

    private func append(_ number: Int, _ reader: CSVReader, to output: inout [UInt8]) throws(CSVProblem) -> Bool {
        let (column, record) = (columns[number], reader.record)
        let text = record[number].text
        // An id may be the text null; a record without an id gets one.
        let isQuoted = column.isDocumentName ? !text.isEmpty : record[number].isQuoted
        switch column.type.append(CSVCell(text, isQuoted: isQuoted), to: &output) {
        case .value: return true
        case .noValue: return false
        case .failure(let reason): throw reader.problem("\(column.name): \(reason)")
        }
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
