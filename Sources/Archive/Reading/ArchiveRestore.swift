internal import EmbeddedEngine
internal import FileSystem
package import Storage

/// Makes a data directory of an archive: the base's files, and the records after it up to a version. The engine that
/// opens the directory replays the records, as after a crash, and writes them to runs. They do not go through its log,
/// which would write and read them once more.
package enum ArchiveRestore {
    /// What was restored.
    package struct Outcome: Sendable {
        /// That of the last commit in the directory.
        package var version: CommitVersion
        package var baseVersion: CommitVersion
        /// Commits after the base.
        package var records: Int
        package var byteCount: Int
    }

    /// Restores all commits up to a version. If what leads there is pruned meanwhile, another way is taken.
    ///
    /// - Parameters:
    ///   - target: a directory that does not exist. When this throws, none is left.
    ///   - version: nil for the last one.
    ///   - progress: gets the number of bytes written so far, on this thread.
    ///   - replay: opens the directory on this thread with the records as `EngineOptions.restoredRecords`, and closes
    ///     it. It throws what either throws. It is called again if another way is taken.
    /// - Throws: `versionTooOld` if the archive does not have the version; `corrupt` if a file that is needed is
    ///   damaged or missing, or for the last version may have later commits; `unsupportedFormat`, `full`,
    ///   `inputOutput`; what `replay` throws.
    package static func run(
        from archive: String, to target: String, upTo version: CommitVersion? = nil,
        progress: @escaping WorkProgress.Handler = { _ in },
        replay: (@escaping EngineOptions.RestoredRecords) throws -> Void
    ) throws -> Outcome {
        try Directory.checkApart(archive, target, for: "a restore")
        var (route, end) = try way(to: version, in: ArchiveCatalogue(archive))
        while true {
            do {
                return try restore(route, from: archive, to: target, upTo: end, progress, replay)
            } catch {
                try? Directory.removeAll(target)
                let catalogue = try? ArchiveCatalogue(archive)
                guard let catalogue, catalogue.lacksPart(of: route) else { throw error }
                (route, end) = try wayAfterPrune(to: version, in: catalogue)
            }
        }
    }

    /// What leads to a version, and the version.
    /// - Parameter version: nil for the last one.
    private static func way(
        to version: CommitVersion?, in catalogue: ArchiveCatalogue
    ) throws(StorageError) -> (route: ArchiveCatalogue.Route, end: CommitVersion) {
        guard let end = version ?? catalogue.lastVersion else {
            if let problem = catalogue.problems.first { throw problem }
            throw StorageError(.versionTooOld, "the archive has no complete base", file: catalogue.directory)
        }
        if version == nil { try catalogue.checkEnd() }
        return (try catalogue.route(to: end), end)
    }

    private static func wayAfterPrune(
        to version: CommitVersion?, in catalogue: ArchiveCatalogue
    ) throws(StorageError) -> (route: ArchiveCatalogue.Route, end: CommitVersion) {
        do throws(StorageError) {
            return try way(to: version, in: catalogue)
        } catch {
            guard error.code == .versionTooOld else { throw error }
            throw StorageError(
                .versionTooOld, "\(error.message): what leads to an earlier version was removed during the restore",
                file: error.file, remedy: "keep more with --archive-retention")
        }
    }

    private static func restore(
        _ route: ArchiveCatalogue.Route, from archive: String, to target: String, upTo version: CommitVersion,
        _ progress: @escaping WorkProgress.Handler, _ replay: (@escaping EngineOptions.RestoredRecords) throws -> Void
    ) throws -> Outcome {
        let report = RestoreReport(route, progress)
        let directory = try DirectoryAssembly(target)
        let folder = ArchiveFormat.baseDirectory(route.base.number, in: archive)
        try BaseCopy(route.base, from: folder, to: target).run { report.note($0) }
        try directory.complete()
        let records = ArchivedRecords(route, in: archive, upTo: version)
        try replay { body in try records.read({ report.note($0) }, body) }
        let (last, count) = records.outcome
        return Outcome(
            version: last, baseVersion: route.base.version, records: count, byteCount: report.byteCount)
    }
}
