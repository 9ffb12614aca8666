internal import Basics
internal import Synchronization

/// An overlay that is being written to the tree.
struct FrozenOverlay: Sendable {
    let overlay: Overlay
    /// The log from this segment on holds all commits after the overlay's.
    let nextSegment: UInt64
}

/// The state that the parts of an engine share: the tree, the memtables, the log segments, and the progress.
///
///     thread       does                                                                  waits for
///     ──────       ────                                                                  ─────────
///     commit       stages into the active memtable, seals groups (`EmbeddedWriter`)        room in the memtable; the log
///     log          writes and syncs one group at a time, publishes it                    a group
///     checkpoint   freezes the memtable when idle, checkpoints, removes history          a frozen memtable; time
///     segments     prepares log segments                                                 a need for one
///     any          reads (`EmbeddedReader`)                                                nothing
///
/// Progress, lowest first; each value only grows:
///
///     horizon  ≤  checkpoint  ≤  published  ≤  staged
///     │           │              └ durable in the log, visible to snapshots
///     │           └ in the tree; the log before it is not needed
///     └ history superseded up to here may be removed; snapshots below it are refused
final class EngineCore: Sendable {
    /// What the commit thread and the checkpoint thread tell each other.
    struct Progress {
        /// Commits are staged that are not sealed: the active overlay must stay what it is.
        var isGroupOpen = false
        var frozen: FrozenOverlay?
        /// The segment that the next group goes to, or an earlier one.
        var nextGroupSegment: UInt64 = 0
        /// Checkpoints asked for, and the last request that is satisfied; `covering` is satisfied by the one under way.
        var requested: UInt64 = 0
        var covering: UInt64 = 0
        var satisfied: UInt64 = 0
        /// Sweeps of history asked for, and the last request that is satisfied.
        var sweepsRequested: UInt64 = 0
        var sweepsDone: UInt64 = 0
        /// Why checkpoints cannot continue at present.
        var full: StorageError?
        /// Why nothing can be promised any more.
        var failure: StorageError?
        var isClosed = false
        var isCheckpointThreadEnded = false
        var lastSealNanoseconds: UInt64 = 0
    }

    let directory: String
    let options: EngineOptions
    let latestOnly: LatestOnlySpaces
    let tree: Tree
    let registry: OverlayRegistry
    let pool: SegmentPool
    let fault: FaultInjection
    let progress: Monitor<Progress>
    /// The exclusive lock of the directory, held until the environment is closed.
    let lock: File
    /// All readers, whose tree transactions must end before the environment does.
    let readers = Monitor<[ObjectIdentifier: RegisteredReader]>([:])

    let published: Atomic<UInt64>
    let checkpoint: Atomic<UInt64>
    let horizon: Atomic<UInt64>
    /// Nothing in the tree is newer than this; raised before the tree is.
    let treeNewest: Atomic<UInt64>
    let isClosed = Atomic<Bool>(false)
    let hasFailed = Atomic<Bool>(false)
    /// The checkpoint thread waits for a group to be published.
    let isPublishAwaited = Atomic<Bool>(false)

    let counters = EngineCounters()

    init(
        directory: String, options: EngineOptions, tree: Tree, state: TreeState, lock: File
    ) throws(StorageError) {
        self.directory = directory
        self.options = options
        latestOnly = LatestOnlySpaces(options.latestOnlySpaces)
        self.tree = tree
        registry = OverlayRegistry(active: try EngineCore.makeOverlay(options))
        pool = SegmentPool(directory: directory + "/log", options: options)
        self.lock = lock
        fault = FaultInjection(fault: options.fault)
        progress = Monitor(Progress())
        published = Atomic(state.checkpoint.microseconds)
        checkpoint = Atomic(state.checkpoint.microseconds)
        horizon = Atomic(state.horizon.microseconds)
        treeNewest = Atomic(state.newest.microseconds)
    }

    /// A new overlay, with room for a group beyond its bound.
    static func makeOverlay(_ options: EngineOptions) throws(StorageError) -> Overlay {
        // An entry takes a hundred bytes and more.
        try Overlay(
            reservedBytes: EngineOptions.overlayGrowthMax * options.overlayBytesMax + 2 * EngineLimits.groupBytesMax,
            filterBytes: options.overlayBytesMax / 32)
    }

    /// The outcome of a group: makes it visible, or ends all promises.
    func groupFinished(_ version: CommitVersion, _ failure: StorageError?) {
        if let failure { return fail(failure) }
        published.store(version.microseconds, ordering: .sequentiallyConsistent)
        counters.groupsSynced.add(1, ordering: .relaxed)
        // The checkpoint thread sets the flag before it looks at `published`, so one of us sees the other.
        if isPublishAwaited.load(ordering: .sequentiallyConsistent) { progress.wake() }
    }

    /// The disk is nearly full: a checkpoint should not wait until the overlay is, as it gives segments of the log
    /// back.
    var isSpacePressed: Bool { tree.space.isPressed || pool.error != nil }

    /// Looks whether there is space for what the overlays hold, after commits were refused.
    func recheckSpace() {
        let held = progress.withLock { progress in
            registry.viewForUpdate.active.byteCount + (progress.frozen?.overlay.byteCount ?? 0)
        }
        tree.space.recheck(heldBytes: held)
    }

    /// Records the first failure; from now on nothing is promised.
    func fail(_ error: StorageError) {
        hasFailed.store(true, ordering: .releasing)
        progress.update { progress in
            if progress.failure == nil { progress.failure = error }
        }
    }

    /// Freezes the active overlay for the next checkpoint, if there is something in it and nothing is frozen.
    /// Call under the lock of `progress`, when no group is open, and wake the others afterwards.
    func freeze(_ progress: inout Progress) throws(StorageError) {
        let active = registry.viewForUpdate.active
        guard progress.frozen == nil, !progress.isGroupOpen, !active.isEmpty else { return }
        let fresh = try EngineCore.makeOverlay(options)
        progress.frozen = FrozenOverlay(overlay: active, nextSegment: progress.nextGroupSegment)
        progress.covering = progress.requested
        registry.show(active: fresh, frozen: active, retiring: nil)
    }
}

/// Counts for `EngineStatistics`.
final class EngineCounters: Sendable {
    let groupsSynced = Atomic<UInt64>(0)
    let logBytesWritten = Atomic<UInt64>(0)
    let checkpoints = Atomic<UInt64>(0)
    let checkpointEntries = Atomic<UInt64>(0)
    let checkpointNanoseconds = Atomic<UInt64>(0)
    let writerStalls = Atomic<UInt64>(0)
    let historyEntriesSwept = Atomic<UInt64>(0)
}
