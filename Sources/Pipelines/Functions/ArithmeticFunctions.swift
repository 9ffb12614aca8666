// Arithmetic.

internal import Expressions
internal import Glibc

/// Integers stay integers, and an overflow fails; with a double among the operands the result is a double. Null and
/// absent operands give null.
enum ArithmeticFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("add", 2...PipelineFunction.many, .strict(add)),
        PipelineFunction("subtract", 2, .strict(subtract)),
        PipelineFunction("multiply", 2...PipelineFunction.many, .strict(multiply)),
        PipelineFunction("divide", 2, .strict(divide)),
        PipelineFunction("mod", 2, .strict(modulo)),
        PipelineFunction("abs", 1, .strict(absolute)),
        PipelineFunction("ceil", 1, .strict(ceiling)),
        PipelineFunction("floor", 1, .strict(floor)),
        PipelineFunction("round", 1...2, .strict(round)),
        PipelineFunction("trunc", 1...2, .strict(truncate)),
        PipelineFunction("pow", 2, .strict(power)),
        PipelineFunction("sqrt", 1, .strict(squareRoot)),
        PipelineFunction("exp", 1, .strict(exponential)),
        PipelineFunction("ln", 1, .strict(naturalLogarithm)),
        PipelineFunction("log", 1...2, .strict(logarithm)),
        PipelineFunction("log10", 1, .strict(decimalLogarithm)),
        PipelineFunction("rand", 0, .total(random)),
    ]

    // MARK: Operators

    private typealias IntegerOperation = (Int64, Int64) -> (partialValue: Int64, overflow: Bool)

    private static func add(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try fold("add", operands, { $0.addingReportingOverflow($1) }, { $0 + $1 })
    }

    private static func subtract(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try fold("subtract", operands, { $0.subtractingReportingOverflow($1) }, { $0 - $1 })
    }

    private static func multiply(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try fold("multiply", operands, { $0.multipliedReportingOverflow(by: $1) }, { $0 * $1 })
    }

    private static func divide(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try refuseZero("divide", operands)
        return try fold("divide", operands, { $0.dividedReportingOverflow(by: $1) }, { $0 / $1 })
    }

    private static func modulo(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try refuseZero("mod", operands)
        return try fold(
            "mod", operands,
            // The remainder of the least integer by -1 is 0, which the hardware reports as an overflow.
            { $1 == -1 ? (0, false) : $0.remainderReportingOverflow(dividingBy: $1) },
            { fmod($0, $1) })
    }

    /// Integers cannot be divided by zero; doubles can.
    private static func refuseZero(_ name: String, _ operands: [Operand]) throws(ExpressionError) {
        if case .integer = operands[0], case .integer(0) = operands[1] { throw .failed("\(name): division by zero") }
    }

    private static func fold(
        _ name: String, _ operands: [Operand], _ integers: IntegerOperation, _ doubles: (Double, Double) -> Double
    ) throws(ExpressionError) -> Operand {
        var result = operands[0]
        _ = try double(name, result)
        for operand in operands.dropFirst() {
            if case .integer(let left) = result, case .integer(let right) = operand {
                let (value, overflow) = integers(left, right)
                if overflow { throw .failed("\(name): integer overflow") }
                result = .integer(value)
            } else {
                result = .double(doubles(try double(name, result), try double(name, operand)))
            }
        }
        return result
    }

    // MARK: Rounding

    private static func absolute(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        guard case .integer(let value) = operands[0] else { return .double(Swift.abs(try double("abs", operands[0]))) }
        if value == .min { throw .failed("abs: integer overflow") }
        return .integer(Swift.abs(value))
    }

    private static func ceiling(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try whole("ceil", operands[0]) { $0.rounded(.up) }
    }

    private static func floor(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try whole("floor", operands[0]) { $0.rounded(.down) }
    }

    private static func round(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try toPlaces("round", operands, .toNearestOrAwayFromZero)
    }

    private static func truncate(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try toPlaces("trunc", operands, .towardZero)
    }

    private static func whole(
        _ name: String, _ operand: Operand, _ body: (Double) -> Double
    ) throws(ExpressionError) -> Operand {
        if case .integer = operand { return operand }
        return .double(body(try double(name, operand)))
    }

    /// Rounds to decimal places after the point; a negative number of them is before it.
    private static func toPlaces(
        _ name: String, _ operands: [Operand], _ rule: FloatingPointRoundingRule
    ) throws(ExpressionError) -> Operand {
        guard operands.count == 2 else { return try whole(name, operands[0]) { $0.rounded(rule) } }
        guard case .integer(let places) = operands[1] else {
            throw .mismatch(name, "a whole number of places", operands[1])
        }
        if case .integer(let value) = operands[0] { return .integer(try rounded(name, value, places, rule)) }
        let value = try double(name, operands[0])
        return .double(DecimalRounding.rounded(value, places: places, rule))
    }

    private static func rounded(
        _ name: String, _ value: Int64, _ places: Int64, _ rule: FloatingPointRoundingRule
    ) throws(ExpressionError) -> Int64 {
        if places >= 0 { return value }
        // The unit of 19 places is above every integer's half but not representable: 0 or an overflow.
        if places < -19 { return 0 }
        var unit: Int128 = 1
        for _ in 0..<(-places) { unit *= 10 }
        let exact = Int128(value)
        var result = exact - exact % unit
        if rule == .toNearestOrAwayFromZero, Swift.abs(exact % unit) * 2 >= unit { result += value < 0 ? -unit : unit }
        guard let fitting = Int64(exactly: result) else { throw .failed("\(name): integer overflow") }
        return fitting
    }

    // MARK: Functions of doubles

    private static func power(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let (base, exponent) = (try double("pow", operands[0]), try double("pow", operands[1]))
        if base < 0, base.isFinite, exponent.isFinite, exponent.rounded(.towardZero) != exponent {
            throw .failed("pow: a negative base with an exponent that is not whole")
        }
        if base == 0, exponent < 0 { throw .failed("pow: zero with a negative exponent") }
        return .double(pow(base, exponent))
    }

    private static func squareRoot(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .double(try notNegative("sqrt", operands[0]).squareRoot())
    }

    private static func exponential(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand
    {
        let exponent = try double("exp", operands[0])
        let value = exp(exponent)
        if value.isInfinite, exponent.isFinite { throw .failed("exp: the result is too large") }
        return .double(value)
    }

    private static func naturalLogarithm(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        .double(Glibc.log(try positive("ln", operands[0])))
    }

    private static func decimalLogarithm(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        .double(log10(try positive("log10", operands[0])))
    }

    /// The natural logarithm, or that to a base.
    private static func logarithm(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let value = try positive("log", operands[0])
        guard operands.count == 2 else { return .double(Glibc.log(value)) }
        let base = try positive("log", operands[1])
        if base == 1 { throw .failed("log: the base is 1") }
        switch base {
        case 2: return .double(log2(value))
        case 10: return .double(log10(value))
        default: return .double(Glibc.log(value) / Glibc.log(base))
        }
    }

    private static func random(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .double(Double.random(in: 0..<1))
    }

    // MARK: Operands

    /// The number as a double.
    static func double(_ name: String, _ operand: Operand) throws(ExpressionError) -> Double {
        switch operand {
        case .integer(let value): return Double(value)
        case .double(let value): return value
        default: throw .mismatch(name, "numbers", operand)
        }
    }

    private static func notNegative(_ name: String, _ operand: Operand) throws(ExpressionError) -> Double {
        let value = try double(name, operand)
        if value < 0 { throw .failed("\(name): the number is negative") }
        return value
    }

    private static func positive(_ name: String, _ operand: Operand) throws(ExpressionError) -> Double {
        let value = try double(name, operand)
        if value <= 0 { throw .failed("\(name): the number is not positive") }
        return value
    }
}

/// Rounding of doubles to decimal places.
enum DecimalRounding {
    /// Places after the point beyond which a double has no digits, for any exponent.
    private static let placesMax: Int64 = 340

    /// The double nearest to the value rounded in decimal. The value counts as the shortest decimal that means it: 2.5,
    /// and 4.2 to one place is 4.2.
    static func rounded(_ value: Double, places: Int64, _ rule: FloatingPointRoundingRule) -> Double {
        if !value.isFinite || places > placesMax { return value }
        if places < -placesMax { return value * 0 }
        let scale = pow(10, Double(Swift.abs(places)))
        if places < 0 { return scale.isFinite ? (value / scale).rounded(rule) * scale : value * 0 }
        let scaled = value * scale
        // So large that no digits follow the last place.
        if !scaled.isFinite || Swift.abs(scaled) >= 0x1p52 { return value }
        // A product that differs from a half or a whole number by the error of the multiplication is meant to be one.
        let halves = (scaled * 2).rounded()
        let isHalf = Swift.abs(scaled * 2 - halves) <= Swift.abs(scaled) * 0x1p-51
        return (isHalf ? halves / 2 : scaled).rounded(rule) / scale
    }
}
