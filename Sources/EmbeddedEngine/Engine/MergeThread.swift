internal import Basics
internal import Storage
internal import Synchronization

/// What the merge thread is asked to do.
struct MergeRequests {
    /// Merges of everything asked for, and the last request that is satisfied.
    var allRequested: UInt64 = 0
    var allDone: UInt64 = 0
    /// The runs have changed since the thread looked at them.
    var hasChanged = true
    var isStopping = false
    /// Why the last step of a merge did not succeed; it is tried again. Often the disk is full.
    var writeFailure: StorageError?
}

/// The merge thread: it merges runs, one file after another, until the engine is closed (``MergePolicy``).
///
/// After each file it chooses again what to do next, so a small merge does not wait for a large one.
final class MergeThread {
    private let core: EngineCore
    private let step: MergeStep
    /// The request that the merge of everything under way satisfies, and the run that it makes.
    private var covering: (request: UInt64, output: UInt64)?
    private var retry: RetryPause
    private var hasMemoryToFree = false

    private static let reclaimAfterNanoseconds: UInt64 = 10_000_000
    /// A run is merged for its history if so much of it may go: when idle, and when not.
    private static let garbageFraction = (idle: UInt64(16), busy: UInt64(4))

    init(_ core: EngineCore) {
        self.core = core
        retry = RetryPause(core.options)
        step = MergeStep(
            store: core.runs, latestOnly: core.latestOnly, scannedSpaces: core.options.scannedSpaces,
            isInterrupted: { core.merging.withLock { $0.isStopping } })
    }

    /// The body of the thread.
    func run() {
        while true {
            let deadline = SystemClock.monotonicNanoseconds() + waitNanoseconds
            core.merging.wait(untilNanoseconds: deadline) { requests in
                requests.isStopping || requests.hasChanged || requests.allRequested > requests.allDone ? () : nil
            }
            if core.merging.withLock({ $0.isStopping }) { return }
            if hasMemoryToFree { hasMemoryToFree = !core.registry.reclaim() }
            if core.hasFailed.load(ordering: .acquiring) || retry.isPausing {
                pause()
                continue
            }
            core.merging.withLock { $0.hasChanged = false }
            while mergeNext() { if core.merging.withLock({ $0.isStopping }) { return } }
        }
    }

    private var waitNanoseconds: UInt64 {
        if hasMemoryToFree { return Self.reclaimAfterNanoseconds }
        let idle = core.options.idleCheckpointMicroseconds * 1000
        return idle > 0 ? min(max(idle / 2, 1_000_000), 1_000_000_000) : 1_000_000_000
    }

    /// Waits a little although there is something to do.
    private func pause() {
        let soon = SystemClock.monotonicNanoseconds() + Self.reclaimAfterNanoseconds
        let deadline = hasMemoryToFree ? soon : max(soon, retry.endNanoseconds)
        core.merging.wait(untilNanoseconds: deadline) { $0.isStopping ? () : nil }
    }

    // MARK: Choosing

    /// Does the next step of a merge; false if there is nothing to do at present.
    private func mergeNext() -> Bool {
        let set = core.runs.current
        let request = core.merging.withLock { $0.allRequested > $0.allDone ? $0.allRequested : nil }
        if request != nil && settleRequest(set) { return true }
        // The smallest level first; a merge under way goes before a new one of its level.
        let runningMerge = set.manifest.merges.first
        let fresh = MergePolicy.choice(set.manifest, isIdle: isIdle) { hasGarbage(set, $0) }
        do throws(StorageError) {
            if let runningMerge {
                let level = outputLevel(set, runningMerge)
                if let fresh, fresh.level < level { return try begin(set, fresh) }
                let output = set.manifest.runs[runningMerge.inputs.lowerBound].output
                return try mergeStep(set, runningMerge.inputs, output: output, level: level)
            }
            if let request, let all = MergePolicy.all(set.manifest) {
                let output = core.runs.takeNumber()
                let isDone = try mergeStep(set, all.places, output: output, level: all.level)
                if isDone { covering = (request, output) }
                return isDone
            }
            if let fresh { return try begin(set, fresh) }
        } catch {
            handle(error)
        }
        return false
    }

    /// Satisfies the request for a merge of everything if there is nothing to merge, or it has been done.
    private func settleRequest(_ set: RunSet) -> Bool {
        let runs = set.manifest.runs
        let isMerged: Bool
        if let covering {
            isMerged = !runs.contains { $0.output == covering.output }
        } else {
            let isSingle = runs.count <= 1 && set.manifest.merges.isEmpty
            isMerged =
                isSingle
                && set.files.joined().allSatisfy { file in
                    file.footer.supersededCount == 0 && file.footer.tombstoneCount == 0
                }
        }
        guard isMerged else { return false }
        core.merging.update { $0.allDone = self.covering?.request ?? $0.allRequested }
        covering = nil
        core.progress.wake()
        return true
    }

    /// History superseded up to here may go: readers refuse what is older.
    private var horizon: UInt64 { core.horizon.load(ordering: .sequentiallyConsistent) }

    private func begin(_ set: RunSet, _ choice: MergePolicy.Choice) throws(StorageError) -> Bool {
        try mergeStep(set, choice.places, output: core.runs.takeNumber(), level: choice.level)
    }

    private func outputLevel(_ set: RunSet, _ merge: (inputs: Range<Int>, output: Int?)) -> UInt64 {
        let runs = set.manifest.runs
        if let output = merge.output { return runs[output].level }
        return max(1, runs[merge.inputs].map(\.level).max() ?? 1)
    }

    private var isIdle: Bool {
        let idle = core.options.idleCheckpointMicroseconds * 1000
        guard idle > 0 else { return false }
        let sealed = core.progress.withLock { $0.lastSealNanoseconds }
        return SystemClock.monotonicNanoseconds() >= sealed + idle
    }

    /// Whether enough of a run is history that may go.
    private func hasGarbage(_ set: RunSet, _ place: Int) -> Bool {
        let horizon = horizon
        var superseded: UInt64 = 0
        var entries: UInt64 = 0
        for file in set.files[place] {
            entries += file.footer.entryCount
            if file.footer.oldestSuperseded <= horizon { superseded += file.footer.supersededCount }
        }
        let fraction = isIdle ? Self.garbageFraction.idle : Self.garbageFraction.busy
        return superseded > 0 && superseded * fraction >= entries
    }

    // MARK: Merging

    /// Writes the next file of a merge and records it.
    /// - Returns: false if the engine is being closed.
    private func mergeStep(
        _ set: RunSet, _ places: Range<Int>, output: UInt64, level: UInt64
    ) throws(StorageError) -> Bool {
        let start = SystemClock.monotonicNanoseconds()
        let runs = set.manifest.runs
        // Only the output may be older.
        let end = places.upperBound
        let isLowest = end == runs.count || end + 1 == runs.count && runs[end].number == output
        let outcome = try step.run(set, places, isLowest: isLowest, horizon: horizon, byteCountMax: core.runFileBytes)
        if outcome.isInterrupted { return false }
        let inputs = runs[places].map(\.number)
        let highest = Dictionary(
            uniqueKeysWithValues: set.files[places].joined().map { file in
                (file.number, unsafe Array(file.part.highestKey))
            })
        try core.runs.change(.commitMerge) { manifest in
            manifest.record(outcome, inputs: inputs, output: output, level: level) { highest[$0] ?? [] }
        }
        core.progress.update { core.showRuns(&$0) }
        hasMemoryToFree = !core.registry.reclaim()
        note(outcome, level: level, nanoseconds: SystemClock.monotonicNanoseconds() - start)
        return true
    }

    private func note(_ outcome: MergeStep.Outcome, level: UInt64, nanoseconds: UInt64) {
        let counters = core.counters
        counters.addRunBytes(Int(outcome.part?.byteCount ?? 0), level: level)
        counters.mergedEntries.add(UInt64(outcome.readCount), ordering: .relaxed)
        counters.historyEntriesSwept.add(UInt64(outcome.droppedCount), ordering: .relaxed)
        counters.mergeNanoseconds.add(nanoseconds, ordering: .relaxed)
        if outcome.rest == nil { counters.merges.add(1, ordering: .relaxed) }
        core.settleSpace()
        retry.noteSuccess()
        core.merging.withLock { $0.writeFailure = nil }
    }

    /// Notes that a step failed, which is tried again: its inputs are still there. Damage is final.
    private func handle(_ error: StorageError) {
        if error.code == .corrupt {
            core.fail(error)
        } else {
            retry.noteFailure(error)
            core.noteFailedAttempt(error)
            core.merging.update { $0.writeFailure = error }
        }
        core.progress.wake()
    }
}
