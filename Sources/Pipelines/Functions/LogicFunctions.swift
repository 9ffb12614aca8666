// Logic, conditions, and what may be done about null, absent and failed values.

internal import Expressions

/// Logic has three values: a null or absent operand is unknown, and the result is null where it depends on one. An
/// operand of another type fails.
enum LogicFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("and", 1...PipelineFunction.many, .form(and)),
        PipelineFunction("or", 1...PipelineFunction.many, .form(or)),
        PipelineFunction("nor", 1...PipelineFunction.many, .form(nor)),
        PipelineFunction("xor", 1...PipelineFunction.many, .form(xor)),
        PipelineFunction("not", 1, .form(not)),
        PipelineFunction("conditional", 3, .form(conditional)),
        PipelineFunction("switch_on", 2...PipelineFunction.many, .form(switchOn)),
        PipelineFunction("exists", 1, .total(exists)),
        PipelineFunction("is_absent", 1, .total(isAbsent)),
        PipelineFunction("if_absent", 2, .form(ifAbsent)),
        PipelineFunction("if_null", 2, .form(ifNull)),
        PipelineFunction("coalesce", 1...PipelineFunction.many, .form(coalesce)),
        PipelineFunction("is_error", 1, .form(isError)),
        PipelineFunction("if_error", 2, .form(ifError)),
        PipelineFunction("error", 1, .total(error)),
        PipelineFunction("maximum", 1...PipelineFunction.many, .total(largest)),
        PipelineFunction("minimum", 1...PipelineFunction.many, .total(smallest)),
    ]

    // MARK: Logic

    /// True, false, or nil for unknown.
    static func truth(_ operand: Operand) throws(ExpressionError) -> Bool? {
        switch operand {
        case .boolean(let value): return value
        case .null, .absent: return nil
        default: throw .failed("An operand of a logic function is not a boolean but \(operand.typeName).")
        }
    }

    private static func operand(_ truth: Bool?) -> Operand { truth.map { .boolean($0) } ?? .null }

    private static func and(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        operand(try decide(evaluation, ids, by: false))
    }

    private static func or(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        operand(try decide(evaluation, ids, by: true))
    }

    private static func nor(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        operand(try decide(evaluation, ids, by: true).map { !$0 })
    }

    /// The first operand with the deciding value decides; failures and unknowns count only if none does.
    private static func decide(
        _ evaluation: Evaluation, _ ids: [ExpressionID], by deciding: Bool
    ) throws(ExpressionError) -> Bool? {
        var failure: ExpressionError?
        var isUnknown = false
        for id in ids {
            do {
                let truth = try truth(try evaluation.value(of: id))
                if truth == deciding { return deciding }
                if truth == nil { isUnknown = true }
            } catch {
                if error.kind != .failed { throw error }
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return isUnknown ? nil : !deciding
    }

    private static func xor(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        var result: Bool? = false
        for id in ids {
            let truth = try truth(try evaluation.value(of: id))
            if let known = result, let truth { result = known != truth } else { result = nil }
        }
        return operand(result)
    }

    private static func not(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        operand(try truth(try evaluation.value(of: ids[0])).map { !$0 })
    }

    // MARK: Conditions

    private static func conditional(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand
    {
        let isTrue = try truth(try evaluation.value(of: ids[0])) == true
        return try evaluation.value(of: isTrue ? ids[1] : ids[2])
    }

    /// Conditions with their values, and at the end perhaps a value for the case that none is true.
    private static func switchOn(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        var index = 0
        while index + 1 < ids.count {
            if try truth(try evaluation.value(of: ids[index])) == true {
                return try evaluation.value(of: ids[index + 1])
            }
            index += 2
        }
        if index < ids.count { return try evaluation.value(of: ids[index]) }
        throw .failed("switch_on: all switch cases evaluate to false, and no default provided")
    }

    // MARK: Absent, null and failed

    private static func exists(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        if case .absent = operands[0] { .boolean(false) } else { .boolean(true) }
    }

    private static func isAbsent(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        if case .absent = operands[0] { .boolean(true) } else { .boolean(false) }
    }

    private static func ifAbsent(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        let value = try evaluation.value(of: ids[0])
        guard case .absent = value else { return value }
        return try evaluation.value(of: ids[1])
    }

    private static func ifNull(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        let value = try evaluation.value(of: ids[0])
        return value.isNullOrAbsent ? try evaluation.value(of: ids[1]) : value
    }

    /// The first value that is neither null nor absent; the last one if there is none.
    private static func coalesce(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        var value = Operand.absent
        for id in ids {
            value = try evaluation.value(of: id)
            if !value.isNullOrAbsent { return value }
        }
        return value
    }

    private static func isError(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        .boolean(try absorbing(evaluation, ids[0]) == nil)
    }

    private static func ifError(_ evaluation: Evaluation, _ ids: [ExpressionID]) throws(ExpressionError) -> Operand {
        if let value = try absorbing(evaluation, ids[0]) { return value }
        return try evaluation.value(of: ids[1])
    }

    /// The value, or nil if it fails; a spent budget and a subquery that has not run yet are not absorbed.
    private static func absorbing(
        _ evaluation: Evaluation, _ id: ExpressionID
    ) throws(ExpressionError) -> Operand? {
        do {
            return try evaluation.value(of: id)
        } catch {
            if error.kind != .failed { throw error }
            return nil
        }
    }

    private static func error(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        guard case .string(let message) = operands[0] else { throw .mismatch("error", "a string", operands[0]) }
        throw .failed(message)
    }

    // MARK: Extremes

    private static func largest(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try extreme(operands, sign: 1, evaluation)
    }

    private static func smallest(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try extreme(operands, sign: -1, evaluation)
    }

    /// The first or last value in the order of all values, null and absent left out; null if none is left.
    private static func extreme(
        _ operands: [Operand], sign: Int, _ evaluation: Evaluation
    ) throws(ExpressionError) -> Operand {
        var extreme = Operand.null
        // One array stands for its elements.
        var candidates = operands
        if operands.count == 1, operands[0].types == .list {
            candidates = try ArrayFunctions.elements("maximum", operands[0], evaluation)
        }
        for operand in candidates where !operand.isNullOrAbsent {
            if extreme.isNullOrAbsent {
                extreme = operand
            } else if try ComparisonFunctions.compare(evaluation, operand, extreme).sign.signum() == sign {
                extreme = operand
            }
        }
        return extreme
    }
}
