// `hearth upgrade`: the format of a data directory.

import EmbeddedEngine
import Glibc
import Storage

/// Upgrades a data directory that an older version has written. Keeps the old files until that is confirmed, and
/// returns to them.
enum UpgradeCommand: BlockingSubcommand {
    static let name = "upgrade"
    static let summary = "Upgrades a data directory that an older version has written, or returns to the older files."
    static let words = ["DIR"]
    static let dryRun = Flag(switch: "dry-run", help: "Only say what would be done.")
    static let confirm = Flag(
        switch: "confirm", help: "Remove the files of the older format: then there is no way back.")
    static let back = Flag(
        switch: "back", help: "Return to the files of the older format. What was committed since the upgrade is lost.")
    static let yes = Flag(switch: "yes", help: "Do not ask before --back.")
    static let flagGroups = [
        FlagGroup(heading: "Flags", flags: [dryRun, confirm, back, yes] + ProgressFlags.all)
    ]

    static let discussion = """
        No command but this one and hearth serve --upgrade changes the format of a data
        directory. The others refuse a directory of an older format.

        The new files are written beside the old ones, which stay until --confirm. The
        directory must not be in use. If the upgrade fails the directory is as before. If it
        is interrupted, run it again.

        The older version reads the directory again after --back. What was committed since
        the upgrade is lost then.

        Examples:

          hearth upgrade /var/lib/hearth --dry-run
          hearth upgrade /var/lib/hearth
          hearth upgrade /var/lib/hearth --confirm
        """

    static func run(_ arguments: ParsedArguments) throws {
        let directory = arguments.words[0]
        try PathWords.checkDataDirectory(directory)
        let asked = [dryRun, confirm, back].filter { arguments[$0] }
        if asked.count > 1 {
            throw UsageError(message: asked.map { "--\($0.name)" }.joined(separator: " and ") + " cannot be combined")
        }
        let upgrade = DirectoryUpgrade(of: directory)
        if arguments[back], !arguments[yes] { try confirmBack(directory) }
        var line = ProgressFlags.line(arguments)
        defer { line.clear() }
        let report =
            switch asked.first?.name {
            case dryRun.name: describe(try upgrade.plan(), of: directory)
            case confirm.name: describe(confirmed: try upgrade.confirm(), of: directory)
            case back.name: describe(back: try upgrade.goBack(), of: directory)
            default: describe(done: try upgrade.run { line.update($0) }, of: directory)
            }
        line.clear()
        try StandardOutput.print(report)
    }

    /// Asks on the terminal.
    private static func confirmBack(_ directory: String) throws {
        guard isatty(STDIN_FILENO) == 1 else {
            throw CommandFailure(
                "\(directory): --back loses what was committed since the upgrade; confirm with --yes")
        }
        StandardError.write("Lose what was committed to \(directory) since the upgrade? Type the path to confirm: ")
        guard readLine(strippingNewline: true) == directory else {
            throw CommandFailure("\(directory): nothing was changed")
        }
    }

    // MARK: Reports

    /// What an upgrade would do.
    static func describe(_ plan: DirectoryUpgrade.Plan, of directory: String) -> String {
        if plan.isInterrupted {
            return """
                \(directory): a change from format \(plan.from) to \(plan.to) was interrupted and would be completed
                """
        }
        if plan.from == plan.to { return unchanged(plan, of: directory) }
        return """
            \(directory) would be upgraded from format \(plan.from) to \(plan.to); at most \(plan.bytesNeeded) bytes \
            would be written, and \(plan.bytesFree) are free
            """
    }

    /// What an upgrade has done.
    static func describe(done plan: DirectoryUpgrade.Plan, of directory: String) -> String {
        if plan.from == plan.to { return unchanged(plan, of: directory) }
        if plan.to < plan.from { return describe(back: plan.to, of: directory) }
        return "\(directory) was upgraded from format \(plan.from) to \(plan.to). \(advice(plan.from))"
    }

    private static func unchanged(_ plan: DirectoryUpgrade.Plan, of directory: String) -> String {
        "\(directory) has format \(plan.to), which this version uses." + (plan.kept.map { " \(advice($0))" } ?? "")
    }

    private static func advice(_ kept: Int) -> String {
        "The files of format \(kept) are kept: --confirm removes them, --back returns to them"
    }

    private static func describe(confirmed kept: Int?, of directory: String) -> String {
        guard let kept else { return "\(directory) has no files of an older format" }
        return "\(directory): the files of format \(kept) were removed"
    }

    private static func describe(back kept: Int, of directory: String) -> String {
        "\(directory) has format \(kept) again, as before the upgrade; open it with the version that wrote it"
    }
}
