// ExecutePipeline: a pipeline, drained page by page into a stream.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import Pipelines
internal import QueryEngine

extension FirestoreService {
    func executePipeline(_ call: Call, _ request: RawSpan) throws {
        let message = try ExecutePipelineRequest(wire: request)
        let (database, access) = try message.database.withUTF8Span { (name) throws(RequestError) in
            (try self.database(name), try admit(call, name))
        }
        guard let pipeline = message.pipeline else { throw RequestError.invalidArgument("A pipeline is missing.") }
        let run = try PipelineExecution(
            structuredPipeline: pipeline.byteSpan, in: database, options: limits.pipelines)
        if try isForwarded(call, request, writes: run.writes != nil) { return }
        let source = PipelineResponses(
            service: self, call: call, run, database, form: queryReads.form(of: run.form, in: database))
        source.access = access
        let (consistency, ending) = try transaction(of: message, writes: run.writes != nil)
        source.ending = ending
        try withReadPoint(call, consistency, in: database) { service, point, transaction in
            source.transaction = try consistency.transaction(begun: transaction)
            source.point = point
            source.newTransaction = ending.isOwn ? [] : transaction
            service.stream(call, source)
        }
    }

    /// The transaction that a pipeline runs in, and how it ends.
    private func transaction(
        of message: ExecutePipelineRequest, writes: Bool
    ) throws(RequestError) -> (ReadConsistency, PipelineEnding) {
        switch message.consistency {
        case .transaction, .newTransaction:
            return (message.consistency, message.autoCommitsTransaction ? .commits : writes ? .holds : .none)
        case .latest, .readTime:
            if message.autoCommitsTransaction {
                throw .invalidArgument("auto_commit_transaction needs transaction or new_transaction.")
            }
            guard writes else { return (message.consistency, .none) }
            guard case .latest = message.consistency else {
                throw .invalidArgument("A pipeline that writes cannot read at a time of the past.")
            }
            return (.newTransaction(.readWrite), .commitsItsOwn)
        }
    }
}

/// What becomes of the transaction of a pipeline when it has run.
enum PipelineEnding {
    /// Nothing; the client ends it.
    case none
    /// It keeps the pipeline's writes for its commit.
    case holds
    /// It is committed.
    case commits
    /// It was begun for the pipeline, and is committed.
    case commitsItsOwn

    var isOwn: Bool { self == .commitsItsOwn }
}

extension ReadConsistency {
    /// The transaction that a request reads in, or nil.
    /// - Parameter bytes: the id of the one that began with it; empty if none did.
    fileprivate func transaction(begun bytes: [UInt8]) throws(RequestError) -> TransactionIdentifier? {
        if !bytes.isEmpty { return try TransactionIdentifier(bytes: bytes.byteSpan) }
        guard case .transaction(let named) = self else { return nil }
        return try TransactionIdentifier(bytes: named.byteSpan)
    }
}

/// What access control has still to permit.
private struct PendingDemands {
    /// Each is one query or one document, the first one last.
    private var reads: [PipelineDemand]

    init(_ demands: [PipelineDemand]) {
        reads = demands.flatMap { demand -> [PipelineDemand] in
            guard case .documents(let paths) = demand else { return [demand] }
            return paths.map { .documents([$0]) }
        }.reversed()
    }

    /// Asks for one ``JudgementStep``.
    ///
    /// - Returns: whether everything is permitted; else there is more to ask.
    /// - Throws: `PERMISSION_DENIED`; `pending`, after which the step is made again.
    mutating func permit(
        _ service: FirestoreService, at point: ReadPoint, by access: (any CallAccess)?
    ) throws(RequestError) -> Bool {
        guard let access, !access.isUnrestricted else { return true }
        let step = JudgementStep()
        while let read = reads.last {
            switch read {
            case .query(let query, let parent): try service.check(query, parent, at: point, permittedBy: access)
            case .documents(let paths):
                for path in paths { try access.checkGet(path.byteSpan, service.judged(at: point)) }
            }
            reads.removeLast()
            if !reads.isEmpty, step.isOver { return false }
        }
        return true
    }
}

/// The results of one pipeline: a message for each page of them.
///
/// One whose transaction is committed with it sends nothing before the commit.
final class PipelineResponses: ResponseSource {
    private let service: FirestoreService
    private let call: Call
    private let run: PipelineExecution
    /// The state that is read; set before the source is streamed.
    var point: ReadPoint?
    /// Who is asked whether the pipeline may read what it reads.
    var access: (any CallAccess)?
    /// What has to be permitted before the pipeline begins, and before it continues with a subquery.
    private var demands: PendingDemands
    private var demandsOfSubquery: PendingDemands?
    /// What the pipeline reads in, and what becomes of it.
    var transaction: TransactionIdentifier?
    var ending = PipelineEnding.none
    /// Results that wait for the commit.
    private var held = ByteBuffer(capacity: 0)
    private var isCommitting = false
    private var committed: Result<CommitResult, RequestError>?
    /// Sent with the first message, then empty.
    var newTransaction: [UInt8] = []
    /// `projects/…/documents/`, before every path.
    private let namePrefix: [UInt8]
    private var hasSent = false
    private let form: QueryReads.Form
    /// What the next read waits for.
    private var wait: StorageWait?
    private let stopwatch = Stopwatch()

    /// Bytes of results after which a message is sent.
    private static var pageBytes: Int { 64 << 10 }

    init(
        service: FirestoreService, call: Call, _ run: PipelineExecution, _ database: DatabaseName,
        form: QueryReads.Form
    ) {
        self.service = service
        self.form = form
        self.call = call
        self.run = run
        demands = PendingDemands(run.demands)
        namePrefix = database.utf8 + Array("/documents/".utf8)
    }

    func next(into writer: inout ByteBuffer) -> SourceStep {
        guard let point else { preconditionFailure("a pipeline is streamed after its read point is set") }
        if let wait, !wait.isOver { return .waiting }
        do throws(RequestError) {
            try wait?.finish()
            wait = nil
            guard try demands.permit(service, at: point, by: access) else { return yieldLoop() }
            return try fill(&writer, at: point)
        } catch {
            if error.isPending {
                wait = StorageWait(service, call)
                return .waiting
            }
            endOwnTransaction()
            let status = service.requestError(error, call)
            noteEnd()
            return .failed(status.code, status.message)
        }
    }

    /// Ends a transaction that nobody else knows or that a failed commit leaves.
    private func endOwnTransaction() {
        let isKnown = !ending.isOwn && newTransaction.isEmpty
        if let transaction, !isKnown, committed == nil { service.store.rollback(transaction) }
    }

    private func fill(_ writer: inout ByteBuffer, at point: ReadPoint) throws(RequestError) -> SourceStep {
        if run.explanation.mode == .explain { return try explain(at: point, into: &writer) }
        if ending != .none { return try fillWriting(&writer, at: point) }
        let start = writer.count
        switch try step(&writer, at: point) {
        case .paused, .starved:
            if writer.count == start { return yieldLoop() }
            endMessage(at: point, &writer)
            return .message
        case .finished:
            if writer.count == start, hasSent, run.explanation.mode == .execute { return finish(.finished) }
            endMessage(at: point, &writer)
            if run.explanation.mode == .analyze { appendAnalysis(to: &writer) }
            return finish(.lastMessage)
        }
    }

    /// Has the source asked again: when what it waits for is there, or when others on this loop had their turn.
    private func yieldLoop() -> SourceStep {
        if wait == nil { call.resumeLater() }
        return .waiting
    }

    // MARK: Transactions that end with the pipeline

    /// Runs the pipeline to its end, commits or keeps its writes, and sends the results then.
    private func fillWriting(_ writer: inout ByteBuffer, at point: ReadPoint) throws(RequestError) -> SourceStep {
        if let committed {
            _ = try committed.get()
            writer.append(held.bytes)
            endMessage(at: point, &writer)
            if run.explanation.mode == .analyze { appendAnalysis(to: &writer) }
            return finish(.lastMessage)
        }
        if isCommitting { return .waiting }
        let progress = try takeHeld(at: point)
        guard case .finished = progress else { return yieldLoop() }
        try end(at: point)
        if committed != nil { return try fillWriting(&writer, at: point) }
        return .waiting
    }

    private func takeHeld(at point: ReadPoint) throws(RequestError) -> PipelineExecution.Progress {
        let progress = try step(&held, at: point)
        if held.count > Self.heldBytesMax {
            throw RequestError(
                .resourceExhausted,
                "A pipeline that commits its transaction returns more than \(Self.heldBytesMax) bytes.")
        }
        return progress
    }

    /// Ends the transaction as the request wants it.
    private func end(at point: ReadPoint) throws(RequestError) {
        guard let transaction else { preconditionFailure("a pipeline that writes has a transaction") }
        var writes = run.writes ?? WriteList(database: point.database)
        if ending == .holds {
            try service.store.hold(writes, in: transaction)
            committed = .success(CommitResult(commitMicroseconds: 0, writeResults: []))
            return
        }
        let heldLists = try service.addHeldWrites(of: transaction, to: &writes)
        isCommitting = true
        service.counters.countWrites(writes)
        let request = CommitRequest(
            writes: writes, transaction: transaction, heldLists: heldLists, identifier: call.requestIdentifier)
        let bound = LoopBound(self)
        let call = call
        service.commit(call, request, permittedBy: access) { outcome in
            call.loop.execute {
                bound.value.committed = outcome
                call.resume()
            }
        }
    }

    /// Bytes of results that wait for a commit.
    private static var heldBytesMax: Int { 16 << 20 }

    /// Reads what the pipeline needs next.
    ///
    /// - Returns: false if there is more to decide before.
    private func fillStarved(at point: ReadPoint) throws(RequestError) -> Bool {
        if demandsOfSubquery == nil { demandsOfSubquery = run.starvedDemand.map { PendingDemands([$0]) } }
        guard try demandsOfSubquery?.permit(service, at: point, by: access) ?? true else { return false }
        let source = try service.reader.source(at: point, matching: run.starvedPlan?.matcher, .pends)
        try run.fill(from: source)
        demandsOfSubquery = nil
        return true
    }

    /// Takes results until a message is full, and reads once for a query that has to be read before.
    ///
    /// - Returns: `starved` with ``wait`` set if the storage has to be waited for.
    private func step(
        _ writer: inout ByteBuffer, at point: ReadPoint
    ) throws(RequestError) -> PipelineExecution.Progress {
        defer { call.noteStep() }
        do throws(RequestError) {
            return try run.givesDocuments ? copyDocuments(&writer, at: point) : takeResults(&writer, at: point)
        } catch {
            guard error.isPending else { throw error }
            wait = StorageWait(service, call)
            return .starved
        }
    }

    private func takeResults(
        _ writer: inout ByteBuffer, at point: ReadPoint
    ) throws(RequestError) -> PipelineExecution.Progress {
        let start = writer.count
        let progress = try take(&writer, from: start)
        guard case .starved = progress else { return progress }
        guard try fillStarved(at: point) else { return .starved }
        return try take(&writer, from: start)
    }

    /// Takes the documents of a pipeline that changes none, from where they are stored.
    private func copyDocuments(
        _ writer: inout ByteBuffer, at point: ReadPoint
    ) throws(RequestError) -> PipelineExecution.Progress {
        let start = writer.count
        let source = try service.reader.source(at: point, matching: run.documentsPlan?.matcher, .pends)
        var documents: UInt64 = 0
        defer { service.counters.documentsRead.add(documents) }
        return try run.nextDocuments(from: source) { (row) throws(RequestError) in
            let prefix = namePrefix
            ExecutePipelineResponseWriter.appendResult(
                namePrefix: prefix.byteSpan, path: row.path, fields: row.fields,
                createMicroseconds: row.createMicroseconds, updateMicroseconds: row.updateMicroseconds, to: &writer)
            documents += 1
            return writer.count - start >= Self.pageBytes ? .full : .more
        }
    }

    private func take(
        _ writer: inout ByteBuffer, from start: Int
    ) throws(RequestError) -> PipelineExecution.Progress {
        try run.next { (result) throws(RequestError) in
            try append(result, to: &writer)
            return writer.count - start >= Self.pageBytes ? .full : .more
        }
    }

    private func finish(_ step: SourceStep) -> SourceStep {
        if let database = point?.database {
            service.ended(call) { "\(database): \(run.operatorLines.tree)" }
            service.noteWantedIndexes(run, in: database)
        }
        noteEnd()
        return step
    }

    private func noteEnd() {
        form.note(documents: run.scannedDocuments)
        service.counters.streamsOpen.subtract()
    }

    private func append(
        _ result: borrowing PipelineExecution.Result, to writer: inout ByteBuffer
    ) throws(RequestError) {
        var fields = ByteBuffer(capacity: 256)
        try result.appendFields(into: &fields)
        if let path = result.path {
            let prefix = namePrefix
            ExecutePipelineResponseWriter.appendResult(
                namePrefix: prefix.byteSpan, path: path.byteSpan, fields: fields.bytes,
                createMicroseconds: result.createMicroseconds, updateMicroseconds: result.updateMicroseconds,
                to: &writer)
            service.counters.countRead(path.byteSpan, of: String(decoding: namePrefix.dropLast(11), as: UTF8.self))
        } else {
            ExecutePipelineResponseWriter.appendResult(fields: fields.bytes, to: &writer)
        }
    }

    /// Appends what every message has besides results.
    private func endMessage(at point: ReadPoint, _ writer: inout ByteBuffer) {
        ExecutePipelineResponseWriter.appendExecutionTime(point.readMicroseconds, to: &writer)
        if !newTransaction.isEmpty {
            ExecutePipelineResponseWriter.append(transaction: newTransaction, to: &writer)
            newTransaction = []
        }
        hasSent = true
    }

    /// The plan alone, in one message.
    private func explain(at point: ReadPoint, into writer: inout ByteBuffer) throws(RequestError) -> SourceStep {
        do throws(RequestError) {
            guard try run.chooseOperators(try service.reader.source(at: point, .pends)) else {
                call.resumeLater()
                return .waiting
            }
        } catch {
            guard error.isPending else { throw error }
            wait = StorageWait(service, call)
            return .waiting
        }
        if ending.isOwn { endOwnTransaction() }
        endMessage(at: point, &writer)
        let metrics = ExplainMetrics(of: run)
        ExecutePipelineResponseWriter.append(explainText: metrics.text, metrics, to: &writer)
        return finish(.lastMessage)
    }

    /// Appends the plan and what its execution took.
    private func appendAnalysis(to writer: inout ByteBuffer) {
        let metrics = ExplainMetrics(of: run, nanoseconds: stopwatch.nanoseconds)
        ExecutePipelineResponseWriter.append(explainText: metrics.text, metrics, to: &writer)
    }

    func cancelled() {
        if !isCommitting { endOwnTransaction() }
        noteEnd()
    }
}
