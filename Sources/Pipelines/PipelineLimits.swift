// What one pipeline may be and may cost.

/// Bounds on the form, the work and the memory of one pipeline.
package struct PipelineOptions: Sendable {
    /// Bytes that stages may hold: rows to be sorted, groups, distinct values. Beyond it the pipeline fails with
    /// `RESOURCE_EXHAUSTED`.
    package var memoryBytes = 64 << 20

    /// Rows that stages look at before `PipelineExecution.next` returns.
    package var rowsPerStep = 1024

    package init() {}
}

/// Bounds on the form of a request.
enum PipelineLimits {
    /// Stages of a request, those of nested pipelines included.
    static let stages = 250
    /// Values, functions and stages of a whole request.
    static let parts = 20_000
    /// Values within values, functions and stages included.
    static let depth = 100
    /// Fields, groups or accumulators of one stage.
    static let fieldsOfStage = 1_000
    /// Literal rows and named documents.
    static let rowsOfSource = 1_000
    /// Expressions that are evaluated for one row.
    static let expressionsPerRow = 100_000
    /// Bytes that one expression builds for a row.
    static let builtBytesPerExpression = 16 << 20
    /// Bytes that all expressions build for a row, stage after stage.
    static let builtBytesPerRow = 64 << 20
    /// Bytes that one expression reads, compares, searches or builds for a row.
    static let workBytesPerExpression = 256 << 20
    /// Bytes of work that count as a row.
    static let workBytesAsRow = 16 << 10
    /// Pipelines within expressions within pipelines.
    static let nestedPipelines = 10
    /// Subqueries that one pipeline runs.
    static let subqueries = 100_000
    /// Rows that all subqueries of one pipeline look at.
    static let subqueryRows = 10_000_000
    /// Rows as which the start of a subquery counts.
    static let rowsOfSubqueryStart = 16
    /// Bytes of all writes that one pipeline makes.
    static let writeBytes = 10 << 20
    /// Bytes of the keys of a row by which it is sorted or grouped.
    static let keyBytes = 16 << 20
}
