// Types, names, places and times, for the naive evaluator.

import DocumentModel
import Foundation

extension NaiveEvaluator {
    private static let typeNames: [Value] = [
        "null", "boolean", "int64", "float64", "number", "timestamp", "string", "bytes", "reference", "geo_point",
        "array",
        "map", "vector", "integer", "",
    ]
    private static let references: [Value] = [
        .reference("projects/p/databases/d/documents/c/a"), .reference("projects/p/databases/d/documents/c/a/e/long"),
    ]
    private static let points: [Value] = [
        .geoPoint(GeoPointValue(latitude: 1, longitude: -2)), .geoPoint(GeoPointValue(latitude: 90, longitude: 0)),
        .geoPoint(GeoPointValue(latitude: -33.5, longitude: 179.9)),
        .geoPoint(GeoPointValue(latitude: -33.5, longitude: -179.9)),
    ]

    static let types: [NaiveFunction] = [
        NaiveFunction(total: "type", [1]) { .maybe($0[0].map { .string(typeName($0)) }) },
        NaiveFunction(total: "is_type", [2], [[], typeNames]) { arguments in
            guard let wanted = arguments[1], typeNames.contains(wanted), wanted != "integer", wanted != "" else {
                return .failed
            }
            guard let value = arguments[0] else { return .boolean(false) }
            return .boolean(wanted == .string(typeName(value)) || wanted == "number" && double(value) != nil)
        },
        // An array in an array cannot be stored.
        NaiveFunction("storage_size", [1]) { nestsArrays($0[0]) ? .failed : .integer(size($0[0])) },
        NaiveFunction("document_id", [1], [references]) { segment($0[0], fromEnd: 1) },
        NaiveFunction("collection_id", [1], [references]) { segment($0[0], fromEnd: 2) },
        NaiveFunction("parent", [1], [references]) { arguments in
            guard case .reference(let name) = arguments[0] else { return .failed }
            let segments = name.split(separator: "/", omittingEmptySubsequences: false)
            if segments.count < 7 { return .failed }
            return segments.count < 9 ? .null : .value(.reference(segments.dropLast(2).joined(separator: "/")))
        },
        NaiveFunction("geo_distance", [2], [points], isApproximate: true) { arguments in
            guard case .geoPoint(let left) = arguments[0], case .geoPoint(let right) = arguments[1] else {
                return .failed
            }
            func radians(_ degrees: Double) -> Double { degrees * .pi / 180 }
            let (latitude, other) = (radians(left.latitude), radians(right.latitude))
            let turn = radians(left.longitude - right.longitude)
            let chord =
                pow(sin((latitude - other) / 2), 2) + cos(latitude) * cos(other) * pow(sin(turn / 2), 2)
            return .double(2 * 6_371_010 * asin(chord.squareRoot()))
        },
    ]

    private static func typeName(_ value: Value) -> String {
        switch value {
        case .null: "null"
        case .boolean: "boolean"
        case .integer: "int64"
        case .double: "float64"
        case .timestamp: "timestamp"
        case .string: "string"
        case .bytes: "bytes"
        case .reference: "reference"
        case .geoPoint: "geo_point"
        case .array: "array"
        case .map: vector(value) == nil ? "map" : "vector"
        }
    }

    private static func nestsArrays(_ value: Value) -> Bool {
        switch value {
        case .array(let elements): elements.contains { if case .array = $0 { true } else { nestsArrays($0) } }
        case .map(let map): map.entries.contains { nestsArrays($0.value) }
        default: false
        }
    }

    /// A map has 32 bytes besides its entries, as a document.
    private static func size(_ value: Value) -> Int {
        switch value {
        case .null, .boolean: 1
        case .integer, .double, .timestamp: 8
        case .string(let text): text.utf8.count + 1
        case .bytes(let bytes): bytes.count
        case .geoPoint: 16
        case .reference(let name): name.split(separator: "/").dropFirst(5).reduce(16) { $0 + $1.utf8.count + 1 }
        case .array(let elements): elements.map(size).reduce(0, +)
        case .map(let map):
            vector(value).map { 8 * $0.count } ?? map.entries.reduce(32) { $0 + $1.key.utf8.count + 1 + size($1.value) }
        }
    }

    private static func segment(_ value: Value, fromEnd position: Int) -> NaiveOutcome {
        guard case .reference(let name) = value else { return .failed }
        return .string(String(name.split(separator: "/").suffix(position).first ?? ""))
    }

    // MARK: Times

    private static let moments: [Value] = [
        0, -1, 999_999, 1_709_210_096_789_012, 951_782_400_000_000, -62_135_596_800_000_000, 253_402_300_799_999_999,
        -2_208_988_800_000_000, 1_672_531_200_000_000, 1_735_603_200_000_000,
    ].map { .timestamp(TimestampValue(microseconds: $0)) }
    private static let unitLengths = [
        "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000,
        "day": 86_400_000_000,
    ]
    private static let units: [Value] = unitLengths.keys.sorted().map { .string($0) } + ["month"]
    private static let weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
    private static let timeParts: [Value] =
        units + weekdays.map { .string("week(\($0))") } + [
            "week", "isoweek", "month", "quarter", "year", "isoyear", "dayofweek", "dayofyear", "century",
        ]
    private static let zoneOffsets = ["UTC": 0, "+05:30": 19_800, "-08:00": -28_800]
    private static let zones: [Value] = zoneOffsets.keys.sorted().map { .string($0) } + ["Nowhere/None", ""]

    static let times: [NaiveFunction] = [
        NaiveFunction("unix_micros_to_timestamp", [1], [numberValues]) { time($0[0], unit: 1) },
        NaiveFunction("unix_millis_to_timestamp", [1], [numberValues]) { time($0[0], unit: 1_000) },
        NaiveFunction("unix_seconds_to_timestamp", [1], [numberValues]) { time($0[0], unit: 1_000_000) },
        NaiveFunction("timestamp_to_unix_micros", [1], [moments]) { unix($0[0], unit: 1) },
        NaiveFunction("timestamp_to_unix_millis", [1], [moments]) { unix($0[0], unit: 1_000) },
        NaiveFunction("timestamp_to_unix_seconds", [1], [moments]) { unix($0[0], unit: 1_000_000) },
        NaiveFunction("timestamp_add", [3], [moments, units, smallIntegers]) { shifted($0, 1) },
        NaiveFunction("timestamp_subtract", [3], [moments, units, smallIntegers]) { shifted($0, -1) },
        NaiveFunction("timestamp_diff", [3], [moments, moments, units]) { arguments in
            guard let end = microseconds(arguments[0]), let start = microseconds(arguments[1]),
                let unit = string(arguments[2]).flatMap({ unitLengths[$0] })
            else { return .failed }
            return .integer((end - start) / unit)
        },
        NaiveFunction("timestamp_extract", [2, 3], [moments, timeParts, zones]) { arguments in
            guard let local = LocalMoment(arguments), let part = string(arguments[1]) else { return .failed }
            return local.value(part).map { .integer($0) } ?? .failed
        },
        NaiveFunction("timestamp_trunc", [2, 3], [moments, timeParts, zones]) { arguments in
            guard let local = LocalMoment(arguments), let part = string(arguments[1]), let start = local.start(part)
            else {
                return .failed
            }
            return time(.integer(Int64(start)), unit: 1)
        },
    ]

    private static func microseconds(_ value: Value) -> Int? {
        guard case .timestamp(let time) = value else { return nil }
        return Int(time.seconds) * 1_000_000 + Int(time.nanoseconds) / 1_000
    }

    /// Years 1 to 9999.
    private static func time(_ value: Value, unit: Int) -> NaiveOutcome {
        guard case .integer(let count) = value else { return .failed }
        let (microseconds, overflow) = Int(count).multipliedReportingOverflow(by: unit)
        guard !overflow, (-62_135_596_800_000_000...253_402_300_799_999_999).contains(microseconds) else {
            return .failed
        }
        return .value(.timestamp(TimestampValue(microseconds: Int64(microseconds))))
    }

    private static func unix(_ value: Value, unit: Int) -> NaiveOutcome {
        microseconds(value).map { .integer(($0 - (($0 % unit) + unit) % unit) / unit) } ?? .failed
    }

    private static func shifted(_ arguments: [Value], _ sign: Int) -> NaiveOutcome {
        guard let start = microseconds(arguments[0]), let unit = string(arguments[1]).flatMap({ unitLengths[$0] }),
            case .integer(let count) = arguments[2]
        else { return .failed }
        let end = Double(start) + Double(sign) * Double(unit) * Double(count)
        if abs(end) > 3e17 { return .failed }
        return time(.integer(Int64(start + sign * unit * Int(count))), unit: 1)
    }

    /// A time on the clocks of a zone with one offset. Dates are counted day by day from the first of the year.
    private struct LocalMoment {
        /// Microseconds since 1970 on these clocks.
        let local: Int
        let offset: Int
        let day: Int

        init?(_ arguments: [Value]) {
            guard let moment = microseconds(arguments[0]), string(arguments[1]) != nil,
                let zone = arguments.count == 3 ? string(arguments[2]) : "UTC", let seconds = zoneOffsets[zone]
            else { return nil }
            offset = seconds * 1_000_000
            local = moment + offset
            day = Self.floorDivide(local, 86_400_000_000)
        }

        private static func floorDivide(_ value: Int, _ unit: Int) -> Int {
            (value - ((value % unit) + unit) % unit) / unit
        }

        private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

        /// Days from 1970 to the first day of a year.
        private func firstDay(of year: Int) -> Int {
            let before = year - 1
            return before * 365 + Self.floorDivide(before, 4) - Self.floorDivide(before, 100)
                + Self.floorDivide(before, 400) - 719_162
        }

        private var year: Int {
            var year = 1970 + day / 366
            while firstDay(of: year) > day { year -= 1 }
            while firstDay(of: year + 1) <= day { year += 1 }
            return year
        }

        private var monthLengths: [Int] { [31, Self.isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] }

        /// From 1, with the first day of it.
        private var month: (number: Int, start: Int) {
            var (number, start) = (1, firstDay(of: year))
            for length in monthLengths where start + length <= day {
                start += length
                number += 1
            }
            return (number, start)
        }

        /// 0 is Sunday.
        private func weekday(_ day: Int) -> Int { ((day + 4) % 7 + 7) % 7 }

        private func last(_ weekday: Int, upTo day: Int) -> Int {
            var day = day
            while self.weekday(day) != weekday { day -= 1 }
            return day
        }

        private func weekStart(_ part: String) -> Int? {
            part == "week" ? 0 : weekdays.firstIndex { part == "week(\($0))" }
        }

        private var isoYear: (number: Int, start: Int) {
            let number = [year + 1, year, year - 1].first { last(1, upTo: firstDay(of: $0) + 3) <= day } ?? year
            return (number, last(1, upTo: firstDay(of: number) + 3))
        }

        func value(_ part: String) -> Int? {
            let time = local - day * 86_400_000_000
            switch part {
            case "microsecond": return time % 1_000_000
            case "millisecond": return time % 1_000_000 / 1_000
            case "second": return time / 1_000_000 % 60
            case "minute": return time / 60_000_000 % 60
            case "hour": return time / 3_600_000_000
            case "day": return day - month.start + 1
            case "dayofweek": return weekday(day) + 1
            case "dayofyear": return day - firstDay(of: year) + 1
            case "month": return month.number
            case "quarter": return (month.number + 2) / 3
            case "year": return year
            case "isoyear": return isoYear.number
            case "isoweek": return (day - isoYear.start) / 7 + 1
            default:
                guard let start = weekStart(part) else { return nil }
                return (firstDay(of: year)...day).count { weekday($0) == start }
            }
        }

        /// Microseconds since 1970 of the beginning of the part.
        func start(_ part: String) -> Int? {
            let quarter = (month.number - 1) / 3 * 3
            let startDay: Int
            switch part {
            case "day": startDay = day
            case "month": startDay = month.start
            case "quarter": startDay = firstDay(of: year) + monthLengths.prefix(quarter).reduce(0, +)
            case "year": startDay = firstDay(of: year)
            case "isoweek": startDay = last(1, upTo: day)
            case "isoyear": startDay = isoYear.start
            default:
                if let unit = unitLengths[part] { return Self.floorDivide(local, unit) * unit - offset }
                guard let start = weekStart(part) else { return nil }
                startDay = last(start, upTo: day)
            }
            return startDay * 86_400_000_000 - offset
        }
    }
}
