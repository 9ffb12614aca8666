// Times, durations and their methods.

internal import Basics
internal import DocumentJSON
internal import DocumentModel
internal import Expressions

extension Functions {
    static let timestamps: [ExpressionFunction] = [
        function(
            "timestamp.date",
            overload(.integer, .integer, .integer) { _, operands throws(ExpressionError) in
                .timestamp(try date(operands[0].whole, operands[1].whole, operands[2].whole))
            }),
        function(
            "timestamp.value",
            overload(.integer) { _, operands throws(ExpressionError) in
                .timestamp(try TimestampValue(totalNanoseconds: Int128(operands[0].whole) * 1_000_000))
            },
            overload(.string) { _, operands throws(ExpressionError) in
                let text = Array(operands[0].text.utf8.prefix(100))
                // Small letters and a space are RFC 3339, but not Firestore's.
                guard text.allSatisfy({ !(0x61...0x7A).contains($0) && $0 != 0x20 }),
                    let time = RFC3339.timestamp(text.span)
                else { throw .invalidTimestamp }
                return .timestamp(time)
            }),
    ]

    private static func date(_ year: Int64, _ month: Int64, _ day: Int64) throws(ExpressionError) -> TimestampValue {
        guard (1...9999).contains(year) else {
            throw .failed(
                "Timestamp should be between 0001-01-01T00.00.00Z and 9999-12-31T23.59.59Z. year: \(year).")
        }
        guard (1...12).contains(month),
            (1...Int64(CalendarDate.daysIn(month: Int(month), year: Int(year)))).contains(day)
        else { throw .failed("Date is not valid. year: \(year), month: \(month) day: \(day).") }
        let days = CalendarDate.daysSinceEpoch(year: Int(year), month: Int(month), day: Int(day))
        return TimestampValue(seconds: Int64(days) * 86_400, nanoseconds: 0)
    }

    static let durations: [ExpressionFunction] = [
        function(
            "duration.value",
            overload(.integer, .string) { _, operands throws(ExpressionError) in
                guard let unit = RulesDuration.nanoseconds(ofUnit: operands[1].text) else {
                    throw .failed("Invalid unit of a duration: \(operands[1].text.prefix(100)).")
                }
                return .object(try RulesDuration(nanoseconds: Int128(operands[0].whole) * unit))
            }),
        function(
            "duration.time",
            overload(.integer, .integer, .integer, .integer) { _, operands throws(ExpressionError) in
                let seconds =
                    Int128(operands[0].whole) * 3_600 + Int128(operands[1].whole) * 60 + Int128(operands[2].whole)
                let total = seconds * RulesDuration.nanosecondsPerSecond + Int128(operands[3].whole)
                return .object(try RulesDuration(nanoseconds: total))
            }),
        function(
            "duration.abs",
            overload(.duration) { _, operands throws(ExpressionError) in
                let total = RulesDuration.from(operands[0])?.total ?? 0
                return .object(try RulesDuration(nanoseconds: total < 0 ? -total : total))
            }),
    ]

    static let timeMethods: [ExpressionFunction] = [
        method(
            "seconds", overload(.timestamp) { _, operands in .integer(Int64(operands[0].calendarDate.second)) },
            overload(.duration) { _, operands in .integer(RulesDuration.from(operands[0])?.seconds ?? 0) }),
        method(
            "nanos", overload(.timestamp) { _, operands in .integer(Int64(operands[0].time.nanoseconds)) },
            overload(.duration) { _, operands in .integer(RulesDuration.from(operands[0])?.nanoseconds ?? 0) }),
        calendarMethod("year") { $0.year },
        calendarMethod("month") { $0.month },
        calendarMethod("day") { $0.day },
        calendarMethod("hours") { $0.hour },
        calendarMethod("minutes") { $0.minute },
        calendarMethod("dayOfWeek") { date in
            // Monday is 1, Sunday 7.
            let weekday = CalendarDate.weekday(daysSinceEpoch: date.daysSinceEpoch)
            return weekday == 0 ? 7 : weekday
        },
        calendarMethod("dayOfYear") { date in
            date.daysSinceEpoch - CalendarDate.daysSinceEpoch(year: date.year, month: 1, day: 1) + 1
        },
        method(
            "date",
            overload(.timestamp) { _, operands in
                let date = operands[0].calendarDate
                return .timestamp(TimestampValue(seconds: Int64(date.daysSinceEpoch) * 86_400, nanoseconds: 0))
            }),
        method(
            "time",
            overload(.timestamp) { _, operands throws(ExpressionError) in
                let seconds = Int128(operands[0].calendarDate.secondOfDay)
                let total = seconds * RulesDuration.nanosecondsPerSecond + Int128(operands[0].time.nanoseconds)
                return .object(try RulesDuration(nanoseconds: total))
            }),
        method(
            "toMillis",
            overload(.timestamp) { _, operands in
                // Any valid time fits.
                .integer(operands[0].time.seconds * 1_000 + Int64(operands[0].time.nanoseconds / 1_000_000))
            }),
    ]

    private static func calendarMethod(
        _ name: String, _ part: @escaping @Sendable (CalendarDate) -> Int
    ) -> ExpressionFunction {
        method(name, overload(.timestamp) { _, operands in .integer(Int64(part(operands[0].calendarDate))) })
    }
}

extension CalendarDate {
    fileprivate var daysSinceEpoch: Int { CalendarDate.daysSinceEpoch(year: year, month: month, day: day) }
}

extension Operand {
    /// The number of an integer; 0 for other types, which signatures exclude.
    fileprivate var whole: Int64 {
        if case .integer(let value) = self { value } else { 0 }
    }

    /// The time of a timestamp; 1970 for other types, which signatures exclude.
    fileprivate var time: TimestampValue {
        if case .timestamp(let time) = self { time } else { TimestampValue(seconds: 0, nanoseconds: 0) }
    }

    fileprivate var calendarDate: CalendarDate { CalendarDate(secondsSinceEpoch: time.seconds) }
}
