// Explaining queries: from a run of the store to the message's metrics.

internal import Basics
internal import DocumentStore
internal import FirestoreMessages
internal import QueryEngine

/// Measures how long a call has taken, on the clock that nobody sets.
struct Stopwatch {
    private let start = SystemClock.monotonicNanoseconds()

    /// At least 1.
    var nanoseconds: Int64 { max(Int64(SystemClock.monotonicNanoseconds() - start), 1) }
}

extension ExplainMetrics {
    /// What is known of a run before it begins.
    init(of run: borrowing QueryExecution) {
        self.init(
            indexes: run.explanation.indexesUsed.map { Index(queryScope: $0.queryScope, properties: $0.properties) },
            tree: ([run.tree] + run.missingIndexes).joined(separator: "\n"),
            advice: run.explanation.adviceJSON ?? "")
    }

    /// What is known of a run at its end.
    init(of run: borrowing QueryExecution, resultsReturned: Int, nanoseconds: Int64) {
        self.init(of: run)
        execution = Execution(
            resultsReturned: Int64(resultsReturned), durationNanoseconds: nanoseconds,
            documentsScanned: Int64(run.scannedDocuments), indexEntriesScanned: Int64(run.scannedEntries),
            operators: run.operatorLines.compactMap(Operator.init))
    }
}

extension FirestoreService {
    /// Notes the index that a query lacked, if one would have made it cheaper.
    func noteWantedIndex(_ run: borrowing QueryExecution) {
        guard let json = run.explanation.adviceJSON else { return }
        store.wantedIndexes.note(json, in: run.plan.database, documents: run.scannedDocuments)
    }
}

extension ExplainMetrics.Operator {
    /// Nil for an operator that was not measured.
    fileprivate init?(_ line: OperatorLine) {
        guard let figures = line.figures else { return nil }
        self.init(
            depth: Int64(line.depth), line: line.text, rows: Int64(figures.rows), entries: Int64(figures.entries),
            nanoseconds: Int64(clamping: figures.nanoseconds))
    }
}

extension AggregationExecution {
    func metrics() -> ExplainMetrics {
        var metrics = withQuery { ExplainMetrics(of: $0) }
        metrics.tree = withQuery { ([tree] + $0.missingIndexes).joined(separator: "\n") }
        return metrics
    }

    func metrics(resultsReturned: Int, nanoseconds: Int64) -> ExplainMetrics {
        var metrics = withQuery { ExplainMetrics(of: $0, resultsReturned: resultsReturned, nanoseconds: nanoseconds) }
        metrics.tree = withQuery { ([tree] + $0.missingIndexes).joined(separator: "\n") }
        metrics.execution?.operators = operatorLines.compactMap(ExplainMetrics.Operator.init)
        return metrics
    }
}
