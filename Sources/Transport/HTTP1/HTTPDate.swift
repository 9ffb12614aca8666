// The Date header, formatted once a second.

import Glibc

/// The present in the form of HTTP (RFC 9110, section 5.6.7), for example `Sun, 06 Nov 1994 08:49:37 GMT`. Confined to one thread.
struct HTTPDate {
    private var second: time_t = -1
    private var line = ""

    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// The whole header line with its end.
    mutating func headerLine() -> String {
        let now = time(nil)
        if now != second {
            second = now
            line = "Date: \(Self.text(of: now))\r\n"
        }
        return line
    }

    static func text(of seconds: time_t) -> String {
        var seconds = seconds
        var parts = unsafe tm()
        unsafe gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date = unsafe "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900)"
        return unsafe "\(date) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}
