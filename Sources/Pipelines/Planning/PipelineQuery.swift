// Pipelines that queries say as well: what can be listened to.

package import Basics
package import DocumentModel
internal import QueryEngine

/// The query with the results of a pipeline.
package struct PipelineQuery: Sendable {
    package let query: StructuredQuery
    /// The full name of the documents root or of a document.
    package let parent: String

    /// Reads a pipeline.
    ///
    /// - Parameter wire: a `StructuredPipeline` message.
    /// - Throws: `INVALID_ARGUMENT` for a pipeline that is not valid, `UNIMPLEMENTED` for one that no query says.
    package init(structuredPipeline wire: RawSpan, in database: DatabaseName) throws(RequestError) {
        // Every other fault is found as for a pipeline that runs.
        _ = try PipelineExecution(structuredPipeline: wire, in: database)
        let stages = try ParsedPipeline(structuredPipeline: wire).stages
        guard let first = stages.first,
            case .collections(let selector, let path) = try PipelineSource(first, in: database, within: .none)
        else { throw PipelineQuery.unserved }
        parent = path.isEmpty ? database.documentsRoot : "\(database.documentsRoot)/\(path)"
        let rest = stages.dropFirst()
        let head = try PipelineHead(selector, rest, parent: parent, ConstantFolding(database: database, bindings: [:]))
        guard head.stageCount == rest.count, head.residual.isEmpty, head.absentField == nil, head.isSaidByQuery else {
            throw PipelineQuery.unserved
        }
        query = head.query
    }

    private static let unserved = RequestError(
        .unimplemented,
        "Listen on a pipeline is implemented for collections with conditions, a sort, an offset and a limit "
            + "that a query has as well.")
}
