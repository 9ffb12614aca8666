// Times as RFC 3339 text: the RFC's examples, the ends of the range, leap days and seconds, offsets, and text that is
// not a time.

import Basics
import DocumentJSON
import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct RFC3339Tests {
    private static func parse(_ text: String) -> TimestampValue? { RFC3339.timestamp(Array(text.utf8).span) }

    private static func text(_ seconds: Int64, _ nanoseconds: Int32 = 0) -> String {
        var text: [UInt8] = []
        RFC3339.append(TimestampValue(seconds: seconds, nanoseconds: nanoseconds), to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    @Test(
        arguments: [
            // Section 5.8 of the RFC.
            ("1985-04-12T23:20:50.52Z", 482_196_050, 520_000_000), ("1996-12-19T16:39:57-08:00", 851_042_397, 0),
            ("1990-12-31T23:59:60Z", 662_688_000, 0), ("1990-12-31T15:59:60-08:00", 662_688_000, 0),
            ("1937-01-01T12:00:27.87+00:20", -1_041_337_173, 870_000_000),
            // Ends of the range, also where only the offset leads into it.
            ("0001-01-01T00:00:00Z", -62_135_596_800, 0),
            ("9999-12-31T23:59:59.999999999Z", 253_402_300_799, 999_999_999),
            ("0001-01-01T01:00:00+01:00", -62_135_596_800, 0), ("9999-12-31T22:59:59-01:00", 253_402_300_799, 0),
            // Leap years.
            ("2000-02-29T00:00:00Z", 951_782_400, 0), ("2024-02-29T23:59:59Z", 1_709_251_199, 0),
            ("2400-02-29T00:00:00Z", 13_574_563_200, 0), ("1900-03-01T00:00:00Z", -2_203_891_200, 0),
            // Letters, a space, fractions, offsets.
            ("1970-01-01t00:00:00z", 0, 0), ("1970-01-01 00:00:00Z", 0, 0), ("1970-01-01T00:00:00-00:00", 0, 0),
            ("1970-01-01T23:59:00+23:59", 0, 0), ("1969-12-31T00:01:00-23:59", 0, 0),
            ("1969-12-31T23:59:59.1Z", -1, 100_000_000), ("1969-12-31T23:59:59.9999999999Z", -1, 999_999_999),
            ("1970-01-01T00:00:00.000000001Z", 0, 1), ("1970-01-01T00:00:00.0000000009Z", 0, 0),
            ("1970-01-01T00:00:00.123456789012345678901234567890Z", 0, 123_456_789),
        ] as [(String, Int64, Int32)])
    func `A time is read to the nanosecond`(text: String, seconds: Int64, nanoseconds: Int32) {
        expectEqual(Self.parse(text), TimestampValue(seconds: seconds, nanoseconds: nanoseconds))
    }

    @Test(arguments: [
        "", "1970", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01T00:00Z", "00:00:00Z", "1970-01-01T00:00:00Z ",
        " 1970-01-01T00:00:00Z", "1970-1-01T00:00:00Z", "70-01-01T00:00:00Z", "+1970-01-01T00:00:00Z",
        "19700-01-01T00:00:00Z", "1970-01-01T0:00:00Z", "1970/01/01T00:00:00Z", "1970-01-01_00:00:00Z",
        "1970-00-01T00:00:00Z", "1970-13-01T00:00:00Z", "1970-01-00T00:00:00Z", "1970-01-32T00:00:00Z",
        "1970-04-31T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2100-02-29T00:00:00Z",
        "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01T00:00:61Z", "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00,5Z", "1970-01-01T00:00:00.5", "1970-01-01T00:00:00.-5Z", "1970-01-01T00:00:00+1:00",
        "1970-01-01T00:00:00+0100", "1970-01-01T00:00:00+24:00", "1970-01-01T00:00:00+00:60",
        "1970-01-01T00:00:00+",
        "1970-01-01T00:00:00Z+00:00", "1970-01-01T00:00:00ZZ", "1970-01-01T00:00:00UTC", "1970-01-01T00:00:0\u{0}Z",
        "1970-01-01T00:00:00\u{2212}01:00", "١٩٧٠-٠١-٠١T00:00:00Z",
        // Out of range, also by the offset alone, and by a leap second.
        "0000-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
        "9999-12-31T23:59:60Z",
    ])
    func `Text that is not a time, or not one within years 1 to 9999, is refused`(text: String) {
        expectNil(Self.parse(text))
    }

    @Test(
        arguments: [
            (0, 0, "1970-01-01T00:00:00Z"), (-1, 999_000_000, "1969-12-31T23:59:59.999Z"),
            (-62_135_596_800, 0, "0001-01-01T00:00:00Z"),
            (253_402_300_799, 999_999_999, "9999-12-31T23:59:59.999999999Z"),
            (951_782_400, 1_000, "2000-02-29T00:00:00.000001Z"), (951_868_800, 1_000_000, "2000-03-01T00:00:00.001Z"),
            (-2_203_891_200, 10, "1900-03-01T00:00:00.000000010Z"), (-2_203_891_201, 0, "1900-02-28T23:59:59Z"),
        ] as [(Int64, Int32, String)])
    func `A time is written in UTC with 0, 3, 6 or 9 digits`(seconds: Int64, nanoseconds: Int32, text: String) {
        expectEqual(Self.text(seconds, nanoseconds), text)
    }

    @Test func `The first and last second of every month of 800 years come back`() {
        var lastDay: Int64?
        for year in 1600..<2400 {
            for month in 1...12 {
                let name = String(UInt64(10_000 + year)).dropFirst() + "-" + String(100 + month).dropFirst()
                guard let first = Self.parse("\(name)-01T00:00:00Z") else {
                    Issue.record("\(name) was refused")
                    return
                }
                expectEqual(Self.text(first.seconds), "\(name)-01T00:00:00Z")
                // The second before is the last of the month before: no day is missing and none counts twice.
                if let lastDay { expectEqual(first.seconds, lastDay + 1) }
                let days = (28...31).last { Self.parse("\(name)-\($0)T23:59:59Z") != nil }
                lastDay = days.flatMap { Self.parse("\(name)-\($0)T23:59:59Z")?.seconds }
            }
        }
    }
}
