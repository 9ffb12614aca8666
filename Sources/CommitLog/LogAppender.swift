// The log as the commit thread uses it: records into a group, groups into the log.

internal import Basics
package import Storage

/// Appends to a log. Belongs to the commit thread.
///
///     reserve, append          for each commit; what is reserved is there
///     waitUntilIdle, seal      the group has its place; the next one may be built
///     synchronize              writes and syncs it, on the log thread or on this one
@safe
package final class LogAppender {
    /// Gets the outcome of each group before its completion does, on the thread that writes it: the last version of the
    /// group, and `failed` if it is not durable. A failure is final.
    package typealias Outcome = @Sendable (CommitVersion, StorageError?) -> Void

    private let writer: LogWriter
    private let synchronizer: LogSynchronizer
    private let finished: Outcome

    init(_ writer: LogWriter, _ synchronizer: LogSynchronizer, finished: @escaping Outcome) {
        self.writer = writer
        self.synchronizer = synchronizer
        self.finished = finished
    }

    /// The version of the last record, or the last one of the directory.
    package var lastVersion: CommitVersion { writer.lastVersion }

    /// Whether the group being built has no records.
    package var isEmpty: Bool { writer.isEmpty }

    /// Bytes of the group being built.
    package var stagedBytes: Int { writer.stagedBytes }

    /// Whether a group is on its way to the disk.
    package var isBusy: Bool { synchronizer.isBusy }

    /// Waits until no group is on its way, and all completions have been called.
    package func waitUntilIdle() { synchronizer.waitUntilIdle() }

    /// Makes sure that the group with one more record of `recordBytes` has its place on the disk. May wait while a
    /// segment is prepared.
    /// - Parameter mayUseReserve: the record is of a commit that only deletes.
    /// - Throws: `full`, `inputOutput`, `closed`; nothing has changed then.
    package func reserve(recordBytes: Int, mayUseReserve: Bool) throws(StorageError) {
        try writer.reserve(recordBytes: recordBytes, mayUseReserve: mayUseReserve)
    }

    /// Adds a record, for which there is room.
    /// - Parameter version: above that of the record before.
    package func append(_ record: RawSpan, version: CommitVersion) {
        unsafe record.withUnsafeBytes { unsafe writer.append($0, version: version) }
    }

    /// Drops the group being built; its versions count as used. For directories that are only read.
    package func discard() { writer.discard() }

    /// Ends the group, which has a record, and gives it its place. The group before must be done.
    package func seal() -> LogGroup { synchronizer.shared == nil ? writer.seal() : writer.sealRecords() }

    /// Has the log thread write and sync a group, and then call `completion`, once. A shared log calls it on one of its
    /// threads, or on this one. None may be on its way.
    package func synchronize(
        _ group: LogGroup, completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void
    ) {
        synchronizer.submit(group, finished: finished, completion: completion)
    }

    /// Writes and syncs a group on the calling thread, or waits for the shared log. None may be on its way.
    /// - Returns: its last version.
    /// - Throws: `failed`, which is final.
    package func synchronize(_ group: LogGroup) throws(StorageError) -> CommitVersion {
        try synchronizer.perform(group, finished: finished)
    }
}
