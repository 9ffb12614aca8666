internal import Basics
package import Storage

/// How a store is archived.
package struct ArchiveSettings: Sendable {
    /// The archive; created when missing.
    package var directory: String
    /// Time between two looks for new commits, in milliseconds.
    package var intervalMilliseconds: UInt64 = 10_000
    /// How far back restores reach at least, in milliseconds.
    package var retentionMilliseconds: UInt64 = 7 * 86_400_000
    /// Age of the newest base at which another is made, in milliseconds.
    package var baseMilliseconds: UInt64 = 86_400_000
    /// Bytes of records since the newest base, below which size alone makes no other.
    package var baseRecordBytesMin = 256 << 20
    /// Bytes of the log that are kept while the archive lags. Beyond, the archive begins a chain with a new base.
    package var logHeldBytesMax = 1 << 30
    /// How long the end of the store waits for the archive, in milliseconds.
    package var stopMilliseconds: UInt64 = 30_000
    /// Set if several servers of one store have this archive: asked before each change of it, whether this one may
    /// write. While it may, it holds the lock of the archive, so the others wait even if they may write by then.
    package var mayWrite: (@Sendable () -> Bool)?
    /// The time in microseconds since 1970.
    package var clock: @Sendable () -> UInt64 = { SystemClock.microseconds() }
    /// The time since some fixed moment, in milliseconds. It never steps back.
    package var elapsedMilliseconds: @Sendable () -> UInt64 = { SystemClock.monotonicMilliseconds() }
    /// Gets each event, on the threads of the archive.
    package var onEvent: @Sendable (ArchiveEvent) -> Void = { _ in }

    package init(directory: String) { self.directory = directory }
}

/// What an operator should know of an archive.
package enum ArchiveEvent: Sendable {
    /// The archive has every commit up to a version, or begins after it.
    case opened(CommitVersion)
    /// The archive is on the device of the data, and will be lost with it.
    case sameDevice
    /// A base is complete.
    case base(CommitVersion, byteCount: Int)
    /// The log has lost commits that the archive lacks; a new chain begins with a new base.
    case gap(after: CommitVersion, until: CommitVersion)
    /// Another server of the store still has the lock; it is tried again.
    case waiting
    /// Something cannot be written or read; it is tried again.
    case failing(StorageError)
    /// The attempt has succeeded.
    case recovered
    /// A file of the archive is damaged or missing.
    case damaged(StorageError)
    /// What is older than the retention was removed.
    case pruned(bases: Int, files: Int)
    /// The store has ended without the archive having its last commits.
    case incomplete(CommitVersion)
}

/// Figures of an archive.
package struct ArchiveStatistics: Sendable, Equatable {
    /// The archive has every commit up to here.
    package var version = CommitVersion.zero
    /// How long the archive has not been complete, in milliseconds; 0 if it is, or another server writes to it.
    package var lagMilliseconds: UInt64 = 0
    package var bytesWritten: UInt64 = 0
    /// Bases made since the start.
    package var bases: UInt64 = 0
    /// The version of the newest base; nil before the first.
    package var baseVersion: CommitVersion?
    /// Chains begun since the start because the log had lost commits.
    package var gaps: UInt64 = 0
    /// Attempts that failed since the start.
    package var failures: UInt64 = 0
    /// Why the last attempt failed; nil if it did not.
    package var failure: StorageError?
}
