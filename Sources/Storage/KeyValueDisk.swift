// What an engine is asked about its disk. Reads and commits do not need it.

/// The disk below an engine: its space, checkpoints and copies. Those of an engine without files are trivial. Any
/// thread.
package protocol KeyValueDisk: AnyObject, Sendable {
    /// The lack of space for which commits other than deletes are refused; nil if there is enough. Any thread.
    var shortage: StorageError? { get }

    /// The same, or the lack of space of the last two seconds, for those who look only now and then. Any thread.
    var recentShortage: StorageError? { get }

    /// Why an attempt to write a file of the store failed, now or in the last two seconds, unless space was missing.
    /// It is made again, and commits are accepted as long as there is room in memory. Costs a few locks. Any thread.
    var recentWriteFailure: StorageError? { get }

    /// About how much the keys in `lower..<upper` take on disk, without reading them: as of the last checkpoint, and
    /// with history, tombstones, and keys that are stored several times until they are merged. Any thread.
    /// - Throws: `corrupt`.
    func estimate(from lower: RawSpan, to upper: RawSpan) throws(StorageError) -> KeyRangeEstimate

    /// Makes the next open quick: nothing published before the call is replayed then. Blocks until that is done. Any
    /// thread except the commit thread with something staged.
    /// - Throws: `full` or `inputOutput` if a file cannot be written, which is tried again; `failed`, `closed`.
    func checkpointNow() throws(StorageError)

    /// Removes all history that has become too old by the engine's clock, and blocks until that is done. Any thread.
    /// Merges also do so without this call.
    /// - Throws: as ``checkpointNow()``.
    func sweepHistoryNow() throws(StorageError)

    /// Writes a consistent copy, as of a version published during the call, into a directory that does not exist or is
    /// empty. Any thread; commits continue meanwhile.
    /// - Throws: `inputOutput` if the directory is not empty or cannot be written; `full`, `failed`, `closed`;
    ///   `unsupported` from an engine without files; `cancelled`.
    func backup(to directory: String, _ control: CopyControl) throws(StorageError)

    /// Makes a separate store with everything published, in a directory that does not exist or is empty. Both share the
    /// files that never change, so the time does not depend on their size. Any thread; commits continue meanwhile.
    /// - Returns: the bytes that were copied because files could not be shared.
    /// - Throws: as ``backup(to:_:)``, without `cancelled`.
    func fork(to directory: String) throws(StorageError) -> Int
}
