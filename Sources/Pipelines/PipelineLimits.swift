// What one pipeline may be and may cost.

internal import Expressions
internal import QueryEngine

/// Bounds on the form, the work and the memory of one pipeline.
package struct PipelineOptions: Sendable {
    /// Bytes that stages may hold: rows to be sorted, groups, distinct values. Beyond it the pipeline fails with
    /// `RESOURCE_EXHAUSTED`.
    package var memoryBytes = 64 << 20

    /// Rows that stages look at before `PipelineExecution.next` returns. More than the stages that a pipeline may have,
    /// those of subqueries included: a step that is smaller may not get through all operators to a row.
    package var rowsPerStep = 1024

    /// Each operator is to be counted and timed.
    var measuresOperators = false

    /// The options of the queries at the bottom.
    var query: QueryOptions {
        var options = QueryOptions()
        options.measuresOperators = measuresOperators
        return options
    }

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
    /// Bytes that one expression reads, compares, searches or builds for a row. It cannot pause meanwhile: these take
    /// about 100 ms.
    static let workBytesPerExpression = 64 << 20
    /// Bytes of the same kind for all expressions of a stage and one row: it cannot pause among them either. One more
    /// expression may begin before.
    static let workBytesPerStage = 64 << 20
    /// Bytes of work as which an expression counts that is evaluated.
    static let workBytesOfExpression = 128
    /// What one expression may cost for a row.
    static let rowBudget = EvaluationBudget(
        expressions: expressionsPerRow, workBytes: workBytesPerExpression, memoryBytes: builtBytesPerExpression)
    /// What one constant expression may cost to be evaluated before the pipeline runs.
    static let constantBudget = EvaluationBudget(expressions: 1_000, workBytes: 256 << 10, memoryBytes: 64 << 10)
    /// What the conditions of a listener's pipeline may cost for one document. It is little, because a loop compares
    /// each changed document with all listeners of its collection at once.
    static let listenedConditionBudget = EvaluationBudget(
        expressions: 2_000, workBytes: 2 << 20, memoryBytes: 1 << 20)
    /// Bytes of work of all constant expressions of one pipeline; what costs more is evaluated for each row.
    static let constantWorkBytes = 1 << 20
    /// Bytes of work as which the compilation of a constant expression counts.
    static let workBytesOfConstant = 1 << 10
    /// Bytes of work that count as a row.
    static let workBytesAsRow = 16 << 10
    /// Pipelines within expressions within pipelines.
    static let nestedPipelines = 10
    /// Subqueries that one pipeline runs.
    static let subqueries = 100_000
    /// Steps of rows that all subqueries of one pipeline look at.
    static let subquerySteps = 10_000
    /// Subqueries that one expression runs for a row. It is evaluated again after each.
    static let subqueriesPerExpression = 1_000
    /// Rows as which the start of a subquery counts.
    static let rowsOfSubqueryStart = 16
    /// Bytes of all writes that one pipeline makes.
    static let writeBytes = 10 << 20
    /// Bytes of the keys of a row by which it is sorted or grouped.
    static let keyBytes = 16 << 20
}
