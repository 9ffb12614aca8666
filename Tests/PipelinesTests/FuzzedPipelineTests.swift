// Random pipelines that are made to be costly: deep nests, large arrays, regular expressions, lambdas over lambdas.
//
// HEARTH_SOAK=1 makes them for ten minutes and prints the slowest.

import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@testable import Pipelines

/// Makes pipelines of all stages and functions.
private struct PipelineGenerator {
    private var random: SplitMix64
    private var variables: [String] = []
    /// Parts that may still be made.
    private var left = 0

    private static let functions = (Array(PipelineFunction.table.keys) + ["array_filter", "array_transform"]).sorted()
    private static let patterns = [
        "(a*)*b", "(x+x+)+y", "[a-z]{500}", "(?:a{30}){30}", "((((a))))", ".*.*.*=.*", "(", "\\p{Greek}", "(?i)ß",
        "a|b|c|d",
        "%_%_%", "^$",
    ]
    private static let fields = ["a", "b", "m.k", "t", "nothing", "__name__", "`odd name`"]

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func pipeline() -> [Stage] {
        left = [50, 300, 2_000][random.below(3)]
        variables = []
        var stages = [source()]
        for _ in 0..<random.below(7) { stages.append(stage(depth: 0)) }
        return stages
    }

    private mutating func chance(_ percent: Int) -> Bool { random.below(100) < percent }

    private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[random.below(elements.count)] }

    private mutating func source() -> Stage {
        switch random.below(4) {
        case 0: Stage("literals", (0...random.below(3)).map { _ in .map(named(depth: 0)) })
        case 1: Stage("database", [])
        default: .collection("c")
        }
    }

    private mutating func named(depth: Int) -> [(String, Expression)] {
        (0...random.below(4)).map { ("f\($0)", expression(depth: depth)) }
    }

    private mutating func stage(depth: Int) -> Stage {
        switch random.below(15) {
        case 0: return .where(expression(depth: depth))
        case 1: return .sort((expression(depth: depth), chance(50)), (expression(depth: depth), chance(50)))
        case 2: return .limit(pick([0, 1, 5, .max, -1]))
        case 3: return .offset(pick([0, 1, .max]))
        case 4: return Stage("select", [.map(named(depth: depth))])
        case 5: return Stage("add_fields", [.map(named(depth: depth))])
        case 6: return Stage("remove_fields", [.field(pick(Self.fields))])
        case 7:
            return Stage(
                "replace_with",
                [expression(depth: depth), .value(.string(pick(["full_replace", "merge_keep_existing"])))])
        case 8:
            let kinds = Accumulator.Kind.allCases.map(\.rawValue)
            return .aggregate(
                (0...random.below(3)).map { ("n\($0)", .call(pick(kinds), expression(depth: depth))) },
                by: chance(60) ? named(depth: depth) : [])
        case 9: return Stage("distinct", [.map(named(depth: depth))])
        case 10: return Stage("unnest", [expression(depth: depth), .field("u")])
        case 11: return Stage("sample", [2, "documents"])
        case 12 where depth < 3:
            return Stage("union", [.pipeline([source()] + (0..<random.below(3)).map { _ in stage(depth: depth + 1) })])
        case 13:
            let variable = "v\(random.below(4))"
            let stage = Stage("let", [.map([(variable, expression(depth: depth))])])
            variables.append(variable)
            return stage
        default: return Stage("find_nearest", [.field("v"), .value(.vector([1, 2])), "cosine"])
        }
    }

    private mutating func expression(depth: Int) -> Expression {
        left -= 1
        if left < 0 || depth > 30 || chance(20) { return leaf() }
        switch random.below(12) {
        case 0: return nest(expression(depth: depth + 1), levels: pick([5, 15, 40, 120]))
        case 1: return .list((0..<pick([3, 50, 2_000])).map { .value(.integer(Int64($0))) })
        case 2: return .map(named(depth: depth + 1))
        case 3: return .call("string_repeat", leaf(), .value(.integer(pick([0, 3, 1_000, 1_000_000, .max]))))
        case 4:
            return .call(
                pick(["regex_contains", "regex_match", "regex_find_all", "like"]), expression(depth: depth + 1),
                .value(.string(pick(Self.patterns))))
        case 5, 6: return lambda(depth: depth)
        case 7 where depth < 6:
            let stages = [source()] + (0..<random.below(3)).map { _ in stage(depth: depth + 3) }
            return .call(pick(["array", "scalar"]), .pipeline(stages))
        default: return call(depth: depth)
        }
    }

    private mutating func lambda(depth: Int) -> Expression {
        let name = "e\(random.below(4))"
        let array = expression(depth: depth + 1)
        variables.append(name)
        defer { variables.removeLast() }
        return .call(
            pick(["array_filter", "array_transform"]), array, .value(.string(name)), expression(depth: depth + 1))
    }

    private mutating func call(depth: Int) -> Expression {
        let name = pick(Self.functions)
        var count = random.below(4)
        if let arity = PipelineFunction.table[name]?.arity, !chance(3) {
            count = arity.lowerBound + random.below(min(3, arity.count))
        }
        return .call(name, (0..<count).map { _ in expression(depth: depth + 1) })
    }

    private mutating func nest(_ inner: Expression, levels: Int) -> Expression {
        let name = pick(["not", "array", "is_error", "map_keys", "string_reverse"])
        return (0..<levels).reduce(inner) { nested, _ in .call(name, nested) }
    }

    private mutating func leaf() -> Expression {
        switch random.below(7) {
        case 0: return .field(pick(Self.fields))
        case 1 where !variables.isEmpty: return .variable(pick(variables))
        case 2: return .value(.string(String(repeating: pick(["a", "xy", "é"]), count: pick([0, 1, 30, 2_000]))))
        case 3: return .value(pick([.integer(.max), .integer(.min), .double(.nan), .double(1e308), .null, true]))
        case 4: return .value(.timestamp(TimestampValue(microseconds: pick([0, -62_135_596_800_000_000]))))
        default: return .value(.integer(Int64(random.below(5))))
        }
    }
}

@Suite(.timeLimit(.minutes(30)))
struct FuzzedPipelineTests {
    private func harness() throws -> Harness {
        let harness = try Harness()
        for index in 0..<20 {
            try harness.set([
                "c/\(index)": Harness.fields([
                    "a": .integer(Int64(index)), "b": .string(String(repeating: "ab", count: index)), "m": ["k": nil],
                    "t": .array((0..<index).map { .integer(Int64($0)) }), "v": .vector([1, Double(index)]),
                ])
            ])
        }
        return harness
    }

    /// Runs the pipeline of a seed.
    /// - Returns: seconds.
    private func run(_ seed: UInt64, _ harness: Harness) -> Double {
        var generator = PipelineGenerator(seed: seed)
        let stages = generator.pipeline()
        let start = ContinuousClock.now
        let answer = harness.outcome(stages)
        let expected: [StatusCode?] = [.ok, .invalidArgument, .unimplemented, .resourceExhausted]
        expect(
            expected.contains(answer.status) && (answer.isOK || !answer.text.isEmpty), "seed \(seed): \(answer.text)")
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    @Test
    func `Random costly pipelines end with results or a clear error`() throws {
        let harness = try harness()
        guard ProcessInfo.processInfo.environment["HEARTH_SOAK"] != nil else {
            for seed in 0..<250 as Range<UInt64> { _ = run(seed, harness) }
            return
        }
        let end = ContinuousClock.now + .seconds(600)
        var (seed, slowest) = (UInt64.random(in: 1_000..<1_000_000_000), (seconds: 0.0, seed: UInt64(0)))
        var count = 0
        while ContinuousClock.now < end {
            let seconds = run(seed, harness)
            if seconds > slowest.seconds { slowest = (seconds, seed) }
            seed += 1
            count += 1
        }
        print("\(count) pipelines; the slowest took \(slowest.seconds) s, seed \(slowest.seed)")
    }
}
