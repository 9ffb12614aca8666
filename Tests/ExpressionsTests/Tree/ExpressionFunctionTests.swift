// Signatures of functions.

import Expressions
import Testing

@Suite("Functions", .timeLimit(.minutes(20)))
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

    @Test("The first signature that fits is called")
    func selection() {
        #expect(call(.integer(1)) == "one integer")
        #expect(call(.double(1), .null) == "a number and anything")
    }

    @Test("Operands that fit no signature are the language's error")
    func mismatch() {
        #expect(call(.double(1)) == "f/1")
        #expect(call(.string("a"), .null) == "f/2")
        #expect(call() == "f/0")
    }

    @Test("A table finds functions by name")
    func table() {
        let table = FunctionTable([function])
        #expect(table["f"] != nil && table["g"] == nil)
        #expect(table.names == ["f"])
    }
}
