// The filter of a query as cases that are judged one by one.

internal import DocumentModel

/// One condition on one field.
enum Condition: Sendable {
    case compared(FieldPath, FieldOperator, EncodedValue)
    case tested(FieldPath, UnaryOperator)
    /// The query sorts by the field, so each of its documents has it.
    case exists(FieldPath)
}

enum QueryCases {
    /// Conjunctions of which every document of the query meets one: the filter in disjunctive normal form, with lists
    /// of alternatives taken apart. Those that contradict themselves are left out, unless all do: no document meets
    /// them.
    ///
    /// - Returns: nil if there are more than ``RulesLimits/proofCases``, those left out included.
    static func cases(of query: StructuredQuery?) -> [[Condition]]? {
        guard let query else { return [[]] }
        let orders = query.orderBy.filter { !$0.field.isDocumentName }.map { Condition.exists($0.field) }
        guard let filter = query.filter else { return [orders] }
        guard let cases = disjunction(filter)?.map({ $0 + orders }) else { return nil }
        let possible = cases.filter { !CaseFacts.areImpossible($0) }
        return possible.isEmpty ? cases : possible
    }

    private static func disjunction(_ filter: Filter) -> [[Condition]]? {
        switch filter {
        case .or(let parts):
            var cases: [[Condition]] = []
            for part in parts {
                guard let more = disjunction(part), cases.count + more.count <= RulesLimits.proofCases else {
                    return nil
                }
                cases += more
            }
            return cases
        case .and(let parts):
            var cases: [[Condition]] = [[]]
            for part in parts {
                guard let more = disjunction(part), cases.count * more.count <= RulesLimits.proofCases else {
                    return nil
                }
                cases = cases.flatMap { before in more.map { before + $0 } }
            }
            return cases
        case .field(let path, let operation, let operand):
            switch operation {
            case .isIn: return members(operand)?.map { [.compared(path, .equal, $0)] }
            case .arrayContainsAny: return members(operand)?.map { [.compared(path, .arrayContains, $0)] }
            default: return [[.compared(path, operation, operand)]]
            }
        case .unary(let path, let operation): return [[.tested(path, operation)]]
        }
    }

    /// The elements of the operand of a list operator.
    static func members(_ operand: EncodedValue) -> [EncodedValue]? {
        guard var elements = WireValue(operand.span)?.elements else { return nil }
        var members: [EncodedValue] = []
        while let element = elements.next() { members.append(EncodedValue(copying: element)) }
        return members.count <= RulesLimits.proofCases ? members : nil
    }
}
