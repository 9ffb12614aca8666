// Running the subqueries of a stage's expressions, before the stage.

internal import Basics
internal import DocumentModel
internal import Expressions

/// Evaluates expressions with subqueries on each row, and gives their values to the next stage as
/// ``PipelineRow/computed``.
final class SubqueryResolution: PipelineOperator {
    private let input: any PipelineOperator
    private let database: DatabaseName
    private var expressions: [ExpressionID] = []
    /// Results of subqueries that are the same for all rows.
    private var known: [ObjectIdentifier: SubqueryResult] = [:]

    private var row: PipelineRow?
    private var values: [SubqueryResult] = []
    /// What the other subqueries of the present expression have given.
    private var results: [SubqueryResult] = []
    private var running: SubqueryRun?
    /// Bytes of memory that are held for the results of the present row.
    private var heldBytes = 0
    private(set) var readNanoseconds: UInt64 = 0

    init(_ input: any PipelineOperator, in database: DatabaseName) {
        self.input = input
        self.database = database
    }

    /// Adds an expression.
    /// - Returns: one that the next stage evaluates in its place.
    func add(_ expression: ExpressionID, _ compiler: inout ExpressionCompiler) -> ExpressionID {
        let place = expressions.count
        expressions.append(expression)
        return compiler.append { (evaluation, _) throws(ExpressionError) in
            let computed = RowHost.of(evaluation).row.computed
            guard place < computed.count else { throw .failed("The stage needs a subquery of a row that has none.") }
            return try computed[place].get()
        }
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while true {
            if let running {
                if let waiting = try running.advance() { return waiting }
                try finish(running, work)
            }
            guard let current = row else {
                let pulled = try next(input, work)
                guard case .row(let row) = pulled else { return pulled }
                self.row = row
                continue
            }
            if values.count == expressions.count { return .row(try take(current, work)) }
            try evaluateNext(on: current, work)
            guard work.countRow() else { return .paused }
        }
    }

    /// Evaluates the next expression, or begins to run a subquery that it needs.
    private func evaluateNext(on row: PipelineRow, _ work: PipelineWork) throws(RequestError) {
        do throws(ExpressionError) {
            switch try work.evaluator.value(of: expressions[values.count], on: row, with: results, known) {
            case .value(let value): values.append(.success(value))
            case .wanted(let call): return try start(call, work)
            }
        } catch {
            if error.kind == .exhausted { throw RequestError(error) }
            values.append(.failure(error))
        }
        results = []
    }

    private func start(_ call: SubqueryCall, _ work: PipelineWork) throws(ExpressionError) {
        if results.count >= PipelineLimits.subqueriesPerExpression {
            throw .exhausted(
                "An expression runs more than \(PipelineLimits.subqueriesPerExpression) subqueries for one row.")
        }
        do throws(RequestError) {
            running = try SubqueryRun(call, in: database, work)
        } catch {
            throw error.code == .resourceExhausted ? .exhausted(error.message) : .failed(error.message)
        }
    }

    private func finish(_ run: SubqueryRun, _ work: PipelineWork) throws(RequestError) {
        running = nil
        readNanoseconds += run.readNanoseconds
        try work.hold(run.bytes, for: run.subquery.isScalar ? "scalar" : "array")
        if run.subquery.isIndependent {
            known[ObjectIdentifier(run.subquery)] = run.result
        } else {
            results.append(run.result)
            heldBytes += run.bytes
        }
    }

    /// The row with the values of the expressions.
    private func take(_ row: PipelineRow, _ work: PipelineWork) throws(RequestError) -> PipelineRow {
        work.release(heldBytes)
        heldBytes = 0
        var result = row
        result.computed = values
        for case .success(let value) in values { result.builtBytes += value.deepMemoryBytes }
        try result.checkBuiltBytes()
        self.row = nil
        values = []
        return result
    }

    var line: String { "Subqueries \(expressions.count)" }

    var inputs: [any PipelineOperator] { [input] }
}

/// One execution of a subquery.
final class SubqueryRun {
    let subquery: Subquery
    private let top: any PipelineOperator
    private let reads: [PipelineRead]
    private let work: PipelineWork
    private var values: [Operand] = []
    /// Bytes of memory of the results so far.
    private(set) var bytes = 0
    /// The time of its reads; 0 unless operators are measured.
    var readNanoseconds: UInt64 { reads.reduce(0) { $0 + $1.readNanoseconds } }

    /// Plans the pipeline with the values of the variables around it.
    ///
    /// - Throws: `RESOURCE_EXHAUSTED` beyond the number of subqueries that one pipeline may run.
    init(_ call: SubqueryCall, in database: DatabaseName, _ outer: PipelineWork) throws(RequestError) {
        subquery = call.subquery
        try outer.share.countSubquery()
        var builder = PipelineBuilder(database, outer.share.options, within: call)
        top = try builder.build(call.subquery.stages)
        reads = builder.reads
        work = PipelineWork(
            RowEvaluator(
                builder.tree, database: database, bindings: call.bindings, places: builder.places), outer.share,
            isNested: true)
    }

    /// Pulls results.
    ///
    /// - Returns: why it has to wait; nil when all results are there.
    func advance() throws(RequestError) -> Pull? {
        while true {
            let pulled = try top.pull(work)
            try work.share.checkSubqueryRows()
            switch pulled {
            case .row(let row):
                try add(subquery.value(of: row))
                // A second result already decides.
                if subquery.isScalar, values.count == 2 { return end() }
            case .paused, .starved: return pulled
            case .finished: return end()
            }
        }
    }

    private func add(_ value: Operand) throws(RequestError) {
        let size = 16 + value.deepMemoryBytes
        bytes += size
        if bytes > PipelineLimits.builtBytesPerExpression {
            throw RequestError(
                .resourceExhausted,
                "A subquery of the pipeline returns more than \(PipelineLimits.builtBytesPerExpression) bytes.")
        }
        try work.hold(size, for: subquery.isScalar ? "scalar" : "array")
        values.append(value)
    }

    private func end() -> Pull? {
        _ = work.countWork()
        work.releaseAll()
        for read in reads { read.withQuery { work.share.countReads(of: $0) } }
        return nil
    }

    /// The value, when all results are there.
    var result: SubqueryResult {
        if !subquery.isScalar { return .success(.list(values)) }
        if values.count > 1 { return .failure(.failed("Subpipeline returned multiple results.")) }
        return .success(values.first ?? .null)
    }
}
