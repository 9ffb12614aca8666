// Parts of times, and times rounded down to a part, in a time zone.
//
//     timestamp_extract(time, "isoweek", "Europe/Berlin")     17
//     timestamp_trunc(time, "week(monday)", "+05:30")         the Monday's beginning
//
// Weeks of a year begin on Sundays, or on the weekday that is named; days before the first one are in week 0. Weeks and
// years of ISO 8601 begin on Mondays, and the first week has the year's first Thursday.

internal import Basics
internal import DocumentModel
internal import Expressions

enum CalendarFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("timestamp_extract", 2...3, .strict(extract)),
        PipelineFunction("timestamp_trunc", 2...3, .strict(truncate)),
    ]

    private static func extract(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let time = try LocalTime("timestamp_extract", operands, evaluation)
        guard case .string(let name) = operands[1], let value = TimePart(name).flatMap(time.value) else {
            throw .failed("timestamp_extract: there is no such part of a time")
        }
        return .integer(value)
    }

    private static func truncate(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let time = try LocalTime("timestamp_trunc", operands, evaluation)
        guard case .string(let name) = operands[1], let start = TimePart(name).flatMap(time.start) else {
            throw .failed("timestamp_trunc: there is no such granularity")
        }
        return try TimeFunctions.timestamp("timestamp_trunc", .integer(start), unit: 1)
    }
}

/// A part of a time.
enum TimePart: Equatable {
    case microsecond, millisecond, second, minute, hour, day, dayOfWeek, dayOfYear, month, quarter, year, isoWeek
    case isoYear
    /// Weeks that begin on a weekday; 0 is Sunday.
    case week(start: Int)

    private static let names: [String: TimePart] = [
        "microsecond": .microsecond, "millisecond": .millisecond, "second": .second, "minute": .minute,
        "hour": .hour, "day": .day, "dayofweek": .dayOfWeek, "dayofyear": .dayOfYear, "month": .month,
        "quarter": .quarter, "year": .year, "isoweek": .isoWeek, "isoyear": .isoYear, "week": .week(start: 0),
        "week(sunday)": .week(start: 0), "week(monday)": .week(start: 1), "week(tuesday)": .week(start: 2),
        "week(wednesday)": .week(start: 3), "week(thursday)": .week(start: 4), "week(friday)": .week(start: 5),
        "week(saturday)": .week(start: 6),
    ]

    init?(_ name: String) {
        guard let part = TimePart.names[name] else { return nil }
        self = part
    }
}

/// A time as the clocks of a zone show it.
private struct LocalTime {
    private let microseconds: Int64
    private let zone: ZoneFile
    private let offset: Int64
    private let date: CalendarDate
    /// Local days since 1970.
    private let day: Int

    /// - Parameter operands: a time, a part and, if it is not UTC, a zone.
    init(_ name: String, _ operands: [Operand], _ evaluation: Evaluation) throws(ExpressionError) {
        microseconds = try TimeFunctions.microseconds(name, operands[0])
        var zoneName = "UTC"
        if operands.count == 3 {
            guard case .string(let text) = operands[2] else { throw .mismatch(name, "the name of a zone", operands[2]) }
            zoneName = text
        }
        try evaluation.spendWork(1 << 10)
        guard let zone = RowHost.of(evaluation).zones.zone(named: zoneName) else {
            throw .failed("\(name): there is no time zone \"\(zoneName.prefix(100))\" on this system")
        }
        self.zone = zone
        let seconds = TimeFunctions.floored(microseconds, by: 1_000_000)
        offset = Int64(zone.offset(at: seconds))
        date = CalendarDate(secondsSinceEpoch: seconds + offset)
        day = Int(TimeFunctions.floored(seconds + offset, by: 86_400))
    }

    /// Microseconds of the present second, 0..<1,000,000.
    private var fraction: Int64 { microseconds - TimeFunctions.floored(microseconds, by: 1_000_000) * 1_000_000 }

    private func days(_ year: Int, _ month: Int = 1) -> Int {
        CalendarDate.daysSinceEpoch(year: year, month: month, day: 1)
    }

    /// The last day not after `day` that is the weekday.
    private func last(_ weekday: Int, to day: Int) -> Int {
        day - (CalendarDate.weekday(daysSinceEpoch: day) - weekday + 7) % 7
    }

    /// The year that the week's Thursday is in, and that year's first Monday.
    private var isoYear: (number: Int, start: Int) {
        let thursday = last(1, to: day) + 3
        let year = CalendarDate(secondsSinceEpoch: Int64(thursday) * 86_400).year
        return (year, last(1, to: days(year) + 3))
    }

    /// The value of a part.
    func value(_ part: TimePart) -> Int64? {
        switch part {
        case .microsecond: return fraction
        case .millisecond: return fraction / 1_000
        case .second: return Int64(date.second)
        case .minute: return Int64(date.minute)
        case .hour: return Int64(date.hour)
        case .day: return Int64(date.day)
        // Sunday is 1, Saturday 7.
        case .dayOfWeek: return Int64(CalendarDate.weekday(daysSinceEpoch: day) + 1)
        case .dayOfYear: return Int64(day - days(date.year) + 1)
        case .month: return Int64(date.month)
        case .quarter: return Int64((date.month - 1) / 3 + 1)
        case .year: return Int64(date.year)
        case .isoWeek: return Int64((day - isoYear.start) / 7 + 1)
        case .isoYear: return Int64(isoYear.number)
        case .week(let start):
            // The first such weekday of the year begins week 1.
            let first = last(start, to: days(date.year) + 6)
            return Int64(day < first ? 0 : (day - first) / 7 + 1)
        }
    }

    /// The microseconds since 1970 at which the part that the time is in begins; nil for what is not a length of time.
    func start(_ part: TimePart) -> Int64? {
        switch part {
        case .microsecond: return microseconds
        case .millisecond: return microseconds - fraction % 1_000
        case .second: return microseconds - fraction
        case .minute: return start(ofSeconds: 60)
        case .hour: return start(ofSeconds: 3_600)
        case .day: return start(ofDay: day)
        case .week(let weekday): return start(ofDay: last(weekday, to: day))
        case .isoWeek: return start(ofDay: last(1, to: day))
        case .month: return start(ofDay: days(date.year, date.month))
        case .quarter: return start(ofDay: days(date.year, (date.month - 1) / 3 * 3 + 1))
        case .year: return start(ofDay: days(date.year))
        case .isoYear: return start(ofDay: isoYear.start)
        case .dayOfWeek, .dayOfYear: return nil
        }
    }

    /// Within a day the offset is taken to stay.
    private func start(ofSeconds length: Int64) -> Int64 {
        let local = TimeFunctions.floored(microseconds, by: 1_000_000) + offset
        return (TimeFunctions.floored(local, by: length) * length - offset) * 1_000_000
    }

    private func start(ofDay day: Int) -> Int64 { zone.time(ofLocal: Int64(day) * 86_400) * 1_000_000 }
}
