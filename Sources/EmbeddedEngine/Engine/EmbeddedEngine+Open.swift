// Opening a directory: lock it, check its format, open the runs, replay the log after their checkpoint.

internal import Basics
internal import CommitLog
internal import FileSystem
internal import Glibc
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
        if options.isReadOnly {
            try DirectoryFormat.check(directory)
        } else {
            try DirectoryFormat.openOrCreate(directory)
        }
        let runs = try RunStore(
            directory: directory + "/runs", byteCountMax: options.runBytesMax,
            memtableBytesMax: options.memtableBytesMax,
            reserveBytes: options.diskReserveBytes - options.logReserveBytes, isReadOnly: options.isReadOnly,
            fault: fault)
        try checkSpaces(runs.current, options)
        if options.isReadOnly, runs.current.manifest.areEntriesDropped {
            throw StorageError(.corrupt, "the index entries were dropped, and are not made again yet", file: directory)
        }
        let core = try EngineCore(directory: directory, options: options, runs: runs, lock: lock)
        let opening = Opening(core)
        let log = try opening.recoverLog(replay)
        core.settleSpace()
        let start = try TimelineFile.start(
            in: directory, now: options.clock(), creates: options.beginsTimeline && !options.isReadOnly)
        return try EmbeddedEngine(
            core: core, log: log, checkpointThread: CheckpointThread(core), mergeThread: MergeThread(core),
            timelineStart: start)
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
    func recoverLog(_ replay: EngineReplay<EmbeddedLatest>) throws -> LogWriter {
        let directory = core.directory + "/log"
        let isReadOnly = core.options.isReadOnly
        if !isReadOnly {
            try Directory.create(directory)
            // The last segment may be of a process that was killed before its name was durable.
            try Directory.sync(directory)
            try Self.removeUnfinished(in: directory)
        }
        var log = unsafe try LogRecovery.read(
            directory: directory, firstSegment: manifest.firstSegment, checkpoint: manifest.checkpoint,
            isReadOnly: isReadOnly
        ) { version, record in
            unsafe try self.replay(version, record, replay)
        }
        latest.finish()
        collected.settle(into: core.registry.viewForUpdate.active)
        if !isReadOnly { try prepareEnd(of: &log) }
        let end = log.segments.isEmpty ? nil : log.segments[log.endSegmentIndex]
        core.pool.adopt(log)
        core.progress.withLock { progress in
            progress.nextGroupSegment = end?.sequence ?? log.highestSequence + 1
            progress.lastSealNanoseconds = SystemClock.monotonicNanoseconds()
        }
        core.published.store(log.lastVersion.microseconds, ordering: .releasing)
        return unsafe log.tail.withUnsafeBytes { tail in
            unsafe LogWriter(
                pool: core.pool, segment: end, offset: log.endOffset, tail: tail, lastVersion: log.lastVersion,
                isDiscarding: isReadOnly)
        }
    }

    /// Prepares the end of the log for writing.
    private func prepareEnd(of log: inout RecoveredLog) throws(StorageError) {
        if log.segments.isEmpty {
            try prepareFirstSegment(&log)
        } else {
            try log.repairEnd()
        }
        if manifest.firstSegment == 0, let first = log.segments.first { try noteFirstSegment(first.sequence) }
    }

    /// Gives a new directory or a backup its first segment, and notes it in the manifest. On a full disk that is left
    /// for later: the engine opens without, for reading.
    private func prepareFirstSegment(_ log: inout RecoveredLog) throws(StorageError) {
        do throws(StorageError) {
            let segment = try LogSegment.prepare(
                sequence: log.highestSequence + 1, byteCount: core.options.logSegmentBytes, recycling: nil,
                in: core.directory + "/log", fault: core.fault)
            log.highestSequence += 1
            log.segments = [segment]
        } catch {
            if error.code != .full { throw error }
        }
    }

    /// Writes down where the log of a new directory or of a backup begins: from now on a missing segment is damage.
    private func noteFirstSegment(_ sequence: UInt64) throws(StorageError) {
        do throws(StorageError) {
            try core.runs.change(.openRuns) { $0.firstSegment = sequence }
            core.progress.update { core.showRuns(&$0) }
        } catch {
            // On a full disk the first checkpoint writes it.
            if error.code != .full { throw error }
        }
    }

    /// Segments that were being prepared when the process ended.
    private static func removeUnfinished(in directory: String) throws(StorageError) {
        for name in try Directory.names(in: directory) where name.hasSuffix(".prepare") {
            try Directory.removeFile(directory + "/" + name)
        }
    }

    private func replay(
        _ version: CommitVersion, _ record: UnsafeRawBufferPointer, _ replay: EngineReplay<EmbeddedLatest>
    ) throws {
        batch.removeAll()
        try replay(version, unsafe RawSpan(_unsafeBytes: record), &batch, latest)
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
        let full = try core.progress.withLock { progress throws(StorageError) -> FrozenMemtable? in
            progress.nextGroupSegment = manifest.firstSegment
            try core.freeze(&progress)
            return progress.frozen
        }
        guard let full else { return }
        if core.options.isReadOnly { throw StorageError(.full, "the directory is only read", file: core.directory) }
        var checkpoint = Checkpoint(core: core, frozen: full)
        try checkpoint.run()
        core.settleSpace()
        core.checkpoint.store(manifest.checkpoint.microseconds, ordering: .releasing)
        core.progress.withLock { core.showRuns(&$0, written: full.memtable) }
    }
}
