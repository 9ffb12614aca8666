// Spans of time and their arithmetic with times.

internal import DocumentModel
internal import Expressions

/// A span of time in nanoseconds, at most 10,000 years either way.
final class RulesDuration: LanguageValue {
    let total: Int128

    static let nanosecondsPerSecond: Int128 = 1_000_000_000
    private static let secondsMax: Int128 = 315_576_000_000

    var operandTypes: OperandTypes { .duration }

    /// Throws if the span is too long.
    init(nanoseconds total: Int128) throws(ExpressionError) {
        if total.magnitude > (Self.secondsMax * Self.nanosecondsPerSecond).magnitude {
            throw .failed("Duration is not valid. Seconds must be in range [-\(Self.secondsMax), +\(Self.secondsMax)].")
        }
        self.total = total
    }

    /// Whole seconds, cut towards zero.
    var seconds: Int64 { Int64(total / Self.nanosecondsPerSecond) }
    /// Nanoseconds beside the whole seconds, with the sign of the span.
    var nanoseconds: Int64 { Int64(total % Self.nanosecondsPerSecond) }

    static func from(_ operand: Operand) -> RulesDuration? {
        if case .object(let object) = operand { object as? RulesDuration } else { nil }
    }

    /// Nanoseconds of a unit: `w`, `d`, `h`, `m`, `s`, `ms`, `ns`.
    static func nanoseconds(ofUnit unit: String) -> Int128? {
        switch unit {
        case "w": 604_800 * nanosecondsPerSecond
        case "d": 86_400 * nanosecondsPerSecond
        case "h": 3_600 * nanosecondsPerSecond
        case "m": 60 * nanosecondsPerSecond
        case "s": nanosecondsPerSecond
        case "ms": 1_000_000
        case "ns": 1
        default: nil
        }
    }
}

extension TimestampValue {
    /// Nanoseconds since 1970.
    var totalNanoseconds: Int128 { Int128(seconds) * RulesDuration.nanosecondsPerSecond + Int128(nanoseconds) }

    /// The time so many nanoseconds after 1970; throws outside the years 1 to 9999.
    init(totalNanoseconds total: Int128) throws(ExpressionError) {
        let unit = RulesDuration.nanosecondsPerSecond
        let (quotient, remainder) = total.quotientAndRemainder(dividingBy: unit)
        let seconds = remainder < 0 ? quotient - 1 : quotient
        guard let whole = Int64(exactly: seconds) else { throw .invalidTimestamp }
        self.init(seconds: whole, nanoseconds: Int32(remainder < 0 ? remainder + unit : remainder))
        if !isValid { throw .invalidTimestamp }
    }
}

extension ExpressionError {
    static let invalidTimestamp = ExpressionError.failed(
        "Timestamp is not valid. Seconds must be in range [\(Limits.earliestSecond), +\(Limits.latestSecond)]. "
            + "Nanos must be in range [0, +999999999].")
}
