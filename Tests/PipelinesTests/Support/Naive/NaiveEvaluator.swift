// Functions of pipelines, written from docs/pipelines.md over value trees: the oracle of the engine. It shares no code
// with it and is as simple as can be.

import DocumentModel

/// What an expression comes to.
enum NaiveOutcome {
    case value(Value)
    case absent
    case failed
    /// Refused because it is too much: no case for a comparison of values.
    case exhausted

    static let null = NaiveOutcome.value(.null)
    static func boolean(_ value: Bool) -> NaiveOutcome { .value(.boolean(value)) }
    static func boolean(_ value: Bool?) -> NaiveOutcome { value.map { .value(.boolean($0)) } ?? .null }
    static func integer(_ value: Int) -> NaiveOutcome { .value(.integer(Int64(value))) }
    static func string(_ value: String) -> NaiveOutcome { .value(.string(value)) }
    static func double(_ value: Double) -> NaiveOutcome { .value(.double(value)) }
    static func array(_ value: [Value]) -> NaiveOutcome { .value(.array(value)) }
    /// The value, or absent.
    static func maybe(_ value: Value?) -> NaiveOutcome { value.map { .value($0) } ?? .absent }
    /// The value, or a failure.
    static func known(_ value: Value?) -> NaiveOutcome { value.map { .value($0) } ?? .failed }

    /// Nil for absent and failed.
    var present: Value? {
        if case .value(let value) = self { value } else { nil }
    }

    var isFailed: Bool {
        if case .failed = self { true } else { false }
    }

    var isNullOrAbsent: Bool {
        switch self {
        case .absent, .value(.null): true
        default: false
        }
    }
}

/// A function as the naive evaluator knows it.
struct NaiveFunction: Sendable {
    let name: String
    /// Numbers of arguments to be tried.
    let counts: [Int]
    /// Values that make sense for the arguments, by position; the last ones stand for those that follow. Others are
    /// tried too.
    let usual: [[Value]]
    /// Whether doubles may differ by the last digits.
    let isApproximate: Bool
    /// The call; a function of the name, unless the arguments are part of something else.
    let call: @Sendable ([Expression]) -> Expression
    let body: @Sendable ([NaiveOutcome]) -> NaiveOutcome

    /// A function that sees all arguments as they are.
    init(
        form name: String, _ counts: [Int], _ usual: [[Value]] = [], isApproximate: Bool = false,
        call: (@Sendable ([Expression]) -> Expression)? = nil,
        _ body: @escaping @Sendable ([NaiveOutcome]) -> NaiveOutcome
    ) {
        self.name = name
        self.counts = counts
        self.usual = usual
        self.isApproximate = isApproximate
        self.call = call ?? { .call(name, $0) }
        self.body = body
    }

    /// A function that fails if an argument does; nil is absent.
    init(
        total name: String, _ counts: [Int], _ usual: [[Value]] = [],
        _ body: @escaping @Sendable ([Value?]) -> NaiveOutcome
    ) {
        self.init(form: name, counts, usual) { arguments in
            arguments.contains(where: \.isFailed) ? .failed : body(arguments.map(\.present))
        }
    }

    /// A function that is null if an argument is null or absent.
    init(
        _ name: String, _ counts: [Int], _ usual: [[Value]] = [], isApproximate: Bool = false,
        _ body: @escaping @Sendable ([Value]) -> NaiveOutcome
    ) {
        self.init(form: name, counts, usual, isApproximate: isApproximate) { arguments in
            if arguments.contains(where: \.isFailed) { return .failed }
            if arguments.contains(where: \.isNullOrAbsent) { return .null }
            return body(arguments.compactMap(\.present))
        }
    }
}

enum NaiveEvaluator {
    static let functions =
        comparisons + logic + numbers + strings + patterns + arrays + maps + types + times

    // MARK: Values that several kinds of functions try

    static let numberValues: [Value] = [
        0, 1, -1, 2, 3, 10, .integer(.max), .integer(.min), .integer(1 << 53), .double(0), .double(-0.0), 1.5, -2.5,
        2.0,
        0.125, 1234.5678, .double(.nan), .double(.infinity), .double(-.infinity), .double(0x1p53), .double(0x1p63),
        .double(1e308),
    ]
    static let smallIntegers: [Value] = [0, 1, 2, 3, -1, -2, 7, .integer(.max), .integer(.min)]
    static let texts: [Value] = [
        "", "a", "B", "äö", "e\u{301}", "abc", "abcabc", " a b\n", "a,b,,c", "aXbX", "😀b", "100%", "a_b", "aaaa",
    ]
    static let parts: [Value] = ["", "a", "b", "abc", "bc", ",", "X", " ", "e", "\u{301}", "aa", "ab"]
    static let byteValues: [Value] = [
        .bytes([]), .bytes([0, 255]), .bytes([97, 98, 97]), .bytes([97]), .bytes([32, 97, 10]),
    ]
    static let arrayValues: [Value] = [
        .array([]), [1, 2], [3, 1, 2], ["a", "b"], ["a", "b", "a"], .array([.null, "a"]), .array([.double(.nan), 1.5]),
        .array([true, .null, 7, "x", [1]]), .array([.map(["k": 1])]),
    ]
    static let mapValues: [Value] = [
        .map([:]), ["k": 1], ["a": .null, "k": "v"], ["a": ["b": 1]], .map(["ä": 2, "z": .array([])]),
    ]
    static let vectorValues: [Value] = [
        .vector([]), .vector([3, 4]), .vector([1, 0]), .vector([1, 2, 3]), .vector([0, 0]),
    ]

    static func isNull(_ value: Value?) -> Bool {
        if case .null? = value { true } else { false }
    }

    static func isNaN(_ value: Value) -> Bool {
        if case .double(let number) = value { number.isNaN } else { false }
    }

    static func double(_ value: Value) -> Double? {
        switch value {
        case .integer(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    static func string(_ value: Value) -> String? {
        if case .string(let text) = value { text } else { nil }
    }

    /// A number of things: an integer that is not negative.
    static func count(_ value: Value) -> Int? {
        if case .integer(let number) = value, number >= 0 { Int(number) } else { nil }
    }
}
