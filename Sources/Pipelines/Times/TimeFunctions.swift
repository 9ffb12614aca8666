// Times, in microseconds as they are stored.

internal import DocumentModel
internal import Expressions

enum TimeFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("unix_micros_to_timestamp", 1, .strict(fromMicroseconds)),
        PipelineFunction("unix_millis_to_timestamp", 1, .strict(fromMilliseconds)),
        PipelineFunction("unix_seconds_to_timestamp", 1, .strict(fromSeconds)),
        PipelineFunction("timestamp_to_unix_micros", 1, .strict(toMicroseconds)),
        PipelineFunction("timestamp_to_unix_millis", 1, .strict(toMilliseconds)),
        PipelineFunction("timestamp_to_unix_seconds", 1, .strict(toSeconds)),
        PipelineFunction("timestamp_add", 3, .strict(add)),
        PipelineFunction("timestamp_subtract", 3, .strict(subtract)),
        PipelineFunction("timestamp_diff", 3, .strict(difference)),
    ]

    // MARK: Conversions

    private static func fromMicroseconds(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        try timestamp("unix_micros_to_timestamp", operands[0], unit: 1)
    }

    private static func fromMilliseconds(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        try timestamp("unix_millis_to_timestamp", operands[0], unit: 1_000)
    }

    private static func fromSeconds(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        try timestamp("unix_seconds_to_timestamp", operands[0], unit: 1_000_000)
    }

    private static func toMicroseconds(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        .integer(try microseconds("timestamp_to_unix_micros", operands[0]))
    }

    private static func toMilliseconds(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        .integer(floored(try microseconds("timestamp_to_unix_millis", operands[0]), by: 1_000))
    }

    private static func toSeconds(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .integer(floored(try microseconds("timestamp_to_unix_seconds", operands[0]), by: 1_000_000))
    }

    // MARK: Arithmetic

    private static func add(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try shifted("timestamp_add", operands, sign: 1)
    }

    private static func subtract(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try shifted("timestamp_subtract", operands, sign: -1)
    }

    /// A time, a unit and a number of units.
    private static func shifted(_ name: String, _ operands: [Operand], sign: Int64) throws(ExpressionError) -> Operand {
        let start = try microseconds(name, operands[0])
        let unit = try unit(name, operands[1])
        guard case .integer(let count) = operands[2] else { throw .mismatch(name, "a whole number", operands[2]) }
        let (shift, overflow) = count.multipliedReportingOverflow(by: sign * unit)
        let (result, isBeyond) = start.addingReportingOverflow(shift)
        if overflow || isBeyond { throw .failed("\(name): the result is not a time") }
        return try timestamp(name, .integer(result), unit: 1)
    }

    /// Whole units from the second time to the first.
    private static func difference(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let end = try microseconds("timestamp_diff", operands[0])
        let start = try microseconds("timestamp_diff", operands[1])
        return .integer((end - start) / (try unit("timestamp_diff", operands[2])))
    }

    // MARK: Operands

    /// Microseconds of the units that have one length.
    private static let units: [String: Int64] = [
        "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
        "day": 86_400_000_000,
    ]

    private static func unit(_ name: String, _ operand: Operand) throws(ExpressionError) -> Int64 {
        guard case .string(let text) = operand, let unit = units[text] else {
            throw .failed("\(name): the unit is microsecond, millisecond, second, minute, hour or day")
        }
        return unit
    }

    /// Microseconds since 1970; within the years 1 to 9999, so that differences do not overflow.
    static func microseconds(_ name: String, _ operand: Operand) throws(ExpressionError) -> Int64 {
        guard case .timestamp(let time) = operand else { throw .mismatch(name, "timestamps", operand) }
        return time.microseconds
    }

    static func timestamp(_ name: String, _ operand: Operand, unit: Int64) throws(ExpressionError) -> Operand {
        guard case .integer(let count) = operand else { throw .mismatch(name, "a whole number", operand) }
        let (microseconds, overflow) = count.multipliedReportingOverflow(by: unit)
        let time = TimestampValue(microseconds: microseconds)
        if overflow || !time.isValid { throw .failed("\(name): \(count) is not a time of the years 1 to 9999") }
        return .timestamp(time)
    }

    static func floored(_ value: Int64, by unit: Int64) -> Int64 {
        value >= 0 ? value / unit : (value + 1) / unit - 1
    }
}
