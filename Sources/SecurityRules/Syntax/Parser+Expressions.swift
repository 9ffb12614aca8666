// Expressions of the rules language, from the loosest operator to the tightest:
//
//     c ? a : b
//     ||
//     &&
//     in
//     is TYPE
//     == !=
//     < <= > >=
//     + -
//     * / %
//     ! -            before an operand
//     . [ ]          after an operand

extension Parser {
    /// Parses an expression.
    mutating func expression() throws(Failure) -> ExpressionSyntax {
        depth += 1
        defer { depth -= 1 }
        if depth > RulesLimits.nestingDepth { throw tooComplex(token.range) }
        let condition = try operation(above: 0)
        if !skip("?") { return condition }
        let first = try expression()
        try expect(":")
        let second = try expression()
        return try node(.conditional(condition, first, second), condition.range)
    }

    private func tooComplex(_ range: SourceRange) -> Failure {
        failure(
            "Expression is too complex to evaluate safely.", range,
            remedy: "Move parts of it into functions, or compare with a list by 'in'.")
    }

    /// An expression from `start` to the end of the last token.
    private func node(_ kind: ExpressionSyntax.Kind, _ start: SourceRange) throws(Failure) -> ExpressionSyntax {
        let depth = (kind.parts.map(\.depth).max() ?? 0) + 1
        let range = range(from: start)
        if depth > RulesLimits.nestingDepth { throw tooComplex(range) }
        return ExpressionSyntax(kind: kind, range: range, depth: depth)
    }

    // MARK: Operators

    /// Operands joined by operators that bind tighter than `precedence`.
    private mutating func operation(above precedence: Int) throws(Failure) -> ExpressionSyntax {
        var left = try unary()
        while true {
            if isAt("is"), BinaryOperator.typeTestPrecedence > precedence {
                advance()
                let type = try identifier("the name of a type")
                left = try node(.typeTest(left, type), left.range)
                continue
            }
            if isAt("++") || isAt("--") { throw increment() }
            guard token.kind == .symbol || token.kind == .keyword, let next = BinaryOperator(symbol: token.text),
                next.precedence > precedence
            else { return left }
            advance()
            depth += 1
            defer { depth -= 1 }
            if depth > RulesLimits.nestingDepth { throw tooComplex(token.range) }
            let right = try operation(above: next.precedence)
            left = try node(.binary(next, left, right), left.range)
        }
    }

    private func increment() -> Failure {
        failure("Increment (++) and decrement (--) operators are not supported.", remedy: "Write '1 - -1' or '-(-1)'.")
    }

    private mutating func unary() throws(Failure) -> ExpressionSyntax {
        let start = token.range
        if isAt("++") || isAt("--") { throw increment() }
        let isNot = skip("!")
        guard isNot || skip("-") else { return try postfix() }
        // The smallest integer has no positive counterpart, so its sign belongs to the literal.
        if !isNot, case .integer(nil) = token.kind {
            advance()
            return try node(.integer(.min), start)
        }
        depth += 1
        defer { depth -= 1 }
        if depth > RulesLimits.nestingDepth { throw tooComplex(token.range) }
        // The operand of a minus has no other operator before it.
        let operand = isNot ? try unary() : try postfix()
        return try node(.unary(isNot ? .not : .negate, operand), start)
    }

    private mutating func postfix() throws(Failure) -> ExpressionSyntax {
        var operand = try primary()
        while true {
            let start = operand.range
            if skip(".") {
                // After a point a keyword is an ordinary name.
                guard token.kind == .identifier || token.kind == .keyword else { throw unexpected("a name") }
                let name = token.text
                advance()
                if isAt("(") {
                    operand = try node(.method(operand, name, try arguments()), start)
                } else {
                    operand = try node(.member(operand, name), start)
                }
            } else if skip("[") {
                operand = try subscripted(operand)
            } else {
                return operand
            }
        }
    }

    /// `[index]` or `[from:to]`, after the bracket.
    private mutating func subscripted(_ operand: ExpressionSyntax) throws(Failure) -> ExpressionSyntax {
        let start = operand.range
        var first: ExpressionSyntax?
        if !isAt(":") { first = try expression() }
        if skip(":") {
            var last: ExpressionSyntax?
            if !isAt("]") { last = try expression() }
            try expect("]")
            return try node(.slice(operand, first, last), start)
        }
        try expect("]")
        // Only a slice lacks its first index.
        guard let first else { throw unexpected("an index") }
        return try node(.index(operand, first), start)
    }

    /// `(a, b)`; a comma may follow the last one.
    private mutating func arguments() throws(Failure) -> [ExpressionSyntax] {
        try expect("(")
        return try elements(to: ")")
    }

    private mutating func elements(to end: String) throws(Failure) -> [ExpressionSyntax] {
        var elements: [ExpressionSyntax] = []
        while !isAt(end) {
            elements.append(try expression())
            if !skip(",") { break }
        }
        try expect(end)
        return elements
    }

    // MARK: Operands

    private mutating func primary() throws(Failure) -> ExpressionSyntax {
        let start = token.range
        switch token.kind {
        case .integer(let number?): return try literal(.integer(number))
        case .integer(nil):
            throw failure("Invalid number literal \(token.text).", remedy: "The largest integer is \(Int64.max).")
        case .float(let number): return try literal(.float(number))
        case .string(let text): return try literal(.string(text))
        case .bytes(let bytes): return try literal(.bytes(bytes))
        case .pathSegment: return try path()
        case .identifier:
            let name = token.text
            advance()
            if !isAt("(") { return try node(.variable(name), start) }
            return try node(.call(name, try arguments()), start)
        default: break
        }
        if isAt("true") || isAt("false") { return try literal(.boolean(token.text == "true")) }
        if isAt("null") { return try literal(.null) }
        if isAt("/") { return try path() }
        if skip("[") {
            return try node(.list(try elements(to: "]")), start)
        }
        if skip("{") { return try map(start) }
        if skip("(") {
            let inner = try expression()
            try expect(")")
            // The brackets are a level of their depth, and no expression.
            if inner.depth >= RulesLimits.nestingDepth { throw tooComplex(range(from: start)) }
            return ExpressionSyntax(kind: inner.kind, range: inner.range, depth: inner.depth + 1)
        }
        throw unexpected("an expression")
    }

    private mutating func literal(_ kind: ExpressionSyntax.Kind) throws(Failure) -> ExpressionSyntax {
        let start = token.range
        advance()
        return try node(kind, start)
    }

    private mutating func map(_ start: SourceRange) throws(Failure) -> ExpressionSyntax {
        var entries: [(key: ExpressionSyntax, value: ExpressionSyntax)] = []
        while !isAt("}") {
            let key = try expression()
            try expect(":")
            entries.append((key, try expression()))
            if !skip(",") { break }
        }
        try expect("}")
        return try node(.map(entries), start)
    }

    // MARK: Paths

    private mutating func path() throws(Failure) -> ExpressionSyntax {
        let start = token.range
        let segments = try pathSegments()
        if segments.isEmpty { throw unexpected("a segment of a path") }
        return try node(.path(segments), start)
    }

    /// The segments that begin here; none if no path does.
    mutating func pathSegments() throws(Failure) -> [PathSegmentSyntax] {
        var segments: [PathSegmentSyntax] = []
        while let segment = try pathSegment() { segments.append(segment) }
        return segments
    }

    private mutating func pathSegment() throws(Failure) -> PathSegmentSyntax? {
        let start = token.range
        if case .pathSegment(let text) = token.kind {
            advance()
            return PathSegmentSyntax(kind: .literal(text), range: range(from: start))
        }
        guard isAt("/") else { return nil }
        // A slash before anything but a bracket divides.
        var ahead = self
        ahead.advance()
        guard ahead.token.kind == .dollar || ahead.isAt("{") else { return nil }
        advance()
        if token.kind == .dollar {
            advance()
            try expect("(")
            let part = try expression()
            try expect(")")
            return PathSegmentSyntax(kind: .expression(part), range: range(from: start))
        }
        try expect("{")
        let name = try identifier("the name of a wildcard").name
        var isGlob = false
        if skip("=") {
            isGlob = !skip("*")
            if isGlob { try expect("**") }
        }
        try expect("}")
        return PathSegmentSyntax(kind: isGlob ? .globCapture(name) : .capture(name), range: range(from: start))
    }
}
