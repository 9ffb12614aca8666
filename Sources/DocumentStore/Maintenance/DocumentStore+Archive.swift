internal import Archive
internal import CommitLog
internal import EmbeddedEngine
package import Storage
internal import StorageEngines

extension StorageEngine {
    /// Begins to archive what is committed; nil without settings.
    /// - Throws: `unsupported` for an engine without files; what ``Archiver/init(_:_:)`` throws.
    func makeArchiver(_ settings: ArchiveSettings?) throws(StorageError) -> Archiver? {
        guard let settings else { return nil }
        switch self {
        case .embedded(let engine): return try Archiver(engine, settings)
        case .memory: throw StorageError(.unsupported, "a store in memory cannot be archived")
        }
    }
}

extension DocumentStore {
    /// The log should keep what follows a version, because the archive lacks it, up to a number of bytes; nil without
    /// an archive. A server that has not opened the archive yet names version 0.
    package var archiveHold: (version: CommitVersion, bytesMax: Int)? {
        switch engine {
        case .embedded(let engine): engine.log.archiveHold
        case .memory: nil
        }
    }
}
