/// A day and a time of day in the proleptic Gregorian calendar, UTC, without leap seconds: the calendar of RFC 3339 and
/// of `google.protobuf.Timestamp`.
package struct CalendarDate: Sendable, Equatable {
    package var year: Int
    /// 1...12.
    package var month: Int
    /// 1...31.
    package var day: Int
    /// 0...86,399.
    package var secondOfDay: Int

    package var hour: Int { secondOfDay / 3600 }
    package var minute: Int { secondOfDay / 60 % 60 }
    package var second: Int { secondOfDay % 60 }

    /// The date of a moment, given as seconds since 1970-01-01T00:00:00Z.
    package init(secondsSinceEpoch seconds: Int64) {
        let (days, second) = Self.floorDivide(Int(seconds), 86_400)
        secondOfDay = second
        // Years are shifted to begin in March, so that a leap day ends its year; an era has 400 years.
        let shifted = days + 719_468
        let (era, dayOfEra) = Self.floorDivide(shifted, 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days from 1970-01-01 to a date of the calendar.
    package static func daysSinceEpoch(year: Int, month: Int, day: Int) -> Int {
        let (era, yearOfEra) = floorDivide(month <= 2 ? year - 1 : year, 400)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// The number of days of a month, 28...31.
    package static func daysIn(month: Int, year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// The day of the week; 0 is Sunday.
    package static func weekday(daysSinceEpoch days: Int) -> Int { floorDivide(days + 4, 7).remainder }

    /// Appends `2026-01-31T12:00:00`, the date and time of RFC 3339 without fraction and zone. The year has four
    /// digits.
    package func appendRFC3339(to output: inout [UInt8]) {
        Self.append(year, width: 4, to: &output)
        output.append(UInt8(ascii: "-"))
        Self.append(month, width: 2, to: &output)
        output.append(UInt8(ascii: "-"))
        Self.append(day, width: 2, to: &output)
        output.append(UInt8(ascii: "T"))
        appendTime(to: &output)
    }

    /// Appends `12:00:00`.
    package func appendTime(to output: inout [UInt8]) {
        Self.append(hour, width: 2, to: &output)
        output.append(UInt8(ascii: ":"))
        Self.append(minute, width: 2, to: &output)
        output.append(UInt8(ascii: ":"))
        Self.append(second, width: 2, to: &output)
    }

    /// Appends the lowest `width` decimal digits of a number that is not negative, with leading zeros.
    package static func append(_ number: Int, width: Int, to output: inout [UInt8]) {
        var scale = 1
        for _ in 1..<width { scale *= 10 }
        while scale > 0 {
            output.append(UInt8(ascii: "0") + UInt8(number / scale % 10))
            scale /= 10
        }
    }

    private static func floorDivide(_ value: Int, _ divisor: Int) -> (quotient: Int, remainder: Int) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
