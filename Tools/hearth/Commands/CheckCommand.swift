// `hearth check`: every invariant of a data directory.

import DocumentStore
import Glibc

/// Verifies a data directory that no server has open.
enum CheckCommand: Subcommand {
    static let name = "check"
    static let summary = "Verifies every invariant of a data directory and says what is wrong."
    static let words: [String] = []
    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [data])]

    static let discussion = """
        Reads everything: the log and its checksums, the order and versions of the tree, the
        catalogue's counts, and that each document is valid and in canonical form. A log that
        a crash left behind is taken into the tree, as the next start would do. The status is
        0 when all is well and 1 when something is wrong.

        The directory must not be in use: stop the server, or check a backup.

        Example:

          hearth check --data /var/lib/hearth
        """

    static func run(_ arguments: ParsedArguments) async throws {
        let directory = arguments[data]
        guard access("\(directory)/FORMAT", F_OK) == 0 else { throw CommandFailure("\(directory) is no data directory") }
        let report = try StoreCheck.run(StoreConfiguration(directory: directory))
        for problem in report.problems { print("problem: \(problem)") }
        guard report.isClean else { throw CommandFailure("\(directory): \(report.problems.count) problems") }
        print(
            "\(directory): no problems; \(report.documents) documents of \(report.documentBytes) bytes"
                + " in \(report.collections) collections and \(report.databases) databases")
    }
}
