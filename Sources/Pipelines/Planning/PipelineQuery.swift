// Pipelines that can be listened to: those whose results are documents of a query, perhaps with a further condition.

package import Basics
package import DocumentModel
package import QueryEngine

/// The query and the condition with the results of a pipeline.
package struct PipelineQuery: Sendable {
    package private(set) var query: StructuredQuery
    /// The full name of the documents root or of a document.
    package let parent: String
    /// What the query does not check; nil if it checks everything.
    package private(set) var condition: (any DocumentCondition)?

    /// Reads a pipeline.
    ///
    /// - Parameter wire: a `StructuredPipeline` message.
    /// - Throws: `INVALID_ARGUMENT` for a pipeline that is not valid, `UNIMPLEMENTED` for one that cannot be listened
    ///   to.
    package init(structuredPipeline wire: RawSpan, in database: DatabaseName) throws(RequestError) {
        // Every other fault is found as for a pipeline that runs.
        _ = try PipelineExecution(structuredPipeline: wire, in: database)
        let stages = try ParsedPipeline(structuredPipeline: wire).stages
        guard let first = stages.first,
            case .collections(let selector, let path, indexes: .any) = try RowSource(
                first, in: database, within: .none)
        else { throw PipelineQuery.unserved }
        parent = path.isEmpty ? database.documentsRoot : "\(database.documentsRoot)/\(path)"
        let rest = stages.dropFirst()
        // The value of a condition must be the same later, when a document is compared again.
        for stage in rest where stage.name == "where" && !stage.arguments.allSatisfy(\.dependsOnDocumentAlone) {
            throw PipelineQuery.unserved
        }
        let head = try PipelineHead(selector, rest, parent: parent, ConstantFolding(database: database, bindings: [:]))
        query = head.query
        if head.stageCount == rest.count, head.residual.isEmpty, head.absentField == nil, head.isSaidByQuery { return }
        query = StructuredQuery(from: [selector])
        try takeStages(rest, in: database)
    }

    /// Takes conditions, a sort, an offset and a limit. Conditions that a query has as well, with the same results,
    /// become its filter; the others are the condition.
    private mutating func takeStages(
        _ stages: ArraySlice<PipelineStage>, in database: DatabaseName
    ) throws(RequestError) {
        let wheres = stages.prefix { $0.name == "where" && $0.options.isEmpty && $0.arguments.count == 1 }
        let conditions = wheres.flatMap { FilterTranslation.conjuncts($0.arguments[0]) }
        var filters: [Filter] = []
        let others = conditions.filter { condition in
            guard let filter = FilterTranslation.filter(condition),
                !FilterTranslation.hasRangeInDisjunction(filter)
            else { return true }
            filters.append(filter)
            return false
        }
        query.filter = filters.count > 1 ? .and(filters) : filters.first
        var rest = stages.dropFirst(wheres.count)
        try takeOrder(&rest, others)
        PipelineHead.takeBounds(&rest, into: &query)
        if !rest.isEmpty { throw PipelineQuery.unserved }
        // Without a sort the rows of a pipeline come by the fields that it compares for inequality. Which of them are
        // within a limit depends on that.
        let isCut = query.limit != nil || query.offset > 0
        let compared = conditions.contains { !FilterTranslation.inequalityFields($0).isEmpty }
        if isCut, compared, query.orderBy.isEmpty { throw PipelineQuery.unserved }
        if !others.isEmpty { condition = try PipelineCondition(others, in: database) }
    }

    /// Takes a sort by fields that all results have.
    ///
    /// - Parameter others: the conditions that the query does not check; `exists` may be one of them.
    private mutating func takeOrder(
        _ rest: inout ArraySlice<PipelineStage>, _ others: [PipelineValue]
    ) throws(RequestError) {
        guard let stage = rest.first, stage.name == "sort" else { return }
        var existing = query.filter.map(FilterTranslation.fields(requiredBy:)) ?? []
        existing.insert(.documentName)
        guard let orders = PipelineHead.orders(stage, query.filter, existing, others) else {
            throw PipelineQuery.unserved
        }
        query.orderBy = orders
        rest = rest.dropFirst()
    }

    static let unserved = RequestError(
        .unimplemented,
        "Listen on a pipeline is implemented for collections with conditions on the fields and the name of a document, "
            + "a sort by fields that all results have, an offset and a limit.")
}
