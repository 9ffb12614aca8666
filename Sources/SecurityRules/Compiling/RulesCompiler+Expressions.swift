// Expressions of rules as nodes.

internal import Expressions

extension RulesCompiler {
    /// Compiles an expression; one that cannot succeed becomes a failure, which matters when it is evaluated.
    mutating func expression(_ syntax: ExpressionSyntax, in frame: CompilingFrame) -> ExpressionID {
        append(node(syntax, in: frame), syntax.range)
    }

    private mutating func expressions(
        _ syntax: [ExpressionSyntax], in frame: CompilingFrame
    ) -> [ExpressionID] {
        syntax.map { expression($0, in: frame) }
    }

    private mutating func node(_ syntax: ExpressionSyntax, in frame: CompilingFrame) -> ExpressionNode {
        switch syntax.kind {
        case .null: return .constant(.null)
        case .boolean(let value): return .constant(.boolean(value))
        case .integer(let value): return .constant(.integer(value))
        case .float(let value): return .constant(.double(value))
        case .string(let text): return .constant(.string(text))
        case .bytes(let bytes): return .constant(.bytes(bytes))
        case .list(let elements): return .list(expressions(elements, in: frame))
        case .map(let entries):
            return .map(
                entries.map { (key: expression($0.key, in: frame), value: expression($0.value, in: frame)) })
        case .path(let segments): return path(segments, in: frame)
        case .variable(let name): return variable(name, syntax.range, in: frame)
        case .member(let base, let name): return member(base, name, in: frame)
        case .index(let base, let index):
            let base = expression(base, in: frame)
            return .binary(Subscripts.index, base, expression(index, in: frame))
        case .slice(let base, let from, let to):
            let bounds = [from, to].map { bound in
                bound.map { expression($0, in: frame) } ?? append(.constant(.absent), syntax.range)
            }
            return .call(Self.slice, [expression(base, in: frame)] + bounds)
        case .call(let name, let arguments): return call(name, arguments, syntax.range, in: frame)
        case .method(let base, let name, let arguments):
            return method(base, name, arguments, syntax.range, in: frame)
        case .unary(.not, let operand): return .unary(Operators.not, expression(operand, in: frame))
        case .unary(.negate, let operand): return .unary(Operators.negate, expression(operand, in: frame))
        case .binary(let operation, let left, let right):
            let parts = expressions([left, right], in: frame)
            switch operation {
            case .and: return .conjunction(parts)
            case .or: return .disjunction(parts)
            default: return .binary(Operators.function(operation), parts[0], parts[1])
            }
        case .typeTest(let operand, let type): return typeTest(operand, type, in: frame)
        case .conditional(let condition, let first, let second):
            let parts = expressions([condition, first, second], in: frame)
            return .conditional(parts[0], parts[1], parts[2])
        }
    }

    private static let slice = Functions.function(
        "@range", ExpressionFunction.Overload([.any, .any, .any], Subscripts.slice))
    private mutating func typeTest(
        _ operand: ExpressionSyntax, _ name: NameSyntax, in frame: CompilingFrame
    ) -> ExpressionNode {
        let operand = expression(operand, in: frame)
        guard let type = RulesType(rawValue: name.name), type != .null else {
            let types = RulesType.testable.map(\.rawValue).joined(separator: ", ")
            report(
                "An unsupported type identifier was used with the 'is' operator: \(name.name).", name.range,
                remedy: "The types are \(types).")
            return .failure("unknown type")
        }
        return .unary(Operators.typeTest(type), operand)
    }

    private mutating func path(_ segments: [PathSegmentSyntax], in frame: CompilingFrame) -> ExpressionNode {
        var operands: [ExpressionID] = []
        var parts: [PathTemplate.Part] = []
        var literals: [RulesPath.Segment] = []
        for segment in segments {
            let constant: RulesPath.Segment
            switch segment.kind {
            case .literal(let text): constant = .literal(text)
            case .capture(let name): constant = .capture(name, nil)
            case .globCapture(let name): constant = .glob(name, nil)
            case .expression(let part):
                operands.append(expression(part, in: frame))
                parts.append(.computed)
                continue
            }
            literals.append(constant)
            parts.append(.constant(constant))
            operands.append(append(.constant(.object(RulesPath([constant]))), segment.range))
        }
        if literals.count == segments.count { return .constant(.object(RulesPath(literals))) }
        return .form(PathTemplate(parts: parts).body, operands)
    }

    // MARK: Names

    private mutating func variable(
        _ name: String, _ range: SourceRange, in frame: CompilingFrame
    ) -> ExpressionNode {
        if let slot = frame.locals.firstIndex(of: name) { return .local(slot) }
        if let input = frame.scope.capture(named: name) { return .input(input) }
        switch name {
        case "request": return .input(RulesInput.request)
        case "resource": return .input(RulesInput.resource)
        default: break
        }
        if Functions.namespaces.contains(name) {
            report("\(name) is a package and cannot be used as variable name.", range)
        } else {
            warn("Invalid variable name: \(name).", range)
        }
        return .failure(ExpressionError.nullValue.message)
    }

    private mutating func member(
        _ base: ExpressionSyntax, _ name: String, in frame: CompilingFrame
    ) -> ExpressionNode {
        if case .variable("request") = base.kind, let input = RulesInput.members[name],
            case .input(RulesInput.request) = variable("request", base.range, in: frame)
        {
            return .input(input)
        }
        return .member(expression(base, in: frame), name)
    }

    // MARK: Calls

    private mutating func call(
        _ name: String, _ arguments: [ExpressionSyntax], _ range: SourceRange, in frame: CompilingFrame
    ) -> ExpressionNode {
        if let entry = frame.scope.function(named: name) {
            return invocation(of: entry, arguments, range, in: frame)
        }
        let operands = expressions(arguments, in: frame)
        guard let function = Functions.table[name] else {
            warn("Invalid function name: \(name).", range)
            return .failure("Function not found error: Name: [\(name)].")
        }
        return checked(function, operands, range)
    }

    private mutating func invocation(
        of entry: FunctionEntry, _ arguments: [ExpressionSyntax], _ range: SourceRange, in frame: CompilingFrame
    ) -> ExpressionNode {
        entry.isUsed = true
        let operands = expressions(arguments, in: frame)
        let function = compiled(entry)
        if let caller = frame.function { caller.callDepth = max(caller.callDepth, entry.callDepth + 1) }
        guard let function else { return .failure("The function \(entry.syntax.name.name) has an error.") }
        if operands.count != function.parameterCount {
            let message = "Incorrect number of arguments for \(function.name). Received: \(operands.count)."
            warn(message, range)
            return .failure(message)
        }
        return .invoke(function, operands)
    }

    /// A call of a function of the language, with a warning if no signature has so many parameters.
    private mutating func checked(
        _ function: ExpressionFunction, _ operands: [ExpressionID], _ range: SourceRange
    ) -> ExpressionNode {
        if !function.overloads.contains(where: { $0.parameters.count == operands.count }) {
            warn("Incorrect number of arguments supplied to function: \(function.name).", range)
        }
        return .call(function, operands)
    }

    private mutating func method(
        _ base: ExpressionSyntax, _ name: String, _ arguments: [ExpressionSyntax], _ range: SourceRange,
        in frame: CompilingFrame
    ) -> ExpressionNode {
        if case .variable(let namespace) = base.kind, Functions.namespaces.contains(namespace) {
            let operands = expressions(arguments, in: frame)
            let full = "\(namespace).\(name)"
            guard let function = Functions.table[full] else {
                warn("Invalid function name: \(full).", range)
                return .failure("Function not found error: Name: [\(full)].")
            }
            return checked(function, operands, range)
        }
        let receiver = expression(base, in: frame)
        if ["matches", "replace", "split"].contains(name), case .string(let text)? = arguments.first?.kind {
            guard let pattern = Pattern(text) else {
                report(
                    "Invalid regular expression pattern. Pattern: \(text.prefix(200)).", arguments[0].range,
                    remedy: "The syntax is that of RE2, without look-around and back references.")
                return .failure("invalid pattern")
            }
            if name == "matches", arguments.count == 1 { return .unary(Self.matching(pattern, text), receiver) }
        }
        let operands = [receiver] + expressions(arguments, in: frame)
        guard let function = Functions.methods[name] else {
            warn("Invalid function name: \(name).", range)
            return .unary(
                { _, operand throws(ExpressionError) in
                    if case .null = operand { throw .nullValue }
                    throw .failed("Function not found error: Name: [\(name)].")
                }, receiver)
        }
        return checked(function, operands, range)
    }

    /// `matches` with a literal, whose pattern is compiled with the rules.
    private static func matching(_ pattern: Pattern, _ text: String) -> UnaryFunction {
        { evaluation, operand throws(ExpressionError) in
            if case .string(let subject) = operand {
                return .boolean(try Patterns.matches(evaluation, subject, pattern))
            }
            guard let function = Functions.methods["matches"] else { throw .nullValue }
            return try function.call(evaluation, [operand, .string(text)])
        }
    }
}
