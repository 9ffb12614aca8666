// API declaration; the parts behind it follow.

/// The embedded engine: log, overlay, tree.
package final class EmbeddedEngine: KeyValueEngine {
    /// Derives again, from a log record, the keys that its commit changed.
    ///
    /// Called once for each record after the last checkpoint, in order. `latest` shows the state just before the commit. The batch
    /// is empty at the call. What it throws ends the opening.
    package typealias Replay = (
        _ version: CommitVersion, _ record: RawSpan, _ mutations: inout MutationBatch, _ latest: LatestReader
    ) throws -> Void

    /// Opens a directory, creating it if need be, and recovers what its log holds.
    ///
    /// - Throws: `StorageError` (`locked`, `unsupportedFormat`, `corrupt`, `inputOutput`, `full`), or what `replay` throws.
    package static func open(
        directory: String, options: EngineOptions = EngineOptions(), replay: Replay
    ) throws -> EmbeddedEngine {
        fatalError("not built yet")
    }

    package let directory: String = ""
    package let options: EngineOptions = EngineOptions()

    package func makeWriter() throws(StorageError) -> EngineWriter { fatalError("not built yet") }

    package func makeReader() throws(StorageError) -> EngineReader { fatalError("not built yet") }

    package var publishedVersion: CommitVersion { fatalError("not built yet") }

    package var oldestReadableVersion: CommitVersion { fatalError("not built yet") }

    package var statistics: EngineStatistics { fatalError("not built yet") }

    /// Writes everything published so far into the tree, and returns when it is there.
    package func checkpointNow() throws(StorageError) { fatalError("not built yet") }

    package func backup(to directory: String) throws(StorageError) { fatalError("not built yet") }

    package func close() throws(StorageError) { fatalError("not built yet") }
}
