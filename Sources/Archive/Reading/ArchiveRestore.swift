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

    /// Restores all commits up to a version.
    ///
    /// - Parameters:
    ///   - target: a directory that does not exist. When this throws, none is left.
    ///   - version: nil for the last one.
    ///   - progress: gets the number of bytes written so far, on this thread.
    ///   - replay: opens the directory on this thread with the records as `EngineOptions.restoredRecords`, and closes
    ///     it. It throws what either throws.
    /// - Throws: `versionTooOld` if the archive does not have the version; `corrupt` if a file that is needed is
    ///   damaged or missing; `unsupportedFormat`, `full`, `inputOutput`; what `replay` throws.
    package static func run(
        from archive: String, to target: String, upTo version: CommitVersion? = nil,
        progress: @escaping WorkProgress.Handler = { _ in },
        replay: (@escaping EngineOptions.RestoredRecords) throws -> Void
    ) throws -> Outcome {
        try Directory.checkApart(archive, target, for: "a restore")
        let catalogue = try ArchiveCatalogue(archive)
        guard let version = version ?? catalogue.lastVersion else {
            if let problem = catalogue.problems.first { throw problem }
            throw StorageError(.versionTooOld, "the archive has no complete base", file: archive)
        }
        let route = try catalogue.route(to: version)
        let report = RestoreReport(route, progress)
        do {
            let directory = try DirectoryAssembly(target)
            let folder = ArchiveFormat.baseDirectory(route.base.number, in: archive)
            try BaseCopy(route.base, from: folder, to: target).run { report.note($0) }
            try directory.complete()
            let records = ArchivedRecords(route, in: archive, upTo: version)
            try replay { body in try records.read({ report.note($0) }, body) }
            let (last, count) = records.outcome
            return Outcome(
                version: last, baseVersion: route.base.version, records: count, byteCount: report.byteCount)
        } catch {
            try? Directory.removeAll(target)
            throw error
        }
    }
}
