// A moment on the command line.

import Basics
import DocumentJSON
import DocumentModel

/// A time in the format of RFC 3339: `2031-05-02T08:15:30.123456Z`.
struct PointInTime: FlagValue {
    let time: TimestampValue

    /// Microseconds since 1970; 0 before that.
    var microseconds: UInt64 { UInt64(max(time.microseconds, 0)) }

    static func parse(_ text: String) throws(FlagTextError) -> PointInTime {
        let bytes = Array(text.utf8)
        guard let time = RFC3339.timestamp(bytes.span) else {
            throw FlagTextError(expected: "a time such as 2031-05-02T08:15:30Z or 2031-05-02T10:15:30.25+02:00")
        }
        // Commits have whole microseconds.
        return PointInTime(time: TimestampValue(microseconds: time.microseconds))
    }

    /// The time of a commit.
    init(microseconds: UInt64) { time = TimestampValue(microseconds: Int64(clamping: microseconds)) }

    private init(time: TimestampValue) { self.time = time }

    var flagText: String { time.rfc3339 }
}

extension CalendarDate {
    /// As RFC 3339 writes it, without the zone UTC: `2031-05-02T08:15:30`.
    var rfc3339: String {
        var bytes: [UInt8] = []
        appendRFC3339(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension TimestampValue {
    /// The time in UTC, as commands print it: `2031-05-02T08:15:30.123456Z`.
    var rfc3339: String {
        var bytes: [UInt8] = []
        RFC3339.append(self, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
