// `hearth restore`: a data directory from a backup.

import DocumentStore
import EmbeddedEngine
import FileSystem
import Storage

/// Makes a data directory out of a backup, after checking it.
enum RestoreCommand: MainThreadSubcommand {
    static let name = "restore"
    static let summary = "Creates a data directory from a backup."
    static let words = ["BACKUP"]
    static let data = Flag(
        "data", "DIR", default: "./hearth-data",
        help: "The data directory to create. It must not exist or must be empty.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [data] + ProgressFlags.all)]

    static let discussion = """
        Copies the backup to DIR.restoring, verifies the copy as hearth check does, and then
        renames it to DIR. The backup does not change. Nothing may use it meanwhile: to copy
        a directory that a server uses, run hearth backup. Neither directory may lie in the
        other. A restore that fails leaves nothing; what a killed one leaves is
        removed by the next.

        Example:

          hearth restore --data /var/lib/hearth /backups/hearth-monday
        """

    static func run(_ arguments: ParsedArguments) throws {
        let backup = arguments.words[0]
        guard Directory.exists("\(backup)/FORMAT") else { throw CommandFailure("\(backup) is not a backup") }
        let directory = Directory.resolved(arguments[data])
        let partial = "\(directory).restoring"
        for path in [directory, partial] { try Directory.checkApart(backup, path, for: "hearth restore") }
        if Directory.exists(directory), (try? Directory.names(in: directory).isEmpty) != true {
            throw CommandFailure("\(directory) exists and is not an empty directory")
        }
        try DirectoryCopy.removeUnfinished(partial)
        var line = ProgressFlags.line(arguments)
        defer { line.clear() }
        try copy(backup, to: partial) { line.update($0) }
        do {
            try verify(partial, of: backup) { line.update($0) }
            try Directory.rename(partial, to: directory)
            try Directory.syncName(of: directory)
        } catch {
            try? Directory.removeAll(partial)
            throw error
        }
        line.clear()
        try StandardOutput.print("\(directory) restored from \(backup)")
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
