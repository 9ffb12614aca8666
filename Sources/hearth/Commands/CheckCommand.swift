// `hearth check`: every invariant of a data directory.

import DocumentStore

/// Verifies a data directory that no server has open.
enum CheckCommand: Subcommand {
    static let name = "check"
    static let summary = "Verifies a data directory and lists what is damaged."
    static let words: [String] = []
    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [data] + ProgressFlags.all)]

    static let discussion = """
        Reads all data and verifies the checksums of the log, the order and versions of the
        keys in the runs, the document counts of the catalogue, the index entries, and that
        each document is valid and canonical. Nothing is written: the directory may be on a
        read-only file system. The exit status is 0 if there is no problem and 1 otherwise.

        The directory must not be in use: stop the server, or check a backup.

        Example:

          hearth check --data /var/lib/hearth
        """

    static func run(_ arguments: ParsedArguments) async throws {
        let directory = arguments[data]
        try PathWords.checkDataDirectory(directory)
        var line = ProgressFlags.line(arguments)
        defer { line.clear() }
        let report = try StoreCheck.run(StoreConfiguration(directory: directory)) { line.update($0) }
        line.clear()
        for problem in report.problems { try StandardOutput.print("problem: \(problem)") }
        guard report.isClean else { throw CommandFailure("\(directory): \(report.problems.count) problems") }
        try StandardOutput.print(
            "\(directory): no problems; \(report.documents) documents of \(report.documentBytes) bytes"
                + " in \(report.collections) collections and \(report.databases) databases")
    }
}
