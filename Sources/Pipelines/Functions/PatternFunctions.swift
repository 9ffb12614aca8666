// Regular expressions (RE2) and patterns of `like`.

internal import Expressions

enum PatternFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("regex_contains", 2, .strict(contains)),
        PipelineFunction("regex_match", 2, .strict(match)),
        PipelineFunction("regex_find", 2, .strict(find)),
        PipelineFunction("regex_find_all", 2, .strict(findAll)),
        PipelineFunction("like", 2, .strict(like)),
    ]

    private static func contains(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let (text, pattern) = try textAndPattern("regex_contains", operands, evaluation)
        return .boolean(pattern.firstMatch(in: text) != nil)
    }

    private static func match(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let (text, pattern) = try textAndPattern("regex_match", operands, evaluation)
        return .boolean(pattern.matchesWhole(text))
    }

    /// The first match; its group if the pattern has one.
    private static func find(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let (text, pattern) = try textAndPattern("regex_find", operands, evaluation)
        try refuseGroups("regex_find", pattern)
        guard let match = pattern.firstMatch(in: text), let found = range(of: match) else { return .null }
        return .string(String(decoding: Array(text.utf8)[found], as: UTF8.self))
    }

    private static func findAll(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let (text, pattern) = try textAndPattern("regex_find_all", operands, evaluation)
        try refuseGroups("regex_find_all", pattern)
        let bytes = Array(text.utf8)
        var matches: [Operand] = []
        try pattern.forEachMatch(in: text) { (match) throws(ExpressionError) in
            guard let found = range(of: match) else { return }
            try evaluation.spendMemory(40 + found.count)
            matches.append(.string(String(decoding: bytes[found], as: UTF8.self)))
            // The search for the next match may look at what is left again.
            try evaluation.spendWork(pattern.furtherSearchCost(bytes.count - (match[0]?.upperBound ?? 0)))
        }
        return .list(matches)
    }

    private static func range(of match: [Range<Int>?]) -> Range<Int>? { match.count > 1 ? match[1] : match[0] }

    private static func refuseGroups(_ name: String, _ pattern: Pattern) throws(ExpressionError) {
        if pattern.groupCount > 1 { throw .failed("\(name): the pattern has more than one group") }
    }

    /// `%` stands for any text and `_` for one character; a backslash takes the next character literally.
    private static func like(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let text = try StringFunctions.text("like", operands[0], evaluation)
        let source = try StringFunctions.text("like", operands[1], evaluation)
        let pattern = try compiled("like", expression(ofLike: source), evaluation)
        try evaluation.spendWork(pattern.searchCost(text.utf8.count))
        return .boolean(pattern.matchesWhole(text))
    }

    /// The regular expression of a pattern of `like`.
    private static func expression(ofLike source: String) -> String {
        var result = "(?s)"
        var isEscaped = false
        for scalar in source.unicodeScalars {
            switch scalar {
            case "\\" where !isEscaped:
                isEscaped = true
                continue
            case "%" where !isEscaped: result += ".*"
            case "_" where !isEscaped: result += "."
            default:
                if scalar.isASCII, !scalar.properties.isAlphabetic, !("0"..."9").contains(scalar) { result += "\\" }
                result.unicodeScalars.append(scalar)
            }
            isEscaped = false
        }
        return isEscaped ? result + "\\\\" : result
    }

    private static func textAndPattern(
        _ name: String, _ operands: [Operand], _ evaluation: Evaluation
    ) throws(ExpressionError) -> (String, Pattern) {
        let text = try StringFunctions.text(name, operands[0], evaluation)
        let pattern = try compiled(name, try StringFunctions.text(name, operands[1], evaluation), evaluation)
        try evaluation.spendWork(pattern.searchCost(text.utf8.count))
        return (text, pattern)
    }

    private static func compiled(
        _ name: String, _ source: String, _ evaluation: Evaluation
    ) throws(ExpressionError) -> Pattern {
        try evaluation.spendWork(64 * source.utf8.count)
        let compiled = evaluation.patterns.compiled(source)
        try evaluation.spendWork(compiled.cost)
        guard let pattern = compiled.pattern else {
            throw .failed("\(name): the pattern is not valid, or too large")
        }
        return pattern
    }
}
