// `hearth restore`: a data directory from a backup.

import DocumentStore
import Foundation

/// Makes a data directory out of a backup, after checking it.
enum RestoreCommand: Subcommand {
    static let name = "restore"
    static let summary = "Creates a data directory from a backup."
    static let words = ["BACKUP"]
    static let data = Flag(
        "data", "DIR", default: "./hearth-data",
        help: "The data directory to create. It must not exist or must be empty.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [data])]

    static let discussion = """
        Copies the backup, verifies the copy as hearth check does, and then renames it to DIR.
        The backup does not change.

        Example:

          hearth restore --data /var/lib/hearth /backups/hearth-monday
        """

    static func run(_ arguments: ParsedArguments) async throws {
        let backup = arguments.words[0]
        let directory = arguments[data]
        guard FileManager.default.fileExists(atPath: "\(backup)/FORMAT") else {
            throw CommandFailure("\(backup) is not a backup")
        }
        let partial = try copy(backup, besides: directory)
        let report = try StoreCheck.run(StoreConfiguration(directory: partial))
        if let problem = report.problems.first {
            try FileManager.default.removeItem(atPath: partial)
            throw CommandFailure("\(backup) is damaged: \(problem)")
        }
        try FileManager.default.moveItem(atPath: partial, toPath: directory)
        print("\(directory) restored from \(backup)")
    }

    /// Copies to a name beside the directory's, so that a copy that was cut short or is damaged is never taken for it.
    private static func copy(_ backup: String, besides directory: String) throws -> String {
        let files = FileManager.default
        if files.fileExists(atPath: directory) {
            guard let entries = try? files.contentsOfDirectory(atPath: directory), entries.isEmpty else {
                throw CommandFailure("\(directory) exists and is not an empty directory")
            }
            try files.removeItem(atPath: directory)
        }
        let partial = "\(directory).restoring"
        if files.fileExists(atPath: partial) { try files.removeItem(atPath: partial) }
        try files.copyItem(atPath: backup, toPath: partial)
        // A backup that has been served has begun a history, which the copy does not continue.
        let timeline = "\(partial)/TIMELINE"
        if files.fileExists(atPath: timeline) { try files.removeItem(atPath: timeline) }
        return partial
    }
}
