// Expressions that have one value for all rows, so that a query can compare fields with them.
//
//     equal(genre, map_get($book, "genre"))     with $book bound around the pipeline:   equal(genre, "sf")
//     less_than(seen, timestamp_subtract(current_timestamp(), "day", 1))                less_than(seen, 2026-01-30...)

internal import DocumentModel
internal import Expressions

/// Replaces expressions by their values, as long as that costs little.
final class ConstantFolding {
    private let database: DatabaseName
    /// Variables of the pipelines around.
    private let bindings: [String: Operand]
    private var workBytesLeft = PipelineLimits.constantWorkBytes

    init(database: DatabaseName, bindings: [String: Operand]) {
        self.database = database
        self.bindings = bindings
    }

    /// Functions whose value depends on more than their arguments.
    private static let impure: Set<String> = ["rand", "current_document", "document_matches", "score", "scalar"]

    /// The value with constant parts replaced; parts that fail stay as they are.
    func fold(_ value: PipelineValue) -> PipelineValue {
        switch value {
        case .literal, .field, .document, .pipeline: return value
        case .variable(let name): return bindings[name].map { .literal($0) } ?? value
        case .list(let elements):
            let folded = elements.map(fold)
            let literals = folded.compactMap(\.literal)
            guard literals.count == folded.count else { return .list(folded) }
            return .literal(.list(literals.map { if case .absent = $0 { .null } else { $0 } }))
        case .map(let entries):
            let folded = entries.map { NamedValue(name: $0.name, value: fold($0.value)) }
            guard folded.allSatisfy({ $0.value.literal != nil }) else { return .map(folded) }
            return evaluated(.map(folded)) ?? .map(folded)
        case .call(let call): return fold(call)
        }
    }

    private func fold(_ call: PipelineCall) -> PipelineValue {
        // The arguments of lambdas have variables that mean something else.
        if ElementLambda.names.contains(call.name) || !call.options.isEmpty { return .call(call) }
        let folded = PipelineValue.call(
            PipelineCall(name: call.name, arguments: call.arguments.map(fold), options: []))
        guard case .call(let result) = folded, !Self.impure.contains(call.name),
            result.arguments.allSatisfy({ $0.literal != nil })
        else { return folded }
        return evaluated(folded) ?? folded
    }

    /// The value of an expression without fields; nil if it fails.
    private func evaluated(_ value: PipelineValue) -> PipelineValue? {
        var compiler = ExpressionCompiler()
        guard workBytesLeft > 0, let expression = try? compiler.compile(value) else { return nil }
        let evaluator = RowEvaluator(compiler.tree, database: database, budget: PipelineLimits.constantBudget)
        defer { workBytesLeft -= evaluator.workBytes + PipelineLimits.workBytesOfConstant }
        return (try? evaluator.value(of: expression, on: PipelineRow())).map { .literal($0) }
    }
}
