internal import Basics
internal import CommitLog
internal import EmbeddedEngine
internal import FileSystem
internal import Glibc
package import Storage

/// Makes a data directory of an archive: the base's files, and a log with the records up to a version. What opens the
/// directory replays the log, as after a crash.
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
    /// - Throws: `versionTooOld` if the archive does not have the version; `corrupt` if a file that is needed is
    ///   damaged or missing; `unsupportedFormat`, `full`, `inputOutput`.
    package static func run(
        from archive: String, to target: String, upTo version: CommitVersion? = nil,
        progress: @escaping WorkProgress.Handler = { _ in }
    ) throws -> Outcome {
        try Directory.checkApart(archive, target, for: "a restore")
        let catalogue = try ArchiveCatalogue(archive)
        guard let version = version ?? catalogue.lastVersion else {
            if let problem = catalogue.problems.first { throw problem }
            throw StorageError(.versionTooOld, "the archive has no complete base", file: archive)
        }
        let route = try catalogue.route(to: version)
        do {
            var assembly = Assembly(route, catalogue, target, progress)
            return try assembly.run(upTo: version)
        } catch {
            try? Directory.removeAll(target)
            throw error
        }
    }
}

/// Writes the directory.
private struct Assembly {
    private let route: ArchiveCatalogue.Route
    private let catalogue: ArchiveCatalogue
    private let target: String
    private let report: WorkProgress.Handler
    private var progress: WorkProgress

    private static let groupBytes = 4 << 20

    init(
        _ route: ArchiveCatalogue.Route, _ catalogue: ArchiveCatalogue, _ target: String,
        _ report: @escaping WorkProgress.Handler
    ) {
        self.route = route
        self.catalogue = catalogue
        self.target = target
        self.report = report
        let bytes = route.base.byteCount + route.files.reduce(0) { $0 + $1.payloadBytes }
        progress = WorkProgress("restoring", done: 0, total: bytes, .bytes)
    }

    mutating func run(upTo version: CommitVersion) throws -> ArchiveRestore.Outcome {
        report(progress)
        let directory = try DirectoryAssembly(target)
        for part in route.base.parts { try copy(part) }
        if Directory.exists("\(target)/rules") { try Directory.sync("\(target)/rules") }
        let (last, records) = try writeLog(upTo: version)
        try directory.complete()
        return ArchiveRestore.Outcome(
            version: last, baseVersion: route.base.version, records: records, byteCount: progress.done)
    }

    private mutating func note(_ bytes: Int) {
        progress.done += bytes
        report(progress)
    }

    private mutating func copy(_ part: ArchiveBase.Part) throws(StorageError) {
        let path = "\(target)/\(part.path)"
        try Directory.create(Directory.parent(of: path))
        let output = try File(path, flags: O_RDWR | O_CREAT | O_EXCL)
        var offset = 0
        unsafe try BasePart.read(part, of: route.base, in: catalogue.directory) { bytes throws(StorageError) in
            unsafe try output.write(bytes, at: offset)
            offset += bytes.count
            note(bytes.count)
        }
        try output.sync()
    }

    /// Writes the records after the base to a log.
    /// - Returns: the last version, and how many records there are.
    private mutating func writeLog(upTo version: CommitVersion) throws -> (CommitVersion, Int) {
        var options = EngineOptions()
        options.diskReserveBytes = 0
        let log = WriteAheadLog(directory: "\(target)/log", options: options)
        defer { log.close() }
        let base = route.base.version
        let appender = try log.recover(
            from: LogPosition(segment: 0), after: base, finished: { _, _ in }, { _, _ in })
        try log.startThreads()
        var records = 0
        for header in route.files {
            let file = try RecordFile(header, in: catalogue.directory)
            try file.visit { recordVersion, record throws(StorageError) in
                guard recordVersion > base, recordVersion <= version else { return }
                try appender.reserve(recordBytes: record.byteCount, mayUseReserve: false)
                appender.append(record, version: recordVersion)
                records += 1
                if appender.stagedBytes >= Self.groupBytes { try Self.commit(appender) }
            }
            note(header.payloadBytes)
        }
        if !appender.isEmpty { try Self.commit(appender) }
        return (appender.lastVersion, records)
    }

    private static func commit(_ appender: LogAppender) throws(StorageError) {
        _ = try appender.synchronize(appender.seal())
    }
}
