// Totals over the results of a query. Rules: semantics page, section 5, "Aggregation".

package import Basics
package import DocumentModel

/// An aggregation in the course of being computed.
package struct AggregationRun: ~Copyable, Sendable {
    private var run: QueryRun
    private var totals: [RunningTotal]
    private let aliases: [String]

    /// Plans an aggregation.
    ///
    /// - Parameter parent: full resource name of the documents root or of a document.
    /// - Throws: `INVALID_ARGUMENT` with the rule that the query or the aggregations break.
    package init(
        _ query: StructuredAggregationQuery, parent: RawSpan, options: QueryOptions = QueryOptions()
    ) throws(RequestError) {
        let aliases = try AggregationRun.aliases(query.aggregations)
        let totals = try query.aggregations.map { (aggregation) throws(RequestError) in
            try RunningTotal(aggregation.operation)
        }
        let fields = totals.compactMap(\.field)
        var source = query.query
        // Nothing but the totalled fields need be kept while sorting.
        source.select = Projection(fields: fields.isEmpty ? [.documentName] : fields)
        // Counts alone need no more results than they count.
        let bounds = query.aggregations.map { aggregation -> Int64? in
            if case .count(let upTo) = aggregation.operation { upTo } else { nil }
        }
        if fields.isEmpty, let bound = AggregationRun.largest(of: bounds), bound <= Int64(Int32.max) {
            source.limit = min(source.limit ?? .max, Int32(bound))
        }
        let plan = try QueryPlan(source, parent: parent, options: options, totalling: fields)
        self.aliases = aliases
        self.totals = totals
        run = QueryRun(plan)
    }

    /// The plan of the query below the totals.
    package var plan: QueryPlan { run.plan }

    /// Candidates looked at so far.
    package var scannedDocuments: Int { run.scannedDocuments }

    /// Lends the run of the query below the totals.
    package borrowing func withRun<Answer>(_ body: (borrowing QueryRun) -> Answer) -> Answer { body(run) }

    /// Chooses how the candidates are found, unless that is done.
    package mutating func chooseAccess<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner
    ) throws(RequestError) {
        try run.chooseAccess(&scanner)
    }

    /// Works on; call until it says `finished`.
    package mutating func next<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner
    ) throws(RequestError) -> QueryRun.Progress {
        if run.plan.isWholeScope, run.plan.isCount, let count = try scanner.knownCount(of: run.plan.matcher.scope) {
            for index in totals.indices { totals[index].add(count: count) }
            return .finished
        }
        return try run.next(&scanner) { (result) throws(RequestError) in
            for index in totals.indices { totals[index].add(result.fields) }
            return .more
        }
    }

    /// The totals by alias, in the order of the request; final once `next` said `finished`.
    package var result: [(alias: String, value: EncodedValue)] {
        zip(aliases, totals).map { (alias: $0, value: EncodedValue($1.value)) }
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
