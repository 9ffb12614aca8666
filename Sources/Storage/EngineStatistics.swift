// Numbers about a running engine, for metrics and tests.

package import Basics

/// A reading of the engine's counters. Values are taken one by one, not at one instant.
package struct EngineStatistics: Sendable, Equatable {
    /// The last version that is durable and visible.
    package var publishedVersion = CommitVersion.zero
    /// All commits up to here are in runs.
    package var checkpointVersion = CommitVersion.zero

    /// Commit groups synced since the engine was opened.
    package var groupsSynced: UInt64 = 0
    /// The bytes of their frames in the log.
    package var logBytesWritten: UInt64 = 0
    /// Nanoseconds that writing and syncing a group took.
    package var syncNanoseconds = HistogramReading()
    /// Log segments that recovery would read.
    package var logSegmentsInUse = 0
    /// Log segments that are allocated and will be written next.
    package var logSegmentsSpare = 0

    /// Entries (a key at a version) in the memtables that reads look through.
    package var memtableEntries = 0
    /// Bytes that these memtables use of their files.
    package var memtableBytes = 0

    /// Checkpoints since the engine was opened.
    package var checkpoints: UInt64 = 0
    /// Entries that these checkpoints wrote into runs.
    package var checkpointEntries: UInt64 = 0
    /// Time that these checkpoints took.
    package var checkpointNanoseconds: UInt64 = 0
    /// Times the writer had to wait for a checkpoint to end.
    package var writerStalls: UInt64 = 0

    /// Runs that reads look through.
    package var runs = 0
    /// Bytes of their files.
    package var runBytes = 0
    /// Their entries: keys at versions, the same key in several runs if a merge is due.
    package var runEntries = 0
    /// Entries that are known to be superseded, kept for reads at older versions.
    package var historyEntries = 0
    /// Superseded entries that merges left out since the engine was opened.
    package var historyEntriesSwept: UInt64 = 0

    /// Bytes of runs that are being merged, or should be.
    package var mergePendingBytes = 0
    /// Merges that ended since the engine was opened.
    package var merges: UInt64 = 0
    /// Entries that these merges read.
    package var mergedEntries: UInt64 = 0
    /// Time that these merges took.
    package var mergeNanoseconds: UInt64 = 0
    /// Time for which commits were slowed because merges lag.
    package var paceNanoseconds: UInt64 = 0
    /// Bytes of files written by the level of their run: 0 by checkpoints, the others by merges; the last one has all
    /// higher levels.
    package var runBytesWritten: [UInt64] = Array(repeating: 0, count: 8)

    /// Attempts of checkpoints and merges that failed since the engine was opened. They are tried again.
    package var failedAttempts: UInt64 = 0
    /// Why the last attempt of a checkpoint or a merge failed, unless space was missing, or nil. It is tried again.
    package var writeFailure: StorageError?
    /// Why commits are refused because of that, or nil.
    package var refusal: StorageError?
    /// Why writes are refused because space is missing, or nil.
    package var shortage: StorageError?
    package var isFull: Bool { shortage != nil }
    /// Disk space that is kept for commits that only delete, as far as it is there.
    package var reserveBytes = 0
    /// Set once a write or sync of the log failed, or a merge met damage: no more commits until a restart.
    package var hasFailed = false

    /// What the scrub has found.
    package var scrub = ScrubStatistics()

    package init() {}
}

/// What the thread that verifies all files has done since the engine was opened (`EngineOptions.scrubMilliseconds`).
package struct ScrubStatistics: Sendable, Equatable {
    /// Complete passes over all files.
    package var passes: UInt64 = 0
    /// Bytes that were read.
    package var bytesRead: UInt64 = 0
    /// When the last pass ended, in microseconds since 1970; nil before the first end.
    package var lastEndMicroseconds: UInt64?
    /// Damage of files that are still in use, one for each.
    package var damage: [StorageError] = []

    package init(
        passes: UInt64 = 0, bytesRead: UInt64 = 0, lastEndMicroseconds: UInt64? = nil, damage: [StorageError] = []
    ) {
        self.passes = passes
        self.bytesRead = bytesRead
        self.lastEndMicroseconds = lastEndMicroseconds
        self.damage = damage
    }
}
