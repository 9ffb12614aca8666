// The engines as the document store names them: one value that holds either, and switches.
//
// A switch costs one predicted branch. A generic store would have to be specialised across three modules to cost as
// little, and an existential would allocate and call through tables (docs/decisions/0009-engine-seam.md).

package import CommitLog
package import EmbeddedEngine
package import MemoryEngine
package import Storage

/// Derives the mutations of a commit again from its record, with either engine; see `EngineReplay`.
package typealias Replay = EngineReplay<LatestReader>

/// The engine of an open store.
package enum StorageEngine: Sendable {
    case embedded(EmbeddedEngine)
    case memory(MemoryEngine)

    /// Opens the engine that the options name, and recovers what it holds.
    ///
    /// - Parameters:
    ///   - directory: the data directory; not used by an engine in memory.
    ///   - volume: set for an engine that keeps everything in memory: what it reads and writes.
    /// - Throws: `StorageError` (`locked`, `unsupportedFormat`, `corrupt`, `inputOutput`, `full`), or what `replay`
    ///   throws.
    package static func open(
        directory: String, volume: MemoryVolume? = nil, options: EngineOptions = EngineOptions(), replay: Replay
    ) throws -> StorageEngine {
        if let volume {
            let engine = try MemoryEngine.open(volume, options: options) { version, record, mutations, latest in
                try replay(version, record, &mutations, .memory(latest))
            }
            return .memory(engine)
        }
        let engine = try EmbeddedEngine.open(directory: directory, options: options) {
            version, record, mutations, latest in
            try replay(version, record, &mutations, .embedded(latest))
        }
        return .embedded(engine)
    }

    /// See ``EmbeddedEngine/remove(directory:)``.
    package static func remove(directory: String) throws(StorageError) {
        try EmbeddedEngine.remove(directory: directory)
    }

    /// See ``EmbeddedEngine/releaseDirectory()``. An engine in memory has no directory.
    package func releaseDirectory() -> Bool {
        if case .embedded(let engine) = self { engine.releaseDirectory() } else { true }
    }

    /// See ``KeyValueEngine/makeWriter()``.
    package func makeWriter() throws(StorageError) -> EngineWriter {
        switch self {
        case .embedded(let engine): .embedded(try engine.makeWriter())
        case .memory(let engine): .memory(try engine.makeWriter())
        }
    }

    /// See ``KeyValueEngine/makeReader()``.
    package func makeReader() throws(StorageError) -> EngineReader {
        switch self {
        case .embedded(let engine): .embedded(try engine.makeReader())
        case .memory(let engine): .memory(try engine.makeReader())
        }
    }

    /// See ``KeyValueEngine/publishedVersion``.
    package var publishedVersion: CommitVersion {
        switch self {
        case .embedded(let engine): engine.publishedVersion
        case .memory(let engine): engine.publishedVersion
        }
    }

    /// See ``KeyValueEngine/oldestReadableVersion``.
    package var oldestReadableVersion: CommitVersion {
        switch self {
        case .embedded(let engine): engine.oldestReadableVersion
        case .memory(let engine): engine.oldestReadableVersion
        }
    }

    /// See ``KeyValueEngine/timelineStart``.
    package var timelineStart: CommitVersion {
        switch self {
        case .embedded(let engine): engine.timelineStart
        case .memory(let engine): engine.timelineStart
        }
    }

    /// See ``KeyValueEngine/statistics``.
    package var statistics: EngineStatistics {
        switch self {
        case .embedded(let engine): engine.statistics
        case .memory(let engine): engine.statistics
        }
    }

    /// See ``EmbeddedEngine/records(after:)``.
    /// - Throws: `unsupported` from an engine in memory, which has no log.
    package func records(after version: CommitVersion) throws(StorageError) -> LogRecords {
        switch self {
        case .embedded(let engine): return engine.records(after: version)
        case .memory: throw StorageError(.unsupported, "an engine in memory has no log")
        }
    }

    /// Keeps records of the log for a follower; see `WriteAheadLog.hold`. An engine in memory has none.
    package func hold(_ holder: LogHolder, stream: UInt64, after version: CommitVersion) {
        if case .embedded(let engine) = self { engine.log.hold(holder, stream: stream, after: version) }
    }

    /// A stream of the follower has ended; see `WriteAheadLog.leave`.
    package func leave(_ holder: LogHolder, stream: UInt64) {
        if case .embedded(let engine) = self { engine.log.leave(holder, stream: stream) }
    }

    /// See ``KeyValueDisk/estimate(from:to:)``.
    package func estimate(from lower: RawSpan, to upper: RawSpan) throws(StorageError) -> KeyRangeEstimate {
        switch self {
        case .embedded(let engine): try engine.estimate(from: lower, to: upper)
        case .memory(let engine): try engine.estimate(from: lower, to: upper)
        }
    }

    /// See ``KeyValueDisk/shortage``.
    package var shortage: StorageError? {
        switch self {
        case .embedded(let engine): engine.shortage
        case .memory(let engine): engine.shortage
        }
    }

    /// See ``EmbeddedEngine/releaseReserve(_:)``. An engine in memory has no reserve.
    package func releaseReserve(_ bytes: Int) -> Bool {
        if case .embedded(let engine) = self { engine.releaseReserve(bytes) } else { false }
    }

    /// See ``EmbeddedEngine/checkPlace()``. An engine in memory has no directory.
    package func checkPlace() throws(StorageError) {
        if case .embedded(let engine) = self { try engine.checkPlace() }
    }

    /// See ``KeyValueDisk/recentShortage``.
    package var recentShortage: StorageError? {
        switch self {
        case .embedded(let engine): engine.recentShortage
        case .memory(let engine): engine.recentShortage
        }
    }

    /// See ``KeyValueDisk/recentWriteFailure``.
    package var recentWriteFailure: StorageError? {
        switch self {
        case .embedded(let engine): engine.recentWriteFailure
        case .memory(let engine): engine.recentWriteFailure
        }
    }

    /// See ``EngineStatistics/scrub``; cheaper than all figures.
    package var scrub: ScrubStatistics {
        switch self {
        case .embedded(let engine): engine.scrub
        case .memory: ScrubStatistics()
        }
    }

    /// See ``EmbeddedEngine/areEntriesDropped``.
    package var areEntriesDropped: Bool {
        switch self {
        case .embedded(let engine): engine.areEntriesDropped
        case .memory: false
        }
    }

    /// See ``EmbeddedEngine/entriesAreBeingMade()``.
    package func entriesAreBeingMade() throws(StorageError) {
        switch self {
        case .embedded(let engine): try engine.entriesAreBeingMade()
        case .memory: break
        }
    }

    /// See ``KeyValueDisk/checkpointNow()``.
    package func checkpointNow() throws(StorageError) {
        switch self {
        case .embedded(let engine): try engine.checkpointNow()
        case .memory(let engine): try engine.checkpointNow()
        }
    }

    /// See ``KeyValueDisk/sweepHistoryNow()``.
    package func sweepHistoryNow() throws(StorageError) {
        switch self {
        case .embedded(let engine): try engine.sweepHistoryNow()
        case .memory(let engine): try engine.sweepHistoryNow()
        }
    }

    /// See ``KeyValueDisk/fork(to:)``.
    package func fork(to directory: String) throws(StorageError) -> Int {
        switch self {
        case .embedded(let engine): try engine.fork(to: directory)
        case .memory(let engine): try engine.fork(to: directory)
        }
    }

    /// See ``KeyValueDisk/backup(to:_:)``.
    package func backup(to directory: String, _ control: CopyControl = CopyControl()) throws(StorageError) {
        switch self {
        case .embedded(let engine): try engine.backup(to: directory, control)
        case .memory(let engine): try engine.backup(to: directory, control)
        }
    }

    /// See ``KeyValueEngine/close()``.
    package func close() throws(StorageError) {
        switch self {
        case .embedded(let engine): try engine.close()
        case .memory(let engine): try engine.close()
        }
    }
}

/// The writer of a ``StorageEngine``; see ``KeyValueWriter``.
package enum EngineWriter {
    case embedded(EmbeddedWriter)
    case memory(MemoryWriter)

    package var latest: LatestReader {
        switch self {
        case .embedded(let writer): .embedded(writer.latest)
        case .memory(let writer): .memory(writer.latest)
        }
    }

    package var lastVersion: CommitVersion {
        switch self {
        case .embedded(let writer): writer.lastVersion
        case .memory(let writer): writer.lastVersion
        }
    }

    package var hasStaged: Bool {
        switch self {
        case .embedded(let writer): writer.hasStaged
        case .memory(let writer): writer.hasStaged
        }
    }

    package var stagedBytes: Int {
        switch self {
        case .embedded(let writer): writer.stagedBytes
        case .memory(let writer): writer.stagedBytes
        }
    }

    package var stagedEntries: Int {
        switch self {
        case .embedded(let writer): writer.stagedEntries
        case .memory(let writer): writer.stagedEntries
        }
    }

    package var isGroupFull: Bool {
        switch self {
        case .embedded(let writer): writer.isGroupFull
        case .memory(let writer): writer.isGroupFull
        }
    }

    package var canCommitAtOnce: Bool {
        switch self {
        case .embedded(let writer): writer.canCommitAtOnce
        case .memory(let writer): writer.canCommitAtOnce
        }
    }

    /// See ``KeyValueWriter/stage(version:record:mutations:mayUseReserve:)``.
    package func stage(
        version: CommitVersion, record: RawSpan, mutations: borrowing MutationBatch, mayUseReserve: Bool = false
    ) throws(StorageError) {
        switch self {
        case .embedded(let writer):
            try writer.stage(version: version, record: record, mutations: mutations, mayUseReserve: mayUseReserve)
        case .memory(let writer):
            try writer.stage(version: version, record: record, mutations: mutations, mayUseReserve: mayUseReserve)
        }
    }

    /// See ``KeyValueWriter/commitGroup()``.
    @discardableResult
    package func commitGroup() throws(StorageError) -> CommitVersion {
        switch self {
        case .embedded(let writer): try writer.commitGroup()
        case .memory(let writer): try writer.commitGroup()
        }
    }

    /// See ``KeyValueWriter/commitGroup(completion:)``.
    package func commitGroup(
        completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void
    ) throws(StorageError) {
        switch self {
        case .embedded(let writer): try writer.commitGroup(completion: completion)
        case .memory(let writer): try writer.commitGroup(completion: completion)
        }
    }

    package func waitForGroup() {
        switch self {
        case .embedded(let writer): writer.waitForGroup()
        case .memory(let writer): writer.waitForGroup()
        }
    }

    package func finishReading() {
        switch self {
        case .embedded(let writer): writer.finishReading()
        case .memory(let writer): writer.finishReading()
        }
    }
}

/// The newest state of a ``StorageEngine``; see ``KeyValueState``.
package enum LatestReader {
    case embedded(EmbeddedLatest)
    case memory(MemoryLatest)

    @_lifetime(borrow self)
    package borrowing func value(forKey key: RawSpan) throws(StorageError) -> StoredValue? {
        switch self {
        case .embedded(let latest): unsafe _overrideLifetime(try latest.value(forKey: key), borrowing: self)
        case .memory(let latest): unsafe _overrideLifetime(try latest.value(forKey: key), borrowing: self)
        }
    }

    @_lifetime(borrow self)
    package borrowing func cursor(
        from lower: RawSpan? = nil, to upper: RawSpan? = nil, direction: ScanDirection = .forward
    ) throws(StorageError) -> EngineCursor {
        switch self {
        case .embedded(let latest):
            let cursor = EngineCursor(embedded: try latest.cursor(from: lower, to: upper, direction: direction))
            return unsafe _overrideLifetime(cursor, borrowing: self)
        case .memory(let latest):
            let cursor = EngineCursor(memory: try latest.cursor(from: lower, to: upper, direction: direction))
            return unsafe _overrideLifetime(cursor, borrowing: self)
        }
    }
}

/// A reader of a ``StorageEngine``; see ``KeyValueReader``.
package enum EngineReader {
    case embedded(EmbeddedReader)
    case memory(MemoryReader)

    /// See ``KeyValueReader/snapshot(at:_:)``.
    package func snapshot(
        at version: CommitVersion? = nil, _ cold: ColdRead = .waits
    ) throws(StorageError) -> EngineSnapshot {
        switch self {
        case .embedded(let reader): .embedded(try reader.snapshot(at: version, cold))
        case .memory(let reader): .memory(try reader.snapshot(at: version, cold))
        }
    }

    /// See ``KeyValueReader/mayBePending``.
    package var mayBePending: Bool {
        switch self {
        case .embedded(let reader): reader.mayBePending
        case .memory(let reader): reader.mayBePending
        }
    }

    /// See ``KeyValueReader/whenReady(_:)``.
    package func whenReady(_ completion: @escaping @Sendable (Result<Void, StorageError>) -> Void) {
        switch self {
        case .embedded(let reader): reader.whenReady(completion)
        case .memory(let reader): reader.whenReady(completion)
        }
    }

    package func reuseSnapshots() {
        switch self {
        case .embedded(let reader): reader.reuseSnapshots()
        case .memory(let reader): reader.reuseSnapshots()
        }
    }

    package func releaseSnapshots() {
        switch self {
        case .embedded(let reader): reader.releaseSnapshots()
        case .memory(let reader): reader.releaseSnapshots()
        }
    }
}

/// A snapshot of a ``StorageEngine``; see ``KeyValueSnapshot``.
package enum EngineSnapshot: ~Copyable {
    case embedded(EmbeddedSnapshot)
    case memory(MemorySnapshot)

    package var version: CommitVersion {
        switch self {
        case .embedded(let snapshot): snapshot.version
        case .memory(let snapshot): snapshot.version
        }
    }

    @_lifetime(borrow self)
    package borrowing func value(forKey key: RawSpan) throws(StorageError) -> StoredValue? {
        switch self {
        case .embedded(let snapshot): unsafe _overrideLifetime(try snapshot.value(forKey: key), borrowing: self)
        case .memory(let snapshot): unsafe _overrideLifetime(try snapshot.value(forKey: key), borrowing: self)
        }
    }

    @_lifetime(borrow self)
    package borrowing func cursor(
        from lower: RawSpan? = nil, to upper: RawSpan? = nil, direction: ScanDirection = .forward
    ) throws(StorageError) -> EngineCursor {
        switch self {
        case .embedded(let snapshot):
            let cursor = EngineCursor(embedded: try snapshot.cursor(from: lower, to: upper, direction: direction))
            return unsafe _overrideLifetime(cursor, borrowing: self)
        case .memory(let snapshot):
            let cursor = EngineCursor(memory: try snapshot.cursor(from: lower, to: upper, direction: direction))
            return unsafe _overrideLifetime(cursor, borrowing: self)
        }
    }
}

/// A cursor of a ``StorageEngine``; see ``KeyValueCursor``. It holds one of the two: an enum would have to move its
/// payload out and in again at each step.
@safe
package struct EngineCursor: ~Copyable, ~Escapable {
    private var embedded: EmbeddedCursor?
    private var memory: MemoryCursor?
    /// Where the cursor that is held stands: a borrowed optional cannot be looked into.
    private var entry = unsafe CursorEntry.none

    @_lifetime(copy embedded)
    init(embedded: consuming EmbeddedCursor) {
        self.embedded = consume embedded
        memory = nil
    }

    @_lifetime(copy memory)
    init(memory: consuming MemoryCursor) {
        embedded = nil
        self.memory = consume memory
    }

    /// See ``KeyValueCursor/next()``.
    @_lifetime(self: copy self)
    package mutating func next() throws(StorageError) -> Bool {
        var deletions = Int.max
        return try next(passing: &deletions)
    }

    /// The same, and false at a deleted entry when `deletions`, at least 1, has come to 0: `key` is that of the entry
    /// then.
    @_lifetime(self: copy self)
    package mutating func next(passing deletions: inout Int) throws(StorageError) -> Bool {
        if memory == nil { return unsafe try embedded!.next(passing: &deletions, &entry) }
        return unsafe try memory!.next(passing: &deletions, &entry)
    }

    /// See ``KeyValueCursor/seek(to:)``.
    @_lifetime(self: copy self)
    package mutating func seek(to key: RawSpan) throws(StorageError) {
        if memory == nil { return try embedded!.seek(to: key) }
        try memory!.seek(to: key)
    }

    package var key: RawSpan {
        @_lifetime(borrow self)
        borrowing get { unsafe _overrideLifetime(RawSpan(_unsafeBytes: entry.key), borrowing: self) }
    }

    package var value: RawSpan {
        @_lifetime(borrow self)
        borrowing get { unsafe _overrideLifetime(RawSpan(_unsafeBytes: entry.value), borrowing: self) }
    }

    package var version: CommitVersion { unsafe CommitVersion(microseconds: entry.version) }
}
