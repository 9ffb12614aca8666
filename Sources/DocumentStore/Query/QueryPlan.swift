// How a query will be run: checked against Firestore's rules, its order completed, its strategy chosen.

package import DocumentModel

/// Bounds on the work and memory of one query.
package struct QueryOptions: Sendable {
    /// Bytes that a query may hold to sort results. A sorted query whose results need more is answered in several passes
    /// over its collection, each of which sends the next run of results that fits.
    package var sortBufferBytes = 32 << 20

    /// Candidates looked at before `QueryRun.next` returns, results or not: lets a connection's loop serve others.
    package var candidatesPerStep = 4096

    package init() {}
}

/// A query that passed every rule, ready to run.
package struct QueryPlan: Sendable {
    /// The database queried.
    package let database: DatabaseName

    /// The documents that the query would return without offset and limit.
    package let matcher: QueryMatcher

    package let options: QueryOptions

    /// Plans a query.
    ///
    /// - Parameter parent: full resource name of the documents root or of a document.
    /// - Throws: `INVALID_ARGUMENT` with the rule that the query breaks.
    package init(
        _ query: StructuredQuery, parent: RawSpan, options: QueryOptions = QueryOptions()
    ) throws(RequestError) {
        preconditionFailure("declared only")
    }
}

/// Which collections a query reads.
package enum QueryScope: Sendable, Equatable {
    /// One collection: its path below `documents`.
    case collection(path: [UInt8])
    /// Every collection with this id (nil: any id) below a document; an empty parent is the whole database.
    case descendants(parent: [UInt8], collectionID: [UInt8]?)
}

/// The condition that makes a document a result of a query: scope, filter, fields that the order needs, cursors.
///
/// Offset and limit are no part of it. For transactions that read a query, and for listeners.
package struct QueryMatcher: Sendable {
    package let scope: QueryScope

    /// Whether the query, but for offset and limit, returns the document.
    ///
    /// - Parameters:
    ///   - path: the document's path below `documents`.
    ///   - fields: its canonical field entries.
    package func matches(path: RawSpan, fields: RawSpan) -> Bool {
        preconditionFailure("declared only")
    }
}
