// RunQuery: the store's query execution, drained page by page into a stream.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import QueryEngine

extension FirestoreService {
    func runQuery(_ call: Call, _ request: RawSpan) throws {
        let message = try RunQueryRequest(wire: request)
        guard let query = message.query else { throw RequestError.invalidArgument("A query is missing.") }
        let (plan, access) = try withParent(call, message.parent) { (parent, access) throws(RequestError) in
            (try QueryPlan(query, parent: parent.bytes, options: options(message.explain)), access)
        }
        let source = QueryResponses(
            service: self, call: call, plan, explain: message.explain,
            form: queryReads.form(of: query, below: message.parent, in: plan.database))
        try withReadPoint(call, message.consistency, in: plan.database) { service, point, transaction in
            try service.check(query, message.parent, at: point, permittedBy: access)
            source.point = point
            source.newTransaction = transaction
            service.stream(call, source)
        }
    }

    /// Bounds of the queries that clients send.
    ///
    /// - Parameter explain: how the query is to be explained; nil if it is not.
    func options(_ explain: ExplainOptions?) -> QueryOptions {
        var options = QueryOptions()
        options.requiresIndexes = limits.requiresIndexes
        options.measuresOperators = explain?.analyze == true
        return options
    }

    /// Makes sure that a query may be run.
    ///
    /// - Parameter parent: a full resource name that has been checked.
    func check(
        _ query: StructuredQuery, _ parent: String, at point: ReadPoint, permittedBy access: (any CallAccess)?
    ) throws(RequestError) {
        guard let access, !access.isUnrestricted else { return }
        try parent.withUTF8Span { (parent) throws(RequestError) in
            let view = try ResourceNameView(resource: parent)
            try access.checkList(query, parent: view.pathBytes, judged(at: point))
        }
    }

    /// Checks the parent of a query or listing and lends it, with what the caller may do.
    func withParent<Answer>(
        _ call: Call, _ parent: String,
        _ body: (borrowing ResourceNameView, (any CallAccess)?) throws(RequestError) -> Answer
    ) throws(RequestError) -> Answer {
        try parent.withUTF8Span { (bytes) throws(RequestError) in
            let view = try ResourceNameView(resource: bytes, rules: .request)
            guard view.isRoot || view.isDocument else {
                throw .invalidArgument(
                    "The parent \"\(parent)\" must be a document or the documents root of a database.")
            }
            return try body(view, try admit(call, bytes))
        }
    }

    /// Fixes what a streaming read sees, beginning a transaction first where the request asks for one.
    func withReadPoint(
        _ call: Call, _ consistency: ReadConsistency, in database: DatabaseName,
        _ body: @escaping (FirestoreService, ReadPoint, _ newTransaction: [UInt8]) throws -> Void
    ) throws {
        guard case .newTransaction(let options) = consistency else {
            return try withReadPoint(call, try consistency.selector(in: store), in: database) { service, point in
                try body(service, point, [])
            }
        }
        beginTransaction(call, options, in: database) { service, transaction in
            try service.rollingBack(call, transaction.bytes) { service in
                try service.withReadPoint(
                    call, .transaction(transaction), in: database, begun: transaction.bytes
                ) { service, point in
                    try body(service, point, transaction.bytes)
                }
            }
        }
    }

    /// Fixes what a read sees. The read may have to wait first: in a pessimistic transaction for its locks, and at a
    /// time of the last moments for commits that are not visible yet. The call is parked until then.
    ///
    /// - Parameters:
    ///   - names: the documents that are read, as far as they are known; those of a scan are locked as they are met.
    ///   - transaction: the one that the read has begun, which ends if the read fails after it was parked; else empty.
    func withReadPoint(
        _ call: Call, _ selector: ReadSelector, in database: DatabaseName,
        locking names: @autoclosure () -> [[UInt8]] = [], begun transaction: [UInt8] = [],
        _ body: @escaping (FirestoreService, ReadPoint) throws -> Void
    ) throws {
        guard try store.mustWait(for: selector) else {
            return try body(self, reader.readPoint(selector, in: database))
        }
        let prepared = continuation(call) { (service, outcome: Result<Void, RequestError>) in
            try service.rollingBack(call, transaction) { service in
                try outcome.get()
                try body(service, service.reader.readPoint(selector, in: database))
            }
        }
        store.prepareRead(selector, locking: names()) { prepared(.success($0)) }
    }

    func stream(_ call: Call, _ source: any ResponseSource) {
        counters.streamsOpen.add()
        call.stream(source)
    }
}

/// The results of one query.
///
///     QueryExecution --page--> buffer (messages, back to back) --one by one--> connection
///
/// A page is filled when the one before has been sent, so that a stream holds one page however large its result is, and
/// the scan is taken up again once a page and not once a document.
final class QueryResponses: ResponseSource {
    private let service: FirestoreService
    private let call: Call
    private var run: QueryExecution
    /// The state that is read; set before the source is streamed.
    var point: ReadPoint?
    /// Sent alone in the first message, then empty.
    var newTransaction: [UInt8] = []
    /// `projects/…/documents/`, before every path.
    private let namePrefix: [UInt8]
    /// A buffer of the loop's while there are messages in it, so that streams that wait hold no memory.
    private var page = ByteBuffer(capacity: 0)
    /// Where the messages of the page end.
    private var messageEnds: [Int] = []
    /// The next message of the page to be sent.
    private var position = 0
    private var isExhausted = false
    private var hasSent = false
    /// What the next page waits for.
    private var wait: StorageWait?
    /// Skipped results that a message has reported.
    private var skipsReported = 0
    private let explain: ExplainOptions?
    private let form: QueryReads.Form
    private let stopwatch = Stopwatch()

    /// Bytes after which a page is sent.
    private static var pageBytes: Int { 64 << 10 }

    init(
        service: FirestoreService, call: Call, _ plan: QueryPlan, explain: ExplainOptions?, form: QueryReads.Form
    ) {
        self.explain = explain
        self.form = form
        self.service = service
        self.call = call
        run = QueryExecution(plan)
        namePrefix = plan.database.utf8 + Array("/documents/".utf8)
    }

    func next(into writer: inout ByteBuffer) -> SourceStep {
        guard let point else { preconditionFailure("a query is streamed after its read point is set") }
        if !newTransaction.isEmpty {
            // By the schema a separate message has the id, before any result.
            RunQueryResponseWriter.append(transaction: newTransaction, to: &writer)
            newTransaction = []
            return .message
        }
        if let wait, !wait.isOver, position == messageEnds.count { return .waiting }
        if let explain, !explain.analyze { return appendPlan(at: point, into: &writer) }
        if position == messageEnds.count {
            guard !isExhausted else { return end(at: point, into: &writer) }
            do throws(RequestError) {
                try wait?.finish()
                wait = nil
                try fillPage(at: point)
            } catch {
                returnPage()
                // A query that needs an index in strict mode.
                if error.code == .failedPrecondition { service.noteWantedIndex(run) }
                let status = service.requestError(error, call)
                form.note(documents: run.scannedDocuments)
                service.counters.streamsOpen.subtract()
                return .failed(status.code, status.message)
            }
            if messageEnds.isEmpty {
                returnPage()
                if wait != nil { return .waiting }
                return isExhausted ? end(at: point, into: &writer) : yieldLoop()
            }
        }
        let start = position == 0 ? 0 : messageEnds[position - 1]
        writer.append(page.bytes.extracting(start..<messageEnds[position]))
        position += 1
        hasSent = true
        if position == messageEnds.count { returnPage() }
        return .message
    }

    var hasMessageReady: Bool { position < messageEnds.count }

    func cancelled() {
        service.rollBackUnsent(newTransaction)
        returnPage()
        form.note(documents: run.scannedDocuments)
        service.counters.streamsOpen.subtract()
    }

    private func returnPage() {
        guard page.capacity > 0 else { return }
        var taken = ByteBuffer(capacity: 0)
        swap(&taken, &page)
        call.loop.recycle(taken)
        messageEnds.removeAll(keepingCapacity: true)
        position = 0
    }

    /// Every result is sent. Reports what the offset skipped if no message has, and the read time if there was none.
    private func end(at point: ReadPoint, into writer: inout ByteBuffer) -> SourceStep {
        service.ended(call) { "\(run.plan.database): \(run.tree)" }
        service.noteWantedIndex(run)
        form.note(documents: run.scannedDocuments)
        service.counters.streamsOpen.subtract()
        if explain == nil, hasSent, skipsReported == run.skippedResults { return .finished }
        RunQueryResponseWriter.appendReadTime(point.readMicroseconds, to: &writer)
        appendSkippedResults(&writer)
        if explain != nil {
            let metrics = ExplainMetrics(
                of: run, resultsReturned: run.returnedResults, nanoseconds: stopwatch.nanoseconds)
            RunQueryResponseWriter.append(metrics, to: &writer)
        }
        return .lastMessage
    }

    /// The plan alone, in one message without a read time.
    private func appendPlan(at point: ReadPoint, into writer: inout ByteBuffer) -> SourceStep {
        do throws(RequestError) {
            try wait?.finish()
            wait = nil
            let source = try service.reader.source(at: point, matching: run.plan.matcher, .pends)
            try run.chooseOperators(source)
        } catch {
            if error.isPending {
                wait = StorageWait(service, call)
                return .waiting
            }
            let status = service.requestError(error, call)
            service.counters.streamsOpen.subtract()
            return .failed(status.code, status.message)
        }
        service.counters.streamsOpen.subtract()
        service.ended(call)
        let metrics = ExplainMetrics(of: run)
        RunQueryResponseWriter.append(metrics, to: &writer)
        return .lastMessage
    }

    /// Much was looked at and nothing found yet: others on this loop have their turn first.
    private func yieldLoop() -> SourceStep {
        call.resumeLater()
        return .waiting
    }

    private func fillPage(at point: ReadPoint) throws(RequestError) {
        if page.capacity == 0 { page = call.loop.takeWriter() }
        do throws(RequestError) {
            let source = try service.reader.source(at: point, matching: run.plan.matcher, .pends)
            let progress = try run.next(from: source) { (result) throws(RequestError) in
                append(result, at: point)
                return page.count >= Self.pageBytes ? .full : .more
            }
            if case .finished = progress { isExhausted = true }
        } catch {
            guard error.isPending else { throw error }
            // What the page has is sent meanwhile.
            wait = StorageWait(service, call)
        }
        call.noteStep()
        // What the offset skipped is known only now: it is in the last message of the page.
        if let last = messageEnds.indices.last {
            appendSkippedResults(&page)
            messageEnds[last] = page.count
        }
    }

    private func append(_ result: borrowing QueryRow, at point: ReadPoint) {
        let prefix = namePrefix
        RunQueryResponseWriter.appendResult(
            namePrefix: prefix.span.bytes, path: result.path, fields: result.fields,
            createMicroseconds: result.createMicroseconds, updateMicroseconds: result.updateMicroseconds,
            readMicroseconds: point.readMicroseconds, to: &page)
        messageEnds.append(page.count)
        service.counters.countRead(result.path, of: "\(point.database)")
    }

    /// Appends the number of results skipped since the last report.
    private func appendSkippedResults(_ writer: inout ByteBuffer) {
        RunQueryResponseWriter.append(skippedResults: run.skippedResults - skipsReported, to: &writer)
        skipsReported = run.skippedResults
    }
}
