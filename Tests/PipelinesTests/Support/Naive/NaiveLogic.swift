// Comparisons and logic, for the naive evaluator.

import DocumentModel

extension NaiveEvaluator {
    static let comparisons: [NaiveFunction] = [
        NaiveFunction(total: "equal", [2]) { .boolean(same($0[0], $0[1])) },
        NaiveFunction(total: "not_equal", [2]) { .boolean(!same($0[0], $0[1])) },
        NaiveFunction(total: "less_than", [2]) { .boolean(isLess($0[0], $0[1])) },
        NaiveFunction(total: "less_than_or_equal", [2]) { .boolean(isLess($0[0], $0[1]) || same($0[0], $0[1])) },
        NaiveFunction(total: "greater_than", [2]) { .boolean(isLess($0[1], $0[0])) },
        NaiveFunction(total: "greater_than_or_equal", [2]) { .boolean(isLess($0[1], $0[0]) || same($0[0], $0[1])) },
        NaiveFunction("cmp", [2]) { .integer(total($0[0], $0[1])) },
        NaiveFunction(total: "equal_any", [2], [[], arrayValues]) { isMember($0) { $0 } },
        NaiveFunction(total: "not_equal_any", [2], [[], arrayValues]) { isMember($0) { !$0 } },
    ]

    private static func isMember(_ arguments: [Value?], _ result: (Bool) -> Bool) -> NaiveOutcome {
        switch arguments[1] {
        case nil, .null?: .null
        case .array(let elements)?: .boolean(result(elements.contains { same(arguments[0], $0) }))
        default: .failed
        }
    }

    private static let truths: [Value] = [true, false, .null]

    static let logic: [NaiveFunction] = [
        NaiveFunction(form: "and", [1, 2, 3], [truths]) { decided($0, by: false) },
        NaiveFunction(form: "or", [1, 2, 3], [truths]) { decided($0, by: true) },
        NaiveFunction(form: "nor", [1, 2, 3], [truths]) { negated(decided($0, by: true)) },
        NaiveFunction(form: "not", [1], [truths]) { negated(decided($0, by: true)) },
        NaiveFunction(form: "xor", [1, 2, 3], [truths]) { arguments in
            let known = arguments.map(truth)
            if known.contains(where: { $0 == nil }) { return .failed }
            if known.contains(.unknown) { return .null }
            return .boolean(known.count { $0 == .yes } % 2 == 1)
        },
        NaiveFunction(form: "conditional", [3], [truths, []]) { arguments in
            truth(arguments[0]).map { $0 == .yes ? arguments[1] : arguments[2] } ?? .failed
        },
        NaiveFunction(form: "switch_on", [2, 3, 4, 5], [truths, [1, "x"], truths, [2, "y"], []]) { arguments in
            var rest = arguments[...]
            while rest.count > 1 {
                guard let condition = truth(rest.removeFirst()) else { return .failed }
                let value = rest.removeFirst()
                if condition == .yes { return value }
            }
            return rest.first ?? .failed
        },
        NaiveFunction(total: "exists", [1]) { .boolean($0[0] != nil) },
        NaiveFunction(total: "is_absent", [1]) { .boolean($0[0] == nil) },
        NaiveFunction(form: "if_absent", [2]) { if case .absent = $0[0] { $0[1] } else { $0[0] } },
        NaiveFunction(form: "if_null", [2], [[.null], []]) { arguments in
            switch arguments[0] {
            case .value(.null), .absent: arguments[1]
            default: arguments[0]
            }
        },
        NaiveFunction(form: "coalesce", [1, 2, 3], [[.null], [.null], []]) { arguments in
            arguments.first { !$0.isNullOrAbsent } ?? arguments[arguments.count - 1]
        },
        NaiveFunction(form: "is_error", [1]) { .boolean($0[0].isFailed) },
        NaiveFunction(form: "if_error", [2]) { $0[0].isFailed ? $0[1] : $0[0] },
        NaiveFunction(form: "error", [1]) { _ in .failed },
        NaiveFunction(total: "maximum", [1, 2, 3]) { extreme($0) { total($0, $1) > 0 } },
        NaiveFunction(total: "minimum", [1, 2, 3]) { extreme($0) { total($0, $1) < 0 } },
    ]

    private enum Truth {
        case yes, no, unknown
    }

    /// Nil for a failure and for what is neither true, false nor unknown.
    private static func truth(_ outcome: NaiveOutcome) -> Truth? {
        switch outcome {
        case .value(.boolean(let value)): value ? .yes : .no
        case .absent, .value(.null): .unknown
        default: nil
        }
    }

    /// One argument of the value decides; else a failure counts, then an unknown.
    private static func decided(_ arguments: [NaiveOutcome], by deciding: Bool) -> NaiveOutcome {
        let known = arguments.map(truth)
        if known.contains(deciding ? .yes : .no) { return .boolean(deciding) }
        if known.contains(where: { $0 == nil }) { return .failed }
        return known.contains(.unknown) ? .null : .boolean(!deciding)
    }

    private static func negated(_ outcome: NaiveOutcome) -> NaiveOutcome {
        if case .value(.boolean(let value)) = outcome { .boolean(!value) } else { outcome }
    }

    /// The first value that none of the others precedes. One array stands for its elements.
    private static func extreme(_ arguments: [Value?], _ isBetter: (Value, Value) -> Bool) -> NaiveOutcome {
        var candidates = arguments.compactMap { $0 }
        if arguments.count == 1, case .array(let elements)? = arguments[0] { candidates = elements }
        candidates.removeAll(where: { isNull($0) })
        return .value(
            candidates.reduce(nil) { best, value in
                best.map { isBetter(value, $0) ? value : $0 } ?? value
            } ?? .null)
    }
}
