// The rule of a time zone for all later years, as the last line of a zone file has it: the variable TZ of POSIX.
//
//     PST8PDT,M3.2.0,M11.1.0        UTC-8, and UTC-7 between the second Sunday of March
//                                   and the first Sunday of November
//     <+0530>-5:30                  5 1/2 hours ahead, always
//
// https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap08.html, section 8.3; RFC 9636, section 3.3.1.

internal import Basics

/// Standard time and, perhaps, daylight saving time of each year. Offsets are seconds east of UTC.
struct ZoneRule: Sendable {
    private struct Saving {
        let offset: Int
        let start: Change
        let end: Change
    }

    /// When the clocks change: a day, and seconds of that day.
    private struct Change {
        let day: Day
        let second: Int
    }

    private enum Day {
        /// 1...365; there is no February 29.
        case julian(Int)
        /// 0...365.
        case ofYear(Int)
        /// The last weekday of a month if the week is 5.
        case weekday(month: Int, week: Int, weekday: Int)
    }

    private let standard: Int
    private let saving: Saving?

    /// Reads the text of a rule; nil if it is not one.
    init?(_ text: ArraySlice<UInt8>) {
        var reader = RuleReader(text)
        guard reader.skipName(), let standard = reader.offset() else { return nil }
        self.standard = -standard
        if reader.isAtEnd {
            saving = nil
            return
        }
        guard reader.skipName() else { return nil }
        var daylight = self.standard + 3600
        if !reader.takes(",") {
            guard let offset = reader.offset(), reader.takes(",") else { return nil }
            daylight = -offset
        }
        guard let start = ZoneRule.change(&reader), reader.takes(","), let end = ZoneRule.change(&reader),
            reader.isAtEnd
        else { return nil }
        saving = Saving(offset: daylight, start: start, end: end)
    }

    /// Seconds east of UTC at a time in seconds since 1970.
    func offset(at time: Int64) -> Int {
        guard let saving else { return standard }
        let year = CalendarDate(secondsSinceEpoch: time + Int64(standard)).year
        let start = ZoneRule.time(of: saving.start, in: year) - Int64(standard)
        let end = ZoneRule.time(of: saving.end, in: year) - Int64(saving.offset)
        let isSaving = start < end ? (start..<end).contains(time) : !(end..<start).contains(time)
        return isSaving ? saving.offset : standard
    }

    /// Local seconds since 1970.
    private static func time(of change: Change, in year: Int) -> Int64 {
        let first = CalendarDate.daysSinceEpoch(year: year, month: 1, day: 1)
        let isLeap = CalendarDate.daysIn(month: 2, year: year) == 29
        let day: Int
        switch change.day {
        case .julian(let number): day = first + number - 1 + (isLeap && number > 59 ? 1 : 0)
        case .ofYear(let number): day = first + number
        case .weekday(let month, let week, let weekday):
            let start = CalendarDate.daysSinceEpoch(year: year, month: month, day: 1)
            let ahead = (weekday - CalendarDate.weekday(daysSinceEpoch: start) + 7) % 7
            let inMonth = ahead + 7 * (week - 1)
            let isBeyond = inMonth >= CalendarDate.daysIn(month: month, year: year)
            day = start + inMonth - (isBeyond ? 7 : 0)
        }
        return Int64(day) * 86_400 + Int64(change.second)
    }

    private static func change(_ reader: inout RuleReader) -> Change? {
        let day: Day
        if reader.takes("M") {
            guard let month = reader.number(1...12), reader.takes("."), let week = reader.number(1...5),
                reader.takes("."), let weekday = reader.number(0...6)
            else { return nil }
            day = .weekday(month: month, week: week, weekday: weekday)
        } else if reader.takes("J") {
            guard let number = reader.number(1...365) else { return nil }
            day = .julian(number)
        } else {
            guard let number = reader.number(0...365) else { return nil }
            day = .ofYear(number)
        }
        guard reader.takes("/") else { return Change(day: day, second: 2 * 3600) }
        guard let second = reader.offset() else { return nil }
        return Change(day: day, second: second)
    }
}

/// Reads the parts of a rule.
private struct RuleReader {
    private var rest: ArraySlice<UInt8>

    init(_ text: ArraySlice<UInt8>) { rest = text }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func takes(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest = rest.dropFirst()
        return true
    }

    /// Skips a name: at least three letters, or any characters in angle brackets.
    mutating func skipName() -> Bool {
        if takes("<") {
            guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
            rest = rest[(end + 1)...]
            return true
        }
        let letters = rest.prefix { ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z") }
        rest = rest.dropFirst(letters.count)
        return letters.count >= 3
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int? {
        let digits = rest.prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        guard (1...4).contains(digits.count) else { return nil }
        rest = rest.dropFirst(digits.count)
        let value = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        return range.contains(value) ? value : nil
    }

    /// Seconds of `[+-]hours[:minutes[:seconds]]`.
    mutating func offset() -> Int? {
        let isNegative = takes("-")
        if !isNegative { _ = takes("+") }
        guard let hours = number(0...167) else { return nil }
        var seconds = hours * 3600
        if takes(":") {
            guard let minutes = number(0...59) else { return nil }
            seconds += minutes * 60
            if takes(":") {
                guard let more = number(0...59) else { return nil }
                seconds += more
            }
        }
        return isNegative ? -seconds : seconds
    }
}
