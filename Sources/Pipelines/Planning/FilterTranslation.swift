// Conditions of pipelines that queries can check, with the same results.
//
//     equal(a, 1)                       a == 1
//     less_than(a, "x")                 a < "x"            neither null nor NaN
//     equal_any(a, [1, 2])              a in [1, 2]        likewise
//     array_contains(a, 1)              a array-contains 1
//     and(...), or(...)                 and, or
//
// Queries differ where a value is null or NaN, where a field is absent, and in `!=` and `not-in`: these conditions stay
// with the pipeline.

internal import Basics
internal import DocumentModel
internal import Expressions

enum FilterTranslation {
    /// The conditions of which all must hold.
    static func conjuncts(_ condition: PipelineValue) -> [PipelineValue] {
        guard case .call(let call) = condition, call.name == "and", call.options.isEmpty, !call.arguments.isEmpty else {
            return [condition]
        }
        return call.arguments.flatMap(conjuncts)
    }

    /// The filter that is true where the condition is true; nil if there is none.
    static func filter(_ condition: PipelineValue) -> Filter? {
        guard case .call(let call) = condition, call.options.isEmpty else { return nil }
        switch call.name {
        case "and", "or":
            var parts: [Filter] = []
            var existing: [FieldPath] = []
            for argument in call.arguments {
                if call.name == "and", let field = existingField(argument) {
                    existing.append(field)
                } else {
                    guard let part = filter(argument) else { return nil }
                    parts.append(part)
                }
            }
            // That a field exists is said by the comparisons that need it; a query says it in no other way.
            let required = parts.isEmpty ? [] : fields(requiredBy: .and(parts))
            guard existing.allSatisfy(required.contains) else { return nil }
            if parts.count < 2 { return parts.first }
            return call.name == "and" ? .and(parts) : .or(parts)
        default: return comparison(call)
        }
    }

    /// The field of which a condition says that it exists; nil for other conditions.
    static func existingField(_ condition: PipelineValue) -> FieldPath? {
        guard case .call(let call) = condition, call.name == "exists", call.options.isEmpty, call.arguments.count == 1
        else { return nil }
        return field(call.arguments[0])
    }

    /// The fields that exist in every document that passes a filter.
    static func fields(requiredBy filter: Filter) -> Set<FieldPath> {
        switch filter {
        case .and(let parts): return parts.reduce(into: []) { $0.formUnion(fields(requiredBy: $1)) }
        case .or(let parts):
            guard let first = parts.first else { return [] }
            return parts.dropFirst().reduce(fields(requiredBy: first)) { $0.intersection(fields(requiredBy: $1)) }
        case .field(let path, _, _), .unary(let path, _): return [path]
        }
    }

    /// Whether a range is one of several alternatives. In an ordered query each such field has to exist.
    static func hasRangeInDisjunction(_ filter: Filter, isInDisjunction: Bool = false) -> Bool {
        switch filter {
        case .and(let parts):
            parts.contains { hasRangeInDisjunction($0, isInDisjunction: isInDisjunction) }
        case .or(let parts): parts.contains { hasRangeInDisjunction($0, isInDisjunction: true) }
        case .field(_, let operation, _): isInDisjunction && operation.isRange
        case .unary: false
        }
    }

    /// Whether a filter compares a field for inequality.
    static func hasRange(_ filter: Filter) -> Bool {
        switch filter {
        case .and(let parts), .or(let parts): parts.contains(where: hasRange)
        case .field(_, let operation, _): operation.isRange
        case .unary: false
        }
    }

    /// The fields that a condition compares for inequality with a literal. Queries are sorted by them unless they say
    /// otherwise.
    static func inequalityFields(_ condition: PipelineValue) -> Set<FieldPath> {
        guard case .call(let call) = condition, call.options.isEmpty else { return [] }
        if call.name == "and" || call.name == "or" {
            return call.arguments.reduce(into: []) { $0.formUnion(inequalityFields($1)) }
        }
        guard inequalities.contains(call.name), call.arguments.count == 2 else { return [] }
        let (left, right) = (call.arguments[0].folded, call.arguments[1].folded)
        let path = right.literal != nil ? field(left) : left.literal != nil ? field(right) : nil
        return path.map { [$0] } ?? []
    }

    private static let inequalities: Set<String> = [
        "less_than", "less_than_or_equal", "greater_than", "greater_than_or_equal", "not_equal", "not_equal_any",
    ]

    static func field(_ value: PipelineValue) -> FieldPath? {
        switch value {
        case .field(let path): path
        case .document(.name): .documentName
        default: nil
        }
    }

    // MARK: Comparisons

    private static let operators: [String: FieldOperator] = [
        "equal": .equal, "less_than": .lessThan, "less_than_or_equal": .lessThanOrEqual,
        "greater_than": .greaterThan, "greater_than_or_equal": .greaterThanOrEqual, "equal_any": .isIn,
        "array_contains": .arrayContains, "array_contains_any": .arrayContainsAny,
    ]

    /// The operators with their sides exchanged.
    private static let exchanged: [FieldOperator: FieldOperator] = [
        .equal: .equal, .lessThan: .greaterThan, .lessThanOrEqual: .greaterThanOrEqual,
        .greaterThan: .lessThan, .greaterThanOrEqual: .lessThanOrEqual,
    ]

    private static func comparison(_ call: PipelineCall) -> Filter? {
        guard call.arguments.count == 2, let operation = operators[call.name] else { return nil }
        let (left, right) = (call.arguments[0].folded, call.arguments[1].folded)
        if let path = field(left), let operand = right.literal { return comparison(path, operation, operand) }
        if let path = field(right), let operand = left.literal, let operation = exchanged[operation] {
            return comparison(path, operation, operand)
        }
        return nil
    }

    private static func comparison(_ path: FieldPath, _ operation: FieldOperator, _ operand: Operand) -> Filter? {
        if operation == .equal, case .null = operand { return path.isDocumentName ? nil : .unary(path, .isNull) }
        if operation == .equal, operand.isNaN { return path.isDocumentName ? nil : .unary(path, .isNaN) }
        if operation.takesList {
            guard let members = operand.elements, !members.isEmpty, members.count <= Limits.disjunctions,
                !members.contains(where: { $0.isNullOrAbsent || $0.isNaN })
            else { return nil }
        } else if operand.isNullOrAbsent || operand.isNaN {
            return nil
        }
        guard let bytes = try? operand.wireBytes() else { return nil }
        let value =
            operation.takesList
            ? try? EncodedValue(listOperand: bytes.byteSpan) : try? EncodedValue(operand: bytes.byteSpan)
        guard let value else { return nil }
        return .field(path, operation, value)
    }
}

extension Operand {
    fileprivate var isNaN: Bool { number?.isNaN ?? false }
}
