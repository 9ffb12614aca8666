// Names that are visible at a place of a ruleset.

internal import Expressions

/// The functions and wildcards of one block, and the block around it.
final class RulesScope {
    let parent: RulesScope?
    /// The wildcards of the block, with the numbers of their inputs.
    let captures: [(name: String, input: Int)]
    private(set) var functions: [String: FunctionEntry] = [:]

    init(parent: RulesScope?, captures: [(name: String, input: Int)] = []) {
        self.parent = parent
        self.captures = captures
    }

    /// The input of the innermost wildcard with a name.
    func capture(named name: String) -> Int? {
        captures.last { $0.name == name }?.input ?? parent?.capture(named: name)
    }

    /// The innermost function with a name.
    func function(named name: String) -> FunctionEntry? {
        functions[name] ?? parent?.function(named: name)
    }

    /// Declares a function; false if the block has one with the name.
    func declare(_ function: FunctionEntry) -> Bool {
        let name = function.syntax.name.name
        if functions[name] != nil { return false }
        functions[name] = function
        return true
    }
}

/// A function of a ruleset while it is compiled.
final class FunctionEntry {
    enum State {
        case waiting
        /// Its body is being compiled: a call of it now is recursive.
        case compiling
        case done(ProgramFunction)
        /// An error was reported.
        case failed
    }

    let syntax: FunctionSyntax
    unowned let scope: RulesScope
    var state = State.waiting
    /// Calls within each other that a call of the function needs, itself included.
    var callDepth = 1
    var isUsed = false

    init(_ syntax: FunctionSyntax, scope: RulesScope) {
        self.syntax = syntax
        self.scope = scope
    }

    /// The functions that the body calls, the first call last.
    var callees: [FunctionEntry] {
        var found: [FunctionEntry] = []
        var expressions = [syntax.result] + syntax.variables.reversed().map(\.value)
        while let expression = expressions.popLast() {
            if case .call(let name, _) = expression.kind, let callee = scope.function(named: name) {
                found.append(callee)
            }
            expressions += expression.kind.parts.reversed()
        }
        return found.reversed()
    }
}
