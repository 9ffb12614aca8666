// `hearth backup`: a consistent copy of a data directory, while it is served or not.

import Basics
import Dispatch
import DocumentStore
import FileSystem
import FirestoreService
import Glibc
import Server
import Storage

/// Copies a data directory as of one moment.
enum BackupCommand: BlockingSubcommand {
    static let name = "backup"
    static let summary = "Writes a consistent copy of a data directory, also while a server uses it."
    static let words = ["TARGET"]
    static let discussion = """
        TARGET must not exist or must be an empty directory, outside of the data directory.
        It becomes a complete data directory: serve it as it is, or make another directory of
        it with hearth restore. A backup that fails leaves nothing in TARGET.

        If a server uses the directory, the server writes the copy and continues to serve.
        The copy contains every commit that was acknowledged before the copy began, and no
        later one. If this command is interrupted, the server gives the copy up and removes it.
        A server with several stores of a cluster writes TARGET/NAME for each.

        Example:

          hearth backup --data /var/lib/hearth /backups/hearth-monday
        """

    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory to copy.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [data] + ProgressFlags.all)]

    static func run(_ arguments: ParsedArguments) throws {
        let target = PathWords.absolute(arguments.words[0])
        guard !target.contains("\n") else {
            throw CommandFailure("the path of the target must not contain a line break")
        }
        let directory = arguments[data]
        try CopySource.check(directory)
        // The engine refuses it too; asked here, nothing is opened for it.
        try Directory.checkApart(directory, target, for: "a backup")
        try GrowthDisplay.show(target, upTo: directory, ProgressFlags.line(arguments)) {
            do {
                try AdminClient.backup(directory: directory, to: target)
                try CopySource.checkIsHere(target)
            } catch {
                guard case AdminClient.Failure.noServer = error else { throw error }
                try CopySource.checkUnserved(directory)
                let store = try DocumentStore.open(.forTool(directory))
                defer { store.close() }
                try store.backup(to: target)
            }
        }
        try StandardOutput.print("backup written to \(target)")
    }
}

/// Shows how far a copy has come by the files that are there: another process may be writing it.
enum GrowthDisplay {
    private static let pollMilliseconds = 100

    /// Does work that copies the runs of one data directory to another, and shows meanwhile how these grow.
    static func show<Answer>(
        _ target: String, upTo source: String, _ line: ProgressLine, _ work: () throws -> Answer
    ) rethrows -> Answer {
        let done = DispatchSemaphore(value: 0)
        let display = try? SystemThread(name: "progress") {
            var line = line
            repeat {
                let total = runBytes(source)
                line.update(WorkProgress("copying", done: min(runBytes(target), total), total: total, .bytes))
            } while done.wait(timeout: .now() + .milliseconds(pollMilliseconds)) == .timedOut
            line.clear()
        }
        defer {
            done.signal()
            display?.join()
        }
        return try work()
    }

    /// Bytes of the sorted runs of a data directory.
    private static func runBytes(_ directory: String) -> Int {
        let runs = "\(directory)/runs"
        let names = (try? Directory.names(in: runs)) ?? []
        return names.reduce(0) { bytes, name in
            var status = stat()
            return stat("\(runs)/\(name)", &status) == 0 ? bytes + Int(status.st_size) : bytes
        }
    }
}
