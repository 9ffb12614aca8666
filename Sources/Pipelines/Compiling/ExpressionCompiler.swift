// From the values of a request to the expressions of a tree.

internal import Basics
internal import DocumentModel
internal import Expressions

/// Compiles the expressions of one pipeline into one tree.
struct ExpressionCompiler {
    /// The number of the expressions' input that is the row's fields; ``DocumentProperty`` has the others.
    static let fieldsInput = 0

    private(set) var tree = ExpressionTree()
    private(set) var places = ExpressionPlaces()
    /// The variables of the place that is compiled.
    var scope = ExpressionScope()
    /// Subqueries that were compiled, with the names of the variables that they may read.
    private var subqueries: [(subquery: Subquery, names: Set<String>)] = []

    /// Compiles a value.
    ///
    /// - Throws: `INVALID_ARGUMENT` for a wrong number of arguments, `UNIMPLEMENTED` with the name of a function that
    ///   is not served.
    mutating func compile(_ value: PipelineValue) throws(RequestError) -> ExpressionID {
        switch value.folded {
        case .literal(let operand): return tree.append(.constant(try ExpressionCompiler.constant(operand)))
        case .field(let path):
            let fields = tree.append(.input(ExpressionCompiler.fieldsInput))
            return tree.append(.form(ExpressionCompiler.lookup(path.segments), [fields]))
        case .document(let property): return tree.append(.input(property.rawValue))
        case .variable(let name): return try variable(name)
        case .pipeline: throw .invalidArgument("A pipeline in an expression is the argument of array or scalar.")
        case .list(let elements): return try compile(PipelineCall(name: "array", arguments: elements, options: []))
        case .map(let entries):
            let arguments = entries.flatMap { [PipelineValue.literal(.string($0.name)), $0.value] }
            return try compile(PipelineCall(name: "map", arguments: arguments, options: []))
        case .call(let call): return try compile(call)
        }
    }

    /// Says where the expressions stand that are compiled from now on.
    mutating func begin(_ place: PipelinePlace) {
        // The node stands for nothing: places begin with nodes.
        places.add(place, from: tree.append(.constant(.null)))
    }

    /// The subqueries since the last call.
    mutating func takeSubqueries() -> [(subquery: Subquery, names: Set<String>)] {
        defer { subqueries = [] }
        return subqueries
    }

    /// Appends an operation over compiled expressions.
    mutating func append(_ body: @escaping FormBody, _ operands: [ExpressionID] = []) -> ExpressionID {
        tree.append(.form(body, operands))
    }

    private mutating func compile(_ call: PipelineCall) throws(RequestError) -> ExpressionID {
        if let lambda = try ElementLambda(call) { return try compile(lambda) }
        if let subquery = try Subquery(call, scope) { return try compile(subquery) }
        guard let function = PipelineFunction.table[call.name] else {
            throw SearchFunctions.misplaced(call.name)
                ?? RequestError(.unimplemented, "The pipeline function \(call.name) is not implemented.")
        }
        if let option = call.options.first {
            throw RequestError(
                .unimplemented, "The option \(option.name) of the pipeline function \(call.name) is not implemented.")
        }
        guard function.arity.contains(call.arguments.count) else {
            throw .invalidArgument(
                "The function \(call.name) takes \(ExpressionCompiler.text(function.arity)), "
                    + "not \(call.arguments.count)."
            )
        }
        var arguments: [ExpressionID] = []
        for argument in call.arguments { arguments.append(try compile(argument)) }
        return tree.append(.form(function.form, arguments))
    }

    // MARK: Variables

    private mutating func variable(_ name: String) throws(RequestError) -> ExpressionID {
        switch scope[name] {
        case .local(let slot)?: return tree.append(.local(slot))
        case .binding(let operand)?: return tree.append(.constant(try ExpressionCompiler.constant(operand)))
        case .rowVariable?:
            return append { (evaluation, _) throws(ExpressionError) in
                let value = RowHost.of(evaluation).row.variables[name] ?? .absent
                try evaluation.spendMemory(value.flatBytes)
                return value
            }
        case nil: throw .invalidArgument("There is an unknown variable here: \"\(name)\".")
        }
    }

    private mutating func compile(_ lambda: ElementLambda) throws(RequestError) -> ExpressionID {
        let array = try compile(lambda.array)
        let outer = scope.locals
        scope.locals += lambda.variables
        defer { scope.locals = outer }
        return append(lambda.body, [array, try compile(lambda.result)])
    }

    /// The operands of the node are the variables of the lambdas around it.
    private mutating func compile(_ subquery: Subquery) throws(RequestError) -> ExpressionID {
        subqueries.append((subquery, scope.names))
        let locals = scope.locals.indices.map { tree.append(.local($0)) }
        return append(subquery.body, locals)
    }

    /// Looks a field up in the operand, which is the row's fields.
    private static func lookup(_ segments: [String]) -> FormBody {
        { (evaluation, fields) throws(ExpressionError) in
            let row = try evaluation.value(of: fields[0])
            return try RowHost.of(evaluation).lookup.value(at: segments, in: row, evaluation)
        }
    }

    /// The literal in the form in which it is compared.
    static func constant(_ operand: Operand) throws(RequestError) -> Operand {
        do {
            return try operand.encoded()
        } catch {
            throw .invalidArgument(error.message)
        }
    }

    private static func text(_ arity: ClosedRange<Int>) -> String {
        let least = arity.lowerBound == 1 ? "1 argument" : "\(arity.lowerBound) arguments"
        if arity.lowerBound == arity.upperBound { return least }
        return arity.upperBound == PipelineFunction.many
            ? "\(least) or more" : "\(arity.lowerBound) to \(arity.upperBound) arguments"
    }
}
