// A filter prepared for checking many documents on their wire bytes.
//
// Whatever tree the client sent becomes a conjunction of tests and of alternatives, each alternative a conjunction
// again. ANDs inside ANDs melt into one list, so that the usual filter (some conditions, all of which must hold) is
// one loop over tests, each of which finds its field in place and compares bytes.

import Basics
import DocumentModel

/// Conditions that must all hold.
struct CompiledFilter: Sendable {
    /// Tests of fields.
    var fieldTests: [FieldTest] = []
    /// Tests of the document's name.
    var nameTests: [NameTest] = []
    /// Groups of which at least one member must hold.
    var alternatives: [[CompiledFilter]] = []

    /// The filter that accepts everything.
    static let all = CompiledFilter()

    /// See ``QueryMatcher/walks``.
    var walks: Int {
        fieldTests.reduce(0) { $0 + max($1.list.count, 1) } + alternatives.joined().reduce(0) { $0 + $1.walks }
    }

    package var isEmpty: Bool { fieldTests.isEmpty && nameTests.isEmpty && alternatives.isEmpty }

    /// Prepares a filter whose shape has been checked; see `FilterRules`.
    ///
    /// - Parameter database: the database queried, against which references to names are checked.
    /// - Throws: `INVALID_ARGUMENT` for an operand that its operator cannot take.
    init(_ filter: Filter, database: DatabaseName) throws(RequestError) {
        self.init()
        try add(filter, database: database)
    }

    private init() {}

    private mutating func add(_ filter: Filter, database: DatabaseName) throws(RequestError) {
        switch filter {
        case .and(let parts):
            for part in parts { try add(part, database: database) }
        case .or(let parts):
            if parts.count == 1 { return try add(parts[0], database: database) }
            var group: [CompiledFilter] = []
            for part in parts { group.append(try CompiledFilter(part, database: database)) }
            alternatives.append(group)
        case .field(let path, let operation, let operand):
            if path.isDocumentName {
                nameTests.append(try NameTest(operation, operand, database: database))
            } else {
                fieldTests.append(try FieldTest(path, operation, operand))
            }
        case .unary(let path, let operation):
            if path.isDocumentName {
                throw .invalidArgument("\(operation.name) cannot be applied to __name__.")
            }
            fieldTests.append(FieldTest(path, operation))
        }
    }

    /// Whether a document meets the conditions.
    ///
    /// - Parameters:
    ///   - path: the document's path below `documents`.
    ///   - fields: its canonical field entries.
    ///   - index: where they are, if it is known.
    func matches(path: RawSpan, fields: RawSpan, by index: FieldIndex? = nil) -> Bool {
        for place in fieldTests.indices where !fieldTests[place].matches(fields: fields, by: index) { return false }
        for place in nameTests.indices where !nameTests[place].matches(path: path) { return false }
        for place in alternatives.indices {
            if !alternatives[place].contains(where: { $0.matches(path: path, fields: fields, by: index) }) {
                return false
            }
        }
        return true
    }
}

extension CompiledFilter: CustomStringConvertible {
    var description: String {
        var parts = fieldTests.map(\.description) + nameTests.map(\.description)
        for group in alternatives {
            let members = group.map { $0.isSingle ? $0.description : "(\($0))" }
            parts.append("(" + members.joined(separator: " OR ") + ")")
        }
        return parts.joined(separator: " AND ")
    }

    private var isSingle: Bool { fieldTests.count + nameTests.count + alternatives.count == 1 }
}
