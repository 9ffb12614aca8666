// The words of a pipeline's text.

internal import DocumentModel

/// One word.
enum PipelineToken: Equatable, CustomStringConvertible {
    /// A name, with dots and parts in backticks: a field, a stage, a function.
    case name(String)
    /// `$name`
    case variable(String)
    /// A text in quotation marks.
    case string(String)
    /// A number, true, false or null.
    case literal(Value)
    case symbol(String)
    case end

    var description: String {
        switch self {
        case .name(let text), .string(let text): "\"\(text)\""
        case .variable(let name): "$\(name)"
        case .literal: "value"
        case .symbol(let symbol): "\"\(symbol)\""
        case .end: "end of the text"
        }
    }
}

/// Looks two words ahead.
struct PipelineTokens {
    private let tokens: [(token: PipelineToken, column: Int)]
    private var position = 0

    init(_ text: String) throws(PipelineTextError) {
        var lexer = PipelineLexer(text)
        var tokens: [(token: PipelineToken, column: Int)] = []
        while true {
            let token = try lexer.next()
            tokens.append(token)
            if token.token == .end { break }
        }
        self.tokens = tokens
    }

    var next: PipelineToken { tokens[position].token }

    var afterNext: PipelineToken { tokens[min(position + 1, tokens.count - 1)].token }

    mutating func advance() { position = min(position + 1, tokens.count - 1) }

    mutating func takes(_ symbol: String) -> Bool {
        guard next == .symbol(symbol) else { return false }
        advance()
        return true
    }

    mutating func takes(word: String) -> Bool {
        guard next == .name(word) else { return false }
        advance()
        return true
    }

    mutating func expect(_ symbol: String) throws(PipelineTextError) {
        if !takes(symbol) { throw failure("\"\(symbol)\" is missing before \(next)") }
    }

    func failure(_ message: String) -> PipelineTextError {
        PipelineTextError(message, column: tokens[position].column)
    }
}

/// Reads one word after the other.
private struct PipelineLexer {
    private let characters: [Character]
    private var position = 0

    init(_ text: String) { characters = Array(text) }

    mutating func next() throws(PipelineTextError) -> (token: PipelineToken, column: Int) {
        while let character = peek, character.isWhitespace { position += 1 }
        let column = position + 1
        guard let character = peek else { return (.end, column) }
        if character == "\"" || character == "'" { return (.string(try string(character, column)), column) }
        if character == "$" {
            position += 1
            return (.variable(name()), column)
        }
        if character.isNumber || character == "-" && isNumber(at: position + 1) && !followsOperand {
            return (.literal(try number(column)), column)
        }
        if character.isLetter || character == "_" || character == "`" {
            let name = name()
            switch name {
            case "true": return (.literal(.boolean(true)), column)
            case "false": return (.literal(.boolean(false)), column)
            case "null": return (.literal(.null), column)
            case "NaN": return (.literal(.double(.nan)), column)
            default: return (.name(name), column)
            }
        }
        let pair = String(characters[position...].prefix(2))
        let symbol = ["==", "!=", "<=", ">="].contains(pair) ? pair : String(character)
        guard pair == symbol || "()[]{},:|<>+-*/%".contains(character) else {
            throw PipelineTextError("unexpected \"\(character)\"", column: column)
        }
        position += symbol.count
        return (.symbol(symbol), column)
    }

    private var peek: Character? { position < characters.count ? characters[position] : nil }

    private func isNumber(at index: Int) -> Bool { index < characters.count && characters[index].isNumber }

    /// Whether a minus sign here is an operator.
    private var followsOperand: Bool {
        guard let last = characters[..<position].last(where: { !$0.isWhitespace }) else { return false }
        return last.isLetter || last.isNumber || ")]}\"'`_".contains(last)
    }

    private mutating func name() -> String {
        var text = ""
        while let character = peek {
            if character == "`" {
                text.append(character)
                position += 1
                while let inner = peek, inner != "`" {
                    text.append(inner)
                    position += 1
                }
                if peek != nil { text.append("`") }
            } else if character.isLetter || character.isNumber || character == "_" || character == "." {
                text.append(character)
            } else {
                return text
            }
            position += 1
        }
        return text
    }

    private mutating func number(_ column: Int) throws(PipelineTextError) -> Value {
        var text = ""
        while let character = peek,
            character.isNumber || ".eE".contains(character)
                || "+-".contains(character) && (text.isEmpty || "eE".contains(text.last ?? " "))
        {
            text.append(character)
            position += 1
        }
        if let integer = Int64(text) { return .integer(integer) }
        if text.contains(where: { ".eE".contains($0) }), let double = Double(text) { return .double(double) }
        throw PipelineTextError("\"\(text)\" is not a number", column: column)
    }

    /// A backslash takes the next character as it is.
    private mutating func string(_ end: Character, _ column: Int) throws(PipelineTextError) -> String {
        var text = ""
        position += 1
        while let character = peek {
            position += 1
            if character == end { return text }
            if character == "\\", let next = peek {
                text.append(next)
                position += 1
            } else {
                text.append(character)
            }
        }
        throw PipelineTextError("the text has no end", column: column)
    }
}
