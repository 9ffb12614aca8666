// Running a planned query, page by page.

package import Basics
internal import DocumentModel

/// A query being executed.
///
/// Call `next` until it returns `finished`; between two calls nothing of the storage is held. Memory is bounded: by one
/// document for queries that stream, and 4 MiB among index entries whose values were truncated alike; by the limit and
/// `QueryOptions.sortBufferBytes` for sorted ones.
package struct QueryExecution: ~Copyable, Sendable {
    /// How a call of ``next(from:emit:)`` ended.
    package enum Progress: Sendable {
        /// The page is full or the step's budget is spent; there may be more results.
        case paused
        /// Every result has been given out.
        case finished
    }

    package let plan: QueryPlan
    /// Made with the first page, when the planner can ask the source; before, the plan without indexes.
    private var operators: QueryTree
    private var isPlanned = false
    /// A transaction knows of what the query reads.
    private var isRecorded = false
    /// Nil unless indexes are made on demand.
    private var report: IndexReport?
    private var work = StepWork()
    private var catalogue: CatalogueCount

    package init(_ plan: QueryPlan) {
        self.plan = plan
        catalogue = CatalogueCount(plan.matcher.scope)
        operators = QueryTree(plan, nil)
        work.walks = plan.matcher.walks
        work.conditionCost = plan.matcher.conditionCost
    }

    /// Gives out the next results.
    ///
    /// - Parameters:
    ///   - source: the same state of the same database in every call.
    ///   - page: takes one result and says whether the page has room for another.
    /// - Throws: `pending` if the source has to be waited for. What was given out stays so, and the next call continues
    ///   after it.
    package mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, emit page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Progress {
        if plan.limit == 0 { return .finished }
        if !isRecorded {
            if source.notesReads { try plan.noteReads(in: source) }
            isRecorded = true
        }
        try chooseOperators(source)
        if operators.isFinished { return .finished }
        work.budget = plan.options.candidatesPerStep
        try operators.next(from: source, &work, into: page)
        if report != nil {
            let (skipped, returned) = operators.counts
            report?.note(documents: work.documents - skipped - returned)
        }
        operators.sortIfOrderLost(plan)
        return operators.isFinished ? .finished : .paused
    }

    /// Plans the query, unless that is done.
    package mutating func chooseOperators<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) {
        if isPlanned { return }
        if plan.options.requiresIndexes {
            let id = plan.matcher.scope.collectionID
            try IndexNeed.requireAll(
                of: plan, among: source.declaredIndexes(of: id).map(\.shape), source.fieldOverrides(of: id))
        }
        let tree = QueryTree(plan, try AccessPlanner.choose(plan, source))
        report = try IndexReport(plan, tree.indexes, source)
        operators = tree
        isPlanned = true
    }

    /// Looks for the number of results in the catalogue, in steps. It is not there if the query asks for more than the
    /// number of all documents.
    package mutating func nextOfCatalogue<Source: QuerySource & ~Copyable>(
        from source: borrowing Source
    ) throws(RequestError) -> CatalogueCount.Answer {
        plan.isWholeScope && plan.isCount ? try catalogue.next(from: source) : .unknown
    }

    // MARK: Statistics

    /// Results skipped for the offset so far.
    package var skippedResults: Int { operators.counts.skipped }

    /// Results given out so far.
    package var returnedResults: Int { operators.counts.returned }

    /// Documents looked at so far, in all passes.
    package var scannedDocuments: Int { work.documents }

    /// Index entries looked at so far.
    package var scannedEntries: Int { work.entries }

    /// The operators as a tree of text.
    package var tree: String { operatorTree.description }

    /// The operators from the top down, with what each did if `QueryOptions.measuresOperators` is set.
    package var operatorLines: [OperatorLine] { operatorTree.lines() }

    /// A line for each index on demand that the query lacks: which one, and how far it is.
    package var missingIndexes: [String] { report?.lines ?? [] }

    /// What explain says about the plan.
    package var explanation: QueryExplanation { QueryExplanation(plan: plan, indexes: indexes) }

    var operatorTree: PlanTree { operators.tree }

    /// The index access; nil before it is chosen, and if no index is used.
    var indexes: Append? { operators.indexes }
}
