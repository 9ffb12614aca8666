// Conditions of a pipeline that a query does not check, on one document after the other.

internal import Basics
internal import DocumentModel
internal import Expressions
internal import QueryEngine

/// Conditions that must all hold, for listeners: their values depend on a document's path and fields alone.
struct PipelineCondition: DocumentCondition {
    private let tree: ExpressionTree
    private let expression: ExpressionID
    private let database: DatabaseName
    private let patterns = PatternCache()

    /// - Parameter conditions: those that depend on a document alone.
    init(_ conditions: [PipelineValue], in database: DatabaseName) throws(RequestError) {
        var compiler = ExpressionCompiler()
        // One expression, with one budget.
        expression = try compiler.compile(.call(PipelineCall(name: "and", arguments: conditions, options: [])))
        self.database = database
        tree = compiler.tree
    }

    /// Whether all conditions are true. One that fails, or that costs more than
    /// ``PipelineLimits/listenedConditionBudget``, is not.
    func holds(path: RawSpan, fields: RawSpan) -> Bool {
        let evaluator = RowEvaluator(
            tree, database: database, budget: PipelineLimits.listenedConditionBudget, patterns: patterns)
        let row = PipelineRow(
            fields: .encodedMap(EncodedSlice(documentFields: [UInt8](copying: fields))),
            document: RowDocument(path: [UInt8](copying: path), createMicroseconds: 0, updateMicroseconds: 0))
        return (try? evaluator.isTrue(expression, on: row)) ?? false
    }
}

extension PipelineValue {
    private static let dependent: Set<String> = ["rand", "current_timestamp", "score", "document_matches"]

    /// Whether the value is the same each time for a document with the same name and fields.
    var dependsOnDocumentAlone: Bool {
        switch self {
        case .literal, .field, .variable, .document(.name): true
        case .document, .pipeline: false
        case .list(let elements): elements.allSatisfy(\.dependsOnDocumentAlone)
        case .map(let entries): entries.allSatisfy(\.value.dependsOnDocumentAlone)
        case .call(let call):
            !Self.dependent.contains(call.name) && call.arguments.allSatisfy(\.dependsOnDocumentAlone)
        }
    }
}
