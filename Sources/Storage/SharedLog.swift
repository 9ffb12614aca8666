// A log that several servers share, in place of an engine's segments.

/// Where an engine's commit groups become durable if not in files of its directory. Thread-safe.
package protocol SharedLog: AnyObject, Sendable {
    /// Whose log it is.
    var store: StoreIdentity { get }

    /// Makes a group durable. Called for one group at a time, on a thread that must not wait.
    ///
    /// - Parameters:
    ///   - records: version (8 bytes, little-endian), length (4 bytes), bytes, for each. Valid for the call.
    ///   - version: of the last record.
    ///   - completion: called once: on the calling thread for a group that came from the log, and for one that cannot
    ///     be appended; otherwise on a thread of the log, which it must not hold up. It gets `failed` if this server
    ///     cannot append any more; the outcome of the group is unknown then.
    func append(
        _ records: RawSpan, version: CommitVersion,
        completion: @escaping @Sendable (Result<Void, StorageError>) -> Void)

    /// The runs of the engine are about to have everything up to a version, which is the last of a group. After this
    /// the place of that group in the log is durable beside the engine.
    /// - Throws: `inputOutput`, `full`.
    func willCheckpoint(_ version: CommitVersion) throws(StorageError)

    /// The durable groups after a place, for the stream to another server.
    ///
    /// - Parameter bytesMax: more groups are left for the next call once there are so many bytes.
    /// - Returns: nil if the groups after the place are not kept, or the place is not one of this log.
    func durableGroups(after place: SharedLogPlace, bytesMax: Int) -> SharedLogGroups?

    /// The records of durable groups after a version, for replicas and archives. May wait for where the log lies.
    ///
    /// - Parameters:
    ///   - version: records up to it may be among the first ones of the result.
    ///   - bytesMax: more groups are left for the next call once there are so many bytes.
    /// - Returns: version (8 bytes, little-endian), length (4 bytes), bytes, for each; empty if there are none yet.
    /// - Throws: `versionTooOld` if what comes next has been trimmed, `corrupt`, `inputOutput`.
    func records(after version: CommitVersion, bytesMax: Int) throws(StorageError) -> [UInt8]

    /// A version after which all records can be read. May wait for where the log lies.
    /// - Throws: `inputOutput`.
    func recordsStart() throws(StorageError) -> CommitVersion
}

/// The end of what a server has of a shared log.
package struct SharedLogPlace: Hashable, Sendable {
    package let store: StoreIdentity
    /// Of the last group; 0 before the first.
    package let sequence: UInt64
    /// Stands for the contents of all groups up to it.
    package let hash: UInt64

    package init(store: StoreIdentity, sequence: UInt64, hash: UInt64) {
        self.store = store
        self.sequence = sequence
        self.hash = hash
    }
}

/// Groups of a shared log on their way to another server.
package struct SharedLogGroups: Sendable {
    /// The groups, encoded; empty if there are none yet.
    package let bytes: [UInt8]
    /// After the last of them.
    package let end: SharedLogPlace

    package init(bytes: [UInt8], end: SharedLogPlace) {
        self.bytes = bytes
        self.end = end
    }
}
