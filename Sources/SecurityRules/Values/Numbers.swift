// Arithmetic of the rules language: that of Java's long and double.

internal import DocumentModel
internal import Expressions

enum Numbers {
    /// The number that an operand is.
    static func number(_ operand: Operand) -> Number? {
        switch operand {
        case .integer(let value): .integer(value)
        case .double(let value): .double(value)
        default: nil
        }
    }

    static func asDouble(_ number: Number) -> Double {
        switch number {
        case .integer(let value): Double(value)
        case .double(let value): value
        }
    }

    static func double(_ operand: Operand) -> Double? { number(operand).map(asDouble) }

    private static let outOfRange = ExpressionError.failed(
        "Integer value is out of the [\(Int64.min), \(Int64.max)] range.")
    private static let divideByZero = ExpressionError.failed("Divide by zero error.")

    private static func checked(_ result: (partialValue: Int64, overflow: Bool)) throws(ExpressionError) -> Operand {
        if result.overflow { throw outOfRange }
        return .integer(result.partialValue)
    }

    /// An arithmetic operation on two numbers. Integers do not overflow, except for the smallest one divided by -1,
    /// which stays itself; an integer and a double give a double.
    static func apply(
        _ operation: BinaryOperator, _ left: Number, _ right: Number
    ) throws(ExpressionError) -> Operand {
        if case .integer(let left) = left, case .integer(let right) = right {
            switch operation {
            case .add: return try checked(left.addingReportingOverflow(right))
            case .subtract: return try checked(left.subtractingReportingOverflow(right))
            case .multiply: return try checked(left.multipliedReportingOverflow(by: right))
            case .divide:
                if right == 0 { throw divideByZero }
                return .integer(left.dividedReportingOverflow(by: right).partialValue)
            default:
                if right == 0 { throw divideByZero }
                return .integer(left.remainderReportingOverflow(dividingBy: right).partialValue)
            }
        }
        let (left, right) = (asDouble(left), asDouble(right))
        switch operation {
        case .add: return .double(left + right)
        case .subtract: return .double(left - right)
        case .multiply: return .double(left * right)
        case .divide: return .double(left / right)
        default: return .double(left.truncatingRemainder(dividingBy: right))
        }
    }

    static func negate(_ number: Number) throws(ExpressionError) -> Operand {
        switch number {
        case .integer(let value): try checked(Int64(0).subtractingReportingOverflow(value))
        case .double(let value): .double(-value)
        }
    }

    /// The integer of a double: cut towards zero, within the range of integers; 0 for NaN.
    static func integer(saturating value: Double) -> Int64 {
        if value.isNaN { return 0 }
        if value >= 0x1p63 { return .max }
        if value < -0x1p63 { return .min }
        return Int64(value)
    }

    /// The nearest integer, the greater of two equally near ones.
    static func round(_ value: Double) -> Int64 {
        let floor = value.rounded(.down)
        return integer(saturating: value - floor >= 0.5 ? floor + 1 : floor)
    }
}
