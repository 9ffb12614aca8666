// What a pipeline and its subqueries use up together.

internal import Basics
internal import QueryEngine

/// The budgets of one execution. Confined to one thread.
final class PipelineShare {
    let options: PipelineOptions
    private let subqueryRowsMax: Int
    private var memoryBytes = 0
    /// Rows that the present step may still look at.
    var rowsLeft = 0
    private var subqueries = 0
    /// Rows that subqueries have looked at.
    var subqueryRows = 0
    /// Documents that subqueries which have ended looked at.
    private(set) var scannedDocuments = 0
    /// Index entries that subqueries which have ended looked at.
    private(set) var scannedEntries = 0

    init(_ options: PipelineOptions) {
        self.options = options
        subqueryRowsMax = PipelineLimits.subquerySteps * options.rowsPerStep
    }

    /// Takes memory for what a stage keeps.
    func hold(_ bytes: Int, for stage: String) throws(RequestError) {
        memoryBytes += bytes
        if memoryBytes > options.memoryBytes {
            throw RequestError(
                .resourceExhausted,
                "The stage \(stage) of the pipeline needs more than the \(options.memoryBytes) bytes "
                    + "that a pipeline may hold."
            )
        }
    }

    /// Gives memory back.
    func release(_ bytes: Int) { memoryBytes -= bytes }

    // MARK: Subqueries

    /// Counts a subquery that begins. Planning it costs as much as some rows.
    func countSubquery() throws(RequestError) {
        subqueries += 1
        rowsLeft -= PipelineLimits.rowsOfSubqueryStart
        if subqueries > PipelineLimits.subqueries {
            throw RequestError(
                .resourceExhausted, "The pipeline runs more than \(PipelineLimits.subqueries) subqueries.")
        }
    }

    /// Makes sure that subqueries have not looked at too much.
    func checkSubqueryRows() throws(RequestError) {
        if subqueryRows > subqueryRowsMax {
            throw RequestError(
                .resourceExhausted,
                "The subqueries of the pipeline look at more than \(subqueryRowsMax) rows.")
        }
    }

    /// Counts what a query of a subquery has looked at.
    func countReads(of query: borrowing QueryExecution) {
        scannedDocuments += query.scannedDocuments
        scannedEntries += query.scannedEntries
        subqueryRows += query.scannedDocuments
    }
}
