internal import Basics
internal import CommitLog
internal import Storage
internal import Synchronization

/// The checkpoint thread: it writes checkpoints, raises the horizon of history and releases memory, until the engine is
/// closed.
final class CheckpointThread {
    private enum Task {
        case checkpoint(Memtable)
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
    /// The last request for a sweep that was begun, and the merge of everything that ends it.
    private var sweep: (request: UInt64, merge: UInt64)?
    private var nextSweepNanoseconds: UInt64
    private var historyAge: HistoryAge
    private var retry: RetryPause
    /// Whether the attempt at the end was made.
    private var hasTriedToClose = false
    private var nextSpaceCheckNanoseconds: UInt64 = 0
    /// The first time at which there was too little space for runs; nil if there is enough.
    private var shortSinceNanoseconds: UInt64?
    /// The end of the last sweep or of the last attempt.
    private var lastSweepNanoseconds: UInt64 = 0
    private var hasMemoryToFree = false
    /// Until when the memory of a released memtable is kept for the next one.
    private var memoryKeptUntilNanoseconds: UInt64 = 0
    /// Whether the current checkpoint started because there were no commits.
    private var isIdleCheckpoint = false

    /// Whether space for the runs or the log is missing. Take no lock except that of `progress`.
    private var isSpaceShort: Bool { core.runs.space.isShort || core.log.error != nil }

    /// Time between two looks whether there is space.
    private static let retryAfterNanoseconds: UInt64 = 200_000_000
    /// History is removed early only if a checkpoint did not make enough space.
    private static let shortBeforeSweepNanoseconds: UInt64 = 1_000_000_000
    private static let reclaimAfterNanoseconds: UInt64 = 10_000_000

    init(_ core: EngineCore) {
        self.core = core
        retry = RetryPause(core.options)
        historyAge = HistoryAge(retentionMicroseconds: core.options.retentionMicroseconds)
        nextSweepNanoseconds = 0
        scheduleSweep()
    }

    /// The body of the thread.
    func run() {
        while true {
            switch nextTask() {
            case .checkpoint(let frozen): checkpoint(frozen)
            case .sweep: beginSweep()
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

    /// The next task, or nil; freezes the memtable when it is time. Call it under the lock of `progress`.
    private func task(_ progress: inout EngineCore.Progress) -> Task? {
        let now = SystemClock.monotonicNanoseconds()
        if progress.failure != nil { return progress.isClosed ? .stop : nil }
        if finishSweep(&progress) { return .notify }
        if progress.writeFailure != nil, progress.frozen == nil, now >= retry.endNanoseconds {
            // No checkpoint met the obstacle, so no checkpoint will notice that it has gone: try now.
            progress.writeFailure = nil
            return .notify
        }
        if progress.frozen == nil, !progress.isGroupOpen {
            if core.registry.viewForUpdate.active.isEmpty {
                if now >= memoryKeptUntilNanoseconds {
                    core.registry.keepSpare(false)
                    if core.releaseRecycled(&progress) { hasMemoryToFree = true }
                }
                if progress.satisfied < progress.requested {
                    progress.satisfied = progress.requested
                    return .notify
                }
                if progress.isClosed { return .stop }
            } else if isFreezeDue(progress, now) {
                isIdleCheckpoint = isIdle(progress, now)
                // Else the memory that is kept would become the active memtable's, which few commits follow.
                if now >= memoryKeptUntilNanoseconds { core.registry.keepSpare(false) }
                nextSpaceCheckNanoseconds = now + Self.retryAfterNanoseconds
                do throws(StorageError) {
                    try core.freeze(&progress)
                } catch {
                    retry.noteFailure(error)
                    progress.writeFailure = error
                    // The log has what the memtable has.
                    return progress.isClosed ? .stop : .notify
                }
            }
        }
        if let frozen = progress.frozen {
            let isPublished = core.published.load(ordering: .acquiring) >= frozen.versionMax.microseconds
            // Something was staged and never sealed: the log has all that was published, and recovery will read it.
            if progress.isClosed && !isPublished { return .stop }
            if now >= retry.endNanoseconds { return .checkpoint(frozen) }
            if progress.isClosed {
                if hasTriedToClose { return .stop }
                hasTriedToClose = true
                return .checkpoint(frozen)
            }
            // The sweep may make room for the checkpoint.
            return isSweepDueForSpace(progress, now) ? .sweep : nil
        }
        if progress.isClosed { return nil }
        if isSpaceShort, now >= nextSpaceCheckNanoseconds { return .checkSpace }
        if isSweepDueForSpace(progress, now) { return .sweep }
        if progress.writeFailure != nil { return nil }
        let isSweepRequested = progress.sweepsRequested > (sweep?.request ?? progress.sweepsDone)
        return isSweepRequested || now >= nextSweepNanoseconds ? .sweep : nil
    }

    /// Whether the active memtable is to be written, which is not empty. One that could not be frozen waits, except for
    /// the last attempt.
    private func isFreezeDue(_ progress: EngineCore.Progress, _ now: UInt64) -> Bool {
        if progress.isClosed { return true }
        if now < retry.endNanoseconds { return false }
        return progress.requested > progress.satisfied || isIdle(progress, now)
            || isSpaceShort && progress.writeFailure == nil && now >= nextSpaceCheckNanoseconds
    }

    /// While space is short, history is removed earlier.
    private func isSweepDueForSpace(_ progress: EngineCore.Progress, _ now: UInt64) -> Bool {
        guard isRunSpaceShort(progress) else {
            shortSinceNanoseconds = nil
            return false
        }
        let since = shortSinceNanoseconds ?? now
        shortSinceNanoseconds = since
        guard now >= since + Self.shortBeforeSweepNanoseconds else { return false }
        let pause = max(retentionWhenFull / 8, core.options.sweepPauseMicroseconds) * 1000
        return now >= lastSweepNanoseconds + pause
    }

    /// Removing history makes space for runs, but not in the log.
    private func isRunSpaceShort(_ progress: EngineCore.Progress) -> Bool {
        progress.writeFailure?.code == .full || core.runs.space.isShort
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
    /// If the runs have all commits, the next open does not need the written segments of the log: record this in the
    /// manifest.
    private func recordCleanShutdown() {
        let isClean = core.progress.withLock { $0.failure == nil && $0.writeFailure == nil && $0.frozen == nil }
        // What an archive and followers have not taken, and what is kept for later ones, stays where the next open
        // finds it.
        guard isClean, core.registry.viewForUpdate.active.isEmpty, core.options.logKeptBytes == 0, !core.log.isHeld,
            let end = core.log.end
        else { return }
        do throws(StorageError) {
            // A commit that changed nothing, as a note of the clock, is in the log alone: its version stays.
            let last = CommitVersion(microseconds: core.published.load(ordering: .acquiring))
            try core.runs.change(.commitRun) { manifest in
                manifest.logStart = end
                manifest.checkpoint = max(manifest.checkpoint, last)
            }
        } catch {
            // The next open reads more of the log. Nothing is lost.
            core.progress.update { $0.writeFailure = error }
        }
    }
}

// MARK: - Checkpoints

extension CheckpointThread {
    private func checkpoint(_ memtable: Memtable) {
        guard waitUntilPublished(memtable.versionMax) else { return }
        let start = SystemClock.monotonicNanoseconds()
        keepMemory(of: memtable, start)
        var checkpoint = Checkpoint(core: core, memtable: memtable)
        do throws(StorageError) {
            try checkpoint.run(logStart: core.log.trimPosition(after: memtable.versionMax))
        } catch {
            return handle(error)
        }
        let manifest = core.runs.current.manifest
        retry.noteSuccess()
        core.checkpoint.store(manifest.checkpoint.microseconds, ordering: .releasing)
        core.counters.checkpoints.add(1, ordering: .relaxed)
        core.counters.checkpointEntries.add(checkpoint.entryCount, ordering: .relaxed)
        core.counters.checkpointNanoseconds.add(SystemClock.monotonicNanoseconds() - start, ordering: .relaxed)
        core.log.trim(before: manifest.logStart)
        if isIdleCheckpoint { core.log.releaseSpace() }
        isIdleCheckpoint = false
        core.progress.update { progress in
            progress.writeFailure = nil
            progress.satisfied = max(progress.satisfied, progress.covering)
            core.showRuns(&progress, written: memtable)
        }
        hasMemoryToFree = !core.registry.reclaim()
        core.merging.update { $0.hasChanged = true }
        core.settleSpace()
    }

    /// Decides whether the memory of a memtable that is written is kept for the next one.
    private func keepMemory(of memtable: Memtable, _ now: UInt64) {
        let most = core.options.memtableBytesMax
        if memtable.byteCount >= most / 4 {
            memoryKeptUntilNanoseconds = now + core.options.memoryKeptMicroseconds * 1000
        }
        // One that has grown during a long checkpoint would keep too much.
        core.registry.keepSpare(now < memoryKeptUntilNanoseconds && memtable.byteCount <= most * 5 / 4)
    }

    /// Waits until everything in a frozen memtable is durable.
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

    /// Notes that a checkpoint or a new horizon failed. It is tried again: log and memtables still have everything.
    private func handle(_ error: StorageError) {
        retry.noteFailure(error)
        core.noteFailedAttempt(error)
        core.progress.update { $0.writeFailure = error }
    }
}

// MARK: - Space

extension CheckpointThread {
    /// Accepts commits again if there is space.
    private func checkSpace() {
        nextSpaceCheckNanoseconds = SystemClock.monotonicNanoseconds() + Self.retryAfterNanoseconds
        core.settleSpace()
        core.progress.wake()
    }
}

// MARK: - History

extension CheckpointThread {
    /// Raises the horizon. If that was asked for, or space is short, everything is merged too; otherwise merges find
    /// what may go by themselves.
    private func beginSweep() {
        let (isShort, requested, done) = core.progress.withLock { progress in
            (isRunSpaceShort(progress), progress.sweepsRequested, progress.sweepsDone)
        }
        let retention = isShort ? retentionWhenFull : core.options.retentionMicroseconds
        let oldest = CommitVersion(
            microseconds: historyAge.oldest(
                retention: retention, last: core.published.load(ordering: .acquiring), now: core.options.clock(),
                nanoseconds: SystemClock.monotonicNanoseconds()))
        scheduleSweep()
        do throws(StorageError) {
            let horizon = min(oldest, core.runs.current.manifest.checkpoint)
            try core.runs.change(.commitRun) { $0.horizon = max($0.horizon, horizon) }
        } catch {
            return handle(error)
        }
        // Merges use it only after readers do.
        let horizon = core.runs.current.manifest.horizon.microseconds
        core.horizon.store(max(horizon, core.horizon.load(ordering: .relaxed)), ordering: .sequentiallyConsistent)
        let isAll = isShort || requested > done
        let merge = core.merging.update { requests in
            requests.hasChanged = true
            // One that waits for space covers this one.
            if isAll && (requested > done || requests.allRequested == requests.allDone) { requests.allRequested += 1 }
            return requests.allRequested
        }
        if requested > done { sweep = (requested, merge) }
    }

    /// Notes that a sweep is over when its merge is.
    private func finishSweep(_ progress: inout EngineCore.Progress) -> Bool {
        guard let (request, merge) = sweep, core.merging.withLock({ $0.allDone >= merge }) else { return false }
        sweep = nil
        progress.sweepsDone = max(progress.sweepsDone, request)
        return true
    }

    /// The next sweep starts after an eighth of the retention, so history exceeds the retention by that much at most.
    private func scheduleSweep() {
        let pause = max(core.options.retentionMicroseconds / 8, core.options.sweepPauseMicroseconds)
        lastSweepNanoseconds = SystemClock.monotonicNanoseconds()
        nextSweepNanoseconds = lastSweepNanoseconds + min(pause, 3_600_000_000) * 1000
    }
}
