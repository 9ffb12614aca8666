// A read point as a source of queries: one snapshot, and the notes of its transaction.

package import Basics
package import DocumentModel
package import Indexing
package import QueryEngine
internal import Storage
internal import StorageEngines
internal import StoreFormat

/// One state of the store, read through one snapshot. Keep it for one page, on the thread of the reader that made it.
package struct StoreSource: QuerySource, ~Copyable {
    private let reader: StoreReader
    private let point: ReadPoint
    private let snapshot: EngineSnapshot
    /// The query's condition, for transactions; nil if every document in what is read matters.
    private let filter: DocumentFilter?
    private let matcher: QueryMatcher?

    init(
        _ reader: StoreReader, at point: ReadPoint, filter: DocumentFilter?, matcher: QueryMatcher? = nil,
        _ cold: ColdRead = .waits
    ) throws(RequestError) {
        self.reader = reader
        self.point = point
        self.filter = filter
        self.matcher = matcher
        snapshot = try reader.snapshot(at: point, cold)
    }

    // Numbers begin at 1.
    package var database: UInt32 { point.databaseNumber ?? 0 }

    package var versionMicroseconds: UInt64 { point.version.microseconds }

    // MARK: Entries

    @_lifetime(borrow self)
    package borrowing func cursor(
        from lower: RawSpan, to upper: RawSpan, _ direction: SortDirection
    ) throws(RequestError) -> StoreCursor {
        do throws(StorageError) {
            return StoreCursor(
                try snapshot.cursor(from: lower, to: upper, direction: direction == .ascending ? .forward : .backward))
        } catch {
            throw RequestError(error)
        }
    }

    @_lifetime(borrow self)
    package borrowing func value(forKey key: RawSpan) throws(RequestError) -> SourceValue? {
        let stored: StoredValue?
        do throws(StorageError) { stored = try snapshot.value(forKey: key) } catch { throw RequestError(error) }
        guard let stored else { return nil }
        return SourceValue(stored.bytes, versionMicroseconds: stored.version.microseconds)
    }

    // MARK: Index metadata

    package borrowing func declaredIndexes(of collectionID: [UInt8]) -> [DeclaredIndex] {
        completeIndexes(of: collectionID).filter { $0.shape.search == nil }
    }

    /// Without those whose entries other libraries make than those of this machine: a follower leaves them alone.
    package borrowing func searchIndexes(of collectionID: [UInt8]) -> [DeclaredIndex] {
        let indexes = completeIndexes(of: collectionID).filter { $0.shape.search != nil }
        if indexes.isEmpty { return [] }
        let version = reader.store.configuration.textLibraries().version
        return indexes.filter { $0.analysis == version }
    }

    private borrowing func completeIndexes(of collectionID: [UInt8]) -> [DeclaredIndex] {
        guard let database = point.databaseNumber else { return [] }
        return reader.store.indexState.current.declared.indexes(of: collectionID.byteSpan, in: database).filter {
            $0.state.isComplete(at: point.version)
        }
    }

    package borrowing func fieldOverrides(of collectionID: [UInt8]) -> [FieldOverride] {
        guard let database = point.databaseNumber else { return [] }
        return reader.store.indexState.current.groups.group(collectionID.byteSpan, in: database)?.declared ?? []
    }

    package borrowing func indexedFields(of collection: RawSpan) -> IndexedFields {
        guard let database = point.databaseNumber else { return .none }
        return reader.store.indexState.current.fields(ofCollection: collection, in: database, at: point.version)
    }

    package var indexUsage: (any IndexUsage)? { reader.store.adaptiveIndexes }

    // MARK: Transactions

    package var notesReads: Bool { point.transaction != nil }

    package var locksDocuments: Bool { point.transaction?.kind == .pessimistic }

    package borrowing func noteRead(
        from lower: [UInt8], to upper: [UInt8], collectionID: [UInt8]?
    ) throws(RequestError) {
        guard let transaction = point.transaction else { return }
        try transaction.noteRead(
            ReadRange(
                lower: lower, upper: upper, collectionID: collectionID, matches: filter,
                query: matcher.map(ObjectIdentifier.init), version: point.version))
    }

    package borrowing func noteEnd(at last: LastResult) {
        guard let transaction = point.transaction, let matcher else { return }
        transaction.narrowReads(
            of: ObjectIdentifier(matcher), within: last.passedKeys(of: matcher.scope, database: database)
        ) { path, fields in
            matcher.matches(path: path, fields: fields) && !last.precedes(path: path, fields: fields)
        }
    }

    /// Nobody waits for these locks: a document that changes before its lock is there makes the transaction's commit
    /// fail.
    package borrowing func lock(_ paths: [[UInt8]]) {
        guard let transaction = point.transaction, let database = point.databaseNumber, !paths.isEmpty else { return }
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        reader.store.lockScanned(
            transaction,
            paths.map { path in
                DocumentKey.write(path.byteSpan, database: database, into: &key)
                return ByteTable.hash(key.bytes)
            })
    }
}

/// A cursor of the engine, with the errors that clients see.
package struct StoreCursor: RangeCursor, ~Copyable, ~Escapable {
    private var cursor: EngineCursor

    @_lifetime(copy cursor)
    init(_ cursor: consuming EngineCursor) { self.cursor = cursor }

    @_lifetime(self: copy self)
    package mutating func next() throws(RequestError) -> Bool {
        do throws(StorageError) { return try cursor.next() } catch { throw RequestError(error) }
    }

    @_lifetime(self: copy self)
    package mutating func next(passing deletions: inout Int) throws(RequestError) -> Bool {
        do throws(StorageError) { return try cursor.next(passing: &deletions) } catch { throw RequestError(error) }
    }

    @_lifetime(self: copy self)
    package mutating func seek(to key: RawSpan) throws(RequestError) {
        do throws(StorageError) { try cursor.seek(to: key) } catch { throw RequestError(error) }
    }

    package var key: RawSpan { @_lifetime(borrow self) borrowing get { cursor.key } }
    package var value: RawSpan { @_lifetime(borrow self) borrowing get { cursor.value } }
    package var versionMicroseconds: UInt64 { cursor.version.microseconds }
}
