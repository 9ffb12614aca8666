internal import Basics
internal import Synchronization

/// The checkpoint thread: it writes checkpoints, removes history and releases memory, until the engine is closed.
///
/// All write transactions of the tree run here.
final class CheckpointThread {
    private enum Task {
        case checkpoint(FrozenOverlay)
        case sweep
        /// Release the memory of retired memtables.
        case reclaim
        /// Commits are refused because space is short: check whether there is space again.
        case checkSpace
        /// The progress has changed: wake the threads that wait for it.
        case notify
        case stop
    }

    private let core: EngineCore
    private var state: TreeState
    private var sweep: HistorySweep?
    /// The last request for a sweep before the current one began.
    private var sweepCovering: UInt64 = 0
    private var nextSweepNanoseconds: UInt64
    private var retryNanoseconds: UInt64 = 0
    private var nextSpaceCheckNanoseconds: UInt64 = 0
    /// The first time at which the tree was seen with too little space; nil if it has enough.
    private var shortSinceNanoseconds: UInt64?
    /// The end of the last sweep or of the last attempt.
    private var lastSweepNanoseconds: UInt64 = 0
    private var hasMemoryToFree = false
    /// Whether the current checkpoint started because there were no commits.
    private var isIdleCheckpoint = false

    /// Whether space for the tree or the log is missing. Take no lock except that of `progress`.
    private var isSpaceShort: Bool { core.tree.space.isShort || core.pool.error != nil }

    /// Time from a full disk to the next attempt of a checkpoint.
    private static let retryAfterNanoseconds: UInt64 = 200_000_000
    /// History is removed early only if a checkpoint did not make enough space.
    private static let shortBeforeSweepNanoseconds: UInt64 = 1_000_000_000
    private static let reclaimAfterNanoseconds: UInt64 = 10_000_000

    init(_ core: EngineCore, state: TreeState) {
        self.core = core
        self.state = state
        nextSweepNanoseconds = 0
        scheduleSweep()
    }

    /// The body of the thread.
    func run() {
        while true {
            switch nextTask() {
            case .checkpoint(let frozen): checkpoint(frozen)
            case .sweep: continueSweep()
            case .notify: core.progress.wake()
            case .checkSpace: checkSpace()
            case .reclaim: hasMemoryToFree = !core.registry.reclaim()
            case .stop:
                recordCleanShutdown()
                core.progress.update { $0.isCheckpointThreadEnded = true }
                return
            }
        }
    }

    private func nextTask() -> Task {
        while true {
            let now = SystemClock.monotonicNanoseconds()
            if let task = core.progress.wait(untilNanoseconds: now + waitNanoseconds(now), { self.task(&$0) }) {
                return task
            }
            if hasMemoryToFree { return .reclaim }
        }
    }

    /// How long to wait at most for the next task.
    private func waitNanoseconds(_ now: UInt64) -> UInt64 {
        if hasMemoryToFree { return Self.reclaimAfterNanoseconds }
        let idle = core.options.idleCheckpointMicroseconds * 1000
        return min(1_000_000_000, idle > 0 ? max(idle / 4, 1_000_000) : .max, Self.retryAfterNanoseconds * 2)
    }

    /// The next task, or nil; freezes the overlay when it is time. Call it under the lock of `progress`.
    private func task(_ progress: inout EngineCore.Progress) -> Task? {
        let now = SystemClock.monotonicNanoseconds()
        if progress.failure != nil { return progress.isClosed ? .stop : nil }
        if progress.full != nil, progress.frozen == nil, now >= retryNanoseconds {
            // No checkpoint met the full disk, so no checkpoint will notice that there is space again: try now.
            progress.full = nil
            return .notify
        }
        if progress.frozen == nil, !progress.isGroupOpen {
            if core.registry.viewForUpdate.active.isEmpty {
                if progress.satisfied < progress.requested {
                    progress.satisfied = progress.requested
                    return .notify
                }
                if progress.isClosed { return .stop }
            } else if progress.isClosed || progress.requested > progress.satisfied || isIdle(progress, now)
                || isSpaceShort && progress.full == nil && now >= nextSpaceCheckNanoseconds
            {
                isIdleCheckpoint = isIdle(progress, now)
                nextSpaceCheckNanoseconds = now + Self.retryAfterNanoseconds
                do throws(StorageError) {
                    try core.freeze(&progress)
                } catch {
                    retryNanoseconds = now + Self.retryAfterNanoseconds
                    progress.full = error
                    return .notify
                }
            }
        }
        if let frozen = progress.frozen {
            let isPublished = core.published.load(ordering: .acquiring) >= frozen.overlay.versionMax.microseconds
            // Something was staged and never sealed: the log has all that was published, and recovery will read it.
            if progress.isClosed && !isPublished { return .stop }
            if now >= retryNanoseconds { return .checkpoint(frozen) }
            if progress.isClosed { return .stop }
            // The sweep may make room for the checkpoint.
            return isSweepDueForSpace(progress, now) ? .sweep : nil
        }
        if progress.isClosed { return nil }
        if isSpaceShort, now >= nextSpaceCheckNanoseconds { return .checkSpace }
        if isSweepDueForSpace(progress, now) { return .sweep }
        if progress.full != nil { return nil }
        if sweep == nil, progress.sweepsRequested > progress.sweepsDone {
            sweepCovering = progress.sweepsRequested
            return .sweep
        }
        return sweep != nil || now >= nextSweepNanoseconds ? .sweep : nil
    }

    /// While space is short, history is removed earlier.
    private func isSweepDueForSpace(_ progress: EngineCore.Progress, _ now: UInt64) -> Bool {
        guard isTreeShort(progress) else {
            shortSinceNanoseconds = nil
            return false
        }
        let since = shortSinceNanoseconds ?? now
        shortSinceNanoseconds = since
        guard now >= since + Self.shortBeforeSweepNanoseconds else { return false }
        let pause = max(retentionWhenFull / 8, core.options.sweepPauseMicroseconds) * 1000
        return sweep != nil || now >= lastSweepNanoseconds + pause
    }

    /// Removing history makes space in the tree, but not in the log.
    private func isTreeShort(_ progress: EngineCore.Progress) -> Bool {
        progress.full != nil || core.tree.space.isShort
    }

    private var retentionWhenFull: UInt64 {
        min(core.options.retentionMicroseconds, core.options.retentionWhenFullMicroseconds)
    }

    private func isIdle(_ progress: EngineCore.Progress, _ now: UInt64) -> Bool {
        let idle = core.options.idleCheckpointMicroseconds * 1000
        return idle > 0 && now >= progress.lastSealNanoseconds + idle
    }
}

// MARK: - Shutdown

extension CheckpointThread {
    /// If the tree has all commits, the next open does not need the written segments of the log: record this in the
    /// tree.
    private func recordCleanShutdown() {
        let isClean = core.progress.withLock { $0.failure == nil && $0.full == nil && $0.frozen == nil }
        guard isClean, core.registry.viewForUpdate.active.isEmpty, state.newest == state.checkpoint else { return }
        guard core.pool.hasSegments else { return }
        var last = state
        last.firstSegment = core.pool.firstUnwritten
        guard last != state else { return }
        do throws(StorageError) {
            try TreeUpdate.begin(core.tree, horizon: state.horizon).commit(last, fault: core.fault)
        } catch {
            // The next open reads more of the log. Nothing is lost.
            core.progress.update { $0.full = error }
        }
    }
}

// MARK: - Checkpoints

extension CheckpointThread {
    private func checkpoint(_ frozen: FrozenOverlay) {
        guard waitUntilPublished(frozen.overlay.versionMax) else { return }
        let start = SystemClock.monotonicNanoseconds()
        var checkpoint = Checkpoint(core: core, frozen: frozen, state: state)
        do throws(StorageError) {
            try checkpoint.run()
        } catch {
            // Some of its transactions may have been committed.
            state.newest = checkpoint.state.newest
            return handle(error)
        }
        state = checkpoint.state
        core.checkpoint.store(state.checkpoint.microseconds, ordering: .releasing)
        core.counters.checkpoints.add(1, ordering: .relaxed)
        core.counters.checkpointEntries.add(checkpoint.entryCount, ordering: .relaxed)
        core.counters.checkpointNanoseconds.add(SystemClock.monotonicNanoseconds() - start, ordering: .relaxed)
        core.pool.release(before: state.firstSegment)
        if isIdleCheckpoint { core.pool.trim() }
        isIdleCheckpoint = false
        core.progress.update { progress in
            progress.frozen = nil
            progress.full = nil
            progress.satisfied = max(progress.satisfied, progress.covering)
            core.registry.show(active: core.registry.viewForUpdate.active, frozen: nil, retiring: frozen.overlay)
        }
        hasMemoryToFree = !core.registry.reclaim()
        settleSpace()
        if isSpaceShort { core.recheckSpace() }
    }

    /// Waits until everything in a frozen overlay is durable.
    ///
    /// - Returns: false if the engine failed before.
    private func waitUntilPublished(_ version: CommitVersion) -> Bool {
        core.isPublishAwaited.store(true, ordering: .sequentiallyConsistent)
        defer { core.isPublishAwaited.store(false, ordering: .relaxed) }
        return core.progress.wait { progress in
            if core.published.load(ordering: .sequentiallyConsistent) >= version.microseconds { return true }
            return progress.failure != nil ? false : nil
        }
    }

    /// Waits for space if the disk is full; any other error is final. Damage keeps its code, which tells the operator
    /// what to do.
    private func handle(_ error: StorageError) {
        if error.code == .full {
            retryNanoseconds = SystemClock.monotonicNanoseconds() + Self.retryAfterNanoseconds
            core.progress.update { $0.full = error }
        } else if error.code == .corrupt {
            core.fail(error)
        } else {
            core.fail(StorageError(.failed, "the tree cannot be written: \(error.message)", file: error.file))
        }
    }
}

// MARK: - Space

extension CheckpointThread {
    /// Counts the free pages of the changed tree.
    private func settleSpace() {
        // If no reader slot is free, the next call counts.
        try? core.tree.settleSpace()
    }

    /// Accepts commits again if there is space.
    private func checkSpace() {
        nextSpaceCheckNanoseconds = SystemClock.monotonicNanoseconds() + Self.retryAfterNanoseconds
        settleSpace()
        core.recheckSpace()
        core.progress.wake()
    }
}

// MARK: - History

extension CheckpointThread {
    private func continueSweep() {
        let isShort = core.progress.withLock { isTreeShort($0) }
        let retention = isShort ? retentionWhenFull : core.options.retentionMicroseconds
        var current =
            sweep
            ?? {
                let now = core.options.clock()
                let oldest = now > retention ? now - retention : 0
                return HistorySweep(
                    core: core, horizon: min(CommitVersion(microseconds: oldest), state.checkpoint))
            }()
        do throws(StorageError) {
            try current.step(&state)
        } catch {
            sweep = nil
            scheduleSweep()
            return handle(error)
        }
        sweep = current.isFinished ? nil : current
        guard current.isFinished else { return }
        settleSpace()
        scheduleSweep()
        core.progress.update { $0.sweepsDone = max($0.sweepsDone, sweepCovering) }
    }

    /// The next sweep starts after an eighth of the retention, so history exceeds the retention by that much at most.
    private func scheduleSweep() {
        let pause = max(core.options.retentionMicroseconds / 8, core.options.sweepPauseMicroseconds)
        lastSweepNanoseconds = SystemClock.monotonicNanoseconds()
        nextSweepNanoseconds = lastSweepNanoseconds + min(pause, 3_600_000_000) * 1000
    }
}
