// Positions among the names of a database, and ranges of them: what filters and cursors on `__name__` come down to.

import Basics
import DocumentModel

/// A place in the order of one database's document names.
///
/// Operands may refer to documents that do not exist, lie outside the collections queried, or bear reserved ids.
struct NamePosition: Sendable, Equatable {
    /// The path below `documents`.
    let path: [UInt8]

    init(path: [UInt8]) {
        self.path = path
    }

    /// Reads the operand of a filter.
    ///
    /// - Parameter database: the database queried.
    /// - Throws: `INVALID_ARGUMENT` unless the operand is a reference with a well-formed name of the database.
    init(_ operand: EncodedValue, database: DatabaseName) throws(RequestError) {
        guard let name = operand.referenceBytes else { throw .invalidArgument("__key__ filter value must be a Key") }
        let view = try ResourceNameView(resource: name.byteSpan, rules: .query)
        guard view.databaseBytes.equalsBytes(database.utf8.byteSpan) else {
            throw .invalidArgument(
                "The request was for database '\(database)' but was attempting to access database "
                    + "'\(String(repairingUTF8: view.databaseBytes))'")
        }
        path = [UInt8](copying: view.pathBytes)
    }

    /// Reads the value of a cursor.
    ///
    /// - Throws: `INVALID_ARGUMENT`, as for a filter.
    init(cursorValue value: EncodedValue, database: DatabaseName) throws(RequestError) {
        guard let name = value.referenceBytes else {
            throw .invalidArgument("Cursor __key__ value is not a document reference.")
        }
        let view = try ResourceNameView(resource: name.byteSpan, rules: .query)
        guard view.databaseBytes.equalsBytes(database.utf8.byteSpan) else {
            throw .invalidArgument("The cursor key is in a different database than the query")
        }
        path = [UInt8](copying: view.pathBytes)
    }

    /// How a document's path stands to this position: negative, 0 or positive.
    func compare(path: RawSpan) -> Int { ResourcePath.compare(path, self.path.byteSpan) }
}

extension NamePosition: Comparable {
    static func < (left: NamePosition, right: NamePosition) -> Bool {
        ResourcePath.compare(left.path.byteSpan, right.path.byteSpan) < 0
    }
}

/// One condition on a document's name.
struct NameTest: Sendable {
    let operation: FieldOperator
    /// One position, or those of a list.
    let positions: [NamePosition]
    private let operand: EncodedValue
    /// The condition as the plan shows it.
    var description: String { "__name__ \(operation.symbol) \(operand.text)" }

    init(_ operation: FieldOperator, _ operand: EncodedValue, database: DatabaseName) throws(RequestError) {
        self.operation = operation
        self.operand = operand
        var positions: [NamePosition] = []
        switch operation {
        case .arrayContains, .arrayContainsAny:
            throw .invalidArgument("\(operation.name) cannot be applied to __name__.")
        case .isIn, .notIn:
            for member in try operand.nonEmptyList(of: operation) {
                positions.append(try NamePosition(member, database: database))
            }
        default: positions.append(try NamePosition(operand, database: database))
        }
        self.positions = positions
    }

    func matches(path: RawSpan) -> Bool {
        switch operation {
        case .lessThan: positions[0].compare(path: path) < 0
        case .lessThanOrEqual: positions[0].compare(path: path) <= 0
        case .greaterThan: positions[0].compare(path: path) > 0
        case .greaterThanOrEqual: positions[0].compare(path: path) >= 0
        case .equal: positions[0].compare(path: path) == 0
        case .notEqual: positions[0].compare(path: path) != 0
        case .isIn: positions.contains { $0.compare(path: path) == 0 }
        case .notIn: !positions.contains { $0.compare(path: path) == 0 }
        // Refused by the initialiser.
        case .arrayContains, .arrayContainsAny: false
        }
    }
}

/// A range of names; a missing bound is open.
package struct NameRange: Sendable, Equatable {
    struct Bound: Sendable, Equatable {
        var position: NamePosition
        var isInclusive: Bool
    }

    var lower: Bound?
    var upper: Bound?

    static let all = NameRange()

    /// Cuts off what lies below the bound.
    mutating func raise(_ bound: Bound) {
        if let lower, lower.position > bound.position { return }
        if let lower, lower.position == bound.position, !lower.isInclusive { return }
        lower = bound
    }

    /// Cuts off what lies above the bound.
    mutating func reduce(_ bound: Bound) {
        if let upper, upper.position < bound.position { return }
        if let upper, upper.position == bound.position, !upper.isInclusive { return }
        upper = bound
    }

    /// Cuts off names that a test refuses, as far as a range can say.
    mutating func narrow(by test: NameTest) {
        guard let least = test.positions.min(), let greatest = test.positions.max() else { return }
        switch test.operation {
        case .lessThan: reduce(Bound(position: greatest, isInclusive: false))
        case .lessThanOrEqual: reduce(Bound(position: greatest, isInclusive: true))
        case .greaterThan: raise(Bound(position: least, isInclusive: false))
        case .greaterThanOrEqual: raise(Bound(position: least, isInclusive: true))
        case .equal, .isIn:
            raise(Bound(position: least, isInclusive: true))
            reduce(Bound(position: greatest, isInclusive: true))
        case .notEqual, .notIn, .arrayContains, .arrayContainsAny: break
        }
    }

    /// Whether the document is in the range.
    func contains(path: RawSpan) -> Bool {
        if let lower {
            let order = lower.position.compare(path: path)
            if order < 0 || (order == 0 && !lower.isInclusive) { return false }
        }
        if let upper {
            let order = upper.position.compare(path: path)
            if order > 0 || (order == 0 && !upper.isInclusive) { return false }
        }
        return true
    }
}
