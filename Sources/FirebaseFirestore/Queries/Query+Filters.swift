// The filters of a query. Every filter comes for a dotted field name and for a `FieldPath`.

import DocumentCoding
import Foundation

extension Query {
    /// Keeps the documents that the filter accepts. An empty composite filter changes nothing.
    @discardableResult
    public func whereFilter(_ filter: Filter) -> Query {
        Query(
            firestore: firestore, definition: enforcing { () throws(RuleViolation) in try definition(with: filter) })
    }

    func definition(with filter: Filter) throws(RuleViolation) -> QueryDescription {
        guard let compiled = try filter.compiled(for: definition, in: firestore) else { return definition }
        return try QueryRules.adding(compiled, to: definition)
    }

    /// Keeps the documents whose field is equal to the value; null and NaN match themselves.
    @discardableResult
    public func whereField(_ field: String, isEqualTo value: Any) -> Query {
        whereFilter(Filter(.ofDotted(field), .equal, value))
    }

    /// Keeps the documents whose field is equal to the value; null and NaN match themselves.
    @discardableResult
    public func whereField(_ path: FieldPath, isEqualTo value: Any) -> Query {
        whereFilter(Filter(path, .equal, value))
    }

    /// Keeps the documents whose field is present, not null and different from the value.
    @discardableResult
    public func whereField(_ field: String, isNotEqualTo value: Any) -> Query {
        whereFilter(Filter(.ofDotted(field), .notEqual, value))
    }

    /// Keeps the documents whose field is present, not null and different from the value.
    @discardableResult
    public func whereField(_ path: FieldPath, isNotEqualTo value: Any) -> Query {
        whereFilter(Filter(path, .notEqual, value))
    }

    /// Keeps the documents whose field is of the value's type and less.
    @discardableResult
    public func whereField(_ field: String, isLessThan value: Any) -> Query {
        whereFilter(Filter(.ofDotted(field), .lessThan, value))
    }

    /// Keeps the documents whose field is of the value's type and less.
    @discardableResult
    public func whereField(_ path: FieldPath, isLessThan value: Any) -> Query {
        whereFilter(Filter(path, .lessThan, value))
    }

    /// Keeps the documents whose field is of the value's type and not greater.
    @discardableResult
    public func whereField(_ field: String, isLessThanOrEqualTo value: Any) -> Query {
        whereFilter(Filter(.ofDotted(field), .lessThanOrEqual, value))
    }

    /// Keeps the documents whose field is of the value's type and not greater.
    @discardableResult
    public func whereField(_ path: FieldPath, isLessThanOrEqualTo value: Any) -> Query {
        whereFilter(Filter(path, .lessThanOrEqual, value))
    }

    /// Keeps the documents whose field is of the value's type and greater.
    @discardableResult
    public func whereField(_ field: String, isGreaterThan value: Any) -> Query {
        whereFilter(Filter(.ofDotted(field), .greaterThan, value))
    }

    /// Keeps the documents whose field is of the value's type and greater.
    @discardableResult
    public func whereField(_ path: FieldPath, isGreaterThan value: Any) -> Query {
        whereFilter(Filter(path, .greaterThan, value))
    }

    /// Keeps the documents whose field is of the value's type and not less.
    @discardableResult
    public func whereField(_ field: String, isGreaterThanOrEqualTo value: Any) -> Query {
        whereFilter(Filter(.ofDotted(field), .greaterThanOrEqual, value))
    }

    /// Keeps the documents whose field is of the value's type and not less.
    @discardableResult
    public func whereField(_ path: FieldPath, isGreaterThanOrEqualTo value: Any) -> Query {
        whereFilter(Filter(path, .greaterThanOrEqual, value))
    }

    /// Keeps the documents whose field is an array that holds the value.
    @discardableResult
    public func whereField(_ field: String, arrayContains value: Any) -> Query {
        whereFilter(Filter(.ofDotted(field), .arrayContains, value))
    }

    /// Keeps the documents whose field is an array that holds the value.
    @discardableResult
    public func whereField(_ path: FieldPath, arrayContains value: Any) -> Query {
        whereFilter(Filter(path, .arrayContains, value))
    }

    /// Keeps the documents whose field is an array that holds at least one of the values.
    @discardableResult
    public func whereField(_ field: String, arrayContainsAny values: [Any]) -> Query {
        whereFilter(Filter(.ofDotted(field), .arrayContainsAny, values))
    }

    /// Keeps the documents whose field is an array that holds at least one of the values.
    @discardableResult
    public func whereField(_ path: FieldPath, arrayContainsAny values: [Any]) -> Query {
        whereFilter(Filter(path, .arrayContainsAny, values))
    }

    /// Keeps the documents whose field is one of the values.
    @discardableResult
    public func whereField(_ field: String, in values: [Any]) -> Query {
        whereFilter(Filter(.ofDotted(field), .isIn, values))
    }

    /// Keeps the documents whose field is one of the values.
    @discardableResult
    public func whereField(_ path: FieldPath, in values: [Any]) -> Query {
        whereFilter(Filter(path, .isIn, values))
    }

    /// Keeps the documents whose field is present, not null and none of the values.
    @discardableResult
    public func whereField(_ field: String, notIn values: [Any]) -> Query {
        whereFilter(Filter(.ofDotted(field), .notIn, values))
    }

    /// Keeps the documents whose field is present, not null and none of the values.
    @discardableResult
    public func whereField(_ path: FieldPath, notIn values: [Any]) -> Query {
        whereFilter(Filter(path, .notIn, values))
    }
}
