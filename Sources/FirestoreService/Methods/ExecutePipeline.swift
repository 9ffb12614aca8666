// ExecutePipeline: a pipeline, drained page by page into a stream.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import Pipelines

extension FirestoreService {
    func executePipeline(_ call: Call, _ request: RawSpan) throws {
        let message = try ExecutePipelineRequest(wire: request)
        let (database, access) = try message.database.withUTF8Span { (name) throws(RequestError) in
            (try self.database(name), try admit(call, name))
        }
        guard let pipeline = message.pipeline else { throw RequestError.invalidArgument("A pipeline is missing.") }
        if message.autoCommitsTransaction {
            throw RequestError(.unimplemented, "auto_commit_transaction is not implemented: pipelines do not write.")
        }
        let run = try PipelineExecution(
            structuredPipeline: pipeline.byteSpan, in: database, options: limits.pipelines)
        let source = PipelineResponses(service: self, call: call, run, database)
        try withReadPoint(call, message.consistency, in: database) { service, point, transaction in
            try service.check(run.demands, at: point, permittedBy: access)
            source.point = point
            source.newTransaction = transaction
            service.stream(call, source)
        }
    }

    /// Makes sure that everything may be read that a pipeline could read.
    private func check(
        _ demands: [PipelineDemand], at point: ReadPoint, permittedBy access: (any CallAccess)?
    ) throws(RequestError) {
        guard let access, !access.isUnrestricted else { return }
        for demand in demands {
            switch demand {
            case .query(let query, let parent): try check(query, parent, at: point, permittedBy: access)
            case .documents(let paths):
                for path in paths { try access.checkGet(path.byteSpan, judged(at: point)) }
            }
        }
    }
}

/// The results of one pipeline: a message for each page of them.
final class PipelineResponses: ResponseSource {
    private unowned let service: FirestoreService
    private let call: Call
    private let run: PipelineExecution
    /// The state that is read; set before the source is streamed.
    var point: ReadPoint?
    /// Sent with the first message, then empty.
    var newTransaction: [UInt8] = []
    /// `projects/…/documents/`, before every path.
    private let namePrefix: [UInt8]
    private var hasSent = false
    private let stopwatch = Stopwatch()

    /// Bytes of results after which a message is sent.
    private static var pageBytes: Int { 64 << 10 }

    init(service: FirestoreService, call: Call, _ run: PipelineExecution, _ database: DatabaseName) {
        self.service = service
        self.call = call
        self.run = run
        namePrefix = database.utf8 + Array("/documents/".utf8)
    }

    func next(into writer: inout ByteBuffer) -> SourceStep {
        guard let point else { preconditionFailure("a pipeline is streamed after its read point is set") }
        do throws(RequestError) {
            return try fill(&writer, at: point)
        } catch {
            let status = service.requestError(error, call)
            service.counters.streamsOpen.subtract()
            return .failed(status.code, status.message)
        }
    }

    private func fill(_ writer: inout ByteBuffer, at point: ReadPoint) throws(RequestError) -> SourceStep {
        if run.explanation.mode == .explain { return try explain(at: point, into: &writer) }
        let start = writer.count
        var progress = try take(&writer, from: start)
        if case .starved = progress {
            let source = try service.reader.source(at: point, matching: run.starvedPlan?.matcher)
            try run.fill(from: source)
            progress = try take(&writer, from: start)
        }
        call.noteStep()
        switch progress {
        case .paused, .starved:
            if writer.count == start {
                call.resumeLater()
                return .waiting
            }
            endMessage(at: point, &writer)
            return .message
        case .finished:
            if writer.count == start, hasSent, run.explanation.mode == .execute { return finish(.finished) }
            endMessage(at: point, &writer)
            if run.explanation.mode == .analyze {
                ExecutePipelineResponseWriter.append(explainText: analysis, to: &writer)
            }
            return finish(.lastMessage)
        }
    }

    /// Takes results until a message is full.
    private func take(
        _ writer: inout ByteBuffer, from start: Int
    ) throws(RequestError) -> PipelineExecution.Progress {
        try run.next { (result) throws(RequestError) in
            try append(result, to: &writer)
            return writer.count - start >= Self.pageBytes ? .full : .more
        }
    }

    private func finish(_ step: SourceStep) -> SourceStep {
        service.ended(call)
        service.counters.streamsOpen.subtract()
        return step
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
            service.counters.documentsRead.add()
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
        try run.chooseOperators(try service.reader.source(at: point))
        endMessage(at: point, &writer)
        ExecutePipelineResponseWriter.append(explainText: run.tree, to: &writer)
        return finish(.lastMessage)
    }

    /// The plan and what its execution took.
    private var analysis: String {
        """
        \(run.tree)
        Execution:
           results returned: \(run.returnedResults)
           documents scanned: \(run.scannedDocuments)
           index entries scanned: \(run.scannedEntries)
           duration: \(stopwatch.nanoseconds / 1_000) µs
        """
    }

    func cancelled() {
        service.counters.streamsOpen.subtract()
    }
}
