internal import Basics
package import CommitLog
package import Storage
internal import Synchronization

/// An open data directory: a write-ahead log for durability, a memtable for recent commits, sorted runs
/// for the rest.
///
///     DIR/FORMAT            the format of the directory; an unknown one is refused
///     DIR/LOCK              locked (flock) by the process that has the directory open
///     DIR/TIMELINE          the time from which the directory's history is its own (``TimelineFile``)
///     DIR/IDENTITY          random digits that no other directory has (``IdentityFile``)
///     DIR/log/….log         segments of the log (`LogFormat`)
///     DIR/runs/MANIFEST     which runs there are (`Manifest`)
///     DIR/runs/….run        files of sorted runs (`RunFormat`)
///
/// - Write: stage → memtable (invisible) and log group → seal → write and sync the group → publish → reply.
/// - Read: the memtables, then the runs, the newest first; the first that has the key at the version is used
/// (``EmbeddedReader``).
/// - Checkpoint: the memtable is frozen, written to a new run, and released; its log segments are recycled
///   (``Checkpoint``).
/// - Merge: runs become fewer and larger ones (``MergePolicy``).
/// - Open: commits in the log after the last checkpoint go into a new memtable (`EmbeddedEngine+Open`).
///
/// docs/storage.md has the complete description. ``EngineCore`` lists the threads.
package final class EmbeddedEngine: KeyValueEngine, KeyValueDisk {
    let core: EngineCore
    package let timelineStart: CommitVersion
    /// That of the directory; nil if it has none yet: it is only read, or its disk is full.
    package let identity: StoreIdentity?
    private let parts: Monitor<Parts>

    /// What is handed out or ended once.
    struct Parts {
        var log: LogAppender?
        /// The writer's reader, which may still be open when the engine closes.
        var latest: EmbeddedLatest?
        var checkpointThread: SystemThread?
        var mergeThread: SystemThread?
        var isClosed = false
    }

    init(
        core: EngineCore, log: LogAppender, checkpointThread: CheckpointThread, mergeThread: MergeThread,
        timelineStart: CommitVersion, identity: StoreIdentity?
    ) throws(StorageError) {
        self.core = core
        self.identity = identity
        self.timelineStart = timelineStart
        parts = Monitor(Parts(log: log))
        if core.options.isReadOnly { return }
        let runner = ThreadBodies(checkpointThread, mergeThread)
        try core.log.startThreads()
        let thread = try SystemThread.start("checkpoint") { runner.checkpointThread.run() }
        let merging = try SystemThread.start("merge") { runner.mergeThread.run() }
        if core.options.scrubMilliseconds > 0 { core.scrubber.start(core) }
        parts.withLock { parts in
            parts.mergeThread = merging
            parts.checkpointThread = thread
        }
    }

    deinit {
        try? close()
    }

    package var directory: String { core.directory }
    package var options: EngineOptions { core.options }
    /// The log, for an archive, which reads records and holds those that it has not taken.
    package var log: WriteAheadLog { core.log }

    /// The one writer.
    /// - Throws: `closed`. Asking twice is a bug of the caller, and traps.
    package func makeWriter() throws(StorageError) -> EmbeddedWriter {
        let log = try parts.withLock { parts throws(StorageError) -> LogAppender in
            if parts.isClosed { throw StorageError(.closed, "the engine is closed") }
            guard let log = parts.log else { preconditionFailure("the writer of an engine is made once") }
            parts.log = nil
            return log
        }
        let writer = EmbeddedWriter(core, log: log)
        parts.withLock { $0.latest = writer.latest }
        return writer
    }

    /// A reader for one thread; make one per event loop and keep it.
    package func makeReader() throws(StorageError) -> EmbeddedReader {
        if core.isClosed.load(ordering: .acquiring) { throw StorageError(.closed, "the engine is closed") }
        return EmbeddedReader(core)
    }

    /// The last version that is durable and visible.
    package var publishedVersion: CommitVersion {
        CommitVersion(microseconds: core.published.load(ordering: .acquiring))
    }

    /// Snapshots below this version are refused. Only ever grows.
    package var oldestReadableVersion: CommitVersion {
        CommitVersion(microseconds: core.horizon.load(ordering: .acquiring))
    }

    /// The durable records after a version, as they are now and as they will be, for one thread. What has been
    /// checkpointed may be missing.
    package func records(after version: CommitVersion) -> LogRecords { core.log.records(after: version) }

    /// Writes everything published so far into runs, and returns when it is there. Waits for an open group to be
    /// sealed, so the commit thread must not call it with something staged.
    /// - Throws: `full` or `inputOutput` if a checkpoint fails, which is tried again; `failed`, `closed`.
    package func checkpointNow() throws(StorageError) {
        try core.checkWritable()
        let request = try core.progress.update { progress throws(StorageError) -> UInt64 in
            if progress.isClosed { throw StorageError(.closed, "the engine is closed") }
            progress.requested += 1
            return progress.requested
        }
        try waitForCheckpoint(request)
    }

    private func waitForCheckpoint(_ request: UInt64) throws(StorageError) {
        try core.progress.wait { progress throws(StorageError) -> Void? in
            if progress.satisfied >= request { return () }
            if let failure = progress.failure { throw failure }
            if let writeFailure = progress.writeFailure { throw writeFailure }
            if progress.isCheckpointThreadEnded { throw StorageError(.closed, "the engine is closed") }
            return nil
        }
    }

    /// Removes all history that has become too old by the engine's clock, and returns when it is gone: merges all runs.
    /// It also happens by itself.
    /// - Throws: `full`, `failed`, `closed`.
    package func sweepHistoryNow() throws(StorageError) {
        try core.checkWritable()
        let request = core.progress.update { progress in
            progress.sweepsRequested += 1
            return progress.sweepsRequested
        }
        try core.progress.wait { progress throws(StorageError) -> Void? in
            if progress.sweepsDone >= request { return () }
            if let failure = progress.failure { throw failure }
            if let writeFailure = progress.writeFailure ?? core.merging.withLock({ $0.writeFailure }) {
                throw writeFailure
            }
            if progress.isClosed { throw StorageError(.closed, "the engine is closed") }
            return nil
        }
    }

    /// Ends all activity; what is published goes to runs, so that the next open is quick. A group that is being
    /// synced is waited for; what is staged and not sealed is lost. Calling it again does nothing.
    ///
    /// No other thread may be using the writer. Snapshots should be closed: while one is open the lock and the files
    /// stay with it.
    /// - Throws: `full`, `inputOutput` or `failed` when the last checkpoint did not succeed. The engine is closed all
    ///   the same, and the log keeps what is not in runs.
    package func close() throws(StorageError) {
        let threads = parts.withLock { parts -> Parts? in
            if parts.isClosed { return nil }
            parts.isClosed = true
            return parts
        }
        guard let threads else { return }
        core.log.waitUntilIdle()
        threads.latest?.finish()
        core.progress.update { progress in
            progress.isGroupOpen = false
            progress.isClosed = true
        }
        core.merging.update { $0.isStopping = true }
        threads.mergeThread?.join()
        threads.checkpointThread?.join()
        core.scrubber.stop()
        core.log.close()
        core.pages.close()
        core.isClosed.store(true, ordering: .sequentiallyConsistent)
        core.endReaders()
        if core.options.isReadOnly { return }
        let (failure, writeFailure) = core.progress.withLock { ($0.failure, $0.writeFailure) }
        if let error = failure ?? writeFailure { throw error }
        core.runs.space.shrink()
    }
}

/// Passes two threads their states.
private final class ThreadBodies: @unchecked Sendable {  // Made before the threads; each uses its own alone.
    let checkpointThread: CheckpointThread
    let mergeThread: MergeThread

    init(_ checkpointThread: CheckpointThread, _ mergeThread: MergeThread) {
        self.checkpointThread = checkpointThread
        self.mergeThread = mergeThread
    }
}

extension EmbeddedEngine {
    /// Releases the lock of a closed engine if the last snapshot is closed.
    ///
    /// - Returns: whether the directory can be opened again.
    package func releaseDirectory() -> Bool { core.endReaders() }
}

extension EngineCore {
    /// Releases the lock, unless a snapshot is still open; then it goes with the last reader.
    /// - Returns: whether it is released.
    @discardableResult
    func endReaders() -> Bool {
        let isInUse = readers.withLock { readers in
            // A reader that is going waits for this lock in its deinit: it is still whole.
            let all = unsafe readers.values.map { unsafe $0.reader }
            return unsafe all.contains { unsafe $0._withUnsafeGuaranteedRef { $0.isInUse } }
        }
        if !isInUse { lock.unlock() }
        return !isInUse
    }
}
