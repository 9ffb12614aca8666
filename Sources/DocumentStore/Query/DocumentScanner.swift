// What query execution needs of storage: two ways of walking it, both in name order, and indexes if there are any.
//
// The executor asks for nothing else, so that it can be tested over a dictionary and knows neither keys nor snapshots.
// Collection groups and whole subtrees are put together from these two walks by `ScopeWalk`. A scanner over a store with indexes also
// tells the planner what there is, and walks what the planner chose.

package import Basics
package import DocumentModel

/// A consistent view of one database's documents, as query execution walks it.
///
/// All paths are relative to the database's documents root, UTF-8, without a leading slash: `users`, `users/alice`.
/// Every call of one run must see the same version. Between two calls no cursor or transaction need stay open: the
/// executor always says where to begin.
package protocol DocumentScanner: ~Copyable {
    /// Visits the documents of one collection in the order of their ids, until `body` says stop or the range ends.
    ///
    /// - Parameters:
    ///   - collection: the collection's path, for example `users` or `users/alice/posts`.
    ///   - range: the ids to visit. Its bounds come from clients: any UTF-8, reserved ids included.
    ///   - direction: ascending by id (numeric ids first, then UTF-8 bytes), or the reverse.
    ///   - body: is lent one document at a time.
    mutating func scanCollection(
        _ collection: RawSpan, ids range: DocumentIDRange, direction: SortDirection,
        _ body: (borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError)

    /// The first collection in path order that lies after `position`, below `parent`, and bears the id `collectionID`.
    ///
    /// Path order compares segment by segment (numeric ids first, else UTF-8 bytes), a prefix first. The answer may be
    /// a collection that is empty at the scanner's version.
    ///
    /// - Parameters:
    ///   - position: a collection or document path; the answer is strictly greater. Empty: from the start.
    ///   - skipsBelow: the answer does not lie below `position` either.
    ///   - parent: a document path; empty means the whole database.
    ///   - collectionID: the last segment that the answer must have; nil takes any.
    /// - Returns: the collection's path, or nil when there is none.
    mutating func nextCollection(
        after position: RawSpan, skippingBelow skipsBelow: Bool, below parent: RawSpan, collectionID: RawSpan?
    ) throws(RequestError) -> [UInt8]?

    /// What the planner needs to know of a collection; nil if it never held a document or nothing is known.
    mutating func indexedCollection(_ collection: RawSpan) throws(RequestError) -> IndexedCollection?

    /// The same of all collections of an id; nil if there are more than `atMost`, or nothing is known.
    mutating func indexedCollections(
        ofGroup id: RawSpan, atMost: Int
    ) throws(RequestError) -> [IndexedCollection]?

    /// The declared indexes of the database that are complete at this version.
    mutating func declaredIndexes() throws(RequestError) -> [DeclaredIndex]

    /// The field overrides of a collection group.
    mutating func fieldOverrides(of collectionID: [UInt8]) throws(RequestError) -> [FieldOverride]

    /// The number that stands for a field in index keys; nil if no document ever had the field.
    mutating func fieldNumber(of field: FieldPath) throws(RequestError) -> UInt64?

    /// The number of index entries in a range of keys, counted no further than `atMost`.
    mutating func countEntries(from lower: [UInt8], to upper: [UInt8], atMost: Int) throws(RequestError) -> Int

    /// Visits the candidates of an access through indexes until `body` says stop; the next call goes on behind the last one.
    mutating func visit(
        _ walk: inout IndexWalk,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError)

    /// Whether a transaction must be told what was read.
    var remembersReads: Bool { get }

    /// Takes note that the query has all results that it wants: of what was visited, documents that come behind the last result do
    /// not matter, now or later.
    ///
    /// - Parameters:
    ///   - last: the last result's sort key.
    ///   - orders: what the key is by.
    mutating func endReads(at last: [UInt8], _ orders: [Order])

    /// The number of documents in a scope, if it is known without counting.
    mutating func knownCount(of scope: QueryScope) throws(RequestError) -> Int?
}

extension DocumentScanner where Self: ~Copyable {
    /// The same without skipping what lies below `position`.
    package mutating func nextCollection(
        after position: RawSpan, below parent: RawSpan, collectionID: RawSpan?
    ) throws(RequestError) -> [UInt8]? {
        try nextCollection(after: position, skippingBelow: false, below: parent, collectionID: collectionID)
    }
}

/// A scanner without indexes.
extension DocumentScanner where Self: ~Copyable {
    package mutating func indexedCollection(_ collection: RawSpan) throws(RequestError) -> IndexedCollection? { nil }

    package mutating func indexedCollections(
        ofGroup id: RawSpan, atMost: Int
    ) throws(RequestError) -> [IndexedCollection]? { nil }

    package mutating func declaredIndexes() throws(RequestError) -> [DeclaredIndex] { [] }

    package mutating func fieldOverrides(of collectionID: [UInt8]) throws(RequestError) -> [FieldOverride] { [] }

    package mutating func fieldNumber(of field: FieldPath) throws(RequestError) -> UInt64? { nil }

    package mutating func countEntries(from lower: [UInt8], to upper: [UInt8], atMost: Int) throws(RequestError) -> Int { 0 }

    package mutating func visit(
        _ walk: inout IndexWalk,
        _ body: (_ path: RawSpan, borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        preconditionFailure("no access through indexes is planned where there are none")
    }

    package var remembersReads: Bool { false }

    package mutating func endReads(at last: [UInt8], _ orders: [Order]) {}

    package mutating func knownCount(of scope: QueryScope) throws(RequestError) -> Int? { nil }
}

/// A document met by a scan, lent until the call returns.
package struct CandidateDocument: ~Escapable {
    /// The document's id: the last segment of its path.
    package let documentID: RawSpan
    /// Microseconds since 1970.
    package let createMicroseconds: UInt64
    /// Microseconds since 1970.
    package let updateMicroseconds: UInt64
    /// Canonical field entries.
    package let fields: RawSpan

    @_lifetime(copy documentID, copy fields)
    @inlinable package init(
        documentID: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64, fields: RawSpan
    ) {
        self.documentID = documentID
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
        self.fields = fields
    }
}

/// Whether a scan goes on to the next document.
package enum ScanControl: Sendable {
    case more
    case stop
}

/// One end of a range of ids.
package struct DocumentIDBound: Sendable, Equatable {
    package var id: [UInt8]
    package var isInclusive: Bool

    package init(id: [UInt8], isInclusive: Bool) {
        self.id = id
        self.isInclusive = isInclusive
    }
}

/// A range of document ids within one collection; a missing bound is open. May be empty.
package struct DocumentIDRange: Sendable, Equatable {
    package var lower: DocumentIDBound?
    package var upper: DocumentIDBound?

    package init(lower: DocumentIDBound? = nil, upper: DocumentIDBound? = nil) {
        self.lower = lower
        self.upper = upper
    }

    /// Every id.
    package static let all = DocumentIDRange()
}
