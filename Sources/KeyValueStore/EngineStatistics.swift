// Numbers about a running engine, for metrics and tests.

/// A reading of the engine's counters. Values are taken one by one, not at one instant.
package struct EngineStatistics: Sendable, Equatable {
    package var publishedVersion = CommitVersion.zero
    /// All commits up to here are in the tree.
    package var checkpointVersion = CommitVersion.zero

    /// Commit groups synced since the engine was opened, and the frame bytes they took.
    package var groupsSynced: UInt64 = 0
    package var logBytesWritten: UInt64 = 0
    /// Nanoseconds that writing and syncing a group took.
    package var syncNanoseconds = HistogramReading()
    /// Log segments that recovery would read, and those ready to be written next.
    package var logSegmentsInUse = 0
    package var logSegmentsSpare = 0

    /// Entries (a key at a version) and bytes in the overlays that reads look through.
    package var overlayEntries = 0
    package var overlayBytes = 0

    package var checkpoints: UInt64 = 0
    package var checkpointEntries: UInt64 = 0
    package var checkpointNanoseconds: UInt64 = 0
    /// Times the writer had to wait for a checkpoint to end.
    package var writerStalls: UInt64 = 0

    /// Keys in the tree, and superseded values kept for reads at older versions.
    package var treeEntries = 0
    package var historyEntries = 0
    package var historyEntriesSwept: UInt64 = 0
    /// Size of the tree's file.
    package var treeFileBytes = 0

    /// Why writes are refused because space is missing, or nil.
    package var shortage: StorageError?
    package var isFull: Bool { shortage != nil }
    /// Disk space that is kept for commits that only delete, as far as it is there.
    package var reserveBytes = 0
    /// Set once a write or sync failed: no more commits until restart.
    package var hasFailed = false
}
