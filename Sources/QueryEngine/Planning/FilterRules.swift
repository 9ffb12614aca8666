// The rules that a filter as a whole must keep. Source: semantics page, section 5, "Standard rules"; the comments of
// `StructuredQuery.FieldFilter.Operator` in the public schema. What we relax is listed in `docs/queries.md`.

internal import Basics
package import DocumentModel

/// What a filter comes down to in disjunctive normal form, counted without expanding it.
struct FilterShape: Sendable, Equatable {
    /// Disjunctions. `in` and `array-contains-any` count one for each of their values; ANDs of ORs multiply.
    var disjunctions = 1
    /// Conditions in all disjunctions together.
    var conditions = 0
    /// The most `array-contains` and `array-contains-any` conditions in one disjunction.
    var arrayContains = 0
    /// Whether some disjunction holds a `not-in` together with an `in` or an `array-contains-any`.
    var mixesNotIn = false
    /// Whether some disjunction holds a `not-in`.
    private var hasNotIn = false
    /// Whether some disjunction holds an `in` or an `array-contains-any`.
    private var hasAlternatives = false

    init(_ filter: Filter) {
        switch filter {
        case .and(let parts):
            for part in parts { self = FilterShape.conjunction(self, FilterShape(part)) }
        case .or(let parts):
            var shapes = parts.map(FilterShape.init)[...]
            guard let first = shapes.popFirst() else { return }
            self = shapes.reduce(first, FilterShape.disjunction)
        case .unary: conditions = 1
        case .field(_, let operation, let operand):
            conditions = 1
            switch operation {
            case .arrayContains: arrayContains = 1
            case .isIn, .arrayContainsAny:
                // A list's conditions are one in each of its disjunctions.
                disjunctions = operand.elementCount
                conditions = disjunctions
                hasAlternatives = true
                if operation == .arrayContainsAny { arrayContains = 1 }
            case .notIn: hasNotIn = true
            default: break
            }
        }
    }

    private static func conjunction(_ left: FilterShape, _ right: FilterShape) -> FilterShape {
        var both = left
        both.disjunctions = multiply(left.disjunctions, right.disjunctions)
        both.conditions = add(
            multiply(left.conditions, right.disjunctions), multiply(right.conditions, left.disjunctions))
        both.arrayContains = add(left.arrayContains, right.arrayContains)
        both.mixesNotIn =
            left.mixesNotIn || right.mixesNotIn || (left.hasNotIn && right.hasAlternatives)
            || (right.hasNotIn && left.hasAlternatives)
        both.hasNotIn = left.hasNotIn || right.hasNotIn
        both.hasAlternatives = left.hasAlternatives || right.hasAlternatives
        return both
    }

    private static func disjunction(_ left: FilterShape, _ right: FilterShape) -> FilterShape {
        var either = left
        either.disjunctions = add(left.disjunctions, right.disjunctions)
        either.conditions = add(left.conditions, right.conditions)
        either.arrayContains = max(left.arrayContains, right.arrayContains)
        either.mixesNotIn = left.mixesNotIn || right.mixesNotIn
        either.hasNotIn = left.hasNotIn || right.hasNotIn
        either.hasAlternatives = left.hasAlternatives || right.hasAlternatives
        return either
    }

    // Nested ORs multiply without end: saturate.
    private static func multiply(_ left: Int, _ right: Int) -> Int {
        let (product, overflow) = left.multipliedReportingOverflow(by: right)
        return overflow ? .max : product
    }

    private static func add(_ left: Int, _ right: Int) -> Int {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow ? .max : sum
    }
}

enum FilterRules {
    /// Throws unless a query's filter, orders and parent together stay within the limit of a query's parts.
    ///
    /// - Parameters:
    ///   - orders: orders that the client wrote.
    ///   - isBelowDocument: whether the query's parent is a document, which counts as one part.
    static func checkParts(_ filter: Filter?, orders: Int, isBelowDocument: Bool) throws(RequestError) {
        let conditions = filter.map { FilterShape($0).conditions } ?? 0
        let (parts, overflow) = conditions.addingReportingOverflow(orders + (isBelowDocument ? 1 : 0))
        if overflow || parts > Limits.filtersAndOrders {
            throw .invalidArgument(
                "The query may not have more than \(Limits.filtersAndOrders) filters + sort orders + ancestor total. "
                    + "Currently there are \(conditions) filters, \(orders) sort orders, and "
                    + "\(isBelowDocument ? "one" : "no") ancestor filter.")
        }
    }

    /// Throws the first rule that the filter breaks as it was written, what repeats included.
    static func checkWritten(_ filter: Filter) throws(RequestError) {
        try checkLists(filter)
        var exclusions = 0
        var inequalityFields: Set<FieldPath> = []
        collect(filter, &exclusions, &inequalityFields)
        if exclusions > 1 {
            throw .invalidArgument(
                "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query.")
        }
        if inequalityFields.count > Limits.inequalityFields {
            let names = inequalityFields.map(\.description).sorted().joined(separator: ", ")
            throw .invalidArgument(
                "The query contains \(inequalityFields.count) distinct inequality fields: [\(names.prefix(1_000))]. "
                    + "A query may not have more than \(Limits.inequalityFields) distinct inequality fields.")
        }
    }

    /// Throws if an operand is a list with more members than its operator takes.
    private static func checkLists(_ filter: Filter) throws(RequestError) {
        switch filter {
        case .and(let parts), .or(let parts):
            for part in parts { try checkLists(part) }
        case .field(_, let operation, let operand) where operation.takesList:
            let most = operation == .notIn ? Limits.notInValues : Limits.disjunctions
            if operand.elementCount > most {
                throw .invalidArgument("'\(operation.name)' supports up to \(most) comparison values.")
            }
        case .field, .unary: return
        }
    }

    /// Throws the first rule that the filter breaks without what repeats.
    ///
    /// - Parameter written: the filter with what repeats.
    static func check(_ filter: Filter, written: Filter) throws(RequestError) {
        let shape = FilterShape(filter)
        if shape.disjunctions > Limits.disjunctions {
            let count = shape.disjunctions == .max ? "too many" : "\(shape.disjunctions)"
            throw .invalidArgument(
                "Too many disjunctions after normalization. Result had \(count) disjunctions which is more than the "
                    + "maximum of \(Limits.disjunctions)")
        }
        if written.arrayContains > 1 {
            throw .invalidArgument("A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction.")
        }
        if shape.mixesNotIn {
            throw .invalidArgument("'NOT_IN' cannot be combined with 'IN' or 'ARRAY_CONTAINS_ANY' in a disjunction.")
        }
    }

    fileprivate static func collect(_ filter: Filter, _ exclusions: inout Int, _ fields: inout Set<FieldPath>) {
        switch filter {
        case .and(let parts), .or(let parts):
            for part in parts { collect(part, &exclusions, &fields) }
        case .field(let path, let operation, let operand):
            if operation.isExclusion { exclusions += 1 }
            // What holds nothing bounds no field: a range that null or NaN bounds, and `not-in` of null alone.
            let holdsNothing = operation == .notIn ? operand.isListOfNull : operation.isRange && operand.isNullOrNaN
            if operation.isExclusion || operation.isRange, !holdsNothing { fields.insert(path) }
        case .unary(let path, let operation):
            guard operation.isExclusion else { return }
            exclusions += 1
            fields.insert(path)
        }
    }

    /// The first field that the filter looks at; nil if it looks at names only.
    static func firstField(_ filter: Filter) -> FieldPath? {
        switch filter {
        case .and(let parts), .or(let parts): parts.lazy.compactMap(firstField).first
        case .field(let path, _, _), .unary(let path, _): path.isDocumentName ? nil : path
        }
    }

    /// Whether the filter looks at the name.
    static func usesName(_ filter: Filter) -> Bool {
        switch filter {
        case .and(let parts), .or(let parts): parts.contains(where: usesName)
        case .field(let path, _, _), .unary(let path, _): path.isDocumentName
        }
    }
}

extension Filter {
    /// The fields that a range or an exclusion bounds, in all branches: the order of the results has them implicitly.
    package var inequalityFields: Set<FieldPath> {
        var exclusions = 0
        var fields: Set<FieldPath> = []
        FilterRules.collect(self, &exclusions, &fields)
        return fields
    }
}

extension EncodedValue {
    /// Whether this is an array with null and nothing else.
    fileprivate var isListOfNull: Bool {
        guard var elements = WireValue(span)?.elements, let element = elements.next() else { return false }
        return EncodedValue.isNull(element) && elements.next() == nil
    }

    /// Elements of an array; 1 for anything else, which is refused later with a better message.
    fileprivate var elementCount: Int {
        guard var elements = WireValue(span)?.elements else { return 1 }
        var count = 0
        while elements.next() != nil { count += 1 }
        return max(count, 1)
    }
}
