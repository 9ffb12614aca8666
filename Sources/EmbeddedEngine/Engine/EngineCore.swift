internal import Basics
internal import CommitLog
internal import FileSystem
internal import Storage
internal import Synchronization

/// The state that the parts of an engine share: the runs, the memtables, the log segments, and the progress.
///
///     thread       does                                                               waits for
///     ──────       ────                                                               ─────────
///     commit       stages into the active memtable, seals groups (`EmbeddedWriter`)   room in the memtable; the log
///     log          writes and syncs one group at a time, publishes it                 a group
///     checkpoint   freezes the memtable when idle, checkpoints, raises the horizon    a frozen memtable; time
///     merge        merges runs (`MergeThread`)                                        runs to merge
///     segments     prepares log segments                                              a need for one
///     pages        read pages for reads that wait (`PageFetcher`)                     the disk
///     any          reads (`EmbeddedReader`)                                           nothing
///
/// Progress, lowest first; each value only grows:
///
///     horizon  ≤  checkpoint  ≤  published  ≤  staged
///     │           │              └ durable in the log, visible to snapshots
///     │           └ in the runs; the log before it is not needed
///     └ history superseded up to here may be removed; snapshots below it are refused
final class EngineCore: Sendable {
    /// State that the commit thread and the checkpoint thread share.
    struct Progress {
        /// Commits are staged that are not sealed: the active memtable must stay what it is.
        var isGroupOpen = false
        /// The memtable that is being written to a run.
        var frozen: Memtable?
        /// The active memtable has the memory of an earlier one.
        var isActiveRecycled = false
        /// Checkpoints asked for, and the last request that is satisfied; `covering` is satisfied by the one under way.
        var requested: UInt64 = 0
        var covering: UInt64 = 0
        var satisfied: UInt64 = 0
        /// Sweeps of history asked for, and the last request that is satisfied.
        var sweepsRequested: UInt64 = 0
        var sweepsDone: UInt64 = 0
        /// Why the last checkpoint did not succeed; it is tried again. Often the disk is full.
        var writeFailure: StorageError?
        /// Why nothing can be promised any more.
        var failure: StorageError?
        var isClosed = false
        var isCheckpointThreadEnded = false
        var lastSealNanoseconds: UInt64 = 0
    }

    let directory: String
    let options: EngineOptions
    let latestOnly: LatestOnlySpaces
    /// `Manifest.hashSeed`.
    let hashSeed: UInt64
    let runs: RunStore
    /// Reads pages for reads that wait.
    let pages: PageFetcher
    let registry: MemtableRegistry
    let log: WriteAheadLog
    let fault: FaultInjection
    let progress: Monitor<Progress>
    /// What the merge thread is asked to do.
    let merging = Monitor(MergeRequests())
    /// The exclusive lock of the directory, held until no snapshot is open.
    let lock: File
    let place: LockedPlace
    /// All readers.
    let readers = Monitor<[ObjectIdentifier: RegisteredReader]>([:])

    let published: Atomic<UInt64>
    let checkpoint: Atomic<UInt64>
    let horizon: Atomic<UInt64>
    /// The number of runs, for the pace of commits.
    let runCount: Atomic<Int>
    let isClosed = Atomic<Bool>(false)
    let hasFailed = Atomic<Bool>(false)
    /// The checkpoint thread waits for a group to be published.
    let isPublishAwaited = Atomic<Bool>(false)

    let counters = EngineCounters()
    let scrubber = Scrubber()
    /// The last attempt of a checkpoint or a merge that failed although there was space.
    private let lastFailure = Mutex<(error: StorageError, nanoseconds: UInt64)?>(nil)

    init(
        directory: String, options: EngineOptions, runs: RunStore, lock: File
    ) throws(StorageError) {
        self.directory = directory
        self.options = options
        latestOnly = LatestOnlySpaces(options.latestOnlySpaces)
        self.runs = runs
        pages = PageFetcher(runs, options)
        let set = runs.current
        hashSeed = set.manifest.hashSeed
        registry = MemtableRegistry(active: try EngineCore.makeMemtable(options, hashSeed: hashSeed), runs: set)
        place = LockedPlace(lock)
        log = WriteAheadLog(directory: directory + "/log", options: options, place: place)
        self.lock = lock
        fault = FaultInjection(fault: options.fault)
        progress = Monitor(Progress())
        published = Atomic(set.manifest.checkpoint.microseconds)
        checkpoint = Atomic(set.manifest.checkpoint.microseconds)
        horizon = Atomic(set.manifest.horizon.microseconds)
        runCount = Atomic(set.view.count)
    }

    /// - Throws: `refused` if the directory is only read.
    func checkWritable() throws(StorageError) {
        if options.isReadOnly { throw StorageError(.refused, "the directory is only read", file: directory) }
    }

    /// A new memtable, with room for a group beyond its bound.
    static func makeMemtable(_ options: EngineOptions, hashSeed: UInt64) throws(StorageError) -> Memtable {
        // An entry takes a hundred bytes and more.
        try Memtable(
            reservedBytes: EngineOptions.memtableGrowthMax * options.memtableBytesMax + 2 * EngineLimits.groupBytesMax,
            filterBytes: options.memtableBytesMax / 32, hashSeed: hashSeed, scannedSpaces: options.scannedSpaces)
    }

    /// The outcome of a group: makes it visible, or ends all promises.
    func groupFinished(_ version: CommitVersion, _ failure: StorageError?) {
        yieldPoint()
        if let failure { return fail(failure) }
        published.store(version.microseconds, ordering: .sequentiallyConsistent)
        counters.groupsSynced.add(1, ordering: .relaxed)
        // The checkpoint thread sets the flag before it looks at `published`, so one of us sees the other.
        if isPublishAwaited.load(ordering: .sequentiallyConsistent) { progress.wake() }
    }

    /// Size at which a memtable takes no more commits, if the one before is not in a run yet.
    var memtableGrowthBytesMax: Int { EngineOptions.memtableGrowthMax * options.memtableBytesMax }

    /// The disk is nearly full: a checkpoint should not wait until the memtable is, as it gives segments of the log
    /// back.
    var isSpacePressed: Bool { runs.space.isPressed || log.error != nil }

    /// Looks whether there is space for what the memtables hold, after commits were refused.
    func recheckSpace() {
        let held = progress.withLock { progress in
            registry.viewForUpdate.active.runBytesMax + (progress.frozen?.runBytesMax ?? 0)
        }
        runs.space.recheck(heldBytes: held)
    }

    /// How long commits wait for merges after a group of so many bytes. It grows with the number of runs: the writer is
    /// slowed to 60 MB/s with eight more than usual, and to 4 MB/s with a hundred more.
    func paceNanoseconds(bytes: Int) -> UInt64 {
        let excess = runCount.load(ordering: .relaxed) - options.runsUsual
        guard excess > 0 else { return 0 }
        let nanosecondsPerByte = 2 * excess + excess * excess / 64
        return min(UInt64(bytes * nanosecondsPerByte), 100_000_000)
    }

    /// Notes what merges may need for the moment, and looks whether there is space for commits.
    func settleSpace() {
        // Files of the inputs that are not read to their ends yet, and the output.
        let files = (MergePolicy.runsPerLevel + 2) * runFileBytes
        runs.space.setMergeBytes(min(runs.current.manifest.byteCount, files))
        recheckSpace()
    }

    /// Size at which a file of a run is closed: a 64th of the data, so that merges of few data need little space.
    var runFileBytes: Int {
        min(options.runFileBytesMax, max(1 << 20, runs.current.manifest.byteCount / 64))
    }

    /// Notes that an attempt of a checkpoint or a merge failed, which will be tried again.
    func noteFailedAttempt(_ error: StorageError) {
        counters.failedAttempts.add(1, ordering: .relaxed)
        if error.code == .full { return }
        lastFailure.withLock { $0 = (error, SystemClock.monotonicNanoseconds()) }
    }

    /// Why an attempt of a checkpoint or a merge failed in the last two seconds, if space was not missing.
    var recentFailure: StorageError? {
        let last = lastFailure.withLock { $0 }
        guard let last, SystemClock.monotonicNanoseconds() < last.nanoseconds + 2_000_000_000 else { return nil }
        return last.error
    }

    /// Records the first failure; from now on nothing is promised.
    func fail(_ error: StorageError) {
        hasFailed.store(true, ordering: .releasing)
        progress.update { progress in
            if progress.failure == nil { progress.failure = error }
        }
    }

    /// Freezes the active memtable for the next checkpoint, if there is something in it and nothing is frozen.
    /// Call under the lock of `progress`, when no group is open, and wake the others afterwards.
    func freeze(_ progress: inout Progress) throws(StorageError) {
        let active = registry.viewForUpdate.active
        guard progress.frozen == nil, !progress.isGroupOpen, !active.isEmpty else { return }
        let spare = registry.takeSpare()
        let fresh = if let spare { spare } else { try EngineCore.makeMemtable(options, hashSeed: hashSeed) }
        progress.isActiveRecycled = spare != nil
        progress.frozen = active
        progress.covering = progress.requested
        registry.show(active: fresh, frozen: active, retiring: nil, runs: runs.current)
    }

    /// Replaces an empty active memtable that has the memory of an earlier one. Call under the lock of `progress`.
    /// - Returns: whether memory waits for readers to leave it.
    func releaseRecycled(_ progress: inout Progress) -> Bool {
        let active = registry.viewForUpdate.active
        guard progress.isActiveRecycled, progress.frozen == nil, !progress.isGroupOpen, active.isEmpty,
            let fresh = try? EngineCore.makeMemtable(options, hashSeed: hashSeed)
        else { return false }
        progress.isActiveRecycled = false
        registry.show(active: fresh, frozen: nil, retiring: active, runs: runs.current)
        return true
    }

    /// Shows readers the runs as they are now. Call under the lock of `progress`.
    /// - Parameter written: the frozen memtable, if the runs have all of it.
    func showRuns(_ progress: inout Progress, written: Memtable? = nil) {
        let view = registry.viewForUpdate
        let set = runs.current
        if written != nil { progress.frozen = nil }
        registry.show(
            active: view.active, frozen: written == nil ? view.frozen : nil, retiring: written, runs: set)
        runCount.store(set.view.count, ordering: .relaxed)
    }
}

/// Counts for `EngineStatistics`.
final class EngineCounters: Sendable {
    let groupsSynced = Atomic<UInt64>(0)
    let logBytesWritten = Atomic<UInt64>(0)
    let checkpoints = Atomic<UInt64>(0)
    let failedAttempts = Atomic<UInt64>(0)
    let checkpointEntries = Atomic<UInt64>(0)
    let checkpointNanoseconds = Atomic<UInt64>(0)
    let writerStalls = Atomic<UInt64>(0)
    let historyEntriesSwept = Atomic<UInt64>(0)
    let merges = Atomic<UInt64>(0)
    let mergedEntries = Atomic<UInt64>(0)
    let mergeNanoseconds = Atomic<UInt64>(0)
    /// Bytes of files written, by the level of their run; the last one has all higher levels.
    let runBytesWritten = InlineArray<8, Atomic<UInt64>> { _ in Atomic(0) }
    /// Time for which commits were slowed because merges lag.
    let paceNanoseconds = Atomic<UInt64>(0)

    func addRunBytes(_ bytes: Int, level: UInt64) {
        runBytesWritten[Int(min(level, 7))].add(UInt64(bytes), ordering: .relaxed)
    }
}
