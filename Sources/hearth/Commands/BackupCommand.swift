// `hearth backup`: a consistent copy of a data directory, while it is served or not.

import DocumentStore
import FirestoreService
import Glibc
import Server

/// Copies a data directory as of one moment.
enum BackupCommand: Subcommand {
    static let name = "backup"
    static let summary = "Writes a consistent copy of a data directory, also while a server uses it."
    static let words = ["TARGET"]
    static let discussion = """
        TARGET must not exist or must be an empty directory. It becomes a complete data
        directory: serve it as it is, or make another directory of it with hearth restore.

        If a server uses the directory, the server writes the copy and continues to serve.
        The copy contains every commit that was acknowledged before the copy began, and no
        later one.

        Example:

          hearth backup --data /var/lib/hearth /backups/hearth-monday
        """

    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory to copy.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [data])]

    static func run(_ arguments: ParsedArguments) async throws {
        let target = absolutePath(arguments.words[0])
        guard !target.contains("\n") else {
            throw CommandFailure("the path of the target must not contain a line break")
        }
        let directory = arguments[data]
        guard access("\(directory)/FORMAT", F_OK) == 0 else {
            throw CommandFailure("\(directory) is not a Hearth data directory")
        }
        do {
            try AdminClient.backup(directory: directory, to: target)
        } catch .noServer {
            let store = try DocumentStore.open(.forTool(directory))
            defer { store.close() }
            try store.backup(to: target)
        }
        print("backup written to \(target)")
    }

    /// The path from the root, since a server's working directory is another.
    private static func absolutePath(_ path: String) -> String {
        if path.hasPrefix("/") { return path }
        guard let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return "\(String(cString: current))/\(path)"
    }
}
