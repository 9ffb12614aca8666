// The condition of a query: `google.firestore.v1.StructuredQuery.Filter`.

/// A condition on one document: a tree of ANDs and ORs over conditions on single fields.
package indirect enum Filter: Sendable, Equatable {
    /// All of the conditions hold. Never empty when it came from the wire.
    case and([Filter])

    /// At least one of the conditions holds. Never empty when it came from the wire.
    case or([Filter])

    /// A comparison of a field with an operand.
    case field(FieldPath, FieldOperator, EncodedValue)

    /// A test of a field alone.
    case unary(FieldPath, UnaryOperator)

    /// The deepest nesting of composite filters that is read from the wire. The rules allow 100 parts in a whole query,
    /// so no query that could run nests deeper; the bound keeps hostile input from exhausting the stack.
    package static let nestingMax = 100
}

/// How a field is compared with an operand. Raw values are those of `FieldFilter.Operator`.
package enum FieldOperator: UInt8, Sendable, CaseIterable {
    case lessThan = 1
    case lessThanOrEqual = 2
    case greaterThan = 3
    case greaterThanOrEqual = 4
    case equal = 5
    case notEqual = 6
    case arrayContains = 7
    case isIn = 8
    case arrayContainsAny = 9
    case notIn = 10

    /// The operator's name in the public schema, as error messages spell it.
    package var name: String {
        switch self {
        case .lessThan: "LESS_THAN"
        case .lessThanOrEqual: "LESS_THAN_OR_EQUAL"
        case .greaterThan: "GREATER_THAN"
        case .greaterThanOrEqual: "GREATER_THAN_OR_EQUAL"
        case .equal: "EQUAL"
        case .notEqual: "NOT_EQUAL"
        case .arrayContains: "ARRAY_CONTAINS"
        case .isIn: "IN"
        case .arrayContainsAny: "ARRAY_CONTAINS_ANY"
        case .notIn: "NOT_IN"
        }
    }

    /// Whether the operator bounds a range of values: `<`, `<=`, `>`, `>=`.
    package var isRange: Bool {
        switch self {
        case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual: true
        default: false
        }
    }

    /// Whether the operator excludes values rather than selecting them: `!=`, `not-in`.
    package var isExclusion: Bool { self == .notEqual || self == .notIn }

    /// Whether the operand is a list of alternatives.
    package var takesList: Bool { self == .isIn || self == .notIn || self == .arrayContainsAny }
}

/// A test of a field without an operand. Raw values are those of `UnaryFilter.Operator`.
package enum UnaryOperator: UInt8, Sendable, CaseIterable {
    case isNaN = 2
    case isNull = 3
    case isNotNaN = 4
    case isNotNull = 5

    package var name: String {
        switch self {
        case .isNaN: "IS_NAN"
        case .isNull: "IS_NULL"
        case .isNotNaN: "IS_NOT_NAN"
        case .isNotNull: "IS_NOT_NULL"
        }
    }

    /// Whether the test excludes values rather than selecting them.
    package var isExclusion: Bool { self == .isNotNaN || self == .isNotNull }
}
