// Evaluating compiled expressions.

/// What an evaluation asks its language and its caller.
package protocol EvaluationHost: AnyObject {
    /// The operand of an input.
    func input(_ number: Int) throws(ExpressionError) -> Operand

    /// A named part of an operand.
    func member(_ name: String, of operand: Operand) throws(ExpressionError) -> Operand

    /// The truth of an operand of a logic operator or of a condition; throws if it has none.
    func truth(of operand: Operand) throws(ExpressionError) -> Bool

    /// The value of a key in a map literal; throws if the operand cannot be a key.
    func key(_ operand: Operand) throws(ExpressionError) -> String

    /// The operand of a list literal.
    func list(_ elements: [Operand]) throws(ExpressionError) -> Operand

    /// The operand of a map literal.
    func map(_ map: OperandMap) throws(ExpressionError) -> Operand
}

/// One evaluation of expressions of a tree: the budget, the frames of functions, the counts of coverage.
///
///     let evaluation = Evaluation(of: tree, host: host, budget: EvaluationBudget(expressions: 1_000))
///     let result = try evaluation.value(of: expression)
///
/// Used by one thread. The host outlives it.
package final class Evaluation {
    private let tree: ExpressionTree
    /// The language and the caller; functions of the language find their context here.
    package unowned let host: any EvaluationHost
    /// What is left to spend. Private, so that the compiler knows that no two accesses overlap.
    private var left: EvaluationBudget
    /// What is left to spend.
    package var budget: EvaluationBudget { left }
    /// Compiled patterns of texts that are computed.
    package let patterns: PatternCache
    /// Counts the outcomes of each expression, if there is one.
    package let coverage: ExpressionCoverage?

    /// Expressions within expressions that are evaluated at one time, which bounds the stack.
    package static let depthMax = 600

    private let expressionsMax: Int
    private let initialBudget: EvaluationBudget
    /// Expressions that were evaluated before the last ``restartExpressions()``.
    private var earlierExpressions = 0
    private var depth = 0
    private var slots: [Slot] = []
    /// The first slot of the innermost frame.
    private var frame = 0

    private enum Slot {
        /// Not evaluated yet; the frame is that of the expression.
        case unread(ExpressionID, frame: Int)
        case value(Operand)
        case failed(ExpressionError)
    }

    package init(
        of tree: ExpressionTree, host: any EvaluationHost, budget: EvaluationBudget,
        patterns: PatternCache, coverage: ExpressionCoverage? = nil
    ) {
        self.tree = tree
        self.host = host
        left = budget
        self.patterns = patterns
        self.coverage = coverage
        expressionsMax = budget.expressions
        initialBudget = budget
    }

    /// Evaluates an expression.
    package func value(of id: ExpressionID) throws(ExpressionError) -> Operand {
        try spendExpressions(1)
        depth += 1
        defer { depth -= 1 }
        if depth > Evaluation.depthMax {
            throw .exhausted("Expressions are nested more than \(Evaluation.depthMax) levels deep.")
        }
        do {
            let operand = try evaluate(tree[id])
            coverage?.record(id, .value(operand))
            return operand
        } catch {
            var located = error
            if located.expression == nil { located.expression = id }
            coverage?.record(id, .failed(located.message))
            throw located
        }
    }

    /// Counts an expression whose value is a constant that the caller knows, as ``value(of:)`` would.
    package func passConstant(_ id: ExpressionID) throws(ExpressionError) {
        if coverage == nil { try spendExpressions(1) } else { _ = try value(of: id) }
    }

    private func evaluate(_ node: ExpressionNode) throws(ExpressionError) -> Operand {
        switch node {
        case .constant(let operand): return operand
        case .input(let number): return try host.input(number)
        case .local(let slot): return try local(frame + slot)
        case .member(let base, let name):
            let operand = try value(of: base)
            try spendMemberSearch(in: operand)
            return try host.member(name, of: operand)
        case .unary(let function, let operand): return try function(self, try value(of: operand))
        case .binary(let function, let left, let right):
            let left = try value(of: left)
            return try function(self, left, try value(of: right))
        case .call(let function, let arguments): return try function.call(self, try values(of: arguments))
        case .form(let body, let operands): return try body(self, operands)
        case .conjunction(let parts): return .boolean(try decide(parts, by: false))
        case .disjunction(let parts): return .boolean(try decide(parts, by: true))
        case .conditional(let condition, let first, let second):
            return try value(of: host.truth(of: try value(of: condition)) ? first : second)
        case .list(let elements):
            try spendMemory(32 * elements.count)
            return try host.list(try values(of: elements))
        case .map(let entries): return try host.map(try map(entries))
        case .invoke(let function, let arguments): return try invoke(function, arguments)
        case .failure(let message): throw .failed(message)
        }
    }

    /// The operands of several expressions; the first failure ends it.
    package func values(of ids: [ExpressionID]) throws(ExpressionError) -> [Operand] {
        var operands: [Operand] = []
        operands.reserveCapacity(ids.count)
        for id in ids { operands.append(try value(of: id)) }
        return operands
    }

    /// Evaluates an expression with further variables, which take the slots after those that are in use.
    package func value(of id: ExpressionID, adding variables: [Operand]) throws(ExpressionError) -> Operand {
        for variable in variables { slots.append(.value(variable)) }
        defer { slots.removeLast(variables.count) }
        return try value(of: id)
    }

    private func map(
        _ entries: [(key: ExpressionID, value: ExpressionID)]
    ) throws(ExpressionError) -> OperandMap {
        try spendMemory(48 * entries.count)
        var built: [OperandMap.Entry] = []
        for entry in entries {
            let key = try host.key(try value(of: entry.key))
            built.append((key, try value(of: entry.value)))
        }
        return OperandMap(built)
    }

    /// The logic operators: the first part with the deciding value settles the result. Failures of other parts count
    /// only if no part decides.
    private func decide(_ parts: [ExpressionID], by deciding: Bool) throws(ExpressionError) -> Bool {
        var failure: ExpressionError?
        for part in parts {
            do {
                if try host.truth(of: try value(of: part)) == deciding { return deciding }
            } catch {
                if error.kind == .exhausted { throw error }
                // What is not supplied yet may still decide; what failed will not.
                if failure?.kind != .pending { failure = error.kind == .pending ? error : failure ?? error }
            }
        }
        if let failure { throw failure }
        return !deciding
    }

    // MARK: Functions of the program

    private func invoke(
        _ function: ProgramFunction, _ arguments: [ExpressionID]
    ) throws(ExpressionError) -> Operand {
        let caller = frame
        let callee = slots.count
        for argument in arguments { slots.append(.unread(argument, frame: caller)) }
        for variable in function.variables { slots.append(.unread(variable, frame: callee)) }
        frame = callee
        defer {
            slots.removeLast(slots.count - callee)
            frame = caller
        }
        return try value(of: function.result)
    }

    /// Reads a slot, which evaluates its expression the first time.
    private func local(_ index: Int) throws(ExpressionError) -> Operand {
        switch slots[index] {
        case .value(let operand): return operand
        case .failed(let error): throw error
        case .unread(let expression, let home):
            let current = frame
            frame = home
            defer { frame = current }
            do {
                let operand = try value(of: expression)
                slots[index] = .value(operand)
                return operand
            } catch {
                slots[index] = .failed(error)
                throw error
            }
        }
    }

    // MARK: Budget

    /// Counts expressions from 0 again: the next evaluation is a separate one that shares the rest of the budget.
    package func restartExpressions() {
        earlierExpressions += expressionsMax - left.expressions
        left.expressions = expressionsMax
    }

    /// Expressions that were evaluated, and KiB that were read or built, since the whole budget was there.
    package var work: Int {
        let bytes = initialBudget.workBytes - left.workBytes
        return earlierExpressions + expressionsMax - left.expressions + bytes >> 10
    }

    /// Begins with the whole budget again: the next evaluation is that of another row.
    package func restart() {
        earlierExpressions = 0
        left = initialBudget
    }

    private func spendExpressions(_ count: Int) throws(ExpressionError) {
        left.expressions -= count
        if left.expressions < 0 {
            throw .exhausted(
                "Unable to evaluate the expression as the maximum of \(expressionsMax) expressions to evaluate "
                    + "has been reached.")
        }
    }

    /// Pays for bytes that are read, compared or searched.
    package func spendWork(_ bytes: Int) throws(ExpressionError) {
        try Evaluation.spend(bytes, of: &left.workBytes, orFail: "The evaluation reads too many bytes.")
    }

    /// Pays for looking for a member: in document bytes the search passes over the members before it.
    package func spendMemberSearch(in operand: Operand) throws(ExpressionError) {
        switch operand {
        case .encodedMap(let slice): try spendWork(slice.byteCount / 4)
        // The member of one may be as large as it is.
        case .object, .reference: try spendMemory(operand.memoryBytes)
        default: break
        }
    }

    /// Pays for bytes that are built.
    package func spendMemory(_ bytes: Int) throws(ExpressionError) {
        try Evaluation.spend(bytes, of: &left.memoryBytes, orFail: "The evaluation builds values of too many bytes.")
        try spendWork(bytes)
    }

    /// Takes bytes from a budget. One that does not suffice is spent. `bytes` may be any number: requests ask for what
    /// they like.
    private static func spend(_ bytes: Int, of budget: inout Int, orFail message: String) throws(ExpressionError) {
        guard bytes <= budget else {
            budget = -1
            throw .exhausted(message)
        }
        budget -= bytes
    }
}
