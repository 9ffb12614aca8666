// Evaluating the expressions of a pipeline on one row after the other.

internal import Basics
internal import DocumentModel
internal import Expressions

/// Evaluates expressions on rows. Confined to one thread.
final class RowEvaluator {
    private let host: RowHost
    private let evaluation: Evaluation
    /// Bytes of work since it was last set.
    var workBytes = 0
    /// Bytes of work after which no evaluation begins.
    var workBytesMax = Int.max
    /// Bytes that were built since it was last set.
    var builtBytes = 0
    /// Bytes that may be built before an evaluation fails.
    var builtBytesMax = Int.max

    private let budget: EvaluationBudget
    private let places: ExpressionPlaces

    /// - Parameters:
    ///   - bindings: variables of the pipelines around.
    ///   - budget: what one expression may cost for a row.
    ///   - places: where the expressions stand, for errors.
    ///   - patterns: those that are compiled.
    init(
        _ tree: ExpressionTree, database: DatabaseName, bindings: [String: Operand] = [:],
        budget: EvaluationBudget = PipelineLimits.rowBudget, places: ExpressionPlaces = ExpressionPlaces(),
        patterns: PatternCache = PatternCache()
    ) {
        self.places = places
        host = RowHost(database, bindings: bindings)
        self.budget = budget
        evaluation = Evaluation(of: tree, host: host, budget: budget, patterns: patterns)
    }

    /// The value of an expression on a row; absent is one.
    ///
    /// - Throws: `INVALID_ARGUMENT` if the expression fails, `RESOURCE_EXHAUSTED` if it costs too much.
    func value(of expression: ExpressionID, on row: PipelineRow) throws(RequestError) -> Operand {
        do throws(ExpressionError) {
            let value = try evaluate(expression, row)
            if builtBytes > builtBytesMax {
                throw ExpressionError(
                    .exhausted, "The pipeline builds more than \(PipelineLimits.builtBytesPerRow) bytes for one row.")
            }
            return value
        } catch {
            throw RequestError(error).placed(places[expression])
        }
    }

    /// The value of an expression with subqueries.
    ///
    /// - Parameters:
    ///   - known: what subqueries have given whose results are the same for all rows.
    ///   - results: what other subqueries have given that the expression asked for before.
    /// - Returns: the value, or the subquery whose result is needed next.
    /// - Throws: an error that is not `pending`.
    func value(
        of expression: ExpressionID, on row: PipelineRow, with results: [SubqueryResult],
        _ known: [ObjectIdentifier: SubqueryResult]
    ) throws(ExpressionError) -> SubqueryOutcome {
        (host.results, host.known) = (results, known)
        defer { (host.results, host.known) = ([], [:]) }
        do {
            return .value(try evaluate(expression, row))
        } catch {
            guard error.kind == .pending, let wanted = host.wanted else { throw error }
            host.wanted = nil
            return .wanted(wanted)
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
            if error.kind != .failed { throw RequestError(error).placed(places[condition]) }
            return false
        }
    }

    private func evaluate(_ expression: ExpressionID, _ row: PipelineRow) throws(ExpressionError) -> Operand {
        if workBytes > workBytesMax {
            throw ExpressionError(.exhausted, "A stage of the pipeline reads too many bytes for one row.")
        }
        host.row = row
        host.resultsRead = 0
        evaluation.restart()
        defer {
            let spent = evaluation.budget
            let expressions = budget.expressions - spent.expressions
            workBytes += budget.workBytes - spent.workBytes + expressions * PipelineLimits.workBytesOfExpression
            builtBytes += budget.memoryBytes - spent.memoryBytes
        }
        return try evaluation.value(of: expression)
    }
}

extension RequestError {
    init(_ error: ExpressionError) {
        self.init(error.kind == .exhausted ? .resourceExhausted : .invalidArgument, error.message)
    }
}

/// The language of pipelines for the evaluation. Confined to one thread.
final class RowHost: EvaluationHost {
    private let database: DatabaseName
    /// Before the path of a document in its name.
    private lazy var namePrefix = database.documentsRoot + "/"
    /// Variables of the pipelines around.
    let bindings: [String: Operand]
    var row = PipelineRow()
    /// What subqueries have given whose results are the same for all rows.
    var known: [ObjectIdentifier: SubqueryResult] = [:]
    /// What the other subqueries of the expression have given, in the order in which it asks for them.
    var results: [SubqueryResult] = []
    /// How many of them the expression has read.
    var resultsRead = 0
    /// The subquery whose result is missing.
    var wanted: SubqueryCall?
    var zones = TimeZones()
    var lookup = FieldLookup()

    /// The host of an evaluation of pipelines.
    static func of(_ evaluation: Evaluation) -> RowHost {
        guard let host = evaluation.host as? RowHost else {
            preconditionFailure("functions of pipelines are evaluated on rows")
        }
        return host
    }

    init(_ database: DatabaseName, bindings: [String: Operand]) {
        self.database = database
        self.bindings = bindings
    }

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
        operand.field(name)
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
