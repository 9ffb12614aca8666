// The storage seam: what the document store needs of an ordered, versioned, durable store of bytes, and nothing more.

/// An ordered key-value store with versions: atomic durable commits by one writer, consistent snapshots for many
/// readers.
///
///     commit thread                        any thread                         any thread
///     ─────────────                        ──────────                         ──────────
///     let writer = engine.makeWriter()     let reader = engine.makeReader()   engine.statistics
///     writer.latest   (sees staged)        reader.snapshot(at: version)
///     writer.stage(version:record:           .value(forKey:)
///                  mutations:)               .cursor(from:to:direction:)
///     writer.commitGroup { result in … }   reader.whenReady { … }
///
/// What concerns a disk is ``KeyValueDisk``. A read may have to wait for one: ``ColdRead``.
///
/// Two engines conform: `EmbeddedEngine` (a log and runs in a directory) and `MemoryEngine` (a sorted table in
/// memory). The document store names neither. It uses `StorageEngine`, which holds one of them.
///
/// The rules that every engine keeps:
///
/// - Keys have 1 to `EngineLimits.keyBytesMax` bytes and are ordered as unsigned bytes.
/// - A commit is a record and the mutations that were derived from it, at a version above all versions before it. It is
///   atomic.
/// - A group of staged commits becomes durable first, then visible to all snapshots at one instant.
/// - After a crash the engine has exactly the groups that were durable. It passes the records whose mutations it has
///   not kept to an ``EngineReplay``, which derives them again.
/// - A snapshot at a version shows all commits up to the version and none after it, as long as the version is not below
///   `oldestReadableVersion`. Spaces in `EngineOptions.latestOnlySpaces` keep only the newest value of each key.
package protocol KeyValueEngine: AnyObject, Sendable {
    /// What the commit thread uses.
    associatedtype Writer: KeyValueWriter
    /// What each reading thread uses.
    associatedtype Reader: KeyValueReader

    /// The one writer. Asking twice is a bug of the caller.
    /// - Throws: `closed`.
    func makeWriter() throws(StorageError) -> Writer

    /// A reader for one thread. Make one per thread and keep it.
    /// - Throws: `closed`.
    func makeReader() throws(StorageError) -> Reader

    /// The last version that is durable and visible.
    var publishedVersion: CommitVersion { get }

    /// Snapshots below this version are refused. Only ever grows.
    var oldestReadableVersion: CommitVersion { get }

    /// The time from which the history is that of this directory or volume alone: when it was created, or made from a
    /// backup, and opened. The original of a backup may have made other commits before it.
    var timelineStart: CommitVersion { get }

    /// Counters and sizes. Any thread.
    var statistics: EngineStatistics { get }

    /// Ends all activity and makes the next open quick. The writer must not be in use; readers must have no snapshot
    /// open. Blocks until all threads of the engine have ended.
    /// - Throws: what the last checkpoint throws. The engine is closed all the same.
    func close() throws(StorageError)
}

/// Stages commits and commits them in groups. Belongs to one thread.
///
///     for request in queue {
///         // validate against `writer.latest`, which sees what was staged a moment ago
///         try writer.stage(version: version, record: record, mutations: batch)
///         if writer.isGroupFull { break }
///     }
///     try writer.commitGroup { result in … answer … }   // waits for the group before, then returns at once
package protocol KeyValueWriter: AnyObject {
    /// The state that ``latest`` reads.
    associatedtype Latest: KeyValueState

    /// The newest state, with everything staged so far, durable or not. Values are valid until the next `stage` or
    /// `commitGroup`; nothing may be staged or committed while a cursor lives.
    var latest: Latest { get }

    /// The version of the last staged commit, or the last one of the store.
    var lastVersion: CommitVersion { get }

    /// Whether commits are staged that no call of `commitGroup` has taken.
    var hasStaged: Bool { get }

    /// Bytes of records and mutations staged.
    var stagedBytes: Int { get }

    /// Keys put and deleted by what is staged.
    var stagedEntries: Int { get }

    /// The group has reached `EngineOptions.groupBytesMax`.
    var isGroupFull: Bool { get }

    /// Staging a small commit and committing it on this thread waits for nothing but its own sync.
    var canCommitAtOnce: Bool { get }

    /// Adds a commit to the group: all of it or, when this throws, nothing. May wait when the engine cannot keep up.
    ///
    /// - Parameters:
    ///   - version: above every version staged before.
    ///   - record: what ``EngineReplay`` needs to derive the mutations again; opaque to the engine.
    ///   - mayUseReserve: the commit only deletes, or maintains the store's own counts; it may use the space that is
    ///     kept for that.
    /// - Throws: `full`, `refused`, `closed`, `versionNotIncreasing`, `valueTooLong`.
    func stage(
        version: CommitVersion, record: RawSpan, mutations: borrowing MutationBatch, mayUseReserve: Bool
    ) throws(StorageError)

    /// Makes the staged group durable, then visible, and returns the published version. Blocks for the sync. With
    /// nothing staged it returns at once.
    ///
    /// A failed sync is final: this throws `failed`, and every later call with something staged `refused`.
    func commitGroup() throws(StorageError) -> CommitVersion

    /// The same on another thread of the engine, or on this one if nothing has to be waited for; `completion` is called
    /// once there. Waits first for the group before, if that is still being synced.
    func commitGroup(
        completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void
    ) throws(StorageError)

    /// Waits until no group is being committed on another thread. Its completion has been called then.
    func waitForGroup()

    /// Releases what `latest` holds. To be called before the thread sleeps, so that the engine can reuse memory and
    /// pages.
    func finishReading()
}

/// A state of the store that can be read: the newest one, or a snapshot.
package protocol KeyValueState: ~Copyable {
    /// A cursor lives no longer than the state that it reads.
    associatedtype Cursor: KeyValueCursor, ~Copyable, ~Escapable

    /// The value of a key, or nil if it has none in this state. The bytes are valid as long as the state.
    /// - Throws: `corrupt` for a damaged block, `inputOutput`; `pending` in a snapshot of ``ColdRead/pends``.
    @_lifetime(borrow self)
    borrowing func value(forKey key: RawSpan) throws(StorageError) -> StoredValue?

    /// The entries of the half-open range `lower..<upper`; nil leaves an end open. With `.backward` it begins at the
    /// last key below `upper`.
    /// - Throws: as ``value(forKey:)``.
    @_lifetime(borrow self)
    borrowing func cursor(
        from lower: RawSpan?, to upper: RawSpan?, direction: ScanDirection
    ) throws(StorageError) -> Cursor
}

/// Makes snapshots. Belongs to one thread.
package protocol KeyValueReader {
    /// What ``snapshot(at:_:)`` makes. Its end releases the memtables and files that it uses.
    associatedtype Snapshot: KeyValueSnapshot, ~Copyable

    /// The state as of a version, or as of the last published one. A version above that one is lowered to it.
    /// - Parameter cold: what reads of the snapshot do that meet bytes which are not in memory.
    /// - Throws: `versionTooOld`, `tooManyReaders`, `closed`, `inputOutput`.
    func snapshot(at version: CommitVersion?, _ cold: ColdRead) throws(StorageError) -> Snapshot

    /// Whether something that reads may need is perhaps not in memory. A hint for those who prefetch: false means that
    /// it is not worth while.
    var mayBePending: Bool { get }

    /// Brings into memory what the reads lacked that were pending since the last call, many things at a time.
    ///
    /// - Parameter completion: called once, on any thread, also on the calling one. Then the reads can be repeated;
    ///   they may be pending again. With `corrupt` if something cannot be read; with `tooManyReaders` if too many reads
    ///   wait already; with `closed` if the engine was closed meanwhile.
    func whenReady(_ completion: @escaping @Sendable (Result<Void, StorageError>) -> Void)

    /// From now on resources of a closed snapshot are kept for the next one, until ``releaseSnapshots()``.
    func reuseSnapshots()

    /// Releases what is kept for the next snapshot. To be called before the thread sleeps.
    func releaseSnapshots()
}

/// One consistent state. Short-lived: keep a version for as long as a client needs it, and a snapshot for one page.
package protocol KeyValueSnapshot: KeyValueState, ~Copyable {
    /// The state is that after the commit of this version: what ``KeyValueReader/snapshot(at:_:)`` was asked for, or
    /// the last published version if that is lower.
    var version: CommitVersion { get }
}

/// A position in an ordered range. At first it is before the first entry.
package protocol KeyValueCursor: ~Copyable, ~Escapable {
    /// Moves to the next entry in the cursor's direction, at first to the first; false at the end.
    /// - Throws: `corrupt` for a damaged block, `inputOutput`; `pending` in a snapshot of ``ColdRead/pends``, after
    ///   which the cursor must not be used.
    @_lifetime(self: copy self)
    mutating func next() throws(StorageError) -> Bool

    /// Makes the following `next()` move to the first entry at or beyond `key` in the cursor's direction, but never
    /// outside the range.
    @_lifetime(self: copy self)
    mutating func seek(to key: RawSpan) throws(StorageError)

    /// The key of the entry that `next()` moved to; valid until the cursor moves. Only after `next()` returned true.
    var key: RawSpan { @_lifetime(borrow self) borrowing get }
    /// The value of the entry; the same rules.
    var value: RawSpan { @_lifetime(borrow self) borrowing get }
    /// The version of the commit that wrote the entry.
    var version: CommitVersion { get }
}

/// The direction in which a cursor moves.
package enum ScanDirection: Hashable, Sendable {
    case forward, backward
}

/// A value lent by a snapshot, with the version of the commit that wrote it. Nothing was copied.
@usableFromInline package struct StoredValue: ~Escapable {
    /// The value as it was put; may be empty.
    @usableFromInline package let bytes: RawSpan
    /// The version of the commit that wrote the value; at most that of the state.
    @usableFromInline package let version: CommitVersion

    @_lifetime(copy bytes) @inlinable
    package init(bytes: RawSpan, version: CommitVersion) {
        self.bytes = bytes
        self.version = version
    }
}

/// Derives the mutations of a commit again from its record, when a store is opened.
///
/// Called once for each record after the last checkpoint, in order. `latest` shows the state just before the commit.
/// The batch is empty at the call. What it throws ends the opening.
package typealias EngineReplay<Latest> = (
    _ version: CommitVersion, _ record: RawSpan, _ mutations: inout MutationBatch, _ latest: Latest
) throws -> Void
