// Declarations of the rules language.
//
//     ruleset   = ["rules_version" "=" STRING [";"]] {function | service}
//     service   = "service" NAME {"." NAME} "{" body "}"
//     body      = {match | function}                              at least one
//     match     = "match" PATH "{" {match | function | allow} "}" at least one
//     allow     = "allow" NAME {"," NAME} [":" "if" expression] [";"]
//     function  = "function" NAME "(" [NAME {"," NAME}] ")" "{" {let} "return" expression [";"] "}"
//     let       = "let" NAME "=" expression ";"

/// A recursive-descent parser with bounded depth. It stops at the first error.
struct Parser {
    private var lexer: Lexer
    private(set) var token: Token
    /// Where the token before ``token`` ends.
    private(set) var previousEnd: Int32 = 0
    /// Levels of expressions that are being parsed.
    var depth = 0

    /// Why the parser stopped. A reference: every call that can throw has a place for it in the frame of its caller.
    final class Failure: Error {
        let diagnostic: RulesDiagnostic

        init(diagnostic: RulesDiagnostic) { self.diagnostic = diagnostic }
    }

    init(_ source: SourceText) {
        lexer = Lexer(source)
        token = lexer.next()
    }

    /// Parses a whole text.
    static func parse(_ source: SourceText) throws(InvalidRules) -> RulesetSyntax {
        var parser = Parser(source)
        do {
            return try parser.ruleset()
        } catch {
            throw InvalidRules(diagnostics: [error.diagnostic])
        }
    }

    // MARK: Tokens

    mutating func advance() {
        previousEnd = token.range.end
        token = lexer.next()
    }

    func isAt(_ text: String) -> Bool {
        (token.kind == .symbol || token.kind == .keyword) && token.text == text
    }

    /// Moves past a symbol or keyword if it is next.
    mutating func skip(_ text: String) -> Bool {
        if !isAt(text) { return false }
        advance()
        return true
    }

    mutating func expect(_ text: String, remedy: String? = nil) throws(Failure) {
        if !skip(text) { throw unexpected("'\(text)'", remedy: remedy) }
    }

    mutating func identifier(_ what: String) throws(Failure) -> NameSyntax {
        guard token.kind == .identifier else { throw unexpected(what) }
        let name = NameSyntax(name: token.text, range: token.range)
        advance()
        return name
    }

    func failure(_ message: String, _ range: SourceRange? = nil, remedy: String? = nil) -> Failure {
        Failure(diagnostic: RulesDiagnostic(.error, range ?? token.range, message, remedy: remedy))
    }

    /// The error that something else than `expected` is next.
    func unexpected(_ expected: String, remedy: String? = nil) -> Failure {
        switch token.kind {
        case .invalid(let problem): failure(problem, remedy: remedy)
        case .end: failure("Unexpected end of the text: \(expected) is missing.", remedy: remedy)
        case .pathSegment:
            failure(
                "Unexpected '\(token.text)': \(expected) was expected.",
                remedy: remedy ?? "A slash with characters after it is a path. Write a space after '/' to divide.")
        default: failure("Unexpected '\(token.text)': \(expected) was expected.", remedy: remedy)
        }
    }

    func range(from start: SourceRange) -> SourceRange { SourceRange(Int(start.start), Int(previousEnd)) }

    // MARK: Declarations

    private mutating func ruleset() throws(Failure) -> RulesetSyntax {
        var ruleset = RulesetSyntax()
        if token.kind == .end { throw failure("The text has no rules.") }
        if skip("rules_version") { ruleset.version = try version() }
        while token.kind != .end {
            if isAt("function") {
                ruleset.functions.append(try function())
            } else if isAt("service") {
                ruleset.services.append(try service())
            } else {
                throw unexpected("'service' or 'function'")
            }
        }
        return ruleset
    }

    private mutating func version() throws(Failure) -> RulesVersion {
        try expect("=")
        guard case .string(let text) = token.kind else { throw unexpected("a version in quotes") }
        guard let version = Int(text).flatMap(RulesVersion.init), text.count == 1 else {
            throw failure("Unsupported rules version \(text).", remedy: "Write rules_version = '2';")
        }
        advance()
        _ = skip(";")
        return version
    }

    private mutating func service() throws(Failure) -> ServiceSyntax {
        try expect("service")
        let first = try identifier("the name of a service")
        var name = first.name
        while skip(".") { name += "." + (try identifier("a part of the name of a service")).name }
        let nameRange = range(from: first.range)
        let body = try body(of: "service", depth: 0)
        return ServiceSyntax(name: name, nameRange: nameRange, body: body)
    }

    /// - Parameter depth: matches around the body.
    private mutating func body(of owner: String, depth: Int) throws(Failure) -> BodySyntax {
        try expect("{")
        var body = BodySyntax()
        while !isAt("}") {
            if isAt("match") {
                body.matches.append(try match(depth: depth + 1))
            } else if isAt("function") {
                body.functions.append(try function())
            } else if isAt("allow"), depth > 0 {
                body.allows.append(try allow())
            } else {
                throw unexpected(depth > 0 ? "'match', 'allow', 'function' or '}'" : "'match', 'function' or '}'")
            }
        }
        if body.isEmpty { throw failure("The '\(owner)' body must contain at least one declaration.") }
        advance()
        return body
    }

    private mutating func match(depth: Int) throws(Failure) -> MatchSyntax {
        if depth > RulesLimits.matchDepth {
            throw failure("More than \(RulesLimits.matchDepth) 'match' blocks are nested.")
        }
        try expect("match")
        let start = token.range
        let path = try pathSegments()
        if path.isEmpty { throw unexpected("a path that begins with '/'") }
        for segment in path {
            if case .expression = segment.kind {
                throw failure("The path of a 'match' cannot have an expression.", segment.range)
            }
        }
        let pathRange = range(from: start)
        return MatchSyntax(path: path, pathRange: pathRange, body: try body(of: "match", depth: depth))
    }

    private mutating func allow() throws(Failure) -> AllowSyntax {
        let start = token.range
        try expect("allow")
        var methods = [try identifier("an operation such as 'read'")]
        while skip(",") { methods.append(try identifier("an operation such as 'read'")) }
        var condition: ExpressionSyntax?
        if skip(":") {
            try expect("if", remedy: "Write 'if' before the condition.")
            condition = try expression()
        } else if isAt("if") {
            throw failure("Missing ':' before 'if' condition.", remedy: "Write 'allow …: if …'.")
        }
        _ = skip(";")
        return AllowSyntax(methods: methods, condition: condition, range: range(from: start))
    }

    private mutating func function() throws(Failure) -> FunctionSyntax {
        try expect("function")
        let name = try identifier("the name of a function")
        try expect("(")
        var parameters: [NameSyntax] = []
        if !isAt(")") {
            parameters.append(try identifier("the name of a parameter"))
            while skip(",") { parameters.append(try identifier("the name of a parameter")) }
        }
        try expect(")")
        try expect("{")
        var variables: [(name: NameSyntax, value: ExpressionSyntax)] = []
        while skip("let") {
            let variable = try identifier("the name of a variable")
            try expect("=")
            variables.append((variable, try expression()))
            try expect(";")
        }
        try expect("return")
        let result = try expression()
        _ = skip(";")
        try expect("}")
        return FunctionSyntax(name: name, parameters: parameters, variables: variables, result: result)
    }
}
