// What can be set when an engine is opened, with the reason for each default, and what cannot: the limits.

import Basics

/// Settings of an engine. Defaults suit a server; tests make things small.
package struct EngineOptions: Sendable {
    /// Set for an engine that keeps everything in memory: the volume that it reads and writes. It does not use the settings
    /// about files.
    package var volume: MemoryVolume?

    /// When the overlay holds this much, it is frozen and checkpointed; while a checkpoint is running it may grow to twice as much.
    /// Bounds memory (one overlay being filled, one being written out: twice this, four times when checkpoints cannot keep up),
    /// the log, and so the time of recovery. Larger makes random-key checkpoints cheaper.
    package var overlayBytesMax = 64 << 20

    /// How many times `overlayBytesMax` an overlay holds before commits wait for a checkpoint.
    static let overlayGrowthMax = 2

    /// Size of one log segment. Only whole segments are recycled.
    package var logSegmentBytes = 16 << 20

    /// Recycled segments kept for the next writes while there are any; more are deleted, and when idle all but one.
    package var logSpareSegmentsMax = 6

    /// Disk space kept for commits that only delete, so that they can free space on a full disk: a quarter of it, one segment at most,
    /// for the log, the rest for the tree. 0 keeps none.
    package var diskReserveBytes = 16 << 20

    /// The log's part of the reserve.
    var logReserveBytes: Int { min(diskReserveBytes / 4, logSegmentBytes) }

    /// How long superseded values stay readable while the disk is full, in microseconds, if that is less than the retention.
    package var retentionWhenFullMicroseconds: UInt64 = 60_000_000

    /// A writer should seal a group when it has staged this much.
    package var groupBytesMax = 4 << 20

    /// How much address space the tree may take. The file grows as needed; only addresses are reserved.
    package var mapBytesMax = 1 << 40

    /// Memory that each reader may take to remember where entries of the tree lie, in bytes; a power of two is taken, 16 an entry.
    /// It is taken as entries are read, and speeds up reading them again two- to threefold. 0 turns it off.
    package var entryCacheBytesMax = 16 << 20

    /// Memory of changed pages in one tree transaction of a checkpoint; LMDB keeps that much for the next one.
    package var checkpointTransactionBytes = 16 << 20

    /// How long superseded values stay readable, in microseconds. 0 keeps no history.
    package var retentionMicroseconds: UInt64 = 3_600_000_000

    /// Least time between two searches for history to remove, which otherwise come after an eighth of the retention.
    package var sweepPauseMicroseconds: UInt64 = 1_000_000

    /// Keys whose first byte is in here keep no history: a read at any version gives the value as of that version or a later one.
    package var latestOnlySpaces: Set<UInt8> = []

    /// With no commit for this long, what is in the overlay is checkpointed and its memory given back. 0 turns it off.
    package var idleCheckpointMicroseconds: UInt64 = 2_000_000

    /// Readers and writer open at the same time, each snapshot that overlaps another of the same reader counting as one.
    package var readersMax = 1_000

    /// Now, in microseconds since 1970; decides only when history is old enough to go.
    package var clock: @Sendable () -> UInt64 = { SystemClock.microseconds() }

    /// Fault injection for tests: asked before each file operation, may answer with an `errno` that the operation then fails with.
    package var fault: (@Sendable (FileOperation) -> Int32)?

    package init() {}
}

/// Bounds that no setting changes.
package enum EngineLimits {
    /// LMDB's 511 bytes less the version that a history key ends with.
    package static let keyBytesMax = 511 - 8

    package static let valueBytesMax = 64 << 20

    /// Bytes of one log record.
    package static let recordBytesMax = 128 << 20

    /// Keys and values staged between two seals.
    package static let groupBytesMax = 256 << 20
}

/// A step that touches the disk, as seen by `EngineOptions.fault`.
package enum FileOperation: Hashable, Sendable {
    /// A new log segment is being filled with zeros, or the log's reserve allocated.
    case allocateSegment
    /// Space for the tree is being allocated.
    case allocateTree
    /// A commit group is being written to the log.
    case writeLog
    /// A commit group is being made durable.
    case syncLog
    /// A transaction of a checkpoint or of the history sweep is being committed to the tree.
    case commitTree
}
