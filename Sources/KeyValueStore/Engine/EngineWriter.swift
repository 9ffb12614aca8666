// API declaration; the parts behind it follow.

/// The one writer. Belongs to one thread, the commit thread.
///
///     for request in queue {
///         // validate against `writer.latest`, which sees what was staged a moment ago
///         try writer.stage(version: version, record: record, mutations: batch)
///         if writer.shouldSeal { break }
///     }
///     try writer.seal { result in … answer … }      // waits for the group before, then returns at once
///
/// Until a group is published no snapshot sees any of it; all of it becomes visible at one instant, after it is durable.
package final class EngineWriter: KeyValueWriter {
    /// The state with everything staged so far, durable or not.
    package var latest: LatestReader { fatalError("not built yet") }

    /// The version of the last staged commit, or the last one of the directory.
    package var lastVersion: CommitVersion { fatalError("not built yet") }

    /// Bytes of records and mutations staged and not sealed yet.
    package var stagedBytes: Int { fatalError("not built yet") }

    package var hasStaged: Bool { fatalError("not built yet") }

    /// The group has reached `EngineOptions.groupBytesMax`.
    package var shouldSeal: Bool { fatalError("not built yet") }

    /// A sealed group is on its way to the disk.
    package var isSyncing: Bool { fatalError("not built yet") }

    /// Waits until no sealed group is on its way. Its completion has been called then.
    package func waitForSync() { fatalError("not built yet") }

    /// Adds a commit to the group being built: all of it or, when this throws, nothing.
    ///
    /// May wait for a checkpoint to end when the overlay is full and the group is empty (back-pressure).
    /// - Parameters:
    ///   - version: Above every version staged before.
    ///   - record: What `Replay` needs to derive the mutations again; opaque here.
    /// - Throws: `full`, `failed`, `versionNotIncreasing`, `valueTooLong`.
    package func stage(
        version: CommitVersion, record: RawSpan, mutations: borrowing MutationBatch
    ) throws(StorageError) { fatalError("not built yet") }

    /// Hands the staged group to the log thread, which writes and syncs it, publishes its last version and then calls
    /// `completion`, once, on the log thread. Waits first for the group before, if that is still being synced.
    /// With nothing staged it completes at once with the published version, on this thread.
    ///
    /// A failed write or sync is final: `completion` gets `failed`, and so does every later call.
    package func seal(
        completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void
    ) throws(StorageError) { fatalError("not built yet") }

    /// Like `seal`, but writes and syncs on the calling thread: saves two thread switches when nobody else is waiting.
    /// - Returns: the published version.
    package func sealAndSync() throws(StorageError) -> CommitVersion { fatalError("not built yet") }

    /// Lets go of the view that `latest` reads through. Call it before sleeping, so that the tree can reuse pages; sealing does it too.
    package func finishReading() { fatalError("not built yet") }
}

/// Reads the newest state, staged commits included. Belongs to the writer's thread.
package final class LatestReader {
    /// Calls `body` with the newest value of a key (nil if it has none) and the version that wrote it (zero if there is none or it
    /// is no longer known when the key was deleted). The span is valid during the call.
    package func withLatestValue<Output>(
        forKey key: RawSpan, _ body: (RawSpan?, CommitVersion) throws -> Output
    ) throws -> Output { fatalError("not built yet") }

    /// The newest value of a key; valid until the next stage or seal.
    @_lifetime(borrow self)
    package func value(forKey key: RawSpan) throws(StorageError) -> StoredValue? { fatalError("not built yet") }

    /// Walks the newest values of `lower..<upper`. Nothing may be staged or sealed while the cursor lives.
    @_lifetime(borrow self)
    package func cursor(
        from lower: RawSpan?, to upper: RawSpan?, direction: ScanDirection = .forward
    ) throws(StorageError) -> EngineCursor { fatalError("not built yet") }
}
