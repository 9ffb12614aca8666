// `hearth salvage`: what is readable of a damaged data directory.

import Authorization
import DocumentStore
import EmbeddedEngine
import FileSystem
import Storage

/// Makes a new data directory of what is readable of a damaged one.
enum SalvageCommand: BlockingSubcommand {
    static let name = "salvage"
    static let summary = "Takes what is readable of a damaged data directory."
    static let words = ["DIR", "OUT"]
    static let flagGroups = [FlagGroup(heading: "Flags", flags: ProgressFlags.all)]

    static let discussion = """
        Reads all documents of DIR that are intact, by the checksum that is stored with each
        of them, and the log, and creates the data directory OUT from them. Prints what
        could not be read, a line each. DIR does not change, and no server may use it. A
        backup is better where there is one: a document that cannot be read may come back
        in an older version, or if its deletion cannot be read.

        Documents keep their times. Earlier versions and databases that were deleted are not
        taken, and the indexes are built when a server opens OUT. The security rules of DIR
        are copied, except those that cannot be read; without the newest no server starts
        on OUT before others are applied. OUT must not exist. Its disk needs room for the
        documents three times, and up to 2 GiB more: 160 MB of documents took 1 GB.

        Example:

          hearth salvage /var/lib/hearth /var/lib/hearth-salvaged
        """

    static func run(_ arguments: ParsedArguments) throws {
        let (directory, target) = (arguments.words[0], Directory.resolved(arguments.words[1]))
        try PathWords.checkAccess(directory)
        guard Directory.exists("\(directory)/runs") || Directory.exists("\(directory)/log") else {
            throw CommandFailure("\(directory) is not a Hearth data directory: it has neither runs nor a log")
        }
        if Directory.status(of: target, followsLink: false).identity != nil { throw CommandFailure("\(target) exists") }
        try Directory.checkApart(directory, target, for: "hearth salvage")
        var line = ProgressFlags.line(arguments)
        defer { line.clear() }
        var rules = Result<[StorageError], any Error>.success([])
        let report = try StoreSalvage.run(directory, to: target) {
            line.update($0)
        } complete: { place in
            rules = Result { try salvageRules(of: directory, to: place) }
        }
        line.clear()
        for loss in report.losses { try StandardOutput.print(line: "unreadable: \(loss)") }
        if report.lossCount > report.losses.count {
            try StandardOutput.print("unreadable: \(report.lossCount - report.losses.count) more places")
        }
        try StandardOutput.print(
            "\(target): \(report.documents) documents of \(directory); \(report.lossCount) places cannot be read")
        switch rules {
        case .success(let problems):
            for problem in problems { try StandardOutput.print("unreadable: \(problem)") }
        case .failure(let error):
            throw CommandFailure(
                "\(target) has no security rules, because those of \(directory) cannot be read: \(error); no server "
                    + "starts on it before others are applied with hearth rules apply")
        }
    }

    /// Copies the texts of rules that can be read.
    ///
    /// - Returns: what is wrong with the others.
    private static func salvageRules(of directory: String, to place: String) throws -> [StorageError] {
        let copy = RulesHistory(dataDirectory: place)
        do {
            try CompanionFiles.copy(from: directory, to: place, leavesOutUnreadable: true)
            return try copy.removeUnreadable(of: RulesHistory(dataDirectory: CompanionFiles.owner(of: directory)))
        } catch {
            try copy.noteMissing()
            throw error
        }
    }
}
