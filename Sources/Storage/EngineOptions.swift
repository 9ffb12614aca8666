// What can be set when an engine is opened, with the reason for each default, and what cannot: the limits.

import Basics

/// Settings of an engine. Defaults suit a server; tests make things small. An engine in memory does not use those about
/// files.
package struct EngineOptions: Sendable {
    /// Size at which the memtable is frozen and checkpointed; during a checkpoint it may grow to twice as much.
    ///
    /// It bounds memory (one memtable being filled and one being written: twice this, four times if checkpoints cannot
    /// keep up), the log, and the time of recovery. A larger memtable makes checkpoints of random keys cheaper.
    package var memtableBytesMax = 64 << 20

    /// The multiple of `memtableBytesMax` at which commits wait for a checkpoint.
    package static let memtableGrowthMax = 2

    /// Size of one log segment in bytes. A segment is recycled as a whole.
    package var logSegmentBytes = 16 << 20

    /// Maximum number of spare segments while there are writes. Further ones are deleted; when idle, one is kept.
    package var logSpareSegmentsMax = 6

    /// Disk space reserved for commits that only delete, in bytes, so that they succeed on a full disk. A quarter of
    /// it, at most one segment, is for the log, the rest for the runs. 0 reserves none.
    package var diskReserveBytes = 16 << 20

    /// Bytes of the log to keep, at least, beyond those that recovery needs: for followers that connect later. 0 keeps
    /// none.
    package var logKeptBytes = 0

    /// Bytes of the log that are kept for an archive that has not taken them, beyond those that recovery needs. 0 keeps
    /// nothing, and the log has no hold.
    package var logHeldBytesMax = 0

    /// Where commit groups become durable if not in segments of the directory. The directory has no log then, and what
    /// its runs lack comes from there.
    package var sharedLog: (any SharedLog)?

    /// Records after those of the directory's log, which opening replays too: those of a restore. They are durable when
    /// a checkpoint has them, and so at the latest when the engine has been closed without an error.
    package var restoredRecords: RestoredRecords?

    /// Calls its argument with each record, in order; the bytes are valid for the call. Throws what keeps it from
    /// reading them, and what the argument throws.
    package typealias RestoredRecords = @Sendable ((CommitVersion, RawSpan) throws -> Void) throws -> Void

    /// Whether the directory has a log that is written.
    package var writesLog: Bool { !isReadOnly && sharedLog == nil }

    /// Bytes of the log that are kept for each follower that has not taken them, beyond those that recovery needs. 0
    /// keeps none.
    package var logFollowedBytesMax = 256 << 20

    /// The log's part of the reserve.
    package var logReserveBytes: Int { min(diskReserveBytes / 4, logSegmentBytes) }

    /// Retention while the disk is full, in microseconds, if it is less than `retentionMicroseconds`.
    package var retentionWhenFullMicroseconds: UInt64 = 60_000_000

    /// Staged bytes at which a writer should seal a group.
    package var groupBytesMax = 4 << 20

    /// Bound of all files of runs together, in bytes. Beyond it commits are refused.
    package var runBytesMax = 1 << 40

    /// Size at which a file of a run is closed, in bytes; a 64th of the data, and at least 1 MiB, if this is less. A
    /// merge needs space for ten files, and gives the space of its inputs back in such steps.
    package var runFileBytesMax = 64 << 20

    /// Number of runs from which on commits are slowed, so that merges keep up.
    package var runsUsual = 40

    /// How long superseded values stay readable, in microseconds. With 0 there is no history.
    package var retentionMicroseconds: UInt64 = 3_600_000_000

    /// Minimum time between two sweeps of history, which otherwise start after an eighth of the retention.
    package var sweepPauseMicroseconds: UInt64 = 1_000_000

    /// Keys with these first bytes have no history: a read returns the value of its version or of a later one.
    ///
    /// Keys below `20` lie in LMDB files. Where they have history, no key may be a prefix of another.
    package var latestOnlySpaces: Set<UInt8> = []

    /// First bytes of keys that are read by ranges, rarely one by one. The memtable does not insert their entries of a
    /// large group one by one: it sorts them as a batch. Hash indexes of runs do not have them.
    package var scannedSpaces: ClosedRange<UInt8>?

    /// Entries of a group in `scannedSpaces` that are enough for a batch. Cursors merge all batches of a memtable.
    package var batchEntriesMin = 1024

    /// Time without commits after which the memtable is checkpointed. 0 disables this.
    package var idleCheckpointMicroseconds: UInt64 = 2_000_000

    /// Time for which the memory of memtables is kept after the last checkpoint of one that was at least a quarter
    /// full. Fresh memory can cost more than what a commit does with it, above all in a virtual machine, whose host
    /// takes back within seconds what a process returns.
    package var memoryKeptMicroseconds: UInt64 = 60_000_000

    /// Time from a checkpoint or merge that failed to the next attempt, in microseconds. After errors other than a full
    /// disk it doubles with each failure, up to 32 times.
    package var retryMicroseconds: UInt64 = 200_000

    /// The current time in microseconds since 1970. It only decides when history is removed.
    package var clock: @Sendable () -> UInt64 = { SystemClock.microseconds() }

    /// Whether opening a new directory or a backup begins its own history (``KeyValueEngine/timelineStart``). False for
    /// tools that only read it.
    package var beginsTimeline = true

    /// Nothing is written: the log is replayed into memory, and commits are visible until the engine is closed, as far
    /// as there is room in memory. For tools, and for file systems that are read-only.
    package var isReadOnly = false

    /// Time in which a thread reads every file of a run once and verifies it, in milliseconds. 0 starts no thread.
    package var scrubMilliseconds: UInt64 = 0

    /// Fault injection for tests: called before each file operation, which fails with the returned `errno` unless it
    /// is 0. The engine in memory calls it with `syncLog` only.
    package var fault: (@Sendable (FileOperation) -> Int32)?

    /// Threads that read pages of runs for reads that wait (``ColdRead``). Started when they are needed.
    package var pageThreadsMax = 8

    /// Reads that may wait at one time. Further ones fail with `tooManyReaders`.
    package var waitingReadsMax = 10_000

    /// For tests: whether bytes of a run that are met for the first time count as not in memory, wherever they are.
    package var meetsPagesCold = false

    /// For tests: the number of the directory's format, instead of that of this version.
    package var formatPlanted: Int?

    /// For tests: which keys the engine in memory is pending for.
    package var coldKeys: (any ColdKeys)?

    package init() {}
}

/// Bounds that no setting changes.
@usableFromInline package enum EngineLimits {
    /// Bytes of a key.
    @inlinable package static var keyBytesMax: Int { 503 }

    /// Bytes of a value.
    @inlinable package static var valueBytesMax: Int { 64 << 20 }

    /// Bytes of one log record.
    @inlinable package static var recordBytesMax: Int { 128 << 20 }

    /// Keys and values staged between two seals.
    @inlinable package static var groupBytesMax: Int { 256 << 20 }

    /// Memory that an engine needs at most for an entry of a batch, beside its key and value, in bytes.
    @inlinable package static var entryOverheadMax: Int { 128 }

    /// Memory that an engine needs at most for a batch, beside its entries, in bytes.
    @inlinable package static var batchOverheadMax: Int { 8192 }
}

/// A step that touches the disk, as seen by `EngineOptions.fault`.
package enum FileOperation: Hashable, Sendable {
    /// A new log segment is being filled with zeros, or the log's reserve allocated.
    case allocateSegment
    /// Space for the runs is being allocated.
    case allocateRun
    /// Part of a run is being written by a checkpoint.
    case writeRun
    /// Part of a run is being written by a merge.
    case writeMerge
    /// A commit group is being written to the log.
    case writeLog
    /// A commit group is being made durable.
    case syncLog
    /// The manifest is being written when a directory is opened.
    case openRuns
    /// A checkpoint or a new horizon is being entered into the manifest.
    case commitRun
    /// A step of a merge is being entered into the manifest.
    case commitMerge
    /// The manifest does not name some files any more, which are about to be removed. A fault has no effect here.
    case removeRuns
    /// Pages of a run are being read for reads that wait.
    case readPages
}
