// Judging a request.

package import Expressions

extension Ruleset {
    /// Decides whether a request is allowed: one `allow` statement whose path and method fit must have a true
    /// condition.
    ///
    /// A statement whose condition fails does not allow. The decision is a function of the request and of what `access`
    /// answers. It runs to its end on the calling thread, within the budget.
    ///
    /// - Parameters:
    ///   - access: the documents that rules read.
    ///   - ledger: counts document accesses over several requests: pass one for all writes of a commit.
    ///   - coverage: counts the outcomes of all expressions; made for ``tree``.
    ///   - budget: what the evaluation may cost.
    package func judge(
        _ request: RulesRequest, access: any DocumentAccess, ledger: AccessLedger? = nil,
        coverage: ExpressionCoverage? = nil,
        budget: EvaluationBudget = EvaluationBudget(expressions: RulesLimits.expressions)
    ) -> Verdict {
        let host = RulesEvaluation(request, access: access, ledger: ledger)
        let evaluation = Evaluation(of: tree, host: host, budget: budget, patterns: patterns, coverage: coverage)
        var verdict = verdict(on: request, host, evaluation)
        verdict.work = evaluation.work
        return verdict
    }

    private func verdict(
        on request: RulesRequest, _ host: RulesEvaluation, _ evaluation: Evaluation
    ) -> Verdict {
        if request.method == .list { return QueryProof(self, host, evaluation).verdict() }
        let target = TargetSegment.known(request.path, database: request.database)
        return host.verdict(judgement(of: target, host, evaluation))
    }

    /// What became of the statements that fit a target.
    struct Judgement {
        var statements: [Verdict.Statement] = []
        var isAllowed = false
        /// As ``Verdict/allowsSiblings``.
        var allowsSiblings = false
        /// Whether the result depends on documents that are not read yet.
        var isPending = false
    }

    /// Evaluates the statements that fit a target until one allows.
    func judgement(
        of target: [TargetSegment], _ host: RulesEvaluation, _ evaluation: Evaluation
    ) -> Judgement {
        var judgement = Judgement()
        let method = host.request.method
        _ = PathMatcher(version: version, target: target) { [self] index, captures in
            guard statements[index].concerns(method) else { return true }
            host.captures = captures
            let (outcome, kind) = outcome(of: statements[index], host, evaluation)
            judgement.statements.append(Verdict.Statement(index: index, outcome: outcome))
            if case .allowed = outcome {
                judgement.isAllowed = true
                judgement.allowsSiblings = host.dependsOnCallerAlone && fitsSiblings(index, captures)
            }
            // What was spent on the way to a document that is not read yet says nothing.
            if kind == .pending || (kind == .exhausted && !host.needed.isEmpty) { judgement.isPending = true }
            // Nothing can be evaluated any more once the budget is spent.
            return !judgement.isAllowed && kind != .exhausted
        }.run(matches)
        return judgement
    }

    /// Whether a statement fits every document of a collection if it fits one of them: whether a wildcard takes the
    /// document's id.
    private func fitsSiblings(_ statement: Int, _ captures: [Operand]) -> Bool {
        guard statementsAfterWildcards.contains(statement) else { return false }
        // `{path=**}` may take nothing.
        if case .object(let value)? = captures.last, let path = value as? RulesPath { return !path.segments.isEmpty }
        return true
    }

    private func outcome(
        of statement: AllowStatement, _ host: RulesEvaluation, _ evaluation: Evaluation
    ) -> (Verdict.Statement.Outcome, ExpressionError.Kind?) {
        guard let condition = statement.condition else { return (.allowed, nil) }
        do {
            let isTrue = try host.truth(of: try evaluation.value(of: condition))
            return (isTrue ? .allowed : .refused, nil)
        } catch {
            return (.failed(error.message, error.expression.map { range(of: $0) }), error.kind)
        }
    }
}

extension RulesEvaluation {
    /// The verdict that follows from a judgement.
    func verdict(_ judgement: Ruleset.Judgement) -> Verdict {
        let missing = needed.sorted { left, right in
            if left.address.utf8 != right.address.utf8 {
                return left.address.utf8.lexicographicallyPrecedes(right.address.utf8)
            }
            return left.state == .before && right.state == .after
        }
        let isAgain = !judgement.isAllowed && judgement.isPending
        if isAgain { forgetCalls() }
        var verdict = Verdict(
            decision: judgement.isAllowed ? .allowed : isAgain ? .needs(missing) : .denied,
            statements: judgement.statements, reads: reads, readsNewResource: hasReadNewResource, debugLines: debugLines
        )
        verdict.allowsSiblings = judgement.isAllowed && judgement.allowsSiblings
        return verdict
    }
}
