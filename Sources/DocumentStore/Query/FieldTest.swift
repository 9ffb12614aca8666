// One condition on one field, judged on the field's encoded value. Rules: semantics page, section 5, "Filters".

import DocumentModel

/// A comparison of a field with an operand, or a test of the field alone.
///
/// A document without the field never passes.
struct FieldTest: Sendable {
    /// What is asked of the value; operands are canonical `Value` messages.
    enum Condition: Sendable {
        case equal(EncodedValue)
        case notEqual(EncodedValue)
        /// In the operand's type class, no NaN, and ordered so.
        case inRange(EncodedValue, TypeClass, FieldOperator)
        /// Equal to one of these.
        case isIn([EncodedValue])
        /// Not null, and equal to none of these.
        case notIn([EncodedValue])
        /// An array with an element equal to one of these.
        case containsAny([EncodedValue])
        case isNull
        case isNaN
        case isNotNull
        /// Neither NaN nor null.
        case isNotNaN
        /// Met by nothing: `not-in` a list with null.
        case never
    }

    let path: FieldPath
    let condition: Condition
    /// The condition as the plan shows it.
    let description: String

    init(_ path: FieldPath, _ operation: UnaryOperator) {
        self.path = path
        description = "\(path) \(operation.name)"
        condition =
            switch operation {
            case .isNull: .isNull
            case .isNaN: .isNaN
            case .isNotNull: .isNotNull
            case .isNotNaN: .isNotNaN
            }
    }

    init(_ path: FieldPath, _ operation: FieldOperator, _ operand: EncodedValue) throws(RequestError) {
        self.path = path
        description = "\(path) \(operation.symbol) \(operand.text)"
        switch operation {
        case .equal: condition = .equal(operand)
        case .notEqual: condition = .notEqual(operand)
        case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
            guard let value = WireValue(operand.span), !value.isNull, !value.isNaN else {
                throw .invalidArgument("\(operation.name) on field \(path) cannot be compared with null or NaN.")
            }
            condition = .inRange(operand, value.typeClass, operation)
        case .isIn: condition = .isIn(try FieldTest.alternatives(path, operation, operand))
        case .arrayContainsAny: condition = .containsAny(try FieldTest.alternatives(path, operation, operand))
        case .arrayContains:
            condition = .containsAny(operand.isNullOrNaN ? [] : [operand])
        case .notIn:
            let list = try operand.nonEmptyList(of: operation, path)
            if list.count > Limits.notInValues {
                throw .invalidArgument("NOT_IN supports up to \(Limits.notInValues) comparison values.")
            }
            condition = list.contains(where: \.isNull) ? .never : .notIn(list)
        }
    }

    /// The members of an IN or ARRAY_CONTAINS_ANY list that can match: null and NaN match nothing there.
    private static func alternatives(
        _ path: FieldPath, _ operation: FieldOperator, _ operand: EncodedValue
    ) throws(RequestError) -> [EncodedValue] {
        try operand.nonEmptyList(of: operation, path).filter { !$0.isNullOrNaN }
    }

    /// Whether the field exists and meets the condition.
    func matches(fields: RawSpan) -> Bool {
        guard let value = DocumentBytes.value(at: path, in: fields) else { return false }
        switch condition {
        case .equal(let operand): return ValueOrder.equal(wireA: value, wireB: operand.span)
        case .notEqual(let operand):
            return !EncodedValue.isNull(value) && !ValueOrder.equal(wireA: value, wireB: operand.span)
        case .inRange(let operand, let typeClass, let operation):
            return FieldTest.isInRange(value, operand, typeClass, operation)
        case .isIn(let list): return FieldTest.isEqual(value, toAnyOf: list)
        case .notIn(let list): return !EncodedValue.isNull(value) && !FieldTest.isEqual(value, toAnyOf: list)
        case .containsAny(let list): return FieldTest.contains(value, anyOf: list)
        case .isNull: return EncodedValue.isNull(value)
        case .isNaN: return EncodedValue.isNaN(value)
        case .isNotNull: return !EncodedValue.isNull(value)
        case .isNotNaN: return !EncodedValue.isNull(value) && !EncodedValue.isNaN(value)
        case .never: return false
        }
    }

    private static func isInRange(
        _ value: RawSpan, _ operand: EncodedValue, _ typeClass: TypeClass, _ operation: FieldOperator
    ) -> Bool {
        guard let wire = WireValue(value), wire.typeClass == typeClass, !wire.isNaN else { return false }
        let order = ValueOrder.compare(wireA: value, wireB: operand.span)
        return switch operation {
        case .lessThan: order == .less
        case .lessThanOrEqual: order != .greater
        case .greaterThan: order == .greater
        default: order != .less
        }
    }

    private static func isEqual(_ value: RawSpan, toAnyOf list: [EncodedValue]) -> Bool {
        for operand in list where ValueOrder.equal(wireA: value, wireB: operand.span) { return true }
        return false
    }

    private static func contains(_ value: RawSpan, anyOf list: [EncodedValue]) -> Bool {
        guard var elements = WireValue(value)?.elements else { return false }
        while let element = elements.next() {
            if isEqual(element, toAnyOf: list) { return true }
        }
        return false
    }
}

extension FieldOperator {
    /// The operator as plans show it.
    var symbol: String {
        switch self {
        case .lessThan: "<"
        case .lessThanOrEqual: "<="
        case .greaterThan: ">"
        case .greaterThanOrEqual: ">="
        case .equal: "=="
        case .notEqual: "!="
        case .arrayContains: "array-contains"
        case .isIn: "in"
        case .arrayContainsAny: "array-contains-any"
        case .notIn: "not-in"
        }
    }
}
