// A field of the documents of a query.

internal import DocumentModel
internal import Expressions

/// A field that every document of the query has, with a value of which facts are known.
final class FieldConstraint: UnprovenValue {
    private let path: FieldPath
    private let facts: FieldFacts
    private let document: CaseFacts
    private let classes: Set<TypeClass>

    /// Above it an integer and a double may round to the same double though they differ.
    private static let exactMax = 0x1p53

    init(_ path: FieldPath, _ facts: FieldFacts, in document: CaseFacts) {
        self.path = path
        self.facts = facts
        self.document = document
        classes = document.isMap(path) ? facts.classes.intersection(Self.mapClasses) : facts.classes
    }

    /// The classes of values with fields.
    static let mapClasses: Set<TypeClass> = [.map, .vector]

    func member(_ name: String) throws(ExpressionError) -> Operand {
        try QueriedFields(document, below: path).member(name)
    }

    // MARK: Types

    func isOfType(_ type: RulesType) throws(ExpressionError) -> Bool {
        let answers = Set(classes.map { Self.isInstance($0, of: type) })
        guard answers.count == 1, let answer = answers.first ?? nil else { throw .unproven }
        return answer
    }

    /// Whether values of a class have a type; nil if some have.
    private static func isInstance(_ valueClass: TypeClass, of type: RulesType) -> Bool? {
        switch (valueClass, type) {
        case (.number, .number): true
        case (.number, .int), (.number, .float): nil
        case (.vector, .vector): true
        // A vector is a map, and so are the values of types that the language does not have.
        case (.map, .map), (.vector, .map), (.minKey, .map), (.maxKey, .map), (.bsonTimestamp, .map), (.binary, .map),
            (.objectID, .map), (.regex, .map):
            true
        default: typeOfClass(valueClass) == type
        }
    }

    private static func typeOfClass(_ valueClass: TypeClass) -> RulesType {
        switch valueClass {
        case .null: .null
        case .boolean: .bool
        case .timestamp: .timestamp
        case .string: .string
        case .bytes: .bytes
        case .reference: .path
        case .geoPoint: .latlng
        case .array: .list
        case .number: .number
        default: .map
        }
    }

    /// Whether a value of the class of an operand is possible at all.
    private func mayHaveType(of operand: Operand) -> Bool {
        let type = RulesType(operand)
        let wanted: RulesType = type == .int || type == .float ? .number : type
        return classes.contains { Self.isInstance($0, of: wanted) != false }
    }

    // MARK: Equality

    func equals(_ other: Operand, _ mode: RulesEquality.Mode) throws(ExpressionError) -> Bool {
        if other.unproven != nil { throw .unproven }
        if !mayHaveType(of: other) { return false }
        // Equal numbers have equal doubles; the converse holds for small ones alone.
        guard isSmall(other) else { throw .unproven }
        if isBeyond(facts.upper, other, sign: 1) || isBeyond(facts.lower, other, sign: -1) { return false }
        if facts.excluded.contains(where: { RulesEquality.equal($0, other, .member) }) { return false }
        throw .unproven
    }

    /// Whether no integer or double but the operand itself rounds to its double; true for operands of other types.
    private func isSmall(_ operand: Operand) -> Bool {
        Numbers.double(operand).map { $0.magnitude < Self.exactMax } ?? true
    }

    /// Whether an operand lies outside a bound of the values.
    private func isBeyond(_ bound: Bound?, _ operand: Operand, sign: Int) -> Bool {
        guard let bound, let order = BoundOrder.compare(operand, bound.value) else { return false }
        return order * sign > 0 || (order == 0 && !bound.isInclusive)
    }

    func contains(_ element: Operand) throws(ExpressionError) -> Bool {
        if element.unproven != nil { throw .unproven }
        if classes == [.array] {
            for value in facts.contained {
                // Every spelling must be the element.
                let spellings = Spellings.all(of: value) ?? []
                if !spellings.isEmpty, spellings.allSatisfy({ RulesEquality.equal($0, element, .contained) }) {
                    return true
                }
            }
        }
        if document.isMap(path) { return try QueriedFields(document, below: path).contains(element) }
        throw .unproven
    }

    // MARK: Order

    func isOrdered(_ operation: BinaryOperator, to other: Operand) throws(ExpressionError) -> Bool {
        // A value of another type cannot be compared, which is an error.
        guard other.unproven == nil, let valueClass = Self.orderedClass(of: other), classes == [valueClass],
            facts.lower != nil || facts.upper != nil
        else { throw .unproven }
        if proves(operation, other) { return true }
        if proves(operation.opposite, other) { return false }
        throw .unproven
    }

    private static func orderedClass(of operand: Operand) -> TypeClass? {
        switch operand {
        case .integer, .double: .number
        case .string: .string
        case .bytes: .bytes
        case .timestamp: .timestamp
        default: nil
        }
    }

    /// Whether the bounds prove `value operation other`.
    private func proves(_ operation: BinaryOperator, _ other: Operand) -> Bool {
        let isUpper = operation == .less || operation == .lessOrEqual
        guard let bound = isUpper ? facts.upper : facts.lower, Self.isOrderKept(of: bound.value, isUpper: isUpper),
            let order = Self.compareAsRules(bound.value, other)
        else { return false }
        // Towards the bound: negative if the operand lies beyond it.
        let distance = isUpper ? order : -order
        switch operation {
        case .lessOrEqual, .greaterOrEqual: return distance <= 0
        default: return isSmall(other) && (distance < 0 || (distance == 0 && !bound.isInclusive))
        }
    }

    /// Order of a bound and an operand as rules have it: strings by UTF-16 units.
    private static func compareAsRules(_ left: Operand, _ right: Operand) -> Int? {
        if case .string(let left) = left, case .string(let right) = right { return UTF16Text.compare(left, right) }
        return BoundOrder.compare(left, right)
    }

    /// Whether a bound in the order of queries, that of UTF-8, is one in the order of UTF-16 too.
    ///
    /// The orders differ for characters above U+FFFF, which UTF-16 places before those from U+E000 to U+FFFF.
    private static func isOrderKept(of bound: Operand, isUpper: Bool) -> Bool {
        guard case .string(let text) = bound else { return true }
        return !text.unicodeScalars.contains { scalar in
            isUpper ? scalar.value > 0xFFFF : (0xE000...0xFFFF).contains(scalar.value)
        }
    }
}

extension BinaryOperator {
    /// The operator that holds if this one does not, for values that are ordered.
    fileprivate var opposite: BinaryOperator {
        switch self {
        case .less: .greaterOrEqual
        case .lessOrEqual: .greater
        case .greater: .lessOrEqual
        default: .less
        }
    }
}
