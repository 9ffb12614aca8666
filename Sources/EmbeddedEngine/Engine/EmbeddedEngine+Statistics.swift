// Reading the engine's counters.

internal import CommitLog
package import Storage
internal import Synchronization

extension EmbeddedEngine {
    /// A reading of the counters; costs a few locks. Any thread.
    package var statistics: EngineStatistics {
        var statistics = EngineStatistics()
        statistics.publishedVersion = publishedVersion
        statistics.checkpointVersion = CommitVersion(microseconds: core.checkpoint.load(ordering: .acquiring))
        let counters = core.counters
        statistics.groupsSynced = counters.groupsSynced.load(ordering: .relaxed)
        statistics.logBytesWritten = counters.logBytesWritten.load(ordering: .relaxed)
        let log = core.log.statistics
        statistics.syncNanoseconds = log.syncNanoseconds
        statistics.checkpoints = counters.checkpoints.load(ordering: .relaxed)
        statistics.checkpointEntries = counters.checkpointEntries.load(ordering: .relaxed)
        statistics.checkpointNanoseconds = counters.checkpointNanoseconds.load(ordering: .relaxed)
        statistics.writerStalls = counters.writerStalls.load(ordering: .relaxed)
        statistics.historyEntriesSwept = counters.historyEntriesSwept.load(ordering: .relaxed)
        (statistics.logSegmentsInUse, statistics.logSegmentsSpare) = (log.segmentsInUse, log.segmentsSpare)
        statistics.hasFailed = core.progress.withLock { $0.failure != nil }
        statistics.failedAttempts = counters.failedAttempts.load(ordering: .relaxed)
        statistics.writeFailure = writeFailure
        statistics.refusal = refusal
        statistics.shortage = shortage
        statistics.scrub = core.scrubber.statistics
        statistics.reserveBytes = log.reserveBytes + core.runs.space.bytesReserved
        readMemtables(into: &statistics)
        readRuns(into: &statistics)
        return statistics
    }

    /// What the scrub has found; cheaper than all figures.
    package var scrub: ScrubStatistics { core.scrubber.statistics }

    package func estimate(from lower: RawSpan, to upper: RawSpan) throws(StorageError) -> KeyRangeEstimate {
        // The set keeps its files open.
        let runs = core.runs.current
        return unsafe try lower.withUnsafeBytes { lower throws(StorageError) in
            unsafe try upper.withUnsafeBytes { upper throws(StorageError) in
                unsafe try runs.estimate(from: lower, to: upper)
            }
        }
    }

    /// Why commits other than deletes are refused because space is missing, or nil. Costs a few locks. Any thread.
    package var shortage: StorageError? {
        [core.progress.withLock { $0.writeFailure }, core.runs.space.shortage, core.log.shortage]
            .lazy.compactMap(\.self).first { $0.code == .full }
    }

    /// Why the last attempt to write a file of a run or of the log failed, unless space was missing; it is made again.
    private var writeFailure: StorageError? {
        [
            core.progress.withLock { $0.writeFailure }, core.merging.withLock { $0.writeFailure },
            core.runs.space.shortage,
            core.log.error,
        ].lazy.compactMap(\.self).first { $0.code != .full }
    }

    /// Why commits are refused because of such a file: the memtables are full, or the log has no segment.
    private var refusal: StorageError? {
        let blocked = core.progress.withLock { progress -> StorageError? in
            let isFull = core.registry.viewForUpdate.active.byteCount >= core.memtableGrowthBytesMax
            return isFull ? progress.writeFailure : nil
        }
        return [blocked, core.runs.space.shortage, core.log.shortage]
            .lazy.compactMap(\.self).first { $0.code != .full }
    }

    package var recentWriteFailure: StorageError? { core.recentFailure ?? writeFailure }

    package var recentShortage: StorageError? { shortage ?? core.runs.space.recentShortage }

    /// Gives back some bytes of the disk space that is reserved for deletes, for a small file that must be written on a
    /// full disk. Thread-safe.
    ///
    /// - Returns: false if not so many can be given back.
    package func releaseReserve(_ bytes: Int) -> Bool { core.runs.space.release(bytes) }

    /// To be called before a file of the directory is made, replaced or removed by its path. Thread-safe.
    ///
    /// - Throws: `inputOutput` if the directory was moved away; another one may have its place.
    package func checkPlace() throws(StorageError) { try core.place.check() }

    /// The numbers that need a look through a reader's eyes; left at zero when the engine is closed.
    private func readMemtables(into statistics: inout EngineStatistics) {
        let reader = EmbeddedReader(core)
        guard let view = try? reader.open(at: .max) else { return }
        defer { reader.close(view) }
        statistics.memtableEntries = view.active.entryCount + (view.frozen?.entryCount ?? 0)
        statistics.memtableBytes = view.active.byteCount + (view.frozen?.byteCount ?? 0)
    }

    private func readRuns(into statistics: inout EngineStatistics) {
        let set = core.runs.current
        let runs = set.manifest.runs
        statistics.runs = runs.count
        statistics.runBytes = set.manifest.byteCount
        for file in set.files.joined() {
            let footer = file.footer
            statistics.runEntries += Int(footer.entryCount)
            statistics.historyEntries += Int(footer.supersededCount)
        }
        var pending = set.manifest.merges.reduce(0) { bytes, merge in
            bytes + runs[merge.inputs].reduce(0) { $0 + $1.byteCount }
        }
        if let choice = MergePolicy.choice(set.manifest, isIdle: false, hasGarbage: { _ in false }) {
            pending += runs[choice.places].reduce(0) { $0 + $1.byteCount }
        }
        statistics.mergePendingBytes = pending
        let counters = core.counters
        statistics.merges = counters.merges.load(ordering: .relaxed)
        statistics.mergedEntries = counters.mergedEntries.load(ordering: .relaxed)
        statistics.mergeNanoseconds = counters.mergeNanoseconds.load(ordering: .relaxed)
        statistics.paceNanoseconds = counters.paceNanoseconds.load(ordering: .relaxed)
        statistics.runBytesWritten = (0..<8).map { counters.runBytesWritten[$0].load(ordering: .relaxed) }
    }
}
