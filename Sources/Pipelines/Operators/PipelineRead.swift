// Where rows come from.

internal import Basics
internal import DocumentModel
internal import Expressions
package import QueryEngine

/// The documents of a query, or of a list of names.
package final class PipelineRead: PipelineOperator {
    private var run: QueryExecution
    /// Reads in the place of the query, if an index serves it.
    private var search: SearchExecution?
    /// Bytes of memory that the pipeline has taken for the search.
    private var searchBytes = 0
    private var queue: [PipelineRow] = []
    private var position = 0
    private var isExhausted = false
    private(set) var readNanoseconds: UInt64 = 0
    /// The number of documents, if the catalogue has it and nothing else is wanted.
    private var catalogueCount: Int?
    private var hasLookedIntoCatalogue = false
    /// Takes the documents, in the place of the queue.
    weak var sink: (any DocumentSink)?

    /// Bytes of rows after which the queue is full.
    private static let queueBytes = 256 << 10
    /// Rows after which the queue is full.
    private static let queueRows = 1024

    /// What access control has to permit before the next fill; nil if that was asked.
    package private(set) var demand: PipelineDemand?

    init(_ plan: QueryPlan, demand: PipelineDemand? = nil, search settings: SearchSettings? = nil) {
        run = QueryExecution(plan)
        self.demand = demand
        search = settings.map { SearchExecution(plan, $0) }
    }

    /// The query.
    package var plan: QueryPlan { run.plan }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        let held = search?.heldBytes ?? 0
        if held != searchBytes {
            try work.hold(held - searchBytes, for: SearchStage.name)
            searchBytes = held
        }
        if position < queue.count {
            defer { position += 1 }
            return .row(queue[position])
        }
        queue = []
        position = 0
        return isExhausted ? .finished : .starved(self)
    }

    /// Reads the next rows into the queue; perhaps none, if much was looked at for nothing.
    ///
    /// - Throws: `pending` if the source has to be waited for. The rows before are in the queue, and the next call
    ///   continues after them.
    func fill<Source: QuerySource & ~Copyable>(from source: borrowing Source) throws(RequestError) {
        demand = nil
        guard plan.options.measuresOperators else { return try read(from: source) }
        let start = SystemClock.monotonicNanoseconds()
        defer { readNanoseconds += SystemClock.monotonicNanoseconds() - start }
        try read(from: source)
    }

    private func read<Source: QuerySource & ~Copyable>(from source: borrowing Source) throws(RequestError) {
        if try fillBySearch(from: source) { return }
        if let sink { return try give(to: sink, from: source) }
        var rows: [PipelineRow] = []
        var bytes = 0
        defer { setQueue(rows) }
        let progress = try run.next(from: source) { (row) throws(RequestError) in
            bytes += row.fields.byteCount
            rows.append(PipelineRow(row))
            return bytes < Self.queueBytes && rows.count < Self.queueRows ? .more : .full
        }
        if case .finished = progress { isExhausted = true }
    }

    private func setQueue(_ rows: [PipelineRow]) {
        queue = rows
        position = 0
    }

    /// Gives the next documents to a sink.
    private func give<Source: QuerySource & ~Copyable>(
        to sink: any DocumentSink, from source: borrowing Source
    ) throws(RequestError) {
        if try !lookIntoCatalogue(source) { return }
        if let catalogueCount {
            sink.take(count: catalogueCount)
            isExhausted = true
            return
        }
        guard sink.takesNumberAlone else {
            let progress = try run.next(from: source) { (row) throws(RequestError) in try sink.take(row) }
            if case .finished = progress { isExhausted = true }
            return
        }
        var count = 0
        // What was counted is counted, also if the source has to be waited for.
        defer { sink.take(count: count) }
        let progress = try run.next(from: source) { _ in
            count += 1
            return .more
        }
        if case .finished = progress { isExhausted = true }
    }

    /// Whether the documents of the query come as they are stored.
    var givesDocuments: Bool { search == nil && sink == nil }

    /// Lends the next documents of the query, without a queue.
    func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, emit page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> QueryExecution.Progress {
        try run.next(from: source, emit: page)
    }

    /// The same for a search.
    /// - Returns: false if there is none, or no index serves it.
    private func fillBySearch<Source: QuerySource & ~Copyable>(
        from source: borrowing Source
    ) throws(RequestError) -> Bool {
        guard search != nil else { return false }
        var rows: [PipelineRow] = []
        var bytes = 0
        defer { setQueue(rows) }
        let progress = try search?.next(from: source) { (row, score) throws(RequestError) in
            bytes += row.fields.byteCount
            var found = PipelineRow(row)
            found.score = score
            rows.append(found)
            return bytes < Self.queueBytes && rows.count < Self.queueRows ? .more : .full
        }
        switch progress {
        case .finished: isExhausted = true
        case .scans:
            search = nil
            return false
        case .paused, nil: break
        }
        return true
    }

    /// Looks for the number of documents in the catalogue, if that is all the sink asks for.
    /// - Returns: false if it takes longer: then it is called again.
    private func lookIntoCatalogue<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) -> Bool {
        if hasLookedIntoCatalogue { return true }
        if sink?.takesNumberAlone == true {
            switch try run.nextOfCatalogue(from: source) {
            case .count(let count): catalogueCount = count
            case .unknown: break
            case .paused: return false
            }
        }
        hasLookedIntoCatalogue = true
        return true
    }

    /// Plans the query, unless that is done.
    /// - Returns: false if it takes longer: then it is called again.
    func chooseOperators<Source: QuerySource & ~Copyable>(_ source: borrowing Source) throws(RequestError) -> Bool {
        if search != nil {
            try search?.choose(source)
            if search?.isScan == true { search = nil }
        }
        if try !lookIntoCatalogue(source) { return false }
        if search == nil, catalogueCount == nil { try run.chooseOperators(source) }
        return true
    }

    /// Documents and index entries looked at so far.
    var scanned: (documents: Int, entries: Int) {
        (
            run.scannedDocuments + (search?.scannedDocuments ?? 0), run.scannedEntries + (search?.scannedEntries ?? 0)
        )
    }

    /// What explain says about the query; nil for a search.
    var explanation: QueryExplanation? { search == nil ? run.explanation : nil }

    /// Lends the execution of the query.
    package func withQuery<Answer>(_ body: (borrowing QueryExecution) -> Answer) -> Answer { body(run) }

    var line: String { search?.line ?? run.operatorLines.first?.text ?? "" }

    func lines(depth: Int, _ measures: OperatorMeasures?) -> [OperatorLine] {
        if let search {
            var figures = measures?.figures(of: self)
            figures?.entries = search.scannedEntries
            return [OperatorLine(depth: depth, text: search.line, figures: figures)]
        }
        if catalogueCount != nil {
            var figures = measures?.figures(of: self)
            figures?.rows = 1
            return [OperatorLine(depth: depth, text: "CatalogueCount \(plan.matcher.scope)", figures: figures)]
        }
        return run.operatorLines.map {
            OperatorLine(depth: depth + $0.depth, text: $0.text, figures: $0.figures)
        }
    }

    var inputs: [any PipelineOperator] { [] }
}

extension PipelineRow {
    /// Copies a document.
    init(_ row: borrowing QueryRow) {
        self.init(
            fields: .encodedMap(EncodedSlice(documentFields: [UInt8](copying: row.fields))),
            document: RowDocument(
                path: [UInt8](copying: row.path), createMicroseconds: row.createMicroseconds,
                updateMicroseconds: row.updateMicroseconds))
    }
}

/// The rows that the request writes.
final class LiteralRows: PipelineOperator {
    private let rows: [[NamedExpression]]
    private var position = 0

    init(_ rows: [[NamedExpression]]) { self.rows = rows }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        guard position < rows.count else { return .finished }
        position += 1
        var row = PipelineRow()
        try work.change(&row) { (row) throws(RequestError) in
            row.fields = try rows[position - 1].values(on: row, work)
        }
        return .row(row)
    }

    var line: String { "Literals \(rows.count)" }

    var inputs: [any PipelineOperator] { [] }
}

/// The rows of one input, then those of another.
final class UnionAll: PipelineOperator {
    let inputs: [any PipelineOperator]
    private var position = 0

    init(_ inputs: [any PipelineOperator]) { self.inputs = inputs }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while position < inputs.count {
            let pulled = try work.pull(inputs[position])
            guard case .finished = pulled else { return pulled }
            position += 1
        }
        return .finished
    }

    var line: String { "Union" }
}
