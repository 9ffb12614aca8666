// Comparisons.

internal import Expressions

/// Equality holds between any two values: null equals null, NaN equals NaN, absent equals no value. The order relates
/// values of one type class only; absent and NaN are in no order.
enum ComparisonFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("equal", 2, .total(equal)),
        PipelineFunction("not_equal", 2, .total(notEqual)),
        PipelineFunction("less_than", 2, .total(lessThan)),
        PipelineFunction("less_than_or_equal", 2, .total(lessThanOrEqual)),
        PipelineFunction("greater_than", 2, .total(greaterThan)),
        PipelineFunction("greater_than_or_equal", 2, .total(greaterThanOrEqual)),
        PipelineFunction("cmp", 2, .strict(compare)),
        PipelineFunction("equal_any", 2, .total(equalAny)),
        PipelineFunction("not_equal_any", 2, .total(notEqualAny)),
    ]

    /// Compares two operands and pays for it.
    static func compare(
        _ evaluation: Evaluation, _ left: Operand, _ right: Operand
    ) throws(ExpressionError) -> OperandComparison {
        let types = left.types.union(right.types)
        if !types.isDisjoint(with: [.list, .map]) {
            try evaluation.spendWork(otherCost + 2 * (left.deepMemoryBytes + right.deepMemoryBytes))
        } else {
            let cost = simpleTypes.contains(where: types.isSubset) ? simpleCost : otherCost
            try evaluation.spendWork(cost + left.flatBytes + right.flatBytes)
        }
        return try Operand.compare(left, right)
    }

    /// What a comparison costs beside the bytes of the values, in bytes that could be copied meanwhile: of values of
    /// one of the simple types, and of any others, most of which are encoded for it.
    private static let (simpleCost, otherCost) = (64, 256)
    private static let simpleTypes: [OperandTypes] = [.number, .boolean, .timestamp]

    private static func equal(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .boolean(try compare(evaluation, operands[0], operands[1]).sign == 0)
    }

    private static func notEqual(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .boolean(try compare(evaluation, operands[0], operands[1]).sign != 0)
    }

    private static func lessThan(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let comparison = try compare(evaluation, operands[0], operands[1])
        return .boolean(comparison.isOrdered && comparison.sign < 0)
    }

    private static func lessThanOrEqual(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        let comparison = try compare(evaluation, operands[0], operands[1])
        return .boolean(comparison.sign == 0 || comparison.isOrdered && comparison.sign < 0)
    }

    private static func greaterThan(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand
    {
        try lessThan(evaluation, [operands[1], operands[0]])
    }

    private static func greaterThanOrEqual(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        try lessThanOrEqual(evaluation, [operands[1], operands[0]])
    }

    /// -1, 0 or 1 by the order of all values.
    private static func compare(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .integer(Int64(try compare(evaluation, operands[0], operands[1]).sign.signum()))
    }

    private static func equalAny(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try isAny(operands, "equal_any", evaluation, found: true)
    }

    private static func notEqualAny(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand
    {
        try isAny(operands, "not_equal_any", evaluation, found: false)
    }

    private static func isAny(
        _ operands: [Operand], _ name: String, _ evaluation: Evaluation, found: Bool
    ) throws(ExpressionError) -> Operand {
        if operands[1].isNullOrAbsent { return .null }
        let elements = try ArrayFunctions.elements(name, operands[1], evaluation)
        return .boolean(try ArrayFunctions.contains(operands[0], among: elements, evaluation) == found)
    }
}
