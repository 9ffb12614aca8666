// Evaluating the expressions of a pipeline on one row after the other.

internal import Basics
internal import DocumentModel
internal import Expressions

/// Evaluates expressions on rows. Confined to one thread.
final class RowEvaluator {
    private let host: RowHost
    private let evaluation: Evaluation
    /// Bytes of work since it was last set to 0.
    var workBytes = 0
    /// Bytes that were built since it was last set.
    var builtBytes = 0

    init(_ tree: ExpressionTree, database: DatabaseName) {
        host = RowHost(database)
        evaluation = Evaluation(
            of: tree, host: host,
            budget: EvaluationBudget(
                expressions: PipelineLimits.expressionsPerRow, workBytes: PipelineLimits.workBytesPerExpression,
                memoryBytes: PipelineLimits.builtBytesPerExpression),
            patterns: PatternCache())
    }

    /// The value of an expression on a row; absent is one.
    ///
    /// - Throws: `INVALID_ARGUMENT` if the expression fails, `RESOURCE_EXHAUSTED` if it costs too much.
    func value(of expression: ExpressionID, on row: PipelineRow) throws(RequestError) -> Operand {
        do {
            return try evaluate(expression, row)
        } catch {
            throw RequestError(error)
        }
    }

    /// Whether a condition is true on a row. One that fails is not.
    ///
    /// - Throws: `RESOURCE_EXHAUSTED` if it costs too much.
    func isTrue(_ condition: ExpressionID, on row: PipelineRow) throws(RequestError) -> Bool {
        do {
            if case .boolean(true) = try evaluate(condition, row) { return true }
            return false
        } catch {
            if error.kind == .exhausted { throw RequestError(error) }
            return false
        }
    }

    private func evaluate(_ expression: ExpressionID, _ row: PipelineRow) throws(ExpressionError) -> Operand {
        host.row = row
        evaluation.restart()
        defer {
            workBytes += PipelineLimits.workBytesPerExpression - evaluation.budget.workBytes
            builtBytes += PipelineLimits.builtBytesPerExpression - evaluation.budget.memoryBytes
        }
        return try evaluation.value(of: expression)
    }
}

extension RequestError {
    init(_ error: ExpressionError) {
        self.init(error.kind == .exhausted ? .resourceExhausted : .invalidArgument, error.message)
    }
}

/// The language of pipelines for the evaluation.
private final class RowHost: EvaluationHost {
    private let namePrefix: String
    var row = PipelineRow()

    init(_ database: DatabaseName) { namePrefix = database.documentsRoot + "/" }

    func input(_ number: Int) throws(ExpressionError) -> Operand {
        guard let property = DocumentProperty(rawValue: number) else { return row.fields }
        guard let document = row.document else { return .absent }
        switch property {
        case .score: return .double(row.score)
        case .name: return .reference(namePrefix + String(decoding: document.path, as: UTF8.self))
        case .createTime: return .timestamp(TimestampValue(microseconds: Int64(clamping: document.createMicroseconds)))
        case .updateTime: return .timestamp(TimestampValue(microseconds: Int64(clamping: document.updateMicroseconds)))
        }
    }

    func member(_ name: String, of operand: Operand) throws(ExpressionError) -> Operand {
        switch operand {
        case .encodedMap(let slice): slice.member(name)
        case .map(let map): map[name] ?? .absent
        default: .absent
        }
    }

    func truth(of operand: Operand) throws(ExpressionError) -> Bool {
        guard case .boolean(let value) = operand else { throw .failed("A condition is not a boolean.") }
        return value
    }

    func key(_ operand: Operand) throws(ExpressionError) -> String {
        guard case .string(let key) = operand else { throw .failed("A key of a map is not a string.") }
        return key
    }

    func list(_ elements: [Operand]) throws(ExpressionError) -> Operand { .list(elements) }

    func map(_ map: OperandMap) throws(ExpressionError) -> Operand { .map(map) }
}
