// Regular expressions in the rules language.

internal import Expressions

enum Patterns {
    static func invalid(_ source: String) -> ExpressionError {
        .failed("Invalid regular expression pattern. Pattern: \(source.prefix(200)).")
    }

    /// The compiled pattern of a text that is computed; throws if it is not valid.
    static func pattern(_ evaluation: Evaluation, _ source: String) throws(ExpressionError) -> Pattern {
        // Reading takes some microseconds a byte.
        try evaluation.spendWork(256 * source.utf8.count)
        let compiled = evaluation.patterns.compiled(source)
        try evaluation.spendWork(compiled.cost)
        guard let pattern = compiled.pattern else { throw invalid(source) }
        return pattern
    }

    /// Whether the whole text matches.
    static func matches(
        _ evaluation: Evaluation, _ text: String, _ pattern: Pattern
    ) throws(ExpressionError) -> Bool {
        try evaluation.spendWork(pattern.searchCost(text.utf8.count))
        return pattern.matchesWhole(text)
    }

    /// The parts of a text between matches, without empty ones at the end; at least one.
    static func split(
        _ evaluation: Evaluation, _ text: String, _ pattern: Pattern
    ) throws(ExpressionError) -> [Operand] {
        let bytes = Array(text.utf8)
        var parts: [String] = []
        var last = 0
        try forEachMatch(evaluation, text, pattern) { match throws(ExpressionError) in
            guard let whole = match[0] else { return }
            parts.append(String(decoding: bytes[last..<whole.lowerBound], as: UTF8.self))
            last = whole.upperBound
        }
        parts.append(String(decoding: bytes[last...], as: UTF8.self))
        while parts.count > 1, parts.last?.isEmpty == true { parts.removeLast() }
        return parts.map { .string($0) }
    }

    /// The text with each match replaced.
    ///
    /// - Parameter template: `$1` and `${name}` stand for groups, `\` before a character for the character.
    static func replace(
        _ evaluation: Evaluation, _ text: String, _ pattern: Pattern, by template: String
    ) throws(ExpressionError) -> String {
        let parts = try ReplacementTemplate(template, for: pattern).parts
        let bytes = Array(text.utf8)
        var output: [UInt8] = []
        var last = 0
        try forEachMatch(evaluation, text, pattern) { match throws(ExpressionError) in
            guard let whole = match[0] else { return }
            let start = output.count
            output += bytes[last..<whole.lowerBound]
            for part in parts {
                switch part {
                case .literal(let literal): output += literal
                case .group(let number): if let range = match[number] { output += bytes[range] }
                }
            }
            try evaluation.spendMemory(output.count - start)
            last = whole.upperBound
        }
        try evaluation.spendMemory(bytes.count - last)
        return String(decoding: output + bytes[last...], as: UTF8.self)
    }

    private static func forEachMatch(
        _ evaluation: Evaluation, _ text: String, _ pattern: Pattern,
        _ body: ([Range<Int>?]) throws(ExpressionError) -> Void
    ) throws(ExpressionError) {
        let count = text.utf8.count
        try evaluation.spendWork(pattern.searchCost(count))
        try pattern.forEachMatch(in: text) { match throws(ExpressionError) in
            try evaluation.spendMemory(64)
            try body(match)
            // The search for the next match may look at what is left again.
            try evaluation.spendWork(pattern.furtherSearchCost(count - (match[0]?.upperBound ?? 0)))
        }
    }
}

/// What replaces a match.
struct ReplacementTemplate {
    enum Part {
        case literal([UInt8])
        case group(Int)
    }

    private(set) var parts: [Part] = []
    private var literal: [UInt8] = []

    /// Reads a template; throws if it names a group that the pattern does not have.
    init(_ text: String, for pattern: Pattern) throws(ExpressionError) {
        let bytes = Array(text.utf8)
        var at = 0
        while at < bytes.count {
            if bytes[at] == UInt8(ascii: "\\"), at + 1 < bytes.count {
                literal.append(bytes[at + 1])
                at += 2
            } else if bytes[at] == UInt8(ascii: "$"), let group = try Self.group(bytes, &at, pattern) {
                endLiteral()
                parts.append(.group(group))
            } else {
                literal.append(bytes[at])
                at += 1
            }
        }
        endLiteral()
    }

    private mutating func endLiteral() {
        if !literal.isEmpty { parts.append(.literal(literal)) }
        literal = []
    }

    /// The group after a `$`; nil, and nothing read, if the `$` stands for itself.
    private static func group(
        _ bytes: [UInt8], _ at: inout Int, _ pattern: Pattern
    ) throws(ExpressionError) -> Int? {
        var end = at + 1
        guard end < bytes.count else { return nil }
        if bytes[end] == UInt8(ascii: "{") {
            guard let close = bytes[end...].firstIndex(of: UInt8(ascii: "}")) else {
                throw .failed("The replacement has '${' without '}'.")
            }
            let name = String(decoding: bytes[(end + 1)..<close], as: UTF8.self)
            guard let group = pattern.group(named: name) else {
                throw .failed("The pattern has no group with the name \(name.prefix(100)).")
            }
            at = close + 1
            return group
        }
        guard Lexer.isDigit(bytes[end]) else { return nil }
        var number = Int(bytes[end] - UInt8(ascii: "0"))
        if number > pattern.groupCount { throw .failed("The pattern has no group \(number).") }
        end += 1
        // Further digits count as long as there is such a group.
        while end < bytes.count, Lexer.isDigit(bytes[end]) {
            let longer = number * 10 + Int(bytes[end] - UInt8(ascii: "0"))
            if longer > pattern.groupCount { break }
            number = longer
            end += 1
        }
        at = end
        return number
    }
}
