// Operators of the rules language.

internal import Basics
internal import DocumentModel
internal import Expressions

enum Operators {
    /// The implementation of an operator that evaluates both of its operands.
    static func function(_ operation: BinaryOperator) -> BinaryFunction {
        switch operation {
        case .equal:
            return { evaluation, left, right throws(ExpressionError) in
                .boolean(try equal(evaluation, left, right))
            }
        case .notEqual:
            return { evaluation, left, right throws(ExpressionError) in
                .boolean(try !equal(evaluation, left, right))
            }
        case .isIn: return contains
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            return { evaluation, left, right throws(ExpressionError) in
                try ordered(evaluation, operation, left, right)
            }
        default:
            return { evaluation, left, right throws(ExpressionError) in
                try arithmetic(evaluation, operation, left, right)
            }
        }
    }

    // MARK: Equality and membership

    private static func equal(
        _ evaluation: Evaluation, _ left: Operand, _ right: Operand
    ) throws(ExpressionError) -> Bool {
        if let unproven = left.unproven { return try unproven.equals(right, .compared) }
        if let unproven = right.unproven { return try unproven.equals(left, .compared) }
        try evaluation.spendReading(left)
        try evaluation.spendReading(right)
        return RulesEquality.equal(left, right, .compared)
    }

    private static func contains(
        _ evaluation: Evaluation, _ element: Operand, _ container: Operand
    ) throws(ExpressionError) -> Operand {
        if let unproven = container.unproven { return .boolean(try unproven.contains(element)) }
        if case .null = container { throw .nullValue }
        switch container {
        case .list, .encodedList:
            let elements = try evaluation.elements(container)
            if let unproven = element.unproven {
                return .boolean(try unproven.isEqual(toOneOf: elements, .contained))
            }
            for candidate in elements {
                try evaluation.spendReading(candidate)
                // A list or a map is read again for each candidate of its type.
                if candidate.types == element.types { try evaluation.spendReading(element) }
                if RulesEquality.equal(candidate, element, .contained) { return .boolean(true) }
            }
            return .boolean(false)
        case .map(let map):
            return .boolean(map[try key(element)] != nil)
        case .encodedMap(let slice):
            try evaluation.spendWork(slice.byteCount)
            return .boolean(slice.hasMember(try key(element)))
        default: break
        }
        if let set = RulesSet.from(container) {
            if let unproven = element.unproven {
                return .boolean(try unproven.isEqual(toOneOf: set.members.map(\.operand), .member))
            }
            try evaluation.spendReading(element)
            return .boolean(set.members.contains(OperandKey(element, .member)))
        }
        throw .failed("Function not found error: Name: [in].")
    }

    private static func key(_ operand: Operand) throws(ExpressionError) -> String {
        if operand.unproven != nil { throw .unproven }
        guard case .string(let name) = operand else {
            throw .unsupported("map.in(\(RulesType(operand).rawValue))")
        }
        return name
    }

    // MARK: Order

    private static func ordered(
        _ evaluation: Evaluation, _ operation: BinaryOperator, _ left: Operand, _ right: Operand
    ) throws(ExpressionError) -> Operand {
        if let unproven = left.unproven { return .boolean(try unproven.isOrdered(operation, to: right)) }
        if let unproven = right.unproven { return .boolean(try unproven.isOrdered(operation.mirrored, to: left)) }
        if let left = Numbers.number(left), let right = Numbers.number(right) {
            return .boolean(holds(operation, left, right))
        }
        guard let order = try order(evaluation, left, right) else {
            throw .unsupported("\(RulesType(left).rawValue) \(operation.symbol) \(RulesType(right).rawValue)")
        }
        return .boolean(holds(operation, order))
    }

    /// Numbers are compared as integers if both are, else as doubles; NaN is not ordered.
    static func holds(_ operation: BinaryOperator, _ left: Number, _ right: Number) -> Bool {
        if case .integer(let left) = left, case .integer(let right) = right {
            return holds(operation, left < right ? -1 : left > right ? 1 : 0)
        }
        let (left, right) = (Numbers.asDouble(left), Numbers.asDouble(right))
        return switch operation {
        case .less: left < right
        case .lessOrEqual: left <= right
        case .greater: left > right
        default: left >= right
        }
    }

    private static func holds(_ operation: BinaryOperator, _ order: Int) -> Bool {
        switch operation {
        case .less: order < 0
        case .lessOrEqual: order <= 0
        case .greater: order > 0
        default: order >= 0
        }
    }

    /// How two operands of one ordered type, other than numbers, stand to each other; nil for other types.
    private static func order(
        _ evaluation: Evaluation, _ left: Operand, _ right: Operand
    ) throws(ExpressionError) -> Int? {
        try evaluation.spendWork(min(left.memoryBytes, right.memoryBytes))
        switch (left, right) {
        case (.string(let left), .string(let right)): return UTF16Text.compare(left, right)
        case (.bytes(let left), .bytes(let right)): return left.byteSpan.compareBytes(right.byteSpan)
        case (.timestamp(let left), .timestamp(let right)): return left < right ? -1 : left > right ? 1 : 0
        default: break
        }
        guard let left = RulesDuration.from(left), let right = RulesDuration.from(right) else { return nil }
        return left.total < right.total ? -1 : left.total > right.total ? 1 : 0
    }

    // MARK: Arithmetic

    private static func arithmetic(
        _ evaluation: Evaluation, _ operation: BinaryOperator, _ left: Operand, _ right: Operand
    ) throws(ExpressionError) -> Operand {
        if let left = Numbers.number(left), let right = Numbers.number(right) {
            return try Numbers.apply(operation, left, right)
        }
        if left.unproven != nil || right.unproven != nil { throw .unproven }
        if operation == .add, case .string(let left) = left, case .string(let right) = right {
            try evaluation.spendMemory(left.utf8.count + right.utf8.count)
            return .string(left + right)
        }
        let sign: Int128 = operation == .add ? 1 : -1
        if operation == .add || operation == .subtract {
            switch (left, RulesDuration.from(left), right, RulesDuration.from(right)) {
            case (_, let left?, _, let right?):
                return .object(try RulesDuration(nanoseconds: left.total + sign * right.total))
            case (.timestamp(let time), _, _, let duration?):
                return .timestamp(
                    try TimestampValue(totalNanoseconds: time.totalNanoseconds + sign * duration.total))
            case (_, let duration?, .timestamp(let time), _) where operation == .add:
                return .timestamp(try TimestampValue(totalNanoseconds: time.totalNanoseconds + duration.total))
            case (.timestamp(let left), _, .timestamp(let right), _) where operation == .subtract:
                return .object(try RulesDuration(nanoseconds: left.totalNanoseconds - right.totalNanoseconds))
            default: break
            }
        }
        throw .unsupported("\(RulesType(left).rawValue) \(operation.symbol) \(RulesType(right).rawValue)")
    }

    static let not: UnaryFunction = { _, operand throws(ExpressionError) in
        guard case .boolean(let value) = operand else { throw .unsupported("!\(RulesType(operand).rawValue)") }
        return .boolean(!value)
    }

    static let negate: UnaryFunction = { _, operand throws(ExpressionError) in
        if let number = Numbers.number(operand) { return try Numbers.negate(number) }
        guard let duration = RulesDuration.from(operand) else {
            throw .unsupported("-\(RulesType(operand).rawValue)")
        }
        return .object(try RulesDuration(nanoseconds: -duration.total))
    }

    /// `operand is TYPE`.
    static func typeTest(_ type: RulesType) -> UnaryFunction {
        { _, operand throws(ExpressionError) in
            if let unproven = operand.unproven { return .boolean(try unproven.isOfType(type)) }
            return .boolean(type.includes(operand))
        }
    }
}

extension BinaryOperator {
    /// The operator with its operands exchanged.
    var mirrored: BinaryOperator {
        switch self {
        case .less: .greater
        case .lessOrEqual: .greaterOrEqual
        case .greater: .less
        case .greaterOrEqual: .lessOrEqual
        default: self
        }
    }
}
