// How many documents queries and pipelines have read in the last hour, by their form. Those that differ in values
// alone have the same form. Its text is in the words of `hearth query`, with a question mark for each value.
//
// A table is of one loop. It is bounded: a form that comes when the table is full takes the place of the one that has
// read the fewest documents, whose numbers go to the others.

internal import Basics
internal import DocumentModel
internal import Pipelines

/// A number for each of the last twelve spans of five minutes.
package struct HourlyCount: Sendable {
    private static let spans: UInt64 = 12
    private static let spanMilliseconds: UInt64 = 300_000

    private var counts: [UInt64] = []
    /// The span that was counted last.
    private var span: UInt64 = 0

    package init() {}

    /// - Parameter now: milliseconds of a clock that nobody sets.
    package mutating func add(_ count: UInt64, at now: UInt64) {
        if counts.isEmpty { counts = Array(repeating: 0, count: Int(Self.spans)) }
        forget(before: now)
        counts[Int(span % Self.spans)] &+= count
    }

    /// The sum of the last hour: of the present span and the eleven before it.
    package func total(at now: UInt64) -> UInt64 {
        var current = self
        current.forget(before: now)
        return current.counts.reduce(0, &+)
    }

    private mutating func forget(before now: UInt64) {
        let newest = now / Self.spanMilliseconds
        if newest <= span { return }
        let passed = min(newest - span, Self.spans)
        span = newest
        if counts.isEmpty { return }
        for back in 0..<passed { counts[Int((newest &- back) % Self.spans)] = 0 }
    }
}

/// What the queries of one form have read.
package struct QueryCost: Sendable {
    package var database: String
    /// In the words of `hearth query`, or of `hearth query --pipeline`; empty for all forms that are not in the table.
    package var form: String
    /// Documents that were looked at in the last hour.
    package var documents: UInt64
    /// Queries that ended in the last hour.
    package var runs: UInt64
}

/// The table of one loop. Confined to the loop.
final class QueryReads {
    static let formsMax = 200

    /// The queries of one form.
    final class Form {
        let database: DatabaseName
        let text: String
        fileprivate var documents = HourlyCount()
        fileprivate var runs = HourlyCount()

        fileprivate init(_ database: DatabaseName, _ text: String) {
            self.database = database
            self.text = text
        }

        /// A query is over.
        /// - Parameter documents: those that it looked at.
        func note(documents: Int) {
            let now = SystemClock.monotonicMilliseconds()
            self.documents.add(UInt64(clamping: documents), at: now)
            runs.add(1, at: now)
        }
    }

    /// By the hashes of forms. Forms whose hashes are the same are counted as one.
    private var forms: [Int: Form] = [:]
    private var otherDocuments = HourlyCount()
    private var otherRuns = HourlyCount()

    /// The entry of a query that begins.
    func form(
        of query: StructuredQuery, _ aggregations: [Aggregation] = [], below parent: String, in database: DatabaseName
    ) -> Form {
        var hasher = Hasher()
        QueryForm.hash(query, aggregations, below: parent, in: database, into: &hasher)
        return form(hasher.finalize(), database) {
            QueryForm.text(query, aggregations, below: parent, in: database)
        }
    }

    /// The entry of a pipeline that begins.
    func form(of pipeline: PipelineForm, in database: DatabaseName) -> Form {
        var hasher = Hasher()
        hasher.combine(database)
        pipeline.hash(into: &hasher)
        return form(hasher.finalize(), database) { pipeline.text }
    }

    private func form(_ hash: Int, _ database: DatabaseName, _ text: () -> String) -> Form {
        if let known = forms[hash] { return known }
        if forms.count >= Self.formsMax { dropLeast() }
        let form = Form(database, text())
        forms[hash] = form
        return form
    }

    private func dropLeast() {
        let now = SystemClock.monotonicMilliseconds()
        let totals = forms.mapValues { $0.documents.total(at: now) }
        guard let least = totals.min(by: { $0.value < $1.value }), let form = forms.removeValue(forKey: least.key)
        else { return }
        otherDocuments.add(least.value, at: now)
        otherRuns.add(form.runs.total(at: now), at: now)
    }

    /// What was read in the last hour.
    var costs: [QueryCost] {
        let now = SystemClock.monotonicMilliseconds()
        let others = QueryCost(
            database: "", form: "", documents: otherDocuments.total(at: now), runs: otherRuns.total(at: now))
        let known = forms.values.map { form in
            QueryCost(
                database: "\(form.database)", form: form.text, documents: form.documents.total(at: now),
                runs: form.runs.total(at: now))
        }
        return (known + [others]).filter { $0.runs > 0 }
    }
}
