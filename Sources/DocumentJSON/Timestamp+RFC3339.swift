internal import Basics
package import DocumentModel

/// RFC 3339 date-times in the years 1...9999, in the proleptic Gregorian calendar as in `google.protobuf.Timestamp`.
package enum RFC3339 {
    /// Microseconds since 1970-01-01T00:00:00Z named by `text`, floored; nil as for ``timestamp(_:)``.
    static func microseconds(_ text: Span<UInt8>) -> Int64? { timestamp(text)?.microseconds }

    /// The moment named by `text`, floored to nanoseconds; nil if `text` is not an RFC 3339 date-time or lies outside
    /// years 1...9999. A leap second (`:60`) counts as the second after it.
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
        guard year >= 1, (1...12).contains(month), (1...CalendarDate.daysIn(month: month, year: year)).contains(day),
            hour < 24, minute < 60,
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
            guard let hours = digits(2), skip(0x3A), let minutes = digits(2), hours < 24, minutes < 60 else {
                return nil
            }
            offsetMinutes = sign * (hours * 60 + minutes)
        }
        guard at == text.count else { return nil }

        let days = CalendarDate.daysSinceEpoch(year: year, month: month, day: day)
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offsetMinutes * 60
        guard (secondsMin...secondsMax).contains(seconds) else { return nil }
        return TimestampValue(seconds: Int64(seconds), nanoseconds: Int32(nanoseconds))
    }

    /// Appends `microseconds` as UTC text with 0, 3 or 6 fraction digits.
    static func append(_ microseconds: Int64, to output: inout [UInt8]) {
        append(TimestampValue(microseconds: microseconds), to: &output)
    }

    /// Appends a moment within years 1...9999 as UTC text with 0, 3, 6 or 9 fraction digits.
    package static func append(_ time: TimestampValue, to output: inout [UInt8]) {
        CalendarDate(secondsSinceEpoch: time.seconds).appendRFC3339(to: &output)
        appendFraction(Int(time.nanoseconds), to: &output)
        output.append(0x5A)
    }

    /// Appends nanoseconds 0...999,999,999 as a fraction of 3, 6 or 9 digits, or nothing for 0.
    package static func appendFraction(_ nanoseconds: Int, to output: inout [UInt8]) {
        if nanoseconds == 0 { return }
        output.append(0x2E)
        if nanoseconds % 1_000_000 == 0 {
            CalendarDate.append(nanoseconds / 1_000_000, width: 3, to: &output)
        } else if nanoseconds % 1_000 == 0 {
            CalendarDate.append(nanoseconds / 1_000, width: 6, to: &output)
        } else {
            CalendarDate.append(nanoseconds, width: 9, to: &output)
        }
    }

    private static let secondsMin = CalendarDate.daysSinceEpoch(year: 1, month: 1, day: 1) * 86_400
    private static let secondsMax = CalendarDate.daysSinceEpoch(year: 10_000, month: 1, day: 1) * 86_400 - 1
}
