// The Date header, formatted once a second.

import Basics
import Glibc

/// The present in the form of HTTP (RFC 9110, section 5.6.7), for example `Sun, 06 Nov 1994 08:49:37 GMT`. Confined to
/// one thread.
package final class HTTPDate {
    private var second: time_t = -1
    private var formatted = ""

    package init() {}

    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// The value of the header.
    func text() -> String {
        let now = time(nil)
        if now != second {
            second = now
            formatted = Self.text(of: now)
        }
        return formatted
    }

    static func text(of seconds: time_t) -> String {
        let date = CalendarDate(secondsSinceEpoch: Int64(seconds))
        let weekday = CalendarDate.weekday(
            daysSinceEpoch: CalendarDate.daysSinceEpoch(year: date.year, month: date.month, day: date.day))
        var text = Array("\(days[weekday]), ".utf8)
        CalendarDate.append(date.day, width: 2, to: &text)
        text += Array(" \(months[date.month - 1]) ".utf8)
        CalendarDate.append(date.year, width: 4, to: &text)
        text.append(UInt8(ascii: " "))
        date.appendTime(to: &text)
        return String(decoding: text, as: UTF8.self) + " GMT"
    }
}
