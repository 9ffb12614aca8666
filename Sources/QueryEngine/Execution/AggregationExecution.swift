// Totals over the results of a query. Rules: semantics page, section 5, "Aggregation".

package import Basics
package import DocumentModel

/// An aggregation being executed.
package struct AggregationExecution: ~Copyable, Sendable {
    private var execution: QueryExecution
    private var aggregate: Aggregate
    /// The number of documents, if the catalogue has it: then nothing is read.
    private var catalogueCount: Int?
    private var isPlanned = false
    private let aliases: [String]
    /// Of the totals with everything below them; nil unless operators are measured.
    private var figures: OperatorFigures?

    /// Plans an aggregation.
    ///
    /// - Parameter parent: full resource name of the documents root or of a document.
    /// - Throws: `INVALID_ARGUMENT` with the rule that the query or the aggregations break.
    package init(
        _ query: StructuredAggregationQuery, parent: RawSpan, options: QueryOptions = QueryOptions()
    ) throws(RequestError) {
        let aliases = try AggregationExecution.aliases(query.aggregations)
        let totals = try query.aggregations.map { (aggregation) throws(RequestError) in
            try RunningTotal(aggregation.operation)
        }
        let fields = totals.compactMap(\.field)
        try AggregationExecution.check(query.query.select, totalling: fields)
        var source = query.query
        // Nothing but the totalled fields need be kept while sorting.
        source.select = Projection(fields: fields.isEmpty ? [.documentName] : fields)
        // Counts alone need no more results than they count.
        let bounds = query.aggregations.map { aggregation -> Int64? in
            if case .count(let upTo) = aggregation.operation { upTo } else { nil }
        }
        if fields.isEmpty, source.findNearest == nil, let bound = AggregationExecution.largest(of: bounds),
            bound <= Int64(Int32.max)
        {
            source.limit = min(source.limit ?? .max, Int32(bound))
        }
        let plan = try QueryPlan(source, parent: parent, options: options, totalling: fields)
        self.aliases = aliases
        aggregate = Aggregate(totals)
        execution = QueryExecution(plan)
        if options.measuresOperators { figures = OperatorFigures() }
    }

    /// The plan of the query below the totals.
    package var plan: QueryPlan { execution.plan }

    /// Documents looked at so far.
    package var scannedDocuments: Int { execution.scannedDocuments }

    /// Lends the execution of the query below the totals.
    package borrowing func withQuery<Answer>(_ body: (borrowing QueryExecution) -> Answer) -> Answer { body(execution) }

    /// The operators as a tree of text.
    package var tree: String { operatorTree.description }

    /// The operators from the top down, with what each did if `QueryOptions.measuresOperators` is set.
    package var operatorLines: [OperatorLine] { operatorTree.lines() }

    private var operatorTree: PlanTree {
        // Lends the execution before any branch: to follow its lifetime over branches takes the compiler seconds.
        Self.tree(
            aggregate.line, over: execution.operatorTree, of: plan.matcher.scope, count: catalogueCount, figures)
    }

    private static func tree(
        _ line: String, over query: PlanTree, of scope: QueryScope, count: Int?, _ figures: OperatorFigures?
    ) -> PlanTree {
        var total = figures
        total?.rows = 1
        let counted = PlanTree(line: "CatalogueCount \(scope)", figures: total)
        return PlanTree(line: line, inputs: [count == nil ? query : counted], figures: total)
    }

    /// Plans the query, unless that is done.
    /// - Returns: false if it takes longer: then it is called again.
    package mutating func chooseOperators<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) -> Bool {
        if isPlanned { return true }
        var known: Int?
        switch try execution.nextOfCatalogue(from: source) {
        case .count(let count): known = count
        case .unknown: break
        case .paused: return false
        }
        if known == nil || plan.options.requiresIndexes { try execution.chooseOperators(source) }
        catalogueCount = known
        if let known { aggregate.add(count: known) }
        isPlanned = true
        return true
    }

    /// Works on; call until it returns `finished`.
    package mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source
    ) throws(RequestError) -> QueryExecution.Progress {
        let start = figures == nil ? 0 : SystemClock.monotonicNanoseconds()
        defer { figures?.add(rows: 0, entries: 0, since: start) }
        if try !chooseOperators(source) { return .paused }
        if catalogueCount != nil { return .finished }
        return try aggregate.next(from: &execution, source)
    }

    /// The totals by alias, in the order of the request; final once `next` returned `finished`.
    package var result: [(alias: String, value: EncodedValue)] {
        zip(aliases, aggregate.values).map { (alias: $0, value: EncodedValue($1)) }
    }

    /// Throws if a projection is combined with totals of fields, whichever fields it names.
    private static func check(_ projection: Projection?, totalling fields: [FieldPath]) throws(RequestError) {
        guard let selected = projection?.fields, !selected.isEmpty, !fields.isEmpty else { return }
        if selected.allSatisfy(\.isDocumentName) {
            throw .invalidArgument(
                "Aggregation over non-key properties is not supported for base query that only returns keys.")
        }
        if let lacking = fields.first(where: { field in !selected.contains { $0.isPrefix(of: field) } }) {
            let name = lacking.segments.joined(separator: ".")
            throw .invalidArgument("The aggregation property \(name) is not present in the base query's property mask.")
        }
        throw .invalidArgument("Cannot apply property masks when aggregation fields are present.")
    }

    /// The largest bound, or nil if any is missing.
    private static func largest(of bounds: [Int64?]) -> Int64? {
        var largest: Int64 = 0
        for bound in bounds {
            guard let bound else { return nil }
            largest = max(largest, bound)
        }
        return largest
    }

    /// The names of the totals, those without one numbered.
    private static func aliases(_ aggregations: [Aggregation]) throws(RequestError) -> [String] {
        if aggregations.isEmpty { throw .invalidArgument("Aggregations can not be empty.") }
        if aggregations.count > Limits.aggregationsPerQuery {
            throw .invalidArgument("A query may have at most \(Limits.aggregationsPerQuery) aggregations.")
        }
        var aliases: [String] = []
        var unnamed = 0
        for aggregation in aggregations {
            if aggregation.alias.isEmpty {
                unnamed += 1
                aliases.append("field_\(unnamed)")
            } else {
                aliases.append(aggregation.alias)
            }
        }
        if let repeated = aliases.first(where: { alias in aliases.count(where: { $0.hasSameUTF8(as: alias) }) > 1 }) {
            throw .invalidArgument("Aggregation aliases contain duplicate alias: \(repeated).")
        }
        return aliases
    }
}
