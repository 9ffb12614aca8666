// Signatures of functions.

import Expressions
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ExpressionFunctionTests {
    private let function = ExpressionFunction(
        "f",
        [
            .init([.integer]) { _, _ in .string("one integer") },
            .init([.number, .any]) { _, _ in .string("a number and anything") },
        ],
        mismatch: { function, operands in .failed("\(function.name)/\(operands.count)") })

    private func call(_ operands: Operand...) -> String {
        let host = TestHost()
        let evaluation = Evaluation(
            of: ExpressionTree(), host: host, budget: EvaluationBudget(expressions: 1), patterns: PatternCache())
        do {
            guard case .string(let text) = try function.call(evaluation, operands) else { return "other" }
            return text
        } catch {
            return error.message
        }
    }

    @Test
    func `The first signature that fits is called`() {
        expectEqual(call(.integer(1)), "one integer")
        expectEqual(call(.double(1), .null), "a number and anything")
    }

    @Test
    func `Operands that fit no signature are the language's error`() {
        expectEqual(call(.double(1)), "f/1")
        expectEqual(call(.string("a"), .null), "f/2")
        expectEqual(call(), "f/0")
    }

    @Test
    func `A table finds functions by name`() {
        let table = FunctionTable([function])
        expect(table["f"] != nil && table["g"] == nil)
        expectEqual(table.names, ["f"])
    }
}
