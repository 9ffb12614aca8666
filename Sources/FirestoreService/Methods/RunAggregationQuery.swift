// RunAggregationQuery: totals over a query, computed step by step between other calls and sent in one message.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import QueryEngine

extension FirestoreService {
    func runAggregationQuery(_ call: Call, _ request: RawSpan) throws {
        let message = try RunAggregationQueryRequest(wire: request)
        guard let query = message.query else { throw RequestError.invalidArgument("An aggregation query is missing.") }
        let (database, access) = try withParent(call, message.parent) { (parent, access) throws(RequestError) in
            (try self.database(parent.databaseBytes), access)
        }
        let source = try message.parent.withUTF8Span { (parent) throws(RequestError) in
            AggregationSource(
                service: self, call: call,
                try AggregationExecution(query, parent: parent, options: options(message.explain)),
                explain: message.explain,
                form: queryReads.form(of: query.query, query.aggregations, below: message.parent, in: database))
        }
        try withReadPoint(call, message.consistency, in: database) { service, point, transaction in
            try service.check(query.query, message.parent, at: point, permittedBy: access)
            source.point = point
            source.newTransaction = transaction
            service.stream(call, source)
        }
    }
}

/// The one message of an aggregation.
final class AggregationSource: ResponseSource {
    private let service: FirestoreService
    private let call: Call
    private var run: AggregationExecution
    /// The state that is read; set before the source is streamed.
    var point: ReadPoint?
    /// Empty unless the request began a transaction.
    var newTransaction: [UInt8] = []
    /// What the next step waits for.
    private var wait: StorageWait?

    private let explain: ExplainOptions?
    private let form: QueryReads.Form
    private let stopwatch = Stopwatch()

    init(
        service: FirestoreService, call: Call, _ run: consuming AggregationExecution, explain: ExplainOptions?,
        form: QueryReads.Form
    ) {
        self.form = form
        self.explain = explain
        self.service = service
        self.call = call
        self.run = run
    }

    func next(into writer: inout ByteBuffer) -> SourceStep {
        guard let point else { preconditionFailure("an aggregation is streamed after its read point is set") }
        if let wait, !wait.isOver { return .waiting }
        do throws(RequestError) {
            try wait?.finish()
            wait = nil
            let source = try service.reader.source(at: point, matching: run.plan.matcher, .pends)
            if let explain, !explain.analyze {
                guard try run.chooseOperators(source) else {
                    call.resumeLater()
                    return .waiting
                }
                RunAggregationQueryResponse(
                    totals: [], transaction: newTransaction, readTime: nil, explainMetrics: run.metrics()
                ).encode(into: &writer)
                service.ended(call)
                service.counters.streamsOpen.subtract()
                return .lastMessage
            }
            if case .paused = try run.next(from: source) {
                call.resumeLater()
                return .waiting
            }
        } catch {
            if error.isPending {
                wait = StorageWait(service, call)
                return .waiting
            }
            let status = service.requestError(error, call)
            service.rollBackUnsent(newTransaction)
            form.note(documents: run.scannedDocuments)
            service.counters.streamsOpen.subtract()
            return .failed(status.code, status.message)
        }
        let totals = run.result.map { RunAggregationQueryResponse.Total(alias: $0.alias, value: $0.value) }
        let metrics = explain == nil ? nil : run.metrics(resultsReturned: 1, nanoseconds: stopwatch.nanoseconds)
        RunAggregationQueryResponse(
            totals: totals, transaction: newTransaction, readTime: point.readTime, explainMetrics: metrics
        ).encode(into: &writer)
        service.ended(call) { "\(run.plan.database): \(run.tree)" }
        run.withQuery { service.noteWantedIndex($0) }
        form.note(documents: run.scannedDocuments)
        service.counters.streamsOpen.subtract()
        return .lastMessage
    }

    func cancelled() {
        service.rollBackUnsent(newTransaction)
        form.note(documents: run.scannedDocuments)
        service.counters.streamsOpen.subtract()
    }
}
