// The evaluator: logic, frames, budgets.

import Expressions
import TestSupport
import Testing

/// A language with integers and booleans alone.
final class TestHost: EvaluationHost {
    /// Inputs that were read.
    var reads: [Int] = []

    func input(_ number: Int) throws(ExpressionError) -> Operand {
        reads.append(number)
        if number < 0 { throw ExpressionError(.pending, "not here yet") }
        return .integer(Int64(number))
    }

    func member(_ name: String, of operand: Operand) throws(ExpressionError) -> Operand {
        operand.entries?[name] ?? .absent
    }

    func truth(of operand: Operand) throws(ExpressionError) -> Bool {
        guard case .boolean(let value) = operand else { throw .failed("not a boolean") }
        return value
    }

    func key(_ operand: Operand) throws(ExpressionError) -> String { "k" }
    func list(_ elements: [Operand]) throws(ExpressionError) -> Operand { .list(elements) }
    func map(_ map: OperandMap) throws(ExpressionError) -> Operand { .map(map) }
}

@Suite(.timeLimit(.minutes(20)))
struct EvaluationTests {
    let host = TestHost()

    /// What an expression comes to: `true`, `7`, `error`, `pending`, `exhausted`, ...
    private func outcome(
        _ tree: ExpressionTree, _ id: ExpressionID, budget: EvaluationBudget = EvaluationBudget(expressions: 1_000),
        coverage: ExpressionCoverage? = nil
    ) -> String {
        let evaluation = Evaluation(
            of: tree, host: host, budget: budget, patterns: PatternCache(), coverage: coverage)
        do {
            switch try evaluation.value(of: id) {
            case .absent: return "absent"
            case .null: return "null"
            case .boolean(let value): return "\(value)"
            case .integer(let value): return "\(value)"
            default: return "other"
            }
        } catch {
            switch error.kind {
            case .failed: return "error"
            case .pending: return "pending"
            case .exhausted: return "exhausted"
            }
        }
    }

    enum Part: CaseIterable { case yes, no, number, failed, pending }

    private func append(_ part: Part, to tree: inout ExpressionTree) -> ExpressionID {
        switch part {
        case .yes: tree.append(.constant(.boolean(true)))
        case .no: tree.append(.constant(.boolean(false)))
        case .number: tree.append(.constant(.integer(1)))
        case .failed: tree.append(.failure("failed"))
        case .pending: tree.append(.input(-1))
        }
    }

    @Test(arguments: Part.allCases, Part.allCases)
    func `A deciding operand absorbs failures on either side`(left: Part, right: Part) {
        for isConjunction in [true, false] {
            var tree = ExpressionTree()
            let parts = [append(left, to: &tree), append(right, to: &tree)]
            let node = tree.append(isConjunction ? .conjunction(parts) : .disjunction(parts))
            let deciding: Part = isConjunction ? .no : .yes
            let other: Part = isConjunction ? .yes : .no
            let expected: String =
                if left == deciding || right == deciding {
                    isConjunction ? "false" : "true"
                } else if left == other, right == other {
                    isConjunction ? "true" : "false"
                } else if left == .pending || right == .pending {
                    "pending"
                } else {
                    "error"
                }
            expectEqual(outcome(tree, node), expected, "\(left) \(isConjunction ? "&&" : "||") \(right)")
        }
    }

    @Test
    func `Absent, null and error are three things`() {
        var tree = ExpressionTree()
        let map = tree.append(.constant(.map(["a": .null])))
        let ids = [tree.append(.member(map, "a")), tree.append(.member(map, "b")), tree.append(.failure("no"))]
        expectEqual(ids.map { outcome(tree, $0) }, ["null", "absent", "error"])
    }

    @Test
    func `Arguments and variables are evaluated when they are read, and once`() {
        var tree = ExpressionTree()
        let first = tree.append(.input(1))
        let failing = tree.append(.failure("not used"))
        let local = tree.append(.local(0))
        let sum = tree.append(
            .binary(
                { _, left, right in
                    guard case .integer(let left) = left, case .integer(let right) = right else { return .null }
                    return .integer(left + right)
                }, local, local))
        let function = ProgramFunction(name: "f", parameterCount: 2, variables: [failing], result: sum)
        let call = tree.append(.invoke(function, [first, failing]))
        expectEqual(outcome(tree, call), "2")
        expectEqual(host.reads, [1])
    }

    @Test
    func `An argument is evaluated in the frame of the caller`() {
        var tree = ExpressionTree()
        let local = tree.append(.local(0))
        let inner = ProgramFunction(name: "inner", parameterCount: 1, variables: [], result: local)
        let call = tree.append(.invoke(inner, [local]))
        let outer = ProgramFunction(name: "outer", parameterCount: 1, variables: [], result: call)
        let seven = tree.append(.constant(.integer(7)))
        let invocation = tree.append(.invoke(outer, [seven]))
        expectEqual(outcome(tree, invocation), "7")
    }

    @Test
    func `The budget of expressions ends the evaluation, whatever is around it`() {
        var tree = ExpressionTree()
        let yes = tree.append(.constant(.boolean(true)))
        let all = tree.append(.conjunction(Array(repeating: yes, count: 99)))
        let any = tree.append(.disjunction([all, yes]))
        expectEqual(outcome(tree, any, budget: EvaluationBudget(expressions: 101)), "true")
        expectEqual(outcome(tree, any, budget: EvaluationBudget(expressions: 100)), "exhausted")
    }

    @Test
    func `The budget of memory and of work ends the evaluation`() {
        var tree = ExpressionTree()
        let one = tree.append(.constant(.integer(1)))
        let list = tree.append(.list(Array(repeating: one, count: 100)))
        expectEqual(outcome(tree, list), "other")
        let memory = EvaluationBudget(expressions: 1_000, memoryBytes: 1_000)
        expectEqual(outcome(tree, list, budget: memory), "exhausted")
        let work = EvaluationBudget(expressions: 1_000, workBytes: 1_000)
        expectEqual(outcome(tree, list, budget: work), "exhausted")
    }

    @Test
    func `Deep nesting is bounded`() {
        var tree = ExpressionTree()
        var id = tree.append(.constant(.boolean(true)))
        for _ in 0..<Evaluation.depthMax { id = tree.append(.conjunction([id])) }
        expectEqual(outcome(tree, id, budget: EvaluationBudget(expressions: 10_000)), "exhausted")
    }

    @Test
    func `Coverage counts outcomes`() {
        var tree = ExpressionTree()
        let yes = tree.append(.constant(.boolean(true)))
        let unused = tree.append(.constant(.boolean(false)))
        let any = tree.append(.disjunction([yes, unused]))
        let coverage = ExpressionCoverage(expressions: tree.count)
        for _ in 0..<3 { expectEqual(outcome(tree, any, coverage: coverage), "true") }
        expectEqual(coverage.evaluations(of: yes), 3)
        expectEqual(coverage.evaluations(of: unused), 0)
        expectEqual(coverage.outcomes(of: any).map(\.count), [3])
    }
}
