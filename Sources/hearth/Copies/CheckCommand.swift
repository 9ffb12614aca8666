// `hearth check`: every invariant of a data directory.

import Authorization
import Basics
import DocumentStore

/// Verifies a data directory that no server has open.
enum CheckCommand: BlockingSubcommand {
    static let name = "check"
    static let summary = "Verifies a data directory, lists what is damaged, and repairs indexes."
    static let words: [String] = []
    static let data = Flag("data", "DIR", default: "./hearth-data", help: "The data directory.")
    static let repair = Flag(
        switch: "repair",
        help: "Makes all index entries again if some are damaged and everything else is intact.")
    static let json = Flag(
        switch: "json",
        help: "Print one object with the members problems, documents, bytes, collections and databases.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [data, repair, json] + ProgressFlags.all)]

    static let discussion = """
        Reads all data and verifies the checksums of the log, the order and versions of the
        keys in the runs, the document counts of the catalogue, the index entries, and that
        each document is valid and canonical. Compiles the security rules of the directory,
        without which no server starts on it. Nothing is written: the directory may be on a
        read-only file system. The exit status is 0 if there is no problem and 1 otherwise.

        Index entries follow from the documents. If only entries are damaged or missing,
        --repair drops all of them and builds the indexes again. Earlier versions of
        documents cannot be read after that. Documents are never repaired: restore a backup,
        or take what is readable with hearth salvage. A replica, and a directory of a server
        in a cluster, are made again from the other servers instead.

        The directory must not be in use: stop the server, or check a backup.

        Example:

          hearth check --data /var/lib/hearth
        """

    static func run(_ arguments: ParsedArguments) throws {
        let directory = arguments[data]
        try PathWords.checkDataDirectory(directory)
        let history = RulesHistory(dataDirectory: directory)
        let rules = Result { () throws(CommandFailure) in try RulesInForce.newest(of: history) }
        let gap = RulesInForce.gap(in: history)
        let problem =
            switch rules {
            case .failure(let problem): problem.description
            case .success: gap?.description
            }
        if let problem, !arguments[json] { try StandardOutput.print("problem: \(problem)") }
        try checkDocuments(directory, arguments, problemOfRules: problem)
        switch rules {
        case .success(nil): break
        case .success(let kept?):
            if gap != nil {
                throw CommandFailure(
                    "\(directory): the rules number \(kept.number) have no errors; those before them are missing, so "
                        + "hearth rules rollback has nothing to return to until others are applied")
            }
            if arguments[json] { return }
            try StandardOutput.print("\(directory): the rules number \(kept.number) have no errors")
        case .failure:
            throw CommandFailure(
                "\(directory): the security rules cannot be used; apply others with hearth rules apply, or return to "
                    + "those before with hearth rules rollback")
        }
    }

    /// The report as an object of JSON.
    private static func text(_ report: StoreCheck.Report, _ problemOfRules: String?) -> String {
        let all = (problemOfRules.map { [$0] } ?? []) + report.problems
        let problems = all.map(JSONText.quoted).joined(separator: ",")
        return """
            {"problems":[\(problems)],"documents":\(report.documents),"bytes":\(report.documentBytes),\
            "collections":\(report.collections),"databases":\(report.databases)}
            """
    }

    private static func checkDocuments(
        _ directory: String, _ arguments: ParsedArguments, problemOfRules: String?
    ) throws {
        var line = ProgressFlags.line(arguments)
        defer { line.clear() }
        var report = try StoreCheck.run(StoreConfiguration(directory: directory)) { line.update($0) }
        line.clear()
        if !arguments[json] { for problem in report.problems { try StandardOutput.print(line: "problem: \(problem)") } }
        let remedy = try EntriesOfOthers.remedy(directory)
        if arguments[repair], report.isRepairable, remedy == nil {
            try IndexRepair.run(directory) { line.update($0) }
            line.clear()
            report = try StoreCheck.run(StoreConfiguration(directory: directory)) { line.update($0) }
            line.clear()
            if !arguments[json] {
                for problem in report.problems {
                    try StandardOutput.print(line: "problem after the repair: \(problem)")
                }
            }
            if report.isClean, !arguments[json] {
                try StandardOutput.print("\(directory): repaired; all indexes were built again")
            }
        }
        if arguments[json] { try StandardOutput.print(text(report, problemOfRules)) }
        guard report.isClean else {
            let advice = remedy ?? (report.isRepairable ? "hearth check --repair builds the indexes again" : nil)
            throw CommandFailure(
                "\(directory): \(report.problems.count) problems\(advice.map { "; " + $0 } ?? "")")
        }
        if arguments[json] { return }
        try StandardOutput.print(
            "\(directory): no problems; \(report.documents) documents of \(report.documentBytes) bytes"
                + " in \(report.collections) collections and \(report.databases) databases")
    }
}
