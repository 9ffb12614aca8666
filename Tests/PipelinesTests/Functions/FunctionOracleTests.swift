// Every function of the naive evaluator over values of all types, null, absent, NaN and extremes.

import DocumentModel
import ServiceTestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct FunctionOracleTests {
    /// Values of all types; nil is absent.
    private static let operands: [Value?] = {
        let numbers: [Value] = [
            0, 1, -1, 2, 3, .integer(.max), .integer(.min), .integer(1 << 53), .double(0), .double(-0.0), 1.5, -2.5,
            2.0,
            .double(.nan), .double(.infinity), .double(-.infinity), .double(0x1p53), .double(0x1p63), .double(1e308),
        ]
        let others: [Value] = [
            .null, true, false, "", "a", "B", "äö", "e\u{301}", "abc", .bytes([]), .bytes([0, 255]),
            .timestamp(TimestampValue(seconds: 0, nanoseconds: 0)),
            .timestamp(TimestampValue(seconds: -1, nanoseconds: 999_999_000)),
            .reference("projects/p/databases/d/documents/c/a"), .geoPoint(GeoPointValue(latitude: 1, longitude: -2)),
            .array([]), [1, 2], .array([.null, "a"]), .array([.double(.nan), 1.0]), .map([:]), ["k": 1],
            ["a": .null, "k": "v"],
        ]
        var all: [Value?] = [nil]
        for value in numbers + others { all.append(value) }
        return all
    }()

    /// The operand as a field of the row or as a literal.
    private static func expression(_ index: Int, isLiteral: Bool) -> Expression {
        guard isLiteral, let value = operands[index] else { return .field("v\(index)") }
        return .value(value)
    }

    private static let row = Stage(
        "literals", [.map(operands.enumerated().compactMap { index, value in value.map { ("v\(index)", .value($0)) } })]
    )

    /// A function with the indices of its operands.
    private struct Case {
        let function: Int
        let operands: [Int]
        let isLiteral: [Bool]

        var name: String { NaiveEvaluator.functions[function].name }
        var expected: NaiveOutcome {
            NaiveEvaluator.functions[function].body(operands.map { FunctionOracleTests.operands[$0] })
        }
        var expression: Expression {
            .call(name, zip(operands, isLiteral).map { FunctionOracleTests.expression($0, isLiteral: $1) })
        }
    }

    /// Checks cases in one request: each gives `[value, whether it is absent]`, or a text if it fails.
    private func check(_ cases: [Case], _ harness: Harness) throws {
        let fields = cases.enumerated().map { index, test in
            let both = Expression.call("array", test.expression, .call("is_absent", test.expression))
            return ("r\(index)", Expression.call("if_error", both, "failed"))
        }
        let rows = try harness.execute(Self.row, Stage("select", [.map(fields)])).rows
        try #require(rows.count == 1)
        for (index, test) in cases.enumerated() {
            let found = try #require(rows[0]["r\(index)"])
            #expect(
                Self.agrees(found, test.expected),
                "\(test.name) of \(test.operands.map { Self.operands[$0] }): \(found), not \(test.expected)"
            )
        }
    }

    private static func agrees(_ found: Value, _ expected: NaiveOutcome) -> Bool {
        switch (found, expected) {
        case (.string("failed"), .failed): true
        case (.array(let pair), .absent): pair.count == 2 && pair[1] == true
        case (.array(let pair), .value(let value)):
            pair.count == 2 && pair[1] == false && isIdentical(pair[0], value)
        default: false
        }
    }

    /// Integers and doubles differ here; NaN is NaN.
    private static func isIdentical(_ left: Value, _ right: Value) -> Bool {
        switch (left, right) {
        case (.integer, .double), (.double, .integer): false
        default: NaiveEvaluator.same(left, right)
        }
    }

    @Test
    func `Functions of one operand agree with the naive evaluator on every value`() throws {
        let harness = try Harness()
        var cases: [Case] = []
        for (index, function) in NaiveEvaluator.functions.enumerated() where function.count == 1 {
            for operand in Self.operands.indices {
                for isLiteral in [false, true] {
                    cases.append(Case(function: index, operands: [operand], isLiteral: [isLiteral]))
                }
            }
        }
        for start in stride(from: 0, to: cases.count, by: 200) {
            try check(Array(cases[start..<min(start + 200, cases.count)]), harness)
        }
    }

    @Test
    func `Functions of two operands agree with the naive evaluator on random pairs`() throws {
        let harness = try Harness()
        var random = SystemRandomNumberGenerator()
        let functions = NaiveEvaluator.functions.indices.filter { NaiveEvaluator.functions[$0].count == 2 }
        for _ in 0..<25 {
            let cases = (0..<200).map { _ in
                Case(
                    function: functions.randomElement(using: &random) ?? 0,
                    operands: (0..<2).map { _ in Int.random(in: Self.operands.indices, using: &random) },
                    isLiteral: (0..<2).map { _ in Bool.random(using: &random) })
            }
            try check(cases, harness)
        }
    }
}
