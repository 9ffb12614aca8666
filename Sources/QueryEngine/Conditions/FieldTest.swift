// One condition on one field, checked on the field's encoded value. Rules: semantics page, section 5, "Filters".

package import Basics
package import DocumentModel

/// A comparison of a field with an operand, or a test of the field alone.
///
/// A document without the field never passes. The parts lie side by side and not in the payload of an enumeration, so
/// that checking a document copies none of them.
package struct FieldTest: Sendable {
    /// What is asked of the value.
    enum Condition: Sendable {
        case equal
        case notEqual
        /// In the operand's type class, no NaN, and ordered so.
        case less, lessOrEqual, greater, greaterOrEqual
        /// Equal to a member of the list.
        case isIn
        /// Not null, and equal to no member of the list.
        case notIn
        /// An array with an element equal to a member of the list.
        case containsAny
        case isNull
        case isNaN
        case isNotNull
        /// Neither NaN nor null.
        case isNotNaN
        /// Met by nothing: `not-in` a list with null, a range bounded by null or NaN.
        case never
    }

    let path: FieldPath
    let condition: Condition
    /// A canonical `Value` message, for list operators that of the list; null where the condition has no operand.
    let operand: EncodedValue
    let operandClass: TypeClass
    let list: [EncodedValue]
    /// The operator as the plan shows it.
    private let symbol: String

    init(_ path: FieldPath, _ operation: UnaryOperator) {
        self.path = path
        symbol = operation.name
        operand = .null
        operandClass = .null
        list = []
        condition =
            switch operation {
            case .isNull: .isNull
            case .isNaN: .isNaN
            case .isNotNull: .isNotNull
            case .isNotNaN: .isNotNaN
            }
    }

    package init(_ path: FieldPath, _ operation: FieldOperator, _ operand: EncodedValue) throws(RequestError) {
        self.path = path
        self.operand = operand
        symbol = operation.symbol
        guard let value = WireValue(operand.span) else {
            throw .invalidArgument("The operand of \(operation.name) on field \(path) has no type.")
        }
        operandClass = value.typeClass
        // Nothing is less than null or NaN, nothing greater, and equality has other operators.
        let isUnordered = operation.isRange && (value.isNull || value.isNaN)
        let members = operation.takesList ? try operand.nonEmptyList(of: operation) : [operand]
        switch operation {
        case .isIn, .arrayContains, .arrayContainsAny:
            // Null and NaN match nothing here.
            list = members.filter { !$0.isNullOrNaN }
        case .notIn: list = members
        default: list = []
        }
        condition =
            switch operation {
            case _ where isUnordered: .never
            case .equal: .equal
            case .notEqual: .notEqual
            case .lessThan: .less
            case .lessThanOrEqual: .lessOrEqual
            case .greaterThan: .greater
            case .greaterThanOrEqual: .greaterOrEqual
            case .isIn: .isIn
            case .notIn: members.contains(where: \.isNull) ? .never : .notIn
            case .arrayContains, .arrayContainsAny: .containsAny
            }
    }

    /// A list condition for one member of its list alone.
    init(_ test: FieldTest, member: EncodedValue) {
        path = test.path
        operand = member
        operandClass = WireValue(member.span)?.typeClass ?? .null
        if case .containsAny = test.condition {
            condition = .containsAny
            list = [member]
            symbol = FieldOperator.arrayContains.symbol
        } else {
            condition = .equal
            list = []
            symbol = FieldOperator.equal.symbol
        }
    }

    /// The condition as the plan shows it.
    var description: String {
        switch condition {
        case .isNull, .isNaN, .isNotNull, .isNotNaN: "\(path) \(symbol)"
        default: "\(path) \(symbol) \(operand.text)"
        }
    }

    /// Whether the field exists and meets the condition.
    ///
    /// - Parameter index: that of the document, if there is one.
    package func matches(fields: RawSpan, by index: FieldIndex? = nil) -> Bool {
        guard let value = DocumentBytes.value(at: path, in: fields, by: index) else { return false }
        switch condition {
        case .equal: return isEqual(value)
        case .notEqual: return !EncodedValue.isNull(value) && !isEqual(value)
        case .less: return order(ofRange: value) == .less
        case .lessOrEqual:
            let order = order(ofRange: value)
            return order == .less || order == .equal
        case .greater: return order(ofRange: value) == .greater
        case .greaterOrEqual:
            let order = order(ofRange: value)
            return order == .greater || order == .equal
        case .isIn: return isInList(value)
        case .notIn: return !EncodedValue.isNull(value) && !isInList(value)
        case .containsAny:
            guard var elements = WireValue(value)?.elements else { return false }
            while let element = elements.next() {
                if isInList(element) { return true }
            }
            return false
        case .isNull: return EncodedValue.isNull(value)
        case .isNaN: return EncodedValue.isNaN(value)
        case .isNotNull: return !EncodedValue.isNull(value)
        case .isNotNaN: return !EncodedValue.isNull(value) && !EncodedValue.isNaN(value)
        case .never: return false
        }
    }

    private func isEqual(_ value: RawSpan) -> Bool {
        let operand = operand.span
        // Canonical bytes: the same bytes are the same value.
        return value.equalsBytes(operand) || ValueOrder.equal(wireA: value, wireB: operand)
    }

    /// How a value stands to the operand; nil if it is outside the operand's type class, or NaN.
    private func order(ofRange value: RawSpan) -> Ordering? {
        guard let wire = WireValue(value), wire.typeClass == operandClass, !wire.isNaN else { return nil }
        return ValueOrder.compare(wireA: value, wireB: operand.span)
    }

    private func isInList(_ value: RawSpan) -> Bool {
        for operand in list where ValueOrder.equal(wireA: value, wireB: operand.span) { return true }
        return false
    }
}

extension FieldOperator {
    /// The operator as plans and forms of queries show it.
    package var symbol: String {
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
