// What the conditions of a query say about one field of its documents.

internal import DocumentModel
internal import Expressions

/// One end of a range.
struct Bound: Sendable {
    let value: Operand
    let isInclusive: Bool
}

/// Facts about a field that hold for every document of one case. A field with facts exists.
struct FieldFacts: Sendable {
    /// The classes that the value may have.
    private(set) var classes: Set<TypeClass> = Set(TypeClass.allCases)
    /// The value is one of these, and the rules language sees no difference between what is stored and what is here:
    /// one value, or the spellings of a number.
    private(set) var exact: [Operand]?
    /// The value is not below this one and not NaN.
    private(set) var lower: Bound?
    /// The value is not above this one and not NaN.
    private(set) var upper: Bound?
    /// The value equals none of these, by the equality of queries.
    private(set) var excluded: [Operand] = []
    /// The value is an array that has an element equal to each of these, by the equality of queries.
    private(set) var contained: [Operand] = []
    /// The value equals each of these, by the equality of queries.
    private var equal: [Operand] = []

    /// Whether no value meets all conditions, as far as that is seen here.
    var isImpossible: Bool {
        if classes.isEmpty { return true }
        if let lower, Self.isBelow(upper, lower.value, orAt: !lower.isInclusive) { return true }
        return equal.contains { value in
            Self.isBelow(upper, value) || Self.isAbove(lower, value)
                || excluded.contains { BoundOrder.compare($0, value) == 0 }
                || equal.contains { (BoundOrder.compare($0, value) ?? 0) != 0 }
        }
    }

    /// Whether a value is above all that an upper bound permits.
    /// - Parameter orAt: whether the bound itself does not suffice.
    private static func isBelow(_ bound: Bound?, _ value: Operand, orAt: Bool = false) -> Bool {
        guard let bound, let order = BoundOrder.compare(bound.value, value) else { return false }
        return order < 0 || (order == 0 && (orAt || !bound.isInclusive))
    }

    /// Whether a value is below all that a lower bound permits.
    private static func isAbove(_ bound: Bound?, _ value: Operand) -> Bool {
        guard let bound, let order = BoundOrder.compare(bound.value, value) else { return false }
        return order > 0 || (order == 0 && !bound.isInclusive)
    }

    /// Adds what a condition says.
    mutating func add(_ condition: Condition) {
        switch condition {
        case .exists: break
        case .tested(_, let operation): add(operation)
        case .compared(_, let operation, let operand): add(operation, operand)
        }
    }

    private mutating func add(_ operation: UnaryOperator) {
        switch operation {
        case .isNull: settle([.null], class: .null)
        case .isNaN:
            settle([.double(.nan)], class: .number)
            equal.append(.double(.nan))
        case .isNotNull, .isNotNaN: classes.remove(.null)
        }
    }

    private mutating func add(_ operation: FieldOperator, _ operand: EncodedValue) {
        guard let valueClass = WireValue(operand.span)?.typeClass else { return }
        let value = Operand(operand)
        switch operation {
        case .equal:
            settle(Spellings.all(of: value), class: valueClass)
            equal.append(value)
        case .lessThan, .lessThanOrEqual:
            classes.formIntersection([valueClass])
            tighten(upper: Bound(value: value, isInclusive: operation == .lessThanOrEqual))
        case .greaterThan, .greaterThanOrEqual:
            classes.formIntersection([valueClass])
            tighten(lower: Bound(value: value, isInclusive: operation == .greaterThanOrEqual))
        case .notEqual:
            classes.remove(.null)
            excluded.append(value)
        case .notIn:
            classes.remove(.null)
            excluded += (QueryCases.members(operand) ?? []).map { Operand($0) }
        case .arrayContains:
            classes.formIntersection([.array])
            contained.append(value)
        // Taken apart into the operators above.
        case .isIn, .arrayContainsAny: break
        }
        settleByBounds()
    }

    private mutating func settle(_ values: [Operand]?, class valueClass: TypeClass) {
        classes.formIntersection([valueClass])
        if exact == nil { exact = values }
    }

    private mutating func tighten(upper bound: Bound) {
        if let upper, let order = BoundOrder.compare(bound.value, upper.value),
            order > 0 || (order == 0 && bound.isInclusive)
        {
            return
        }
        upper = bound
    }

    private mutating func tighten(lower bound: Bound) {
        if let lower, let order = BoundOrder.compare(bound.value, lower.value),
            order < 0 || (order == 0 && bound.isInclusive)
        {
            return
        }
        lower = bound
    }

    /// `>= a` and `<= a` leave one value.
    private mutating func settleByBounds() {
        guard exact == nil, let lower, let upper, lower.isInclusive, upper.isInclusive,
            BoundOrder.compare(lower.value, upper.value) == 0
        else { return }
        exact = Spellings.all(of: lower.value)
    }
}

/// The order of values within a class, as queries have it.
enum BoundOrder {
    /// Negative, 0 or positive; nil if the order of the class is not known here.
    static func compare(_ left: Operand, _ right: Operand) -> Int? {
        if let left = Numbers.number(left), let right = Numbers.number(right) { return Number.compare(left, right) }
        return switch (left, right) {
        case (.string(let left), .string(let right)): left.compareUTF8(right)
        case (.bytes(let left), .bytes(let right)): left.byteSpan.compareBytes(right.byteSpan)
        case (.timestamp(let left), .timestamp(let right)): left < right ? -1 : left > right ? 1 : 0
        case (.boolean(let left), .boolean(let right)): (left ? 1 : 0) - (right ? 1 : 0)
        default: nil
        }
    }
}

/// The values that a query's equality does not tell apart.
enum Spellings {
    /// All values of the rules language that equal a value in a query; nil if they cannot be listed, as those of a list
    /// with numbers.
    static func all(of value: Operand) -> [Operand]? {
        if let number = Numbers.number(value) { return spellings(number) }
        return hasOneSpelling(value, depth: 0) ? [value] : nil
    }

    private static func spellings(_ number: Number) -> [Operand] {
        switch number {
        case .integer(0): return [.integer(0), .double(0), .double(-0.0)]
        case .integer(let value):
            let double = Double(value)
            return Number.compare(number, .double(double)) == 0
                ? [.integer(value), .double(double)] : [.integer(value)]
        case .double(let value):
            if let integer = Int64(exactly: value) { return spellings(.integer(integer)) }
            return [.double(value)]
        }
    }

    /// Whether no part of a value is a number.
    private static func hasOneSpelling(_ value: Operand, depth: Int) -> Bool {
        if depth > Limits.nestingDepth { return false }
        switch value {
        case .integer, .double, .absent: return false
        // Zero has two signs.
        case .geoPoint(let point): return point.latitude != 0 && point.longitude != 0
        default: break
        }
        if let elements = value.elements { return elements.allSatisfy { hasOneSpelling($0, depth: depth + 1) } }
        if let entries = value.entries {
            return entries.entries.allSatisfy { hasOneSpelling($0.value, depth: depth + 1) }
        }
        return true
    }
}
