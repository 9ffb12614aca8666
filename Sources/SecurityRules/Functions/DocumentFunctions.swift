// `get`, `exists`, `getAfter`, `existsAfter`, `debug`.

internal import Expressions

enum DocumentFunctions {
    static let all: [ExpressionFunction] = [
        Functions.function("get", reading(.before)),
        Functions.function("getAfter", reading(.after)),
        Functions.function("exists", testing(.before)),
        Functions.function("existsAfter", testing(.after)),
        Functions.function("debug", printing(1), printing(2), printing(3), printing(4)),
    ]

    private static func reading(_ state: DocumentState) -> ExpressionFunction.Overload {
        Functions.overload(.path) { evaluation, operands throws(ExpressionError) in
            let path = try path(evaluation, operands[0])
            guard let document = try host(evaluation).access(path, state, asksExistence: false) else {
                throw .failed("Service call error: the document \(path.text.prefix(200)) does not exist.")
            }
            return document
        }
    }

    private static func testing(_ state: DocumentState) -> ExpressionFunction.Overload {
        Functions.overload(.path) { evaluation, operands throws(ExpressionError) in
            let path = try path(evaluation, operands[0])
            guard let document = try host(evaluation).access(path, state, asksExistence: true) else {
                return .boolean(false)
            }
            if case .null = document { return .boolean(false) }
            return .boolean(true)
        }
    }

    /// The path of a call, paid for.
    private static func path(_ evaluation: Evaluation, _ operand: Operand) throws(ExpressionError) -> RulesPath {
        let path = RulesPath.from(operand) ?? RulesPath([])
        try evaluation.spendWork(path.memoryBytes)
        return path
    }

    /// Returns its first operand, which the verdict shows.
    private static func printing(_ count: Int) -> ExpressionFunction.Overload {
        ExpressionFunction.Overload(Array(repeating: .any, count: count)) {
            evaluation, operands throws(ExpressionError) in
            try evaluation.spendReading(operands[0])
            host(evaluation).debug(operands[0])
            return operands[0]
        }
    }

    private static func host(_ evaluation: Evaluation) -> RulesEvaluation {
        guard let host = evaluation.host as? RulesEvaluation else {
            preconditionFailure("rules are evaluated by RulesEvaluation")
        }
        return host
    }
}
