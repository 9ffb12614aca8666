// Values by which listeners find the queries that a document can match.

import Basics
package import DocumentModel

extension QueryMatcher {
    /// A condition that every result meets: a field has one of some values, or its array has one of them as an element.
    package struct EqualityCondition: Sendable {
        /// How the values of the condition are compared with a document.
        package enum Kind: Sendable, Hashable {
            /// The field has one of the values.
            case field
            /// The field is an array with one of the values as an element.
            case element
        }

        package let field: FieldPath
        package let kind: Kind
        /// The values, as ``ValueKey`` writes them.
        package let keys: [[UInt8]]
    }

    /// The condition that leaves the fewest values; nil if the query has none.
    package var equalityCondition: EqualityCondition? {
        let conditions = filter.fieldTests.compactMap(EqualityCondition.init)
        return conditions.min { $0.keys.count < $1.keys.count }
    }
}

extension QueryMatcher.EqualityCondition {
    fileprivate init?(_ test: FieldTest) {
        let values: [EncodedValue]
        switch test.condition {
        case .equal:
            kind = .field
            values = [test.operand]
        case .isNull:
            kind = .field
            values = [.null]
        case .isIn:
            kind = .field
            values = test.list
        case .containsAny:
            kind = .element
            values = test.list
        default: return nil
        }
        field = test.path
        keys = values.map { value in
            var key = ByteBuffer(capacity: 32)
            ValueKey.append(wireValue: value.span, into: &key)
            return key.copyBytes()
        }
    }
}
