// Running a pipeline, page by page.

package import Basics
package import DocumentModel
internal import Expressions
package import QueryEngine

/// A pipeline being executed.
///
/// Call `next` until it returns `finished`, and `fill` whenever it returns `starved`. Nothing of the storage is held
/// between calls. Memory is bounded by
/// ``PipelineOptions/memoryBytes`` and by a queue of rows for each read. Confined to one thread.
package final class PipelineExecution {
    /// How a call of ``next(emit:)`` ended.
    package enum Progress: Sendable {
        /// The page is full or the step has done its work; there may be more results.
        case paused
        /// A read has to be filled first, from a source for ``starvedPlan``.
        case starved
        /// Every result has been given out.
        case finished
    }

    /// A result, lent until the call returns.
    package struct Result: ~Copyable {
        private let row: PipelineRow

        init(_ row: PipelineRow) { self.row = row }

        /// The path of the document below `documents`; nil for results that are not documents.
        package var path: [UInt8]? { row.document?.path }
        /// Microseconds since 1970; 0 for results that are not documents.
        package var createMicroseconds: UInt64 { row.document?.createMicroseconds ?? 0 }
        /// Microseconds since 1970; 0 for results that are not documents.
        package var updateMicroseconds: UInt64 { row.document?.updateMicroseconds ?? 0 }

        /// Appends the `fields` entries of a `Document` message.
        ///
        /// - Throws: `INVALID_ARGUMENT` for values that are nested too deep.
        package func appendFields(into writer: inout ByteBuffer) throws(RequestError) {
            do {
                try row.fields.appendEntries(field: FieldNumber.Document.fields, into: &writer)
            } catch {
                throw RequestError(error)
            }
        }
    }

    /// What access control has to permit before anything is read. Subqueries make their demands when they begin.
    package let demands: [PipelineDemand]
    /// How the request wants the pipeline explained.
    package let explanation: PipelineExplanation
    /// What pipelines have in common that differ in values alone.
    package let form: PipelineForm
    /// The queries at the bottom.
    package let reads: [PipelineRead]
    /// Results given out so far.
    package private(set) var returnedResults = 0

    private var starved: PipelineRead?
    private let top: any PipelineOperator
    private let work: PipelineWork
    private let rowsPerStep: Int

    /// Reads, checks and plans a pipeline. No storage is read.
    ///
    /// - Parameter wire: a `StructuredPipeline` message.
    /// - Throws: `INVALID_ARGUMENT` for a pipeline that is not valid, `UNIMPLEMENTED` with the name of a stage, a
    ///   function or an option that is not served.
    package convenience init(
        structuredPipeline wire: RawSpan, in database: DatabaseName, options: PipelineOptions = PipelineOptions()
    ) throws(RequestError) {
        let parsed = try ParsedPipeline(structuredPipeline: wire)
        try self.init(
            parsed.stages, in: database, options: options, explanation: PipelineExplanation(parsed.options))
    }

    /// Checks and plans the stages of a pipeline.
    init(
        _ stages: [PipelineStage], in database: DatabaseName, options: PipelineOptions,
        explanation: PipelineExplanation
    ) throws(RequestError) {
        self.explanation = explanation
        var options = options
        options.measuresOperators = explanation.mode == .analyze
        form = PipelineForm(stages)
        var builder = PipelineBuilder(database, options)
        top = try builder.buildRequest(stages)
        demands = builder.demands
        reads = builder.reads
        work = PipelineWork(
            RowEvaluator(builder.tree, database: database, places: builder.places), PipelineShare(options))
        rowsPerStep = options.rowsPerStep
    }

    /// Gives out the next results.
    ///
    /// - Parameter page: takes one result and says whether the page has room for another.
    /// - Throws: `INVALID_ARGUMENT` for an expression that fails, `RESOURCE_EXHAUSTED` beyond a bound.
    package func next(
        emit page: (borrowing Result) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Progress {
        work.share.rowsLeft = rowsPerStep
        while true {
            switch try work.pull(top) {
            case .row(let row):
                returnedResults += 1
                if try page(Result(row)) == .full { return .paused }
            case .paused: return .paused
            case .finished: return .finished
            case .starved(let read):
                starved = read
                return .starved
            }
        }
    }

    /// The query that has to be read next.
    package var starvedPlan: QueryPlan? { starved?.plan }

    /// What access control has to permit before the starved query is read; nil if ``demands`` has it.
    package var starvedDemand: PipelineDemand? { starved?.demand }

    /// Reads the next documents of the starved query; perhaps none, if much was looked at for nothing.
    ///
    /// - Parameter source: the same state of the same database in every call.
    /// - Throws: `pending` if the source has to be waited for: call ``next(emit:)`` then, and this one again when it
    ///   returns `starved`.
    package func fill<Source: QuerySource & ~Copyable>(from source: borrowing Source) throws(RequestError) {
        try starved?.fill(from: source)
        starved = nil
    }

    /// Whether all results are documents as they are stored: then ``nextDocuments(from:emit:)`` gives them as well.
    package var givesDocuments: Bool { (top as? PipelineRead)?.givesDocuments ?? false }

    /// The query whose documents ``nextDocuments(from:emit:)`` gives.
    package var documentsPlan: QueryPlan? { (top as? PipelineRead)?.plan }

    /// Gives out the next results of a pipeline that changes no documents, without copies of them.
    ///
    /// - Parameters:
    ///   - source: the same state of the same database in every call.
    ///   - page: takes one document and says whether the page has room for another.
    package func nextDocuments<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, emit page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Progress {
        guard let read = top as? PipelineRead, read.givesDocuments else {
            preconditionFailure("only a read alone gives documents")
        }
        let progress = try read.next(from: source) { (row) throws(RequestError) in
            returnedResults += 1
            return try page(row)
        }
        switch progress {
        case .paused: return .paused
        case .finished: return .finished
        }
    }

    /// Plans the queries, unless that is done.
    /// - Returns: false if it takes longer: then it is called again.
    package func chooseOperators<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) -> Bool {
        for read in reads where try !read.chooseOperators(source) { return false }
        return true
    }

    /// The writes that the pipeline makes, complete when it has finished; nil for one that reads only.
    package var writes: WriteList? { (top as? RowWrites)?.writes }

    // MARK: Statistics

    /// Documents looked at so far.
    package var scannedDocuments: Int { reads.reduce(work.share.scannedDocuments) { $0 + $1.scanned.documents } }

    /// Index entries looked at so far.
    package var scannedEntries: Int { reads.reduce(work.share.scannedEntries) { $0 + $1.scanned.entries } }

    /// The operators from the top down, those of the queries included; with what each did if the pipeline is analyzed.
    package var operatorLines: [OperatorLine] { top.lines(depth: 0, work.measures) }

    /// What explain says about the queries at the bottom; searches are left out.
    package var queryExplanations: [QueryExplanation] { reads.compactMap(\.explanation) }
}

/// The option `explain_options` of a pipeline.
package struct PipelineExplanation: Sendable, Equatable {
    /// What is done with a pipeline.
    package enum Mode: String, Sendable {
        case execute
        /// Planned and not run.
        case explain
        /// Run, with statistics.
        case analyze
    }

    package private(set) var mode = Mode.execute

    /// - Throws: `INVALID_ARGUMENT` for a mode that there is not, `UNIMPLEMENTED` for an option that is not served.
    init(_ options: [NamedValue]) throws(RequestError) {
        for option in options {
            switch option.name {
            case "explain_options":
                for entry in option.value.entries ?? [] { try read(entry) }
            // Says how much of indexes is made on demand, which this server decides.
            case "index_mode": continue
            default:
                throw RequestError(.unimplemented, "The option \(option.name) of pipelines is not implemented.")
            }
        }
    }

    private mutating func read(_ entry: NamedValue) throws(RequestError) {
        switch entry.name {
        case "mode":
            guard let mode = entry.value.text.flatMap(Mode.init) else {
                throw .invalidArgument("The mode of explain_options is execute, explain or analyze.")
            }
            self.mode = mode
        case "output_format":
            guard entry.value.text == "text" else {
                throw RequestError(.unimplemented, "Pipelines are explained in the output format text only.")
            }
        default:
            throw RequestError(.unimplemented, "The option \(entry.name) of explain_options is not implemented.")
        }
    }
}
