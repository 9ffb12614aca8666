// The storage interface: what the document store needs of an ordered, versioned, durable store of bytes.
//
// Upper layers name the concrete type through the alias `StorageEngine`, so that the compiler specialises all calls.
//
//      commit thread                       any thread                         any thread
//      ─────────────                       ──────────                         ──────────
//      let writer = engine.makeWriter()    let reader = engine.makeReader()   engine.backup(to:)
//      writer.latest  (sees staged)        reader.snapshot(at: version)       engine.statistics
//      writer.stage(version, record,         .value(forKey:)                  engine.checkpointNow()
//                   mutations)               .cursor(from:to:direction:)
//      writer.seal { result in … }

/// The engine that this build of the server uses.
package typealias StorageEngine = EmbeddedEngine

/// An ordered key-value store with versions: atomic durable commits by one writer, consistent snapshots for many readers.
package protocol KeyValueEngine: AnyObject, Sendable {
    associatedtype Writer: KeyValueWriter
    associatedtype Reader: KeyValueReader

    /// The one writer. Fails when it has been made before.
    func makeWriter() throws(StorageError) -> Writer

    /// A reader for one thread; make one per event loop and keep it.
    func makeReader() throws(StorageError) -> Reader

    /// The last version that is durable and visible.
    var publishedVersion: CommitVersion { get }

    /// Snapshots below this version are refused. Only ever grows.
    var oldestReadableVersion: CommitVersion { get }

    /// Writes a consistent copy, as of a version published during the call, into a directory that does not exist yet or is empty.
    func backup(to directory: String) throws(StorageError)

    /// Ends all activity and makes the next open quick. The writer must not be in use; readers must have no snapshot open.
    func close() throws(StorageError)
}

/// Stages commits and seals them in groups. Belongs to one thread.
package protocol KeyValueWriter: AnyObject {
    /// Adds a commit to the group being built. See `Writer.stage`.
    func stage(
        version: CommitVersion, record: RawSpan, mutations: borrowing MutationBatch, mayUseReserve: Bool
    ) throws(StorageError)

    /// Hands the staged group to be made durable. See `Writer.seal`.
    func seal(completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void) throws(StorageError)
}

/// Makes snapshots. Belongs to one thread.
package protocol KeyValueReader: AnyObject {
    associatedtype Snapshot: KeyValueSnapshot, ~Copyable

    /// The state as of a version, or as of the last published one.
    func snapshot(at version: CommitVersion?) throws(StorageError) -> Snapshot
}

/// One consistent state. Short-lived: a version is what you keep, a snapshot is what you read a page with.
package protocol KeyValueSnapshot: ~Copyable {
    associatedtype Cursor: KeyValueCursor, ~Copyable, ~Escapable

    var version: CommitVersion { get }

    /// The value of a key, or nil if it has none at this version.
    @_lifetime(borrow self)
    borrowing func value(forKey key: RawSpan) throws(StorageError) -> StoredValue?

    /// Walks the keys of the half-open range `lower..<upper`; nil leaves an end open.
    @_lifetime(borrow self)
    borrowing func cursor(
        from lower: RawSpan?, to upper: RawSpan?, direction: ScanDirection
    ) throws(StorageError) -> Cursor
}

/// A place in an ordered range.
package protocol KeyValueCursor: ~Copyable, ~Escapable {
    /// Goes to the next entry in the cursor's direction, at first to the first; false at the end.
    @_lifetime(self: copy self)
    mutating func next() throws(StorageError) -> Bool

    /// Makes the following `next()` go to the first entry at or beyond `key` in the cursor's direction, but never outside the range.
    @_lifetime(self: copy self)
    mutating func seek(to key: RawSpan) throws(StorageError)

    var key: RawSpan { @_lifetime(borrow self) borrowing get }
    var value: RawSpan { @_lifetime(borrow self) borrowing get }
    var version: CommitVersion { get }
}

/// Which way a cursor walks.
package enum ScanDirection: Hashable, Sendable {
    case forward, backward
}

/// A value lent by a snapshot, with the version of the commit that wrote it. Points into the map or the overlay: nothing was copied.
package struct StoredValue: ~Escapable {
    package let bytes: RawSpan
    package let version: CommitVersion

    @_lifetime(copy bytes)
    init(bytes: RawSpan, version: CommitVersion) {
        self.bytes = bytes
        self.version = version
    }
}
