// From the values of a request to the expressions of a tree.

internal import Basics
internal import DocumentModel
internal import Expressions

/// Compiles the expressions of one pipeline into one tree.
struct ExpressionCompiler {
    /// The number of the expressions' input that is the row's fields; ``DocumentProperty`` has the others.
    static let fieldsInput = 0

    private(set) var tree = ExpressionTree()

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
        case .variable(let name):
            throw RequestError(.unimplemented, "Variables of pipelines are not implemented: \"\(name)\".")
        case .pipeline: throw RequestError(.unimplemented, "Pipelines within expressions are not implemented.")
        case .list(let elements): return try compile(PipelineCall(name: "array", arguments: elements, options: []))
        case .map(let entries):
            let arguments = entries.flatMap { [PipelineValue.literal(.string($0.name)), $0.value] }
            return try compile(PipelineCall(name: "map", arguments: arguments, options: []))
        case .call(let call): return try compile(call)
        }
    }

    private mutating func compile(_ call: PipelineCall) throws(RequestError) -> ExpressionID {
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

    /// Looks a field up in the operand. Pays for the search and for a copy of the value.
    private static func lookup(_ segments: [String]) -> FormBody {
        { (evaluation, fields) throws(ExpressionError) in
            var value = try evaluation.value(of: fields[0])
            for segment in segments {
                switch value {
                case .encodedMap(let slice):
                    try evaluation.spendWork(slice.byteCount >> 3)
                    value = slice.member(segment)
                case .map(let map): value = map[segment] ?? .absent
                default: return .absent
                }
            }
            try evaluation.spendMemory(value.flatBytes)
            return value
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
