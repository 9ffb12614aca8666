// Whether a query can return a document that its rules would refuse.
//
// Rules are not filters: a query is allowed if a rule holds for everything that it could return. The filter is taken
// apart into cases, each a conjunction of conditions. In each case the fields of `resource.data` are values of which
// the
// conditions are known (``FieldConstraint``), and the rules are evaluated once: an operation on such a value has a
// result
// if the result is the same for every document of the case, and fails otherwise. The query is allowed if in every case
// a statement allows.
//
// Left out: conditions that involve two fields, and ranges of sizes.

internal import DocumentModel
internal import Expressions

struct QueryProof {
    private let ruleset: Ruleset
    private let host: RulesEvaluation
    private let evaluation: Evaluation

    init(_ ruleset: Ruleset, _ host: RulesEvaluation, _ evaluation: Evaluation) {
        self.ruleset = ruleset
        self.host = host
        self.evaluation = evaluation
    }

    /// Judges all cases. Each may evaluate as many expressions as a request; they share the rest of the budget, and
    /// ``RulesLimits/proofWork``.
    func verdict() -> Verdict {
        var last = Ruleset.Judgement()
        var isPending = false
        guard let conjunctions = QueryCases.cases(of: host.request.query) else { return host.verdict(last) }
        for conditions in conjunctions {
            guard let judgements = judgements(of: conditions) else { return host.verdict(Ruleset.Judgement()) }
            for judgement in judgements {
                last = judgement
                if judgement.isAllowed { continue }
                // Cases that are not settled yet do not end the search for one that is denied.
                if !judgement.isPending { return host.verdict(judgement) }
                isPending = true
            }
        }
        last.isAllowed = !isPending && last.isAllowed
        last.isPending = isPending
        return host.verdict(last)
    }

    /// The judgements of the cases of a conjunction, each made when it is asked for; nil if there are too many, or they
    /// cost too much after those before.
    private func judgements(of conditions: [Condition]) -> [Ruleset.Judgement]? {
        if evaluation.work > RulesLimits.proofWork { return nil }
        if let path = documentPath(in: conditions) {
            // One document, which rules may read.
            host.named = path
            host.queried = nil
            evaluation.restartExpressions()
            let target = TargetSegment.known(path, database: host.request.database)
            return [ruleset.judgement(of: target, host, evaluation)]
        }
        host.named = nil
        var judgements: [Ruleset.Judgement] = []
        var facts: CaseFacts? = CaseFacts(of: conditions)
        while let known = facts {
            if evaluation.work > RulesLimits.proofWork || judgements.count == RulesLimits.proofCases { return nil }
            host.queried = QueriedDocument(known)
            evaluation.restartExpressions()
            let judgement = ruleset.judgement(of: target, host, evaluation)
            judgements.append(judgement)
            if !judgement.isAllowed, !judgement.isPending { break }
            facts = known.next()
        }
        return judgements
    }

    /// The path of the documents of the query, as far as it is known.
    private var target: [TargetSegment] {
        let path = TargetSegment.known(host.request.path, database: host.request.database)
        if host.request.query?.from.first?.allDescendants == true, let collection = path.last {
            return path.dropLast() + [.anyNumber, collection, .unknown]
        }
        return path + [.unknown]
    }

    /// The path below `documents` of the one document with the name that the conditions demand.
    private func documentPath(in conditions: [Condition]) -> [String]? {
        for condition in conditions {
            guard case .compared(let path, .equal, let operand) = condition, path.isDocumentName,
                case .reference(let name) = Operand(operand), let path = RulesPath(reference: name)?.values
            else { continue }
            let root = RulesEvaluation.root(host.request.database)
            guard path.count > root.count, zip(path, root).allSatisfy({ $0.utf8.elementsEqual($1.utf8) }) else {
                continue
            }
            return Array(path.dropFirst(root.count))
        }
        return nil
    }
}
