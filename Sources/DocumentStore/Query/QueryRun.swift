// Running a planned query, page by page. The candidates come from a scan or through indexes (`IndexAccess`), chosen when the
// first page is asked for.
//
//     streamed   scan -> filter -> offset, limit -> project -> page
//     sorted     scan -> filter -> cursors -> first rows by sort key ... -> offset, limit -> page
//                   ^------- another pass, if not everything fitted -------'

package import Basics
internal import DocumentModel

/// One result, lent until the call returns.
package struct QueryResult: ~Escapable {
    /// The document's path below `documents`, UTF-8.
    package let path: RawSpan
    /// Microseconds since 1970.
    package let createMicroseconds: UInt64
    /// Microseconds since 1970.
    package let updateMicroseconds: UInt64
    /// Canonical field entries, projected.
    package let fields: RawSpan

    @_lifetime(copy path, copy fields)
    package init(path: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64, fields: RawSpan) {
        self.path = path
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
        self.fields = fields
    }
}

/// Whether a page has room for more results after the one it was just given.
package enum PageControl: Sendable {
    case more
    case full
}

/// A query in the course of being answered.
///
/// Call `next` until it says `finished`; between two calls nothing of the storage is held. Memory is bounded: by one
/// document for queries in name order, by the limit and `QueryOptions.sortBufferBytes` for sorted ones.
package struct QueryRun: ~Copyable, Sendable {
    package enum Progress: Sendable {
        /// The page is full or the step's work is done; there may be more.
        case paused
        /// Every result has been given out.
        case finished
    }

    package let plan: QueryPlan
    private var walk: ScopeWalk
    /// Set once the access is chosen, if it is through indexes.
    private var indexWalk: IndexWalk?
    private var isPlanned = false
    /// The rest of the results is sorted, although they were streamed at first.
    private var isSorted = false
    private var window: ResultWindow
    private var sorter: QuerySorter
    private var projected = WireWriter()

    /// Results passed over for the offset so far.
    package var skippedResults: Int { window.skipped }

    /// Candidates looked at so far, those of every pass.
    package private(set) var scannedDocuments = 0

    /// Index entries looked at so far.
    package var scannedEntries: Int { entriesBefore + (indexWalk?.entriesScanned ?? 0) }
    /// Index entries looked at by a walk that a scan has taken over.
    private var entriesBefore = 0

    /// How the candidates are found; nil before that is chosen, and for a scan.
    package var access: IndexAccess? { indexWalk?.access }

    /// The plan as a tree, with the access that was chosen.
    package var tree: String { plan.tree(access) }

    /// Results given out so far.
    package var returnedResults: Int { window.returned }

    package init(_ plan: QueryPlan) {
        self.plan = plan
        var direction = SortDirection.ascending
        if case .stream(let streamed) = plan.strategy { direction = streamed }
        walk = ScopeWalk(plan.matcher.scope, names: plan.names, points: plan.points, direction: direction)
        window = ResultWindow(offset: plan.offset, limit: plan.limit)
        sorter = QuerySorter(plan)
    }

    /// Gives out the next results.
    ///
    /// - Parameters:
    ///   - scanner: the same version of the same database in every call of a run.
    ///   - emit: takes one result and says whether the page has room for another.
    package mutating func next<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner, emit: (borrowing QueryResult) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Progress {
        if window.isClosed { return .finished }
        try chooseAccess(&scanner)
        if isStreamed { return try nextStreamed(&scanner, emit) }
        return try nextSorted(&scanner, emit)
    }

    /// Chooses how the candidates are found, unless that is done.
    package mutating func chooseAccess<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner
    ) throws(RequestError) {
        if isPlanned { return }
        isPlanned = true
        if plan.options.requiresIndexes {
            try IndexNeed.requireAll(
                of: plan, among: try scanner.declaredIndexes().map(\.shape),
                try scanner.fieldOverrides(of: plan.matcher.scope.collectionID))
        }
        if let access = try AccessPlanner.choose(plan, &scanner) { indexWalk = IndexWalk(access, of: plan) }
    }

    /// Whether results come in the order of the candidates.
    private var isStreamed: Bool {
        if isSorted { return false }
        return switch plan.strategy {
        case .stream: true
        case .sort: indexWalk?.access.isOrdered ?? false
        case .nearest: false
        }
    }

    // MARK: Candidates

    /// Visits candidates until `body` says stop.
    private static func visit<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner, _ walk: inout ScopeWalk, _ indexWalk: inout IndexWalk?,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        if indexWalk == nil {
            try walk.visit(&scanner, body)
        } else {
            try scanner.visit(&indexWalk!, body)
        }
    }

    /// Lets a sort go on where a merge could not.
    private mutating func handOver() {
        guard let handed = indexWalk, let after = handed.handedOverAfter else { return }
        entriesBefore = handed.entriesScanned
        indexWalk = nil
        isSorted = true
        sorter = QuerySorter(plan, orders: plan.sortOrders, after: after.isEmpty ? nil : after)
        walk = ScopeWalk(plan.matcher.scope, names: plan.names, points: nil, direction: .ascending)
    }

    private var isWalkFinished: Bool { indexWalk?.isFinished ?? walk.isFinished }

    private mutating func restartWalk() {
        if indexWalk != nil { indexWalk!.restart() } else { walk.restart() }
    }

    private mutating func nextStreamed<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner, _ emit: (borrowing QueryResult) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Progress {
        var budget = plan.options.candidatesPerStep
        // Taken out of the plan once: a copy for each candidate would count references for each.
        let comparesCursors = plan.comparesCursors
        let matcher = plan.matcher
        let selection = plan.selection
        let countsOnly = indexWalk?.access.countsOnly ?? false
        let remembersReads = scanner.remembersReads && !plan.isUnordered
        var lastKey: [UInt8]?
        try QueryRun.visit(&scanner, &walk, &indexWalk) { (path, document) throws(RequestError) in
            if !countsOnly { scannedDocuments += 1 }
            budget -= document.stepCost
            let isMatch =
                countsOnly ? true
                : comparesCursors
                ? matcher.matches(path: path, fields: document.fields)
                : matcher.matchesInScope(path: path, fields: document.fields)
            if isMatch, window.admit() {
                if window.isClosed, remembersReads {
                    var key = WireWriter(capacity: 128)
                    if SortKey.append(path: path, fields: document.fields, order: plan.sortOrders, into: &key) {
                        lastKey = key.copyBytes()
                    }
                }
                let control = try QueryRun.emit(path, document, selection, &projected, emit)
                if control == .full || window.isClosed { return .stop }
            }
            return budget > 0 ? .more : .stop
        }
        if let lastKey { scanner.endReads(at: lastKey, plan.sortOrders) }
        handOver()
        if isSorted { return .paused }
        if isWalkFinished { window.close() }
        return window.isClosed ? .finished : .paused
    }

    private static func emit(
        _ path: RawSpan, _ document: borrowing CandidateDocument, _ selection: FieldSelection?,
        _ projected: inout WireWriter, _ emit: (borrowing QueryResult) throws(RequestError) -> PageControl
    ) throws(RequestError) -> PageControl {
        guard let selection else {
            return try emit(
                QueryResult(
                    path: path, createMicroseconds: document.createMicroseconds,
                    updateMicroseconds: document.updateMicroseconds, fields: document.fields))
        }
        projected.reset(keeping: 1 << 20)
        selection.append(document.fields, into: &projected)
        return try emit(
            QueryResult(
                path: path, createMicroseconds: document.createMicroseconds,
                updateMicroseconds: document.updateMicroseconds, fields: projected.bytes))
    }

    private mutating func nextSorted<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner, _ emit: (borrowing QueryResult) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Progress {
        while true {
            while let row = sorter.takeRow() {
                guard window.admit() else { continue }
                let control = try row.lend(emit)
                if window.isClosed {
                    // Neighbours are not sorted by anything that a document has.
                    if plan.nearest == nil { scanner.endReads(at: row.key, plan.sortOrders) }
                    return .finished
                }
                if control == .full { return .paused }
            }
            if sorter.isExhausted {
                window.close()
                return .finished
            }
            if isWalkFinished { restartWalk() }
            sorter.beginPass(rowsMax: window.rowsWanted)
            var budget = plan.options.candidatesPerStep
            try QueryRun.visit(&scanner, &walk, &indexWalk) { (path, document) throws(RequestError) in
                scannedDocuments += 1
                budget -= document.stepCost
                sorter.offer(path, document)
                return budget > 0 ? .more : .stop
            }
            if !isWalkFinished { return .paused }
            sorter.endPass()
        }
    }
}

extension CandidateDocument {
    /// What looking at the document takes off a step's budget.
    fileprivate var stepCost: Int { 1 + fields.byteCount >> 11 }
}

/// Offset and limit: which of the results in their order are given out.
struct ResultWindow: Sendable {
    private var toSkip: Int
    /// Results still to give out; nil is unlimited.
    private var toReturn: Int?
    private(set) var skipped = 0
    private(set) var returned = 0
    /// Whether nothing more will be given out.
    private(set) var isClosed: Bool

    init(offset: Int, limit: Int?) {
        toSkip = offset
        toReturn = limit
        isClosed = limit == 0
    }

    /// Counts the next result; true if it is to be given out.
    mutating func admit() -> Bool {
        if toSkip > 0 {
            toSkip -= 1
            skipped += 1
            return false
        }
        returned += 1
        if let left = toReturn {
            toReturn = left - 1
            if left == 1 { isClosed = true }
        }
        return true
    }

    mutating func close() { isClosed = true }

    /// Rows that are still needed, those to skip included; a bound for sorting.
    var rowsWanted: Int {
        guard let toReturn else { return .max }
        return toSkip + toReturn
    }
}
