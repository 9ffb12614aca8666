// What all operators of pipelines have in common.
//
// An operator is asked for one row after the other and asks its input. Nothing of the storage is held between two rows:
// the reads at the bottom have rows in a queue, which the execution fills from the storage when one is empty.
//
//     Limit ─ pull ─> Filter ─ pull ─> Read: row, row, row, starved
//
// A row that comes when the step has done its share waits for the next step, so that costly stages do not add up. All
// operators above have paused then, so at most one row waits.

internal import Basics
internal import Expressions
internal import QueryEngine

/// What an operator has to give.
enum Pull {
    case row(PipelineRow)
    /// The step has done its share of work; ask again in the next one.
    case paused
    /// The queue of this read has to be filled first.
    case starved(PipelineRead)
    /// There are no more rows.
    case finished
}

/// One operator of a pipeline. Confined to one thread.
protocol PipelineOperator: AnyObject {
    /// Gives the next row.
    ///
    /// - Throws: `INVALID_ARGUMENT` for an expression that fails, `RESOURCE_EXHAUSTED` beyond a bound.
    func pull(_ work: PipelineWork) throws(RequestError) -> Pull

    /// The operator as explain shows it.
    var line: String { get }

    /// What it asks for rows.
    var inputs: [any PipelineOperator] { get }

    /// The time of the reads that the execution made for it; 0 unless operators are measured.
    var readNanoseconds: UInt64 { get }

    /// The operator and those below it, from the top down.
    ///
    /// - Parameter measures: what they did; nil if they were not measured.
    func lines(depth: Int, _ measures: OperatorMeasures?) -> [OperatorLine]
}

/// What the operators of one pipeline share: evaluation, the work of the present step, memory. Confined to one thread.
final class PipelineWork {
    let evaluator: RowEvaluator
    /// What it shares with its subqueries.
    let share: PipelineShare
    /// Nil unless operators are measured; those of subqueries are not.
    let measures: OperatorMeasures?
    private let isNested: Bool
    private var heldBytes = 0
    /// A row that waits for the next step, and the operator that has pulled it.
    private var waiting: (owner: ObjectIdentifier, row: PipelineRow)?

    init(_ evaluator: RowEvaluator, _ share: PipelineShare, isNested: Bool = false) {
        self.evaluator = evaluator
        self.share = share
        self.isNested = isNested
        evaluator.workBytesMax = PipelineLimits.workBytesPerStage
        measures = share.options.measuresOperators && !isNested ? OperatorMeasures() : nil
    }

    /// Pulls a row of an operator.
    func pull(_ source: any PipelineOperator) throws(RequestError) -> Pull {
        guard let measures else { return try source.pull(self) }
        return try measures.pull(source, self)
    }

    /// Counts a row that an operator looked at.
    /// - Returns: whether the step may continue.
    func countRow() -> Bool {
        count(rows: 1)
        return !hasDoneShare
    }

    /// Counts what expressions have cost.
    /// - Returns: whether the step may continue.
    func countWork() -> Bool {
        count(rows: 0)
        return !hasDoneShare
    }

    private var hasDoneShare: Bool { share.rowsLeft < 0 }

    /// Counts rows, and what expressions have cost since the last call as rows.
    private func count(rows: Int) {
        let (more, left) = evaluator.workBytes.quotientAndRemainder(dividingBy: PipelineLimits.workBytesAsRow)
        evaluator.workBytes = left
        if isNested { share.subqueryRows += rows + more }
        share.rowsLeft -= rows + more
    }

    /// Pulls a row of the input of an operator and counts it. The row waits if the step has done its share then.
    func pull(_ input: any PipelineOperator, for owner: any PipelineOperator) throws(RequestError) -> Pull {
        if let (known, row) = waiting, known == ObjectIdentifier(owner) {
            waiting = nil
            return .row(row)
        }
        guard countRow() else { return .paused }
        let pulled = try pull(input)
        guard case .row(let row) = pulled, !countWork() else { return pulled }
        waiting = (ObjectIdentifier(owner), row)
        return .paused
    }

    /// Takes memory for what an operator keeps.
    func hold(_ bytes: Int, for stage: String) throws(RequestError) {
        heldBytes += bytes
        try share.hold(bytes, for: stage)
    }

    /// Gives memory back.
    func release(_ bytes: Int) {
        heldBytes -= bytes
        share.release(bytes)
    }

    /// Gives back what is held: the pipeline has ended.
    func releaseAll() { release(heldBytes) }

    /// Changes a row, and counts what its expressions build.
    func change(
        _ row: inout PipelineRow, _ body: (inout PipelineRow) throws(RequestError) -> Void
    ) throws(RequestError) {
        evaluator.builtBytes = row.builtBytes
        evaluator.builtBytesMax = PipelineLimits.builtBytesPerRow
        defer { evaluator.builtBytesMax = .max }
        try body(&row)
        row.builtBytes = evaluator.builtBytes
        try row.checkBuiltBytes()
    }

    /// Appends the key of a value, by which its row is compared with others.
    func appendKey(_ value: Operand, descending: Bool = false, to key: inout ByteBuffer) throws(RequestError) {
        let start = key.count
        defer { evaluator.workBytes += 2 * (key.count - start) }
        do {
            try value.appendKey(descending: descending, into: &key)
        } catch {
            throw RequestError(error)
        }
        if key.count > PipelineLimits.keyBytes {
            throw RequestError(
                .resourceExhausted,
                "The values by which a row is sorted or grouped have more than \(PipelineLimits.keyBytes) bytes.")
        }
    }

}

extension PipelineOperator {
    /// Pulls a row of the input and counts it.
    func next(_ input: any PipelineOperator, _ work: PipelineWork) throws(RequestError) -> Pull {
        try work.pull(input, for: self)
    }

    var readNanoseconds: UInt64 { 0 }

    func lines(depth: Int, _ measures: OperatorMeasures?) -> [OperatorLine] {
        let below = inputs.flatMap { $0.lines(depth: depth + 1, measures) }
        return [OperatorLine(depth: depth, text: line, figures: measures?.figures(of: self))] + below
    }
}
