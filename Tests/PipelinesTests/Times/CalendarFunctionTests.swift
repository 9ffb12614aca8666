// Parts of times in time zones. The oracle is Foundation's calendar.

import DocumentModel
import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct CalendarFunctionTests {
    private func time(_ text: String) throws -> Expression {
        let date = try #require(ISO8601DateFormatter().date(from: text))
        return .value(.timestamp(TimestampValue(seconds: Int64(date.timeIntervalSince1970), nanoseconds: 0)))
    }

    private func extract(_ part: String, _ text: String, _ zone: String = "UTC") throws -> Value? {
        let call = Expression.call("timestamp_extract", try time(text), .value(.string(part)), .value(.string(zone)))
        return try Harness().value(call)
    }

    private func truncated(_ text: String, _ part: String, _ zone: String = "UTC") throws -> String? {
        let call = Expression.call("timestamp_trunc", try time(text), .value(.string(part)), .value(.string(zone)))
        guard case .timestamp(let time)? = try Harness().value(call) else { return nil }
        return ISO8601DateFormatter().string(from: Date(timeIntervalSince1970: Double(time.seconds)))
    }

    @Test
    func `Parts are those of the calendar, also before 1970`() throws {
        let text = "1969-12-31T23:59:58Z"
        try expect(extract("second", text) == 58 && extract("minute", text) == 59 && extract("hour", text) == 23)
        try expect(extract("day", text) == 31 && extract("month", text) == 12 && extract("year", text) == 1969)
        try expect(extract("quarter", text) == 4 && extract("dayofyear", text) == 365)
        // A Wednesday.
        try expectEqual(extract("dayofweek", text), 4)
        try expect(extract("isoweek", text) == 1 && extract("isoyear", text) == 1970)
        try expect(extract("microsecond", text) == 0 && extract("millisecond", text) == 0)
        // 2023-01-01 is a Sunday: week 1 begins with it, and ISO counts it to 2022.
        try expectEqual(extract("week", "2023-01-01T00:00:00Z"), 1)
        try expectEqual(extract("week(monday)", "2023-01-01T00:00:00Z"), 0)
        try expectEqual(extract("isoweek", "2023-01-01T00:00:00Z"), 52)
        try expectEqual(extract("isoyear", "2023-01-01T00:00:00Z"), 2022)
    }

    @Test
    func `Times are rounded down to the beginning of a part in the zone`() throws {
        let text = "2024-03-10T12:34:56Z"
        try expectEqual(truncated(text, "hour"), "2024-03-10T12:00:00Z")
        try expectEqual(truncated(text, "hour", "Asia/Kolkata"), "2024-03-10T12:30:00Z")
        try expectEqual(truncated(text, "day", "America/Los_Angeles"), "2024-03-10T08:00:00Z")
        try expectEqual(truncated(text, "week", "+02:00"), "2024-03-09T22:00:00Z")
        try expectEqual(truncated(text, "isoweek"), "2024-03-04T00:00:00Z")
        try expectEqual(truncated(text, "week(saturday)"), "2024-03-09T00:00:00Z")
        try expectEqual(truncated(text, "month", "Europe/Berlin"), "2024-02-29T23:00:00Z")
        try expectEqual(truncated(text, "quarter"), "2024-01-01T00:00:00Z")
        try expectEqual(truncated(text, "isoyear"), "2024-01-01T00:00:00Z")
        // Clocks in Beirut went from 0:00 to 1:00 that day: it began at 1:00.
        try expectEqual(truncated("2022-03-27T12:00:00Z", "day", "Asia/Beirut"), "2022-03-26T22:00:00Z")
        // The rule at the end of the zone's file.
        try expectEqual(extract("hour", "2150-07-01T12:00:00Z", "America/Los_Angeles"), 5)
        try expectEqual(extract("hour", "2150-01-01T12:00:00Z", "Australia/Sydney"), 23)
    }

    @Test(arguments: ["America/Los_Angeles", "Europe/Berlin", "Australia/Sydney", "Asia/Kolkata", "America/Sao_Paulo"])
    func `Parts of random times agree with Foundation`(_ name: String) throws {
        var random = SystemRandomNumberGenerator()
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: name))
        var iso = Calendar(identifier: .iso8601)
        iso.timeZone = calendar.timeZone
        var parts: [(String, Expression)] = []
        var expected: [String: Value] = [:]
        for index in 0..<60 {
            // From 1975 to 2025.
            let seconds = Int64.random(in: 157_766_400..<1_735_689_600, using: &random)
            let date = Date(timeIntervalSince1970: Double(seconds))
            let time = Expression.value(.timestamp(TimestampValue(seconds: seconds, nanoseconds: 0)))
            let components = calendar.dateComponents([.year, .month, .day, .hour, .minute, .weekday], from: date)
            let wanted: [(String, Int?)] = [
                ("year", components.year), ("month", components.month), ("day", components.day),
                ("hour", components.hour), ("minute", components.minute), ("dayofweek", components.weekday),
                ("dayofyear", calendar.ordinality(of: .day, in: .year, for: date)),
                ("isoweek", iso.component(.weekOfYear, from: date)),
                ("isoyear", iso.component(.yearForWeekOfYear, from: date)),
            ]
            for (part, value) in wanted {
                let field = "f\(index)\(part) \(seconds)"
                let call = Expression.call("timestamp_extract", time, .value(.string(part)), .value(.string(name)))
                parts.append(("`\(field)`", call))
                expected[field] = .integer(Int64(try #require(value)))
            }
            let field = "d\(index) \(seconds)"
            parts.append(("`\(field)`", .call("timestamp_trunc", time, "day", .value(.string(name)))))
            let start = Int64(calendar.startOfDay(for: date).timeIntervalSince1970)
            expected[field] = .timestamp(TimestampValue(seconds: start, nanoseconds: 0))
        }
        let answer = try Harness().execute(Stage("literals", [.map([("a", 1)])]), Stage("select", [.map(parts)]))
        for (field, value) in expected { expectEqual(answer.rows[0][field], value, "\(name) \(field)") }
    }

    @Test
    func `Unknown zones and parts fail, and names lead to no other file`() throws {
        let harness = try Harness()
        let zones = [
            "Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "Europe", "Europe/../Europe/Berlin", "+25:00",
            "tzdata.zi", "right/UTC", String(repeating: "a", count: 10_000), "Europe/Berlin\0",
        ]
        for zone in zones {
            let answer = harness.failure(
                .call("timestamp_extract", try time("2020-01-01T00:00:00Z"), "day", .value(.string(zone))))
            expect(answer.status == .invalidArgument && answer.text.contains("no time zone"), "\(zone)")
        }
        for part in ["days", "", "week(someday)", "Year"] {
            let time = try time("2020-01-01T00:00:00Z")
            expectEqual(harness.failure(.call("timestamp_trunc", time, .value(.string(part)))).status, .invalidArgument)
            expectEqual(
                harness.failure(.call("timestamp_extract", time, .value(.string(part)))).status, .invalidArgument)
        }
        expectEqual(
            harness.failure(.call("timestamp_trunc", try time("2020-01-01T00:00:00Z"), "dayofyear")).status,
            .invalidArgument)
        let null = Expression.call("timestamp_extract", nil, "day", "UTC")
        try expectEqual(harness.value(null), .null)
        // The first week of year 1 begins before it.
        let first = Expression.value(.timestamp(TimestampValue(seconds: -62_135_596_800, nanoseconds: 0)))
        expectEqual(harness.failure(.call("timestamp_trunc", first, "week")).status, .invalidArgument)
    }
}
