// Explaining queries and pipelines: from a run of the store to the message's metrics.

internal import Basics
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import Pipelines
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
            indexes: Self.indexes(of: run.explanation),
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

    private static func indexes(of explanation: QueryExplanation) -> [Index] {
        explanation.indexesUsed.map { Index(queryScope: $0.queryScope, properties: $0.properties) }
    }
}

extension ExplainMetrics {
    /// What is known of a pipeline before it begins.
    init(of run: PipelineExecution) {
        let queries = run.queryExplanations
        self.init(
            indexes: queries.flatMap { Self.indexes(of: $0) }, tree: run.operatorLines.tree,
            advice: queries.lazy.compactMap(\.adviceJSON).first ?? "")
    }

    /// What is known of a pipeline at its end.
    init(of run: PipelineExecution, nanoseconds: Int64) {
        self.init(of: run)
        execution = Execution(
            resultsReturned: Int64(run.returnedResults), durationNanoseconds: nanoseconds,
            documentsScanned: Int64(run.scannedDocuments), indexEntriesScanned: Int64(run.scannedEntries),
            operators: run.operatorLines.compactMap(Operator.init))
    }

    /// The plan, and what its execution took, as text.
    var text: String {
        guard let execution else { return tree }
        let lines = zip(execution.operators, execution.ownNanoseconds).map { one, own in
            let entries = one.entries > 0 ? "\(one.entries) index entries, " : ""
            return OperatorLine(
                depth: Int(one.depth), text: "\(one.line) (\(one.rows) rows, \(entries)\(own / 1_000) µs)")
        }
        return """
            \(lines.tree)
            Execution:
               results returned: \(execution.resultsReturned)
               documents scanned: \(execution.documentsScanned)
               index entries scanned: \(execution.indexEntriesScanned)
               duration: \(execution.durationNanoseconds / 1_000) µs
            """
    }
}

extension FirestoreService {
    /// Notes the index that a query lacked, if one would have made it cheaper.
    func noteWantedIndex(_ run: borrowing QueryExecution) {
        noteWantedIndex(run.explanation, in: run.plan.database, documents: run.scannedDocuments)
    }

    /// Notes the indexes that the queries of a pipeline lacked.
    func noteWantedIndexes(_ run: PipelineExecution, in database: DatabaseName) {
        for query in run.queryExplanations {
            noteWantedIndex(query, in: database, documents: run.scannedDocuments)
        }
    }

    private func noteWantedIndex(_ query: QueryExplanation, in database: DatabaseName, documents: Int) {
        guard let json = query.adviceJSON else { return }
        store.wantedIndexes.note(json, in: database, documents: documents)
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
