// `hearth restore`: a data directory from a backup, or from an archive.

import Archive
import DocumentModel
import DocumentStore
import EmbeddedEngine
import FileSystem
import Storage

/// Makes a data directory out of a backup, after checking it, or out of an archive.
enum RestoreCommand: BlockingSubcommand {
    static let name = "restore"
    static let summary = "Creates a data directory from a backup, or from an archive as of a time."
    static let words = ["[BACKUP]"]
    static let data = Flag(
        "data", "DIR", default: "./hearth-data",
        help: "The data directory to create. It must not exist or must be empty."
    ).alias("to")
    static let source = Flag<String>("from", "ARCHIVE", required: false, help: "The archive, in place of BACKUP.")
    static let at = Flag<PointInTime>(
        "at", "TIME", required: false,
        help: "The last commit is the last one until this time, such as 2031-05-02T08:15:30Z.")
    static let version = Flag<Int>(
        "version", "N", in: 1...Int.max,
        help: "The last commit is the last one until this version: a commit time in microseconds since 1970.")
    static let database = Flag<String>(
        "database", "ID", required: false, help: "Take the documents of this database only.")
    static let collection = Flag<String>(
        "collection", "PATH", required: false,
        help: "Take the documents of this collection only, with everything below them.")
    static let flagGroups = [
        FlagGroup(heading: "Flags", flags: [data] + ProgressFlags.all),
        FlagGroup(
            heading: "Archive", flags: [source, at, version, database, ServerFlags.project, collection]),
    ]

    static let discussion = """
        Copies the backup to DIR/RESTORE.new, verifies the copy as hearth check does, and
        then moves its files to DIR, which may be a mount point. The backup does not change.
        Nothing may use it meanwhile: to copy a directory that a server uses, run hearth
        backup. Neither directory may lie in the other. A restore that fails leaves nothing.
        After a killed one no server starts on DIR, and the next restore begins again.

        With --from ARCHIVE it makes the state of any commit that the archive of hearth serve
        --archive has: the last one, or that of --at or --version. All checksums are
        verified. A server may write to the archive meanwhile. With --database or
        --collection the directory has the newest documents of that part with their times,
        without earlier versions.

        Examples:

          hearth restore --data /var/lib/hearth /backups/hearth-monday
          hearth restore --from /backups/hearth --to /var/lib/hearth-noon --at 2031-05-02T12:00:00Z
        """

    static func run(_ arguments: ParsedArguments) throws {
        let directory = Directory.resolved(arguments[data])
        guard let origin = arguments.value(of: source) ?? arguments.words.first else {
            throw UsageError(message: "missing argument BACKUP, or --from ARCHIVE")
        }
        try PathWords.checkAccess(origin)
        let isArchive = arguments.has(source) && !Directory.exists("\(origin)/FORMAT")
        if arguments.has(source), !arguments.words.isEmpty {
            throw UsageError(message: "BACKUP and --from cannot be combined")
        }
        let others: [any FlagDeclaration] = [at, version, database, collection]
        if !isArchive, let flag = others.first(where: { arguments.has($0) }) {
            throw UsageError(message: "--\(flag.name) needs --from with an archive")
        }
        guard isArchive || Directory.exists("\(origin)/FORMAT") else {
            throw CommandFailure("\(origin) is not a backup")
        }
        try Directory.checkApart(origin, directory, for: "hearth restore")
        guard (try? RestorePlacing.isFree(directory)) == true else {
            throw CommandFailure("\(directory) exists and is not an empty directory")
        }
        var line = ProgressFlags.line(arguments)
        defer { line.clear() }
        var note = ""
        try RestorePlacing.run(directory) { partial in
            if isArchive {
                note = try ArchivedState(arguments, origin).restore(to: partial) { line.update($0) }
            } else {
                try copy(origin, to: partial) { line.update($0) }
                try verify(partial, of: origin) { line.update($0) }
            }
        }
        line.clear()
        try StandardOutput.print("\(directory) restored from \(origin)\(note)")
    }

    private static func copy(
        _ backup: String, to partial: String, _ progress: @escaping WorkProgress.Handler
    ) throws {
        do throws(StorageError) {
            try DirectoryCopy.run(from: backup, to: partial, progress: progress)
        } catch {
            guard error.code == .locked else { throw error }
            throw CommandFailure(
                "\(backup) is in use by another process; copy it with hearth backup, or stop that process")
        }
    }

    /// - Throws: what is wrong with the copy, and so with the backup.
    private static func verify(
        _ partial: String, of backup: String, _ progress: @escaping WorkProgress.Handler
    ) throws {
        let problems: [String]
        do {
            problems = try StoreCheck.run(StoreConfiguration(directory: partial), progress: progress).problems
        } catch let error as StorageError where [.corrupt, .unsupportedFormat].contains(error.code) {
            problems = [error.description]
        }
        guard let problem = problems.first else { return }
        // The copy is removed; its files are those of the backup.
        throw CommandFailure("\(backup) is damaged: \(problem.replacing(partial, with: backup))")
    }
}
