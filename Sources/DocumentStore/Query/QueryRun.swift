// Running a planned query, page by page.

package import DocumentModel

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
/// page for queries in name order, by the limit or `QueryOptions.sortBufferBytes` for sorted ones.
package struct QueryRun: ~Copyable, Sendable {
    package enum Progress: Sendable {
        /// The page is full or the step's work is done; there may be more.
        case paused
        /// Every result has been given out.
        case finished
    }

    package let plan: QueryPlan

    /// Results passed over for the offset so far.
    package private(set) var skippedResults = 0

    package init(_ plan: QueryPlan) {
        self.plan = plan
    }

    /// Gives out the next results.
    ///
    /// - Parameters:
    ///   - scanner: the same version of the same database in every call of a run.
    ///   - emit: takes one result and says whether the page has room for another.
    package mutating func next<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner, emit: (borrowing QueryResult) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Progress {
        preconditionFailure("declared only")
    }
}

/// An aggregation in the course of being computed.
package struct AggregationRun: ~Copyable, Sendable {
    /// - Parameter parent: full resource name of the documents root or of a document.
    /// - Throws: `INVALID_ARGUMENT` with the rule that the query or the aggregations break.
    package init(
        _ query: StructuredAggregationQuery, parent: RawSpan, options: QueryOptions = QueryOptions()
    ) throws(RequestError) {
        preconditionFailure("declared only")
    }

    /// Works on; call until it says `finished`.
    package mutating func next<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner
    ) throws(RequestError) -> QueryRun.Progress {
        preconditionFailure("declared only")
    }

    /// The totals by alias, in the order of the request; final once `next` said `finished`.
    package var result: [(alias: String, value: EncodedValue)] { [] }
}
