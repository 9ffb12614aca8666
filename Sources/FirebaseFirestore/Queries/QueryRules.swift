import DocumentModel

/// A comparison of the client API. `isEqualTo` and its opposite become tests of the field alone for null and NaN.
enum ComparisonOperator: Sendable, Equatable {
    case equal, notEqual, lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual
    case arrayContains, arrayContainsAny, isIn, notIn

    var wire: FieldOperator {
        switch self {
        case .equal: .equal
        case .notEqual: .notEqual
        case .lessThan: .lessThan
        case .lessThanOrEqual: .lessThanOrEqual
        case .greaterThan: .greaterThan
        case .greaterThanOrEqual: .greaterThanOrEqual
        case .arrayContains: .arrayContains
        case .arrayContainsAny: .arrayContainsAny
        case .isIn: .isIn
        case .notIn: .notIn
        }
    }

    /// The name in error messages.
    var name: String {
        switch self {
        case .equal: "equal"
        case .notEqual: "notEqual"
        case .lessThan: "lessThan"
        case .lessThanOrEqual: "lessThanOrEqual"
        case .greaterThan: "greaterThan"
        case .greaterThanOrEqual: "greaterThanOrEqual"
        case .arrayContains: "arrayContains"
        case .arrayContainsAny: "arrayContainsAny"
        case .isIn: "in"
        case .notIn: "notIn"
        }
    }

    /// Operators that may not stand in one query with this one.
    var conflicts: [ComparisonOperator] {
        switch self {
        case .notEqual: [.notEqual, .notIn]
        case .notIn: [.arrayContainsAny, .isIn, .notIn, .notEqual]
        case .isIn, .arrayContainsAny: [.notIn]
        default: []
        }
    }

    /// The operator that a condition on one field was built with.
    init?(leaf: DocumentModel.Filter) {
        switch leaf {
        case .unary(_, let test): self = test.isExclusion ? .notEqual : .equal
        case .field(_, let relation, _):
            switch relation {
            case .equal: self = .equal
            case .notEqual: self = .notEqual
            case .lessThan: self = .lessThan
            case .lessThanOrEqual: self = .lessThanOrEqual
            case .greaterThan: self = .greaterThan
            case .greaterThanOrEqual: self = .greaterThanOrEqual
            case .arrayContains: self = .arrayContains
            case .arrayContainsAny: self = .arrayContainsAny
            case .isIn: self = .isIn
            case .notIn: self = .notIn
            }
        case .and, .or: return nil
        }
    }
}

/// The rules that the query builder checks immediately, without the server.
///
/// A violated rule is a programming error with the SDK's text. The server checks all other rules.
enum QueryRules {
    static func adding(
        _ filter: DocumentModel.Filter, to query: QueryDescription
    ) throws(RuleViolation) -> QueryDescription {
        var present = query.filters.flatMap(\.leaves).compactMap(ComparisonOperator.init(leaf:))
        for leaf in filter.leaves {
            guard let relation = ComparisonOperator(leaf: leaf) else { continue }
            for conflict in relation.conflicts where present.contains(conflict) {
                throw conflict == relation
                    ? RuleViolation("Invalid Query. You cannot use more than one '\(relation.name)' filter.")
                    : RuleViolation(
                        "Invalid Query. You cannot use '\(relation.name)' filters with '\(conflict.name)' filters.")
            }
            present.append(relation)
        }
        var changed = query
        // Nested ANDs say the same as a flat one.
        if case .and(let parts) = filter { changed.filters += parts } else { changed.filters.append(filter) }
        return changed
    }

    static func adding(
        _ order: DocumentModel.Order, to query: QueryDescription
    ) throws(RuleViolation) -> QueryDescription {
        if query.startAt != nil {
            throw RuleViolation(
                "Invalid query. You must not specify a starting point before specifying the order by.")
        }
        if query.endAt != nil {
            throw RuleViolation("Invalid query. You must not specify an ending point before specifying the order by.")
        }
        var changed = query
        changed.orders.append(order)
        return changed
    }

    static func limiting(
        _ query: QueryDescription, to count: Int, side: QueryDescription.LimitSide
    ) throws(RuleViolation) -> QueryDescription {
        if count <= 0 {
            throw RuleViolation("Invalid Query. Query limit (\(count)) is invalid. Limit must be positive.")
        }
        var changed = query
        changed.limit = .init(count: Int32(clamping: count), side: side)
        return changed
    }

    /// What must hold when the query runs.
    static func checkExecutable(_ query: QueryDescription) throws(RuleViolation) {
        if query.isReversed, query.orders.isEmpty {
            throw RuleViolation("limit(toLast:) queries require specifying at least one OrderBy() clause.")
        }
    }

    /// The number of values of a cursor of explicit values.
    static func checkCursorCount(_ count: Int, of query: QueryDescription) throws(RuleViolation) {
        if count > query.orders.count {
            throw RuleViolation(
                "Invalid query. You are trying to start or end a query using more values than were specified in the "
                    + "order by.")
        }
    }
}

// MARK: - Document ids as operands

extension QueryRules {
    /// The path of the document that a string names as operand of a document-id filter.
    static func documentIDOperand(_ id: String, in query: QueryDescription) throws(RuleViolation) -> [String] {
        if id.isEmpty {
            throw RuleViolation(
                "Invalid query. When querying by document ID you must provide a valid document ID, "
                    + "but it was an empty string.")
        }
        guard query.isGroup else {
            if id.utf8.contains(UInt8(ascii: "/")) {
                throw RuleViolation(
                    "Invalid query. When querying a collection by document ID you must provide a plain document ID, "
                        + "but '\(id)' contains a '/' character.")
            }
            return query.collectionSegments + [id]
        }
        let segments = try PathRules.segments(id)
        if !segments.count.isMultiple(of: 2) {
            throw RuleViolation(
                "Invalid query. When querying a collection group by document ID, the value provided must result in a "
                    + "valid document path, but '\(id)' is not because it has an odd number of segments "
                    + "(\(segments.count)).")
        }
        return segments
    }

    /// The path of the document that a string names as a cursor's value for the document id.
    static func documentIDCursor(_ id: String, in query: QueryDescription) throws(RuleViolation) -> [String] {
        guard query.isGroup else {
            if id.isEmpty || id.utf8.contains(UInt8(ascii: "/")) {
                throw RuleViolation(
                    "Invalid query. When querying a collection and ordering by document ID, you must pass a plain "
                        + "document ID, but '\(id)' contains a slash.")
            }
            return query.collectionSegments + [id]
        }
        let segments = try PathRules.segments(id)
        if !segments.count.isMultiple(of: 2) {
            throw RuleViolation(
                "Invalid query. When querying a collection group and ordering by document ID, you must pass a value "
                    + "that results in a valid document path, but '\(id)' is not because it contains an odd number of "
                    + "segments.")
        }
        return segments
    }
}
