// From the tree of the text to expressions.

internal import Expressions

/// Compiles one ruleset. It collects all errors.
struct RulesCompiler {
    /// The name of the service whose rules are used. Others are checked.
    static let service = "cloud.firestore"

    let version: RulesVersion
    private let syntax: RulesetSyntax
    private(set) var tree = ExpressionTree()
    private(set) var ranges: [SourceRange] = []
    private(set) var statements: [AllowStatement] = []
    private(set) var diagnostics: [RulesDiagnostic] = []
    /// The variables and the results of functions.
    private(set) var functionRoots: [ExpressionID] = []

    /// Every function, for a second look once all is compiled.
    private var functions: [FunctionEntry] = []
    /// Scopes that functions refer to without owning them.
    private var scopes: [RulesScope] = []

    init(_ syntax: RulesetSyntax) {
        self.syntax = syntax
        version = syntax.version
    }

    /// Compiles everything and returns the blocks of the service.
    mutating func compile() -> [MatchNode] {
        let outermost = newScope(parent: nil, captures: [])
        declare(syntax.functions, in: outermost)
        var nodes: [MatchNode] = []
        var names: Set<String> = []
        for service in syntax.services {
            if !names.insert(service.name).inserted {
                report("Duplicate service name declaration.", service.nameRange)
            }
            let isUsed = service.name == Self.service
            if !isUsed {
                warn("The rules of the service \(service.name) are not used.", service.nameRange)
            }
            let scope = newScope(parent: outermost, captures: [])
            declare(service.body.functions, in: scope)
            let matches = service.body.matches.map { match($0, in: scope, above: PathAbove(), isUsed: isUsed) }
            if isUsed { nodes += matches }
        }
        for function in functions {
            _ = compiled(function)
            if !function.isUsed {
                warn("Unused function: \(function.syntax.name.name).", function.syntax.name.range)
            }
        }
        return nodes
    }

    // MARK: Diagnostics and nodes

    mutating func report(_ message: String, _ range: SourceRange, remedy: String? = nil) {
        diagnostics.append(RulesDiagnostic(.error, range, message, remedy: remedy))
    }

    mutating func warn(_ message: String, _ range: SourceRange, remedy: String? = nil) {
        diagnostics.append(RulesDiagnostic(.warning, range, message, remedy: remedy))
    }

    mutating func append(_ node: ExpressionNode, _ range: SourceRange) -> ExpressionID {
        ranges.append(range)
        return tree.append(node)
    }

    // MARK: Blocks

    /// What the blocks around a block say about its path.
    private struct PathAbove {
        var captureCount = 0
        var hasGlob = false
    }

    private mutating func newScope(parent: RulesScope?, captures: [(name: String, input: Int)]) -> RulesScope {
        let scope = RulesScope(parent: parent, captures: captures)
        scopes.append(scope)
        return scope
    }

    private mutating func declare(_ declared: [FunctionSyntax], in scope: RulesScope) {
        for syntax in declared {
            let entry = FunctionEntry(syntax, scope: scope)
            if scope.declare(entry) {
                functions.append(entry)
            } else {
                report("Function \(syntax.name.name) is already defined.", syntax.name.range)
            }
        }
    }

    private mutating func match(
        _ syntax: MatchSyntax, in parent: RulesScope, above: PathAbove, isUsed: Bool
    ) -> MatchNode {
        var above = above
        var captures: [(name: String, input: Int)] = []
        var pattern: [PatternSegment] = []
        for (index, segment) in syntax.path.enumerated() {
            switch segment.kind {
            case .literal(let text): pattern.append(.literal(text))
            case .expression: continue
            case .capture(let name), .globCapture(let name):
                let isGlob = if case .globCapture = segment.kind { true } else { false }
                pattern.append(isGlob ? .glob : .capture)
                if captures.contains(where: { $0.name == name }) {
                    report("Variable \(name) already exists in the path.", segment.range)
                }
                checkVariableName(name, segment.range)
                captures.append((name, RulesInput.firstCapture + above.captureCount))
                above.captureCount += 1
                if isGlob { checkGlob(segment.range, isLast: index == syntax.path.count - 1, above: &above) }
            }
        }
        if above.captureCount > RulesLimits.captures {
            report("Maximum allowed amount of \(RulesLimits.captures) wildcards is reached.", syntax.pathRange)
        }
        let scope = newScope(parent: parent, captures: captures)
        declare(syntax.body.functions, in: scope)
        let first = statements.count
        for allow in syntax.body.allows { self.allow(allow, in: scope, isUsed: isUsed) }
        let own = Array(first..<statements.count)
        let children = syntax.body.matches.map { match($0, in: scope, above: above, isUsed: isUsed) }
        return MatchNode(pattern: pattern, statements: own, children: children)
    }

    private mutating func checkGlob(_ range: SourceRange, isLast: Bool, above: inout PathAbove) {
        if version == .one, !isLast {
            report(
                "A recursive wildcard must be the last segment of a path.", range,
                remedy: "Write rules_version = '2'; at the beginning.")
        }
        if version == .two, above.hasGlob {
            report("Only one recursive wildcard is allowed on a path.", range)
        }
        above.hasGlob = true
    }

    private mutating func checkVariableName(_ name: String, _ range: SourceRange) {
        if Functions.namespaces.contains(name) {
            report("\(name) is a package and cannot be used as variable name.", range)
        }
    }

    private mutating func allow(_ syntax: AllowSyntax, in scope: RulesScope, isUsed: Bool) {
        var methods: Set<RulesRequest.Method> = []
        for method in syntax.methods {
            if let known = Self.methods[method.name.lowercased()] {
                methods.formUnion(known)
            } else {
                warn(
                    "Invalid method name: \(method.name).", method.range,
                    remedy: "Use read, write, get, list, create, update or delete.")
            }
        }
        let condition = syntax.condition.map { expression($0, in: CompilingFrame(scope)) }
        if isUsed {
            statements.append(AllowStatement(methods: methods, condition: condition, range: syntax.range))
        }
    }

    private static let methods: [String: [RulesRequest.Method]] = [
        "read": [.get, .list], "get": [.get], "list": [.list], "write": [.create, .update, .delete],
        "create": [.create], "update": [.update], "delete": [.delete],
    ]

    // MARK: Functions

    /// The compiled function; nil after an error.
    mutating func compiled(_ entry: FunctionEntry) -> ProgramFunction? {
        if case .waiting = entry.state { compileAfterCallees(entry) }
        switch entry.state {
        case .done(let function): return function
        case .waiting, .failed: return nil
        case .compiling:
            report("Recursive call is not allowed: \(entry.syntax.name.name).", entry.syntax.name.range)
            return nil
        }
    }

    /// Compiles the functions that a function calls, and then the function itself.
    ///
    /// The bodies are compiled one after the other: within each other, functions at the limit of calls would exhaust
    /// the stack of a thread.
    private mutating func compileAfterCallees(_ entry: FunctionEntry) {
        entry.state = .compiling
        var open = [(entry: entry, callees: entry.callees)]
        while let caller = open.last?.entry {
            guard let callee = open[open.count - 1].callees.popLast() else {
                open.removeLast()
                finish(caller)
                continue
            }
            guard case .waiting = callee.state else { continue }
            if open.count >= RulesLimits.callDepth {
                reportCallDepth(of: callee)
            } else {
                callee.state = .compiling
                open.append((callee, callee.callees))
            }
        }
    }

    /// Compiles a function whose callees are compiled.
    private mutating func finish(_ entry: FunctionEntry) {
        let function = body(of: entry)
        if entry.callDepth > RulesLimits.callDepth {
            reportCallDepth(of: entry)
        } else {
            entry.state = .done(function)
        }
    }

    private mutating func reportCallDepth(of entry: FunctionEntry) {
        entry.state = .failed
        report("Maximum allowed call depth of \(RulesLimits.callDepth) is reached.", entry.syntax.name.range)
    }

    private mutating func body(of entry: FunctionEntry) -> ProgramFunction {
        let syntax = entry.syntax
        if syntax.parameters.count > RulesLimits.parameters {
            report(
                "Maximum allowed function arguments of \(RulesLimits.parameters) for function \(syntax.name.name) is "
                    + "reached.", syntax.name.range)
        }
        if syntax.variables.count > RulesLimits.variables {
            report("Maximum allowed variable count of \(RulesLimits.variables) is reached.", syntax.name.range)
        }
        var frame = CompilingFrame(entry.scope, function: entry)
        for parameter in syntax.parameters {
            checkVariableName(parameter.name, parameter.range)
            if frame.locals.contains(parameter.name) {
                report("Variable \(parameter.name) is already defined.", parameter.range)
            }
            frame.locals.append(parameter.name)
        }
        var variables: [ExpressionID] = []
        for variable in syntax.variables {
            if version == .one {
                report(
                    "Let bindings are not allowed in rules_version = '1'.", variable.name.range,
                    remedy: "Write rules_version = '2'; at the beginning.")
            }
            checkVariableName(variable.name.name, variable.name.range)
            variables.append(expression(variable.value, in: frame))
            if frame.locals.contains(variable.name.name) {
                report(
                    "The identifier [\(variable.name.name)] is already bound in the current scope.",
                    variable.name.range)
            }
            frame.locals.append(variable.name.name)
        }
        let result = expression(syntax.result, in: frame)
        functionRoots += variables + [result]
        return ProgramFunction(
            name: syntax.name.name, parameterCount: syntax.parameters.count, variables: variables, result: result)
    }
}

/// Where an expression stands: its scope, and the function around it.
struct CompilingFrame {
    let scope: RulesScope
    /// Nil in a condition.
    let function: FunctionEntry?
    /// Parameters and variables by slot.
    var locals: [String] = []

    init(_ scope: RulesScope, function: FunctionEntry? = nil) {
        self.scope = scope
        self.function = function
    }
}
