// The storage primitives of query execution.
//
//     range cursor      entries of a key range, forwards or backwards, with seek
//     point read        the value of one key
//     range estimate    the number of keys in a range, counted no further than a bound
//     index metadata    declared indexes, field overrides, and which fields have entries
//     read notes        what a transaction must remember, and what it locks
//
// Everything else (catalogue entries, field numbers, finding collections) is computed from these in `Query/Source`.
// Keys have the layout of `docs/keys.md`. The store implements the protocol over one snapshot (`StoreSource`); tests
// implement it over a sorted array.

package import Basics
package import DocumentModel
package import Indexing

/// One consistent state of one database, read by the operators of a query for the time of one page.
///
/// All pages of a query must see the same state. Between two pages an operator keeps keys and positions, never a
/// cursor.
package protocol QuerySource: ~Copyable {
    /// A cursor lives no longer than the source.
    associatedtype Cursor: RangeCursor, ~Copyable, ~Escapable

    /// The number that stands for the database in keys; 0 if the database does not exist, so that all its ranges are
    /// empty.
    var database: UInt32 { get }

    /// The version of the state, in microseconds. Catalogue entries have no history and may be of a later version.
    var versionMicroseconds: UInt64 { get }

    /// Opens a cursor over the keys of `lower..<upper`; `descending` begins at the upper end.
    /// - Throws: `DATA_LOSS` for damaged storage, as every read here; `UNAVAILABLE` if too many snapshots are open.
    @_lifetime(borrow self)
    borrowing func cursor(
        from lower: RawSpan, to upper: RawSpan, _ direction: SortDirection
    ) throws(RequestError) -> Cursor

    /// The value of a key; nil if there is none.
    @_lifetime(borrow self)
    borrowing func value(forKey key: RawSpan) throws(RequestError) -> SourceValue?

    /// The number of keys in `lower..<upper`, counted no further than `atMost`. An implementation may estimate.
    borrowing func countKeys(from lower: RawSpan, to upper: RawSpan, atMost: Int) throws(RequestError) -> Int

    // MARK: Index metadata

    /// Whether the catalogue has every collection. If not, collections are found in the keys of documents, and the
    /// catalogue is read only for groups with indexed fields, of which it has every collection.
    var hasCatalogue: Bool { get }

    /// The declared indexes over a collection group's collections, or over the group, that are complete in this state,
    /// those for searches apart.
    borrowing func declaredIndexes(of collectionID: [UInt8]) -> [DeclaredIndex]

    /// The same for searches.
    borrowing func searchIndexes(of collectionID: [UInt8]) -> [DeclaredIndex]

    /// The field overrides of a collection group.
    borrowing func fieldOverrides(of collectionID: [UInt8]) -> [FieldOverride]

    /// The fields of a collection that have index entries.
    ///
    /// - Parameter collection: the collection's path, or its id alone.
    borrowing func indexedFields(of collection: RawSpan) -> IndexedFields

    /// Takes which indexes queries use and lack; nil if no index depends on it.
    var indexUsage: (any IndexUsage)? { get }

    // MARK: Transactions

    /// Whether reads must be noted for a transaction.
    var notesReads: Bool { get }

    /// Whether documents that match must be locked for a transaction. Then they must be read even if only their number
    /// is asked for.
    var locksDocuments: Bool { get }

    /// Notes that the query read the documents in a range of keys: a later change to a document that matches the query
    /// is a conflict.
    ///
    /// - Parameter collectionID: only documents of collections with this id matter; nil means all.
    borrowing func noteRead(from lower: [UInt8], to upper: [UInt8], collectionID: [UInt8]?) throws(RequestError)

    /// Notes that the query ended at its limit: documents that sort after its last result do not matter.
    borrowing func noteEnd(at last: LastResult)

    /// Locks documents, given by their paths. Does not wait.
    borrowing func lock(_ paths: [[UInt8]])
}

/// A source without declared indexes and without transactions.
extension QuerySource where Self: ~Copyable {
    package borrowing func countKeys(
        from lower: RawSpan, to upper: RawSpan, atMost: Int
    ) throws(RequestError) -> Int {
        var count = 0
        var cursor = try cursor(from: lower, to: upper, .ascending)
        while count < atMost, try cursor.next() { count += 1 }
        return count
    }

    package var hasCatalogue: Bool { true }
    package borrowing func declaredIndexes(of collectionID: [UInt8]) -> [DeclaredIndex] { [] }
    package borrowing func searchIndexes(of collectionID: [UInt8]) -> [DeclaredIndex] { [] }
    package borrowing func fieldOverrides(of collectionID: [UInt8]) -> [FieldOverride] { [] }
    package borrowing func indexedFields(of collection: RawSpan) -> IndexedFields { .none }
    package var indexUsage: (any IndexUsage)? { nil }
    package var notesReads: Bool { false }
    package var locksDocuments: Bool { false }
    package borrowing func noteRead(
        from lower: [UInt8], to upper: [UInt8], collectionID: [UInt8]?
    ) throws(RequestError) {}
    package borrowing func noteEnd(at last: LastResult) {}
    package borrowing func lock(_ paths: [[UInt8]]) {}
}

/// A position in a range of keys.
package protocol RangeCursor: ~Copyable, ~Escapable {
    /// Moves to the next entry in the cursor's direction, at first to the first one; false at the end.
    @_lifetime(self: copy self)
    mutating func next() throws(RequestError) -> Bool

    /// The same, and false at a deleted entry when `deletions` has come to 0: `key` is that of the entry then.
    ///
    /// A range may have millions of deleted entries before the next one, which are to be passed in several steps. A
    /// source without deleted entries, or one that need not give way to others, leaves `deletions` as it is.
    ///
    /// - Parameter deletions: deleted entries that may be passed, at least 1.
    @_lifetime(self: copy self)
    mutating func next(passing deletions: inout Int) throws(RequestError) -> Bool

    /// Makes the following `next()` move to the first entry at or beyond `key` in the cursor's direction, within the
    /// range.
    @_lifetime(self: copy self)
    mutating func seek(to key: RawSpan) throws(RequestError)

    /// The key, value and version of the entry that `next()` moved to; valid until the cursor moves.
    var key: RawSpan { @_lifetime(borrow self) borrowing get }
    var value: RawSpan { @_lifetime(borrow self) borrowing get }
    var versionMicroseconds: UInt64 { get }
}

extension RangeCursor where Self: ~Copyable & ~Escapable {
    @_lifetime(self: copy self)
    package mutating func next(passing deletions: inout Int) throws(RequestError) -> Bool { try next() }
}

/// A value lent by a source, with the version that wrote it.
package struct SourceValue: ~Escapable {
    /// The value as it is stored.
    package let bytes: RawSpan
    /// Microseconds since 1970.
    package let versionMicroseconds: UInt64

    @_lifetime(copy bytes)
    package init(_ bytes: RawSpan, versionMicroseconds: UInt64) {
        self.bytes = bytes
        self.versionMicroseconds = versionMicroseconds
    }
}

extension RequestError {
    /// A document whose stored bytes cannot be read.
    package static let damagedDocument = RequestError(.dataLoss, "A stored document is damaged.")
    static let damagedEntry = RequestError(.dataLoss, "An index entry is damaged.")
    static let missingDocument = RequestError(.dataLoss, "An index entry names a document that does not exist.")
    static let damagedCatalogue = RequestError(.dataLoss, "Stored data is damaged.")
}
