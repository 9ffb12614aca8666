// Opening a directory: lock it, check its format, open the runs, replay the log after their checkpoint.

internal import Basics
internal import CommitLog
internal import FileSystem
package import Storage

extension EmbeddedEngine {
    /// Opens a directory, creating it if need be, and recovers what its log holds.
    ///
    /// - Throws: `StorageError` (`locked`, `unsupportedFormat`, `corrupt`, `inputOutput`, `full`), or what `replay`
    ///   throws.
    package static func open(
        directory: String, options: EngineOptions = EngineOptions(), replay: EngineReplay<EmbeddedLatest>
    ) throws -> EmbeddedEngine {
        let lock = try DirectoryFormat.lock(directory, isReadOnly: options.isReadOnly)
        let fault = FaultInjection(fault: options.fault)
        let format = options.formatPlanted ?? DirectoryFormat.current
        if options.isReadOnly {
            try DirectoryFormat.check(directory, format: format)
        } else {
            try DirectoryFormat.openOrCreate(directory, format: format)
        }
        let runs = try RunStore(
            directory: directory + "/runs", byteCountMax: options.runBytesMax,
            memtableBytesMax: options.memtableBytesMax,
            reserveBytes: options.diskReserveBytes - options.logReserveBytes, isReadOnly: options.isReadOnly,
            place: LockedPlace(lock), fault: fault)
        try checkSpaces(runs.current, options)
        if options.isReadOnly, runs.current.manifest.areEntriesDropped {
            throw StorageError(.corrupt, "the index entries were dropped, and are not made again yet", file: directory)
        }
        let core = try EngineCore(directory: directory, options: options, runs: runs, lock: lock)
        let opening = Opening(core)
        let log = try opening.recoverLog(replay)
        core.settleSpace()
        // The clock may be late: times up to the last commit belong to the history of the original.
        let now = max(options.clock(), core.published.load(ordering: .acquiring))
        let start = try TimelineFile.start(
            in: directory, now: now, creates: options.beginsTimeline && !options.isReadOnly)
        let identity = try IdentityFile.identity(
            in: directory, creates: options.beginsTimeline && !options.isReadOnly)
        return try EmbeddedEngine(
            core: core, log: log, checkpointThread: CheckpointThread(core), mergeThread: MergeThread(core),
            timelineStart: start, identity: identity)
    }

    /// - Throws: `unsupportedFormat` if other spaces had history when the documents were written: the keys would be
    ///   misread.
    private static func checkSpaces(_ set: RunSet, _ options: EngineOptions) throws(StorageError) {
        let spaces = LatestOnlySpaces(options.latestOnlySpaces).ofDocuments
        for file in set.files.joined() {
            if let documents = file.footer.documents, documents.latestOnlySpaces != spaces {
                throw StorageError(.unsupportedFormat, "the documents have history in other spaces", file: file.path)
            }
        }
    }
}

/// An engine on its way to being open. Replay goes into memtables like commits do, with checkpoints in between when
/// there is much.
///
/// On a full disk a checkpoint may fail. The memtables then hold what they held before the crash: one frozen and one
/// active, each up to `EngineOptions.memtableGrowthMax` times its bound. The checkpoint thread continues the checkpoint
/// when the engine is open.
private final class Opening {
    private let core: EngineCore
    private let latest: EmbeddedLatest
    private let collected: CollectedEntries
    private var batch = MutationBatch()

    init(_ core: EngineCore) {
        self.core = core
        collected = CollectedEntries(batchEntriesMin: core.options.batchEntriesMin)
        latest = EmbeddedLatest(core, version: .maximum, collected: collected)
    }

    private var manifest: Manifest { core.runs.current.manifest }

    /// Replays the log and prepares its end for writing.
    func recoverLog(_ replay: EngineReplay<EmbeddedLatest>) throws -> LogAppender {
        let (core, manifest) = (core, manifest)
        let log = try core.log.recover(
            from: manifest.logStart, after: manifest.checkpoint, finished: { core.groupFinished($0, $1) }
        ) { version, record in
            try self.replay(version, record, replay)
        }
        latest.finish()
        collected.settle(into: core.registry.viewForUpdate.active)
        if !core.options.isReadOnly, manifest.logStart.segment == 0, let start = core.log.start { try noteStart(start) }
        core.progress.withLock { $0.lastSealNanoseconds = SystemClock.monotonicNanoseconds() }
        core.published.store(log.lastVersion.microseconds, ordering: .releasing)
        return log
    }

    /// Writes down where the log of a new directory or of a backup begins: from now on a missing segment is damage.
    private func noteStart(_ start: LogPosition) throws(StorageError) {
        do throws(StorageError) {
            try core.runs.change(.openRuns) { $0.logStart = start }
            core.progress.update { core.showRuns(&$0) }
        } catch {
            // On a full disk the first checkpoint writes it.
            if error.code != .full { throw error }
        }
    }

    private func replay(
        _ version: CommitVersion, _ record: RawSpan, _ replay: EngineReplay<EmbeddedLatest>
    ) throws {
        batch.removeAll()
        try replay(version, record, &batch, latest)
        let memtable = core.registry.viewForUpdate.active
        let needed = Memtable.bytesNeeded(count: batch.count, bytes: batch.byteCount)
        guard needed <= EngineLimits.groupBytesMax else {
            throw StorageError(.valueTooLong, "replay of commit \(version) gives \(needed) bytes of mutations")
        }
        guard collected.bytesNeeded + needed <= memtable.bytesFree else {
            throw StorageError(
                .full, "the disk is full or only read, and the log has more commits than fit into memory",
                file: core.directory)
        }
        batch.insert(into: memtable, version: version, collecting: collected)
        core.published.store(version.microseconds, ordering: .releasing)
        if memtable.byteCount >= (isFull ? EngineOptions.memtableGrowthMax : 1) * core.options.memtableBytesMax {
            collected.settle(into: memtable)
            try makeRoom()
        }
    }

    /// The disk is full: the frozen memtable stays, or the next one will.
    private var isFull = false

    /// Writes the memtable to a run. On a full disk it is frozen instead, once, when it has grown to its limit.
    private func makeRoom() throws(StorageError) {
        let (memtable, hasFrozen) = core.progress.withLock { (core.registry.viewForUpdate.active, $0.frozen != nil) }
        if hasFrozen { return }
        do throws(StorageError) {
            if !isFull {
                try core.runs.space.admit(heldBytes: memtable.runBytesMax, mayUseReserve: true, isFinal: true)
            }
            try checkpoint()
        } catch {
            guard error.code == .full else { throw error }
            isFull = true
            core.progress.withLock { $0.writeFailure = error }
        }
    }

    /// Writes the memtable to a run. The log stays as it is: it is still being read.
    private func checkpoint() throws(StorageError) {
        latest.finish()
        let full = try core.progress.withLock { progress throws(StorageError) -> Memtable? in
            try core.freeze(&progress)
            return progress.frozen
        }
        guard let full else { return }
        if core.options.isReadOnly { throw StorageError(.full, "the directory is only read", file: core.directory) }
        var checkpoint = Checkpoint(core: core, memtable: full)
        try checkpoint.run(logStart: manifest.logStart)
        core.settleSpace()
        core.checkpoint.store(manifest.checkpoint.microseconds, ordering: .releasing)
        core.progress.withLock { core.showRuns(&$0, written: full) }
    }
}
