// Every function over values of all types, null, absent, failed, NaN and extremes, against the naive evaluator.

import Basics
import DocumentModel
import ServiceTestSupport
import TestSupport
import Testing

@testable import Pipelines

@Suite(.timeLimit(.minutes(20)))
struct FunctionOracleTests {
    /// Values of all types, what no field has, and what fails.
    private static let operands: [NaiveOutcome] = {
        let others: [Value] = [
            .null, true, false,
            .timestamp(TimestampValue(seconds: 0, nanoseconds: 0)),
            .timestamp(TimestampValue(seconds: -1, nanoseconds: 999_999_000)),
            .reference("projects/p/databases/d/documents/c/a"), .geoPoint(GeoPointValue(latitude: 1, longitude: -2)),
        ]
        typealias Naive = NaiveEvaluator
        let values =
            others + Naive.numberValues + Naive.texts + Naive.byteValues + Naive.arrayValues + Naive.mapValues
            + Naive.vectorValues
        return [.absent, .failed] + values.map { .value($0) }
    }()

    /// A function with its operands.
    private struct Case {
        let function: NaiveFunction
        let operands: [NaiveOutcome]
        let isLiteral: [Bool]
        /// Begins the names of its fields.
        let number: Int

        var expected: NaiveOutcome { function.body(operands) }

        /// The fields of the row for operands that are not literals.
        var fields: [(String, Expression)] {
            operands.enumerated().compactMap { index, operand in
                guard !isLiteral[index], let value = operand.present else { return nil }
                return ("v\(number)_\(index)", .value(value))
            }
        }

        var expression: Expression {
            function.call(
                operands.enumerated().map { index, operand in
                    switch operand {
                    case .failed: .call("divide", 1, 0)
                    case .value(let value) where isLiteral[index]: .value(value)
                    case .absent, .value, .exhausted: .field("v\(number)_\(index)")
                    }
                })
        }
    }

    /// Checks cases in one request: each gives `[value, whether it is absent]`, or a text if it fails.
    private func check(_ cases: [Case], _ harness: Harness) throws {
        let row = Stage("literals", [.map([("none", nil)] + cases.flatMap(\.fields))])
        let fields = cases.map { test in
            let both = Expression.call("array", test.expression, .call("is_absent", test.expression))
            return ("r\(test.number)", Expression.call("if_error", both, "failed"))
        }
        let rows = try harness.execute(row, Stage("select", [.map(fields)])).rows
        try #require(rows.count == 1)
        for test in cases {
            let found = try #require(rows[0]["r\(test.number)"])
            let expected = test.expected
            expect(
                Self.agrees(found, expected, test.function.isApproximate),
                "\(test.function.name) of \(test.operands): \(found), not \(expected)")
        }
    }

    private static func agrees(_ found: Value, _ expected: NaiveOutcome, _ isApproximate: Bool) -> Bool {
        switch (found, expected) {
        case (.string("failed"), .failed): true
        case (.array(let pair), .absent): pair.count == 2 && pair[1] == true
        case (.array(let pair), .value(let value)):
            pair.count == 2 && pair[1] == false
                && (isIdentical(pair[0], value) || isApproximate && isClose(pair[0], value))
        default: false
        }
    }

    /// Integers and doubles differ here; NaN is NaN.
    private static func isIdentical(_ left: Value, _ right: Value) -> Bool {
        switch (left, right) {
        case (.integer, .double), (.double, .integer): false
        case (.array(let lefts), .array(let rights)):
            lefts.count == rights.count && zip(lefts, rights).allSatisfy { isIdentical($0, $1) }
        default: NaiveEvaluator.same(left, right)
        }
    }

    private static func isClose(_ left: Value, _ right: Value) -> Bool {
        guard case .double(let left) = left, case .double(let right) = right else { return false }
        return (left - right).magnitude <= 1e-12 * max(1e-300, left.magnitude, right.magnitude)
            || (left - right).magnitude < 1e-15
    }

    /// An operand for an argument: in most cases one that makes sense there.
    private static func operand(_ function: NaiveFunction, _ position: Int, _ random: inout SplitMix64) -> NaiveOutcome
    {
        let usual = function.usual.isEmpty ? [] : function.usual[min(position, function.usual.count - 1)]
        if !usual.isEmpty, random.below(10) > 1 { return .value(usual[random.below(usual.count)]) }
        return operands[random.below(operands.count)]
    }

    @Test(arguments: NaiveEvaluator.functions.map(\.name))
    func `A function agrees with the naive evaluator`(name: String) throws {
        let function = try #require(NaiveEvaluator.functions.first { $0.name == name })
        var random = SplitMix64(seed: UInt64.random(in: 0..<1_000_000))
        var cases: [Case] = []
        func add(_ operands: [NaiveOutcome]) {
            if case .exhausted = function.body(operands) { return }
            cases.append(
                Case(
                    function: function, operands: operands, isLiteral: operands.map { _ in random.below(2) == 0 },
                    number: cases.count))
        }
        for count in function.counts {
            // Every operand in every place, the others as they come.
            for place in 0..<count {
                let usual = function.usual.isEmpty ? [] : function.usual[min(place, function.usual.count - 1)]
                for operand in Self.operands + usual.map({ .value($0) }) {
                    var operands = (0..<count).map { Self.operand(function, $0, &random) }
                    operands[place] = operand
                    add(operands)
                }
            }
            if count > 1 { for _ in 0..<60 { add((0..<count).map { Self.operand(function, $0, &random) }) } }
        }
        let harness = try Harness()
        for start in stride(from: 0, to: cases.count, by: 150) {
            try check(Array(cases[start..<min(start + 150, cases.count)]), harness)
        }
    }

    @Test
    func `The naive evaluator knows every function whose value its arguments determine`() {
        // A random number, the present, and the row around: FunctionTests and SubqueryTests.
        let others: Set = ["rand", "current_timestamp", "current_document"]
        let known = Set(NaiveEvaluator.functions.map(\.name))
        let served = Set(PipelineFunction.table.keys).union(ElementLambda.names)
        expectEqual(served.subtracting(known), others)
        expect(known.isSubset(of: served))
    }
}
