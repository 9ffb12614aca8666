// A log that several servers share, in place of an engine's segments.

/// Where an engine's commit groups become durable if not in files of its directory. Thread-safe.
package protocol SharedLog: AnyObject, Sendable {
    /// Makes a group durable and returns then. Called for one group at a time, on a thread that may wait. A group that
    /// came from the log returns at once.
    ///
    /// - Parameters:
    ///   - records: version (8 bytes, little-endian), length (4 bytes), bytes, for each.
    ///   - version: of the last record.
    /// - Throws: `failed` if this server cannot append any more; the outcome of the group is unknown then.
    func append(_ records: RawSpan, version: CommitVersion) throws(StorageError)

    /// The runs of the engine are about to have everything up to a version, which is the last of a group. After this
    /// the place of that group in the log is durable beside the engine.
    /// - Throws: `inputOutput`, `full`.
    func willCheckpoint(_ version: CommitVersion) throws(StorageError)
}
