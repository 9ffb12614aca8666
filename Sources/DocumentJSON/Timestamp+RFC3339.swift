// Timestamps as RFC 3339 text, and back.
// Days are counted by the proleptic Gregorian calendar, as `google.protobuf.Timestamp` has it.

package import DocumentModel

/// RFC 3339 date-times within years 1...9999.
package enum RFC3339 {
    /// Microseconds since 1970-01-01T00:00:00Z named by `text`, floored; nil as for ``timestamp(_:)``.
    static func microseconds(_ text: Span<UInt8>) -> Int64? { timestamp(text)?.microseconds }

    /// The moment named by `text`, floored to nanoseconds; nil if `text` is no RFC 3339 date-time or lies outside years 1...9999. A
    /// leap second (`:60`) counts as the second after it.
    package static func timestamp(_ text: Span<UInt8>) -> TimestampValue? {
        var at = 0

        func digits(_ count: Int) -> Int? {
            guard text.count - at >= count else { return nil }
            var number = 0
            for _ in 0..<count {
                let digit = Int(text[at]) - 0x30
                guard (0...9).contains(digit) else { return nil }
                number = number * 10 + digit
                at += 1
            }
            return number
        }
        func skip(_ allowed: UInt8...) -> Bool {
            guard at < text.count, allowed.contains(text[at]) else { return false }
            at += 1
            return true
        }

        guard let year = digits(4), skip(0x2D), let month = digits(2), skip(0x2D), let day = digits(2),
            skip(0x54, 0x74, 0x20), let hour = digits(2), skip(0x3A), let minute = digits(2), skip(0x3A),
            let second = digits(2)
        else { return nil }
        guard year >= 1, (1...12).contains(month), (1...daysIn(month: month, year: year)).contains(day), hour < 24, minute < 60,
            second <= 60
        else { return nil }

        var nanoseconds = 0
        if skip(0x2E) {
            var scale = 100_000_000
            var count = 0
            while at < text.count, (0x30...0x39).contains(text[at]) {
                nanoseconds += Int(text[at] - 0x30) * scale
                scale /= 10
                count += 1
                at += 1
            }
            guard count > 0 else { return nil }
        }

        var offsetMinutes = 0
        if !skip(0x5A, 0x7A) {
            let sign: Int
            if skip(0x2B) { sign = 1 } else if skip(0x2D) { sign = -1 } else { return nil }
            guard let hours = digits(2), skip(0x3A), let minutes = digits(2), hours < 24, minutes < 60 else { return nil }
            offsetMinutes = sign * (hours * 60 + minutes)
        }
        guard at == text.count else { return nil }

        let days = daysSinceEpoch(year: year, month: month, day: day)
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offsetMinutes * 60
        guard (minimumSeconds...maximumSeconds).contains(seconds) else { return nil }
        return TimestampValue(seconds: Int64(seconds), nanoseconds: Int32(nanoseconds))
    }

    /// Appends `microseconds` as UTC text with 0, 3 or 6 fraction digits.
    static func append(_ microseconds: Int64, to output: inout [UInt8]) {
        append(TimestampValue(microseconds: microseconds), to: &output)
    }

    /// Appends a moment within years 1...9999 as UTC text with 0, 3, 6 or 9 fraction digits.
    package static func append(_ time: TimestampValue, to output: inout [UInt8]) {
        let (days, secondOfDay) = floorDivide(time.seconds, 86_400)
        let nanoseconds = Int(time.nanoseconds)
        let (year, month, day) = civil(daysSinceEpoch: Int(days))
        append(year, width: 4, to: &output)
        output.append(0x2D)
        append(month, width: 2, to: &output)
        output.append(0x2D)
        append(day, width: 2, to: &output)
        output.append(0x54)
        append(Int(secondOfDay) / 3600, width: 2, to: &output)
        output.append(0x3A)
        append(Int(secondOfDay) / 60 % 60, width: 2, to: &output)
        output.append(0x3A)
        append(Int(secondOfDay) % 60, width: 2, to: &output)
        appendFraction(nanoseconds, to: &output)
        output.append(0x5A)
    }

    /// Appends nanoseconds 0...999,999,999 as a fraction of 3, 6 or 9 digits, or nothing for 0.
    package static func appendFraction(_ nanoseconds: Int, to output: inout [UInt8]) {
        if nanoseconds == 0 { return }
        output.append(0x2E)
        if nanoseconds % 1_000_000 == 0 {
            append(nanoseconds / 1_000_000, width: 3, to: &output)
        } else if nanoseconds % 1_000 == 0 {
            append(nanoseconds / 1_000, width: 6, to: &output)
        } else {
            append(nanoseconds, width: 9, to: &output)
        }
    }

    private static let minimumSeconds = daysSinceEpoch(year: 1, month: 1, day: 1) * 86_400
    private static let maximumSeconds = daysSinceEpoch(year: 10_000, month: 1, day: 1) * 86_400 - 1

    private static func daysIn(month: Int, year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days from 1970-01-01; years are shifted to begin in March, so that leap days end a year.
    private static func daysSinceEpoch(year: Int, month: Int, day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func civil(daysSinceEpoch days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    private static func append(_ number: Int, width: Int, to output: inout [UInt8]) {
        var scale = 1
        for _ in 1..<width { scale *= 10 }
        while scale > 0 {
            output.append(UInt8(0x30 + number / scale % 10))
            scale /= 10
        }
    }
}
