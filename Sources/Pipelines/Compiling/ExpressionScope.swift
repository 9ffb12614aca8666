// The variables that an expression may read.

internal import Expressions

/// Names of variables where an expression stands. A name that is bound twice means the innermost one.
struct ExpressionScope: Sendable {
    /// Variables of the lambdas around the expression, the outermost first. The index is the slot.
    var locals: [String] = []
    /// Variables that the stage `let` has given to the rows.
    var rowVariables: Set<String> = []
    /// Variables of the pipelines around this one, with their values.
    var bindings: [String: Operand] = [:]

    /// What a name means.
    enum Meaning {
        case local(slot: Int)
        case rowVariable
        case binding(Operand)
    }

    /// The variable of a name, or nil.
    subscript(name: String) -> Meaning? {
        if let slot = locals.lastIndex(of: name) { return .local(slot: slot) }
        if rowVariables.contains(name) { return .rowVariable }
        return bindings[name].map { .binding($0) }
    }

    /// The names that a subquery may read.
    var names: Set<String> { rowVariables.union(locals).union(bindings.keys) }
}
