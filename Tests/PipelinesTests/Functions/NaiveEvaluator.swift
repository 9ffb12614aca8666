// Functions of pipelines, written from docs/pipelines.md over value trees: the oracle of the engine. It shares no code
// with it and is as simple as can be.

import DocumentModel

/// What a function comes to.
enum NaiveOutcome {
    case value(Value)
    case absent
    case failed

    static let null = NaiveOutcome.value(.null)
    static func boolean(_ value: Bool) -> NaiveOutcome { .value(.boolean(value)) }
    static func integer(_ value: Int) -> NaiveOutcome { .value(.integer(Int64(value))) }
    static func string(_ value: String) -> NaiveOutcome { .value(.string(value)) }
    /// The value, or absent.
    static func maybe(_ value: Value?) -> NaiveOutcome { value.map { .value($0) } ?? .absent }
}

enum NaiveEvaluator {
    /// An argument; nil is absent.
    typealias Arguments = [Value?]

    /// Functions with the number of their arguments.
    static let functions: [(name: String, count: Int, body: @Sendable (Arguments) -> NaiveOutcome)] = [
        ("equal", 2, { .boolean(same($0[0], $0[1])) }),
        ("not_equal", 2, { .boolean(!same($0[0], $0[1])) }),
        ("less_than", 2, { .boolean(isLess($0[0], $0[1])) }),
        ("less_than_or_equal", 2, { .boolean(isLess($0[0], $0[1]) || same($0[0], $0[1])) }),
        ("greater_than", 2, { .boolean(isLess($0[1], $0[0])) }),
        ("greater_than_or_equal", 2, { .boolean(isLess($0[1], $0[0]) || same($0[0], $0[1])) }),
        ("equal_any", 2, { membership($0) { found in found } }),
        ("not_equal_any", 2, { membership($0) { found in !found } }),
        ("exists", 1, { .boolean($0[0] != nil) }),
        ("is_absent", 1, { .boolean($0[0] == nil) }),
        ("if_absent", 2, { .maybe($0[0] ?? $0[1]) }),
        ("if_null", 2, { .maybe(isNull($0[0]) ? $0[1] : $0[0]) }),
        ("coalesce", 2, { .maybe($0[0] != nil && !isNull($0[0]) ? $0[0] : $0[1]) }),
        ("is_error", 1, { _ in .boolean(false) }),
        ("error", 1, { _ in .failed }),
        ("and", 2, { logic($0) { $0.contains(false) ? false : $0.contains(nil) ? nil : true } }),
        ("or", 2, { logic($0) { $0.contains(true) ? true : $0.contains(nil) ? nil : false } }),
        ("nor", 2, { logic($0) { $0.contains(true) ? false : $0.contains(nil) ? nil : true } }),
        ("not", 1, { logic($0) { $0[0].map { !$0 } } }),
        ("add", 2, { arithmetic($0, { $0.addingReportingOverflow($1) }, { $0 + $1 }) }),
        ("subtract", 2, { arithmetic($0, { $0.subtractingReportingOverflow($1) }, { $0 - $1 }) }),
        ("multiply", 2, { arithmetic($0, { $0.multipliedReportingOverflow(by: $1) }, { $0 * $1 }) }),
        ("divide", 2, { arithmetic($0, { $0.dividedReportingOverflow(by: $1) }, { $0 / $1 }) }),
        ("abs", 1, { number($0, { $0 == .min ? nil : Swift.abs($0) }, { Swift.abs($0) }) }),
        ("ceil", 1, { number($0, { $0 }, { $0.rounded(.up) }) }),
        ("floor", 1, { number($0, { $0 }, { $0.rounded(.down) }) }),
        ("trunc", 1, { number($0, { $0 }, { $0.rounded(.towardZero) }) }),
        ("round", 1, { number($0, { $0 }, { $0.rounded(.toNearestOrAwayFromZero) }) }),
        ("sqrt", 1, { number($0, { $0 < 0 ? nil : $0 }, { $0 }).squareRoot }),
        ("type", 1, { .maybe($0[0].map { .string(typeName($0)) }) }),
        ("char_length", 1, { text($0) { .integer($0[0].unicodeScalars.count) } }),
        ("to_upper", 1, { text($0) { .string($0[0].uppercased()) } }),
        ("to_lower", 1, { text($0) { .string($0[0].lowercased()) } }),
        ("string_concat", 2, { text($0) { .string($0[0] + $0[1]) } }),
        ("starts_with", 2, { text($0) { .boolean(Array($0[0].utf8).starts(with: $0[1].utf8)) } }),
        ("ends_with", 2, { text($0) { .boolean(Array($0[0].utf8.reversed()).starts(with: $0[1].utf8.reversed())) } }),
        ("array_length", 1, { array($0) { elements, _ in .integer(elements.count) } }),
        ("array_reverse", 1, { array($0) { elements, _ in .value(.array(elements.reversed())) } }),
        ("array_first", 1, { array($0) { elements, _ in .maybe(elements.first) } }),
        ("array_last", 1, { array($0) { elements, _ in .maybe(elements.last) } }),
        ("array_get", 2, { array($0) { elements, index in element(elements, index) } }),
        ("array_concat", 2, { array($0) { elements, other in appended(elements, other) } }),
        (
            "array_contains", 2,
            { arguments in
                switch arguments[0] {
                case nil, .null?: .null
                case .array(let elements)?: .boolean(elements.contains { same($0, arguments[1]) })
                default: .failed
                }
            }
        ),
        ("map_keys", 1, { map($0) { .value(.array($0.entries.map { .string($0.key) })) } }),
        ("map_values", 1, { map($0) { .value(.array($0.entries.map(\.value))) } }),
    ]

    // MARK: Equality and order

    static func isNull(_ value: Value?) -> Bool {
        if case .null? = value { true } else { false }
    }

    static func same(_ left: Value?, _ right: Value?) -> Bool {
        switch (left, right) {
        case (nil, nil): return true
        case (nil, _), (_, nil): return false
        case (.null?, .null?): return true
        case (.boolean(let left)?, .boolean(let right)?): return left == right
        case (.string(let left)?, .string(let right)?): return Array(left.utf8) == Array(right.utf8)
        case (.bytes(let left)?, .bytes(let right)?): return left == right
        case (.timestamp(let left)?, .timestamp(let right)?): return left == right
        case (.reference(let left)?, .reference(let right)?): return left == right
        case (.geoPoint(let left)?, .geoPoint(let right)?): return left == right
        case (.array(let left)?, .array(let right)?):
            return left.count == right.count && zip(left, right).allSatisfy { same($0, $1) }
        case (.map(let left)?, .map(let right)?):
            return left.entries.count == right.entries.count
                && zip(left.entries, right.entries).allSatisfy { $0.key == $1.key && same($0.value, $1.value) }
        case (let left?, let right?):
            if isNaN(left) || isNaN(right) { return isNaN(left) && isNaN(right) }
            return order(left, right) == 0
        }
    }

    static func isNaN(_ value: Value) -> Bool {
        if case .double(let number) = value { number.isNaN } else { false }
    }

    /// -1, 0 or 1 for numbers that are not NaN; nil for other values.
    static func order(_ left: Value, _ right: Value) -> Int? {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): return left < right ? -1 : left > right ? 1 : 0
        case (.double(let left), .double(let right)):
            return left.isNaN || right.isNaN ? nil : left < right ? -1 : left > right ? 1 : 0
        case (.integer(let integer), .double(let double)):
            if double.isNaN { return nil }
            if double >= 0x1p63 { return -1 }
            if double < -0x1p63 { return 1 }
            let whole = Int64(double.rounded(.down))
            return integer < whole ? -1 : integer > whole ? 1 : double > double.rounded(.down) ? -1 : 0
        case (.double, .integer): return order(right, left).map { -$0 }
        default: return nil
        }
    }

    static func isLess(_ left: Value?, _ right: Value?) -> Bool {
        switch (left, right) {
        case (.boolean(let left)?, .boolean(let right)?): return !left && right
        case (.string(let left)?, .string(let right)?): return left.utf8.lexicographicallyPrecedes(right.utf8)
        case (.bytes(let left)?, .bytes(let right)?): return left.lexicographicallyPrecedes(right)
        case (.timestamp(let left)?, .timestamp(let right)?):
            return (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
        case (.geoPoint(let left)?, .geoPoint(let right)?):
            return (left.latitude, left.longitude) < (right.latitude, right.longitude)
        case (.array?, .array?), (.map?, .map?): return total(left ?? .null, right ?? .null) < 0
        case (let left?, let right?): return order(left, right) == -1
        default: return false
        }
    }

    /// -1, 0 or 1 in the order of all values (docs/values.md).
    private static func total(_ left: Value, _ right: Value) -> Int {
        if same(left, right) { return 0 }
        if rank(left) != rank(right) { return rank(left) < rank(right) ? -1 : 1 }
        switch (left, right) {
        case (.array(let lefts), .array(let rights)):
            return zip(lefts, rights).map(total).first { $0 != 0 } ?? (lefts.count < rights.count ? -1 : 1)
        case (.map(let lefts), .map(let rights)):
            for (left, right) in zip(lefts.entries, rights.entries) {
                let keys = total(.string(left.key), .string(right.key))
                let order = keys != 0 ? keys : total(left.value, right.value)
                if order != 0 { return order }
            }
            return lefts.entries.count < rights.entries.count ? -1 : 1
        // NaN comes before all numbers.
        default: return isNaN(left) || isLess(left, right) ? -1 : 1
        }
    }

    private static func rank(_ value: Value) -> Int {
        switch value {
        case .null: 0
        case .boolean: 1
        case .integer, .double: 2
        case .timestamp: 3
        case .string: 4
        case .bytes: 5
        case .reference: 6
        case .geoPoint: 7
        case .array: 8
        case .map: 9
        }
    }

    // MARK: Kinds of functions

    private static func membership(_ arguments: Arguments, _ result: (Bool) -> Bool) -> NaiveOutcome {
        switch arguments[1] {
        case nil, .null?: .null
        case .array(let elements)?: .boolean(result(elements.contains { same(arguments[0], $0) }))
        default: .failed
        }
    }

    /// Three values; another type fails unless the other operand decides.
    private static func logic(_ arguments: Arguments, _ decide: ([Bool?]) -> Bool?) -> NaiveOutcome {
        var known: [Bool?] = []
        var hasFailure = false
        for argument in arguments {
            switch argument {
            case .boolean(let value)?: known.append(value)
            case nil, .null?: known.append(nil)
            default: hasFailure = true
            }
        }
        guard hasFailure else { return decide(known).map { .boolean($0) } ?? .null }
        // It decides if the result is the same with either value in the place of what failed.
        guard known.count < arguments.count, arguments.count > 1, let one = decide(known + [true]),
            one == decide(known + [false])
        else { return .failed }
        return .boolean(one)
    }

    /// Null for null and absent arguments.
    private static func strict(_ arguments: Arguments, _ body: ([Value]) -> NaiveOutcome) -> NaiveOutcome {
        let present = arguments.compactMap { $0 }
        return present.count < arguments.count || present.contains { isNull($0) } ? .null : body(present)
    }

    private static func arithmetic(
        _ arguments: Arguments, _ integers: (Int64, Int64) -> (Int64, Bool), _ doubles: (Double, Double) -> Double
    ) -> NaiveOutcome {
        strict(arguments) { values in
            if case .integer(let left) = values[0], case .integer(let right) = values[1] {
                let (result, fails) = integers(left, right)
                return fails ? .failed : .value(.integer(result))
            }
            guard let left = double(values[0]), let right = double(values[1]) else { return .failed }
            return .value(.double(doubles(left, right)))
        }
    }

    private static func double(_ value: Value) -> Double? {
        switch value {
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    private static func number(
        _ arguments: Arguments, _ integers: (Int64) -> Int64?, _ doubles: (Double) -> Double
    ) -> NaiveOutcome {
        strict(arguments) { values in
            switch values[0] {
            case .integer(let number): integers(number).map { .value(.integer($0)) } ?? .failed
            case .double(let number): .value(.double(doubles(number)))
            default: .failed
            }
        }
    }

    private static func text(_ arguments: Arguments, _ body: ([String]) -> NaiveOutcome) -> NaiveOutcome {
        strict(arguments) { values in
            var texts: [String] = []
            for value in values {
                guard case .string(let text) = value else { return .failed }
                texts.append(text)
            }
            return body(texts)
        }
    }

    private static func array(_ arguments: Arguments, _ body: ([Value], Value) -> NaiveOutcome) -> NaiveOutcome {
        strict(arguments) { values in
            guard case .array(let elements) = values[0] else { return .failed }
            return body(elements, values.count > 1 ? values[1] : .null)
        }
    }

    private static func element(_ elements: [Value], _ index: Value) -> NaiveOutcome {
        guard case .integer(let index) = index else { return .failed }
        let (sum, overflow) = index.addingReportingOverflow(Int64(elements.count))
        let place = index < 0 ? sum : index
        return !overflow && elements.indices.contains(Int(place)) || index >= 0 && index < Int64(elements.count)
            ? .value(elements[Int(place)]) : .absent
    }

    private static func appended(_ elements: [Value], _ other: Value) -> NaiveOutcome {
        guard case .array(let others) = other else { return .failed }
        return .value(.array(elements + others))
    }

    private static func map(_ arguments: Arguments, _ body: (MapValue) -> NaiveOutcome) -> NaiveOutcome {
        strict(arguments) { values in
            guard case .map(let map) = values[0] else { return .failed }
            return body(map)
        }
    }

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
        case .map: "map"
        }
    }
}

extension NaiveOutcome {
    /// The square root as a double; negative doubles fail.
    fileprivate var squareRoot: NaiveOutcome {
        switch self {
        case .value(.integer(let number)): .value(.double(Double(number).squareRoot()))
        case .value(.double(let number)): number < 0 ? .failed : .value(.double(number.squareRoot()))
        default: self
        }
    }
}
