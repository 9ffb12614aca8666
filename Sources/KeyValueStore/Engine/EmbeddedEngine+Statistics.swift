// Reading the engine's counters.

internal import Synchronization

extension EmbeddedEngine {
    /// A reading of the counters; costs a few locks and a read transaction. Any thread.
    package var statistics: EngineStatistics {
        var statistics = EngineStatistics()
        statistics.publishedVersion = publishedVersion
        statistics.checkpointVersion = CommitVersion(microseconds: core.checkpoint.load(ordering: .acquiring))
        let counters = core.counters
        statistics.groupsSynced = counters.groupsSynced.load(ordering: .relaxed)
        statistics.logBytesWritten = counters.logBytesWritten.load(ordering: .relaxed)
        statistics.syncNanoseconds = synchronizer.syncNanoseconds.reading
        statistics.checkpoints = counters.checkpoints.load(ordering: .relaxed)
        statistics.checkpointEntries = counters.checkpointEntries.load(ordering: .relaxed)
        statistics.checkpointNanoseconds = counters.checkpointNanoseconds.load(ordering: .relaxed)
        statistics.writerStalls = counters.writerStalls.load(ordering: .relaxed)
        statistics.historyEntriesSwept = counters.historyEntriesSwept.load(ordering: .relaxed)
        (statistics.logSegmentsInUse, statistics.logSegmentsSpare) = core.pool.counts
        statistics.hasFailed = core.progress.withLock { $0.failure != nil }
        statistics.shortage = shortage
        statistics.reserveBytes = core.pool.bytesReserved + core.tree.space.bytesReserved
        readTree(into: &statistics)
        return statistics
    }

    /// Why commits other than deletes are refused because space is missing, or nil. Costs a few locks. Any thread.
    package var shortage: StorageError? {
        core.progress.withLock { $0.full } ?? core.tree.space.shortage ?? core.pool.shortage
    }

    /// The numbers that need a look through a reader's eyes; left at zero when there is no reader slot or the engine is
    /// closed.
    private func readTree(into statistics: inout EngineStatistics) {
        let reader = EmbeddedReader(core)
        guard let view = try? reader.open(at: .max) else { return }
        defer { reader.close(view) }
        statistics.overlayEntries = view.active.entryCount + (view.frozen?.entryCount ?? 0)
        statistics.overlayBytes = view.active.byteCount + (view.frozen?.byteCount ?? 0)
        if let contents = unsafe try? TreeTransaction.contents(core.tree, view.transaction) {
            statistics.treeEntries = Int(contents.main.entries)
            statistics.historyEntries = Int(contents.history.entries)
        }
        statistics.treeFileBytes = (try? File(core.tree.path + "/data.mdb", flags: 0).byteCount()) ?? 0
    }
}
