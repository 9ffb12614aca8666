// Functions on times. Arguments are values or expressions.

extension Expression {
    /// The time so many microseconds after 1970.
    public func unixMicrosToTimestamp() -> FunctionExpression { function("unix_micros_to_timestamp") }

    /// The time so many milliseconds after 1970.
    public func unixMillisToTimestamp() -> FunctionExpression { function("unix_millis_to_timestamp") }

    /// The time so many seconds after 1970.
    public func unixSecondsToTimestamp() -> FunctionExpression { function("unix_seconds_to_timestamp") }

    /// Microseconds since 1970.
    public func timestampToUnixMicros() -> FunctionExpression { function("timestamp_to_unix_micros") }

    /// Milliseconds since 1970.
    public func timestampToUnixMillis() -> FunctionExpression { function("timestamp_to_unix_millis") }

    /// Seconds since 1970.
    public func timestampToUnixSeconds() -> FunctionExpression { function("timestamp_to_unix_seconds") }

    /// The time later by a number of units.
    public func timestampAdd(_ amount: Int, _ unit: TimeUnit) -> FunctionExpression {
        function("timestamp_add", unit, amount)
    }

    /// The time later by a number of units. The unit is a ``TimeUnit``, its name, or an expression.
    public func timestampAdd(amount: any Expression, unit: any Sendable) -> FunctionExpression {
        function("timestamp_add", unit, amount)
    }

    /// The time earlier by a number of units.
    public func timestampSubtract(_ amount: Int, _ unit: TimeUnit) -> FunctionExpression {
        function("timestamp_subtract", unit, amount)
    }

    /// The time earlier by a number of units. The unit is a ``TimeUnit``, its name, or an expression.
    public func timestampSubtract(amount: any Expression, unit: any Sendable) -> FunctionExpression {
        function("timestamp_subtract", unit, amount)
    }

    /// The whole units from another time to this one.
    public func timestampDiff(_ start: any Expression, _ unit: TimeUnit) -> FunctionExpression {
        function("timestamp_diff", start, unit)
    }

    /// The whole units from another time to this one. The unit is a ``TimeUnit``, its name, or an expression.
    public func timestampDiff(_ start: any Expression, _ unit: any Sendable) -> FunctionExpression {
        function("timestamp_diff", start, unit)
    }

    /// The beginning of the hour, day, week, month that the time is in.
    public func timestampTruncate(granularity: TimeGranularity) -> FunctionExpression {
        function("timestamp_trunc", granularity)
    }

    /// The beginning of what the time is in. The granularity is a ``TimeGranularity``, its name, or an expression.
    public func timestampTruncate(granularity: any Sendable) -> FunctionExpression {
        function("timestamp_trunc", granularity)
    }

    /// The beginning of the hour, day, week, month that the time is in, in a zone: `"Europe/Berlin"`.
    public func timestampTruncate(granularity: TimeGranularity, timezone: any Sendable) -> FunctionExpression {
        function("timestamp_trunc", granularity, timezone)
    }

    /// The beginning of what the time is in, in a zone. The granularity is a ``TimeGranularity``, its name, or an
    /// expression.
    public func timestampTruncate(granularity: any Sendable, timezone: any Sendable) -> FunctionExpression {
        function("timestamp_trunc", granularity, timezone)
    }

    /// A part of the time: the year, the day of the week.
    public func timestampExtract(part: TimePart) -> FunctionExpression { function("timestamp_extract", part) }

    /// A part of the time. The part is a ``TimePart``, its name, or an expression.
    public func timestampExtract(part: any Sendable) -> FunctionExpression { function("timestamp_extract", part) }

    /// A part of the time in a zone: `"Europe/Berlin"`.
    public func timestampExtract(part: TimePart, timezone: any Sendable) -> FunctionExpression {
        function("timestamp_extract", part, timezone)
    }

    /// A part of the time in a zone. The part is a ``TimePart``, its name, or an expression.
    public func timestampExtract(part: any Sendable, timezone: any Sendable) -> FunctionExpression {
        function("timestamp_extract", part, timezone)
    }
}

/// A name that an argument of a function has.
protocol ArgumentName {
    var rawValue: String { get }
}

/// A length of time.
public struct TimeUnit: Sendable, Hashable, ArgumentName {
    /// The name that requests have.
    public let rawValue: String

    /// One microsecond.
    public static let microsecond = TimeUnit(rawValue: "microsecond")
    /// One millisecond.
    public static let millisecond = TimeUnit(rawValue: "millisecond")
    /// One second.
    public static let second = TimeUnit(rawValue: "second")
    /// One minute.
    public static let minute = TimeUnit(rawValue: "minute")
    /// One hour.
    public static let hour = TimeUnit(rawValue: "hour")
    /// One day.
    public static let day = TimeUnit(rawValue: "day")
}

/// What a time is cut to.
public struct TimeGranularity: Sendable, Hashable, ArgumentName {
    /// The name that requests have.
    public let rawValue: String

    /// The microsecond.
    public static let microsecond = TimeGranularity(rawValue: "microsecond")
    /// The millisecond.
    public static let millisecond = TimeGranularity(rawValue: "millisecond")
    /// The second.
    public static let second = TimeGranularity(rawValue: "second")
    /// The minute.
    public static let minute = TimeGranularity(rawValue: "minute")
    /// The hour.
    public static let hour = TimeGranularity(rawValue: "hour")
    /// The day.
    public static let day = TimeGranularity(rawValue: "day")
    /// A week that begins on Sunday.
    public static let week = TimeGranularity(rawValue: "week")
    /// A week that begins on Monday.
    public static let weekMonday = TimeGranularity(rawValue: "week(monday)")
    /// A week that begins on Tuesday.
    public static let weekTuesday = TimeGranularity(rawValue: "week(tuesday)")
    /// A week that begins on Wednesday.
    public static let weekWednesday = TimeGranularity(rawValue: "week(wednesday)")
    /// A week that begins on Thursday.
    public static let weekThursday = TimeGranularity(rawValue: "week(thursday)")
    /// A week that begins on Friday.
    public static let weekFriday = TimeGranularity(rawValue: "week(friday)")
    /// A week that begins on Saturday.
    public static let weekSaturday = TimeGranularity(rawValue: "week(saturday)")
    /// A week that begins on Sunday.
    public static let weekSunday = TimeGranularity(rawValue: "week(sunday)")
    /// A week of ISO 8601.
    public static let isoweek = TimeGranularity(rawValue: "isoweek")
    /// The month.
    public static let month = TimeGranularity(rawValue: "month")
    /// The quarter.
    public static let quarter = TimeGranularity(rawValue: "quarter")
    /// The year.
    public static let year = TimeGranularity(rawValue: "year")
    /// A year of ISO 8601, which begins with its first week.
    public static let isoyear = TimeGranularity(rawValue: "isoyear")
}

/// A part of a time.
public struct TimePart: Sendable, Hashable, ArgumentName {
    /// The name that requests have.
    public let rawValue: String

    /// The microsecond of the second.
    public static let microsecond = TimePart(rawValue: "microsecond")
    /// The millisecond of the second.
    public static let millisecond = TimePart(rawValue: "millisecond")
    /// The second of the minute.
    public static let second = TimePart(rawValue: "second")
    /// The minute of the hour.
    public static let minute = TimePart(rawValue: "minute")
    /// The hour of the day.
    public static let hour = TimePart(rawValue: "hour")
    /// 1, Sunday, to 7.
    public static let dayOfWeek = TimePart(rawValue: "dayofweek")
    /// The day of the month.
    public static let day = TimePart(rawValue: "day")
    /// The day of the year.
    public static let dayOfYear = TimePart(rawValue: "dayofyear")
    /// The week of the year; weeks begin on Sunday.
    public static let week = TimePart(rawValue: "week")
    /// The week of the year; weeks begin on Monday.
    public static let weekMonday = TimePart(rawValue: "week(monday)")
    /// The week of the year; weeks begin on Tuesday.
    public static let weekTuesday = TimePart(rawValue: "week(tuesday)")
    /// The week of the year; weeks begin on Wednesday.
    public static let weekWednesday = TimePart(rawValue: "week(wednesday)")
    /// The week of the year; weeks begin on Thursday.
    public static let weekThursday = TimePart(rawValue: "week(thursday)")
    /// The week of the year; weeks begin on Friday.
    public static let weekFriday = TimePart(rawValue: "week(friday)")
    /// The week of the year; weeks begin on Saturday.
    public static let weekSaturday = TimePart(rawValue: "week(saturday)")
    /// The week of the year; weeks begin on Sunday.
    public static let weekSunday = TimePart(rawValue: "week(sunday)")
    /// The week of ISO 8601.
    public static let isoweek = TimePart(rawValue: "isoweek")
    /// The month, 1...12.
    public static let month = TimePart(rawValue: "month")
    /// The quarter, 1...4.
    public static let quarter = TimePart(rawValue: "quarter")
    /// The year.
    public static let year = TimePart(rawValue: "year")
    /// The year of ISO 8601.
    public static let isoyear = TimePart(rawValue: "isoyear")
}
