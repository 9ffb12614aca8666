// `hearth archive`: what an archive has, whether it is whole, and the removal of what is old.

import Archive
import Basics
import DocumentJSON
import Storage

/// Lists, checks and prunes an archive.
enum ArchiveCommand: BlockingSubcommand {
    static let name = "archive"
    static let summary = "Lists, checks and prunes the archive of a data directory."
    static let words = ["ACTION", "[DIR]"]
    static let actions = ["list", "check", "prune"]
    static let retention = Flag(
        "retention", "TIME", default: TimeSpan.seconds(7 * 86_400),
        in: TimeSpan.seconds(0)...TimeSpan.seconds(3_660 * 86_400), help: "prune: how far back a restore shall reach.")
    static let json = Flag(switch: "json", help: "list and check print one object.")
    static let flagGroups = [FlagGroup(heading: "Flags", flags: [retention, json] + ProgressFlags.all)]

    static let discussion = """
        ACTION is list, check or prune. DIR is an archive that hearth serve --archive writes.

        list prints the bases, and from when to when states can be restored. check reads
        everything and verifies all checksums; the exit status is 0 if there is no problem
        and 1 otherwise. Both may be used while a server writes to the archive. prune
        removes what a restore within the retention does not need; a server does so by
        itself, and prune refuses its archive.

        hearth restore --from DIR makes a data directory of an archive.

        Examples:

          hearth archive list /backups/hearth
          hearth archive check /backups/hearth
          hearth archive prune /backups/hearth --retention 720h
        """

    static func run(_ arguments: ParsedArguments) throws {
        let action = try action(arguments)
        guard arguments.words.count == 2 else { throw UsageError(message: "usage: hearth archive \(action) DIR") }
        let directory = arguments.words[1]
        switch action {
        case "list": try list(directory, isJSON: arguments[json])
        case "check": try check(directory, arguments)
        default: try prune(directory, arguments)
        }
    }

    private static func object(of catalogue: ArchiveCatalogue) -> JSONValue {
        func version(_ version: CommitVersion) -> JSONValue { .integer(Int64(clamping: version.microseconds)) }
        let bases = catalogue.bases.filter { !$0.isEmpty }.map { base in
            JSONValue.object([
                "number": .integer(Int64(base.number)), "version": version(base.version),
                "bytes": .integer(Int64(base.byteCount)), "files": .integer(Int64(base.parts.count)),
            ])
        }
        let chains = catalogue.chains.map { chain in
            JSONValue.object([
                "after": version(chain.after), "until": version(chain.last),
                "commits": .integer(Int64(chain.files.reduce(0) { $0 + $1.recordCount })),
                "bytes": .integer(Int64(chain.files.reduce(0) { $0 + $1.payloadBytes })),
                "files": .integer(Int64(chain.files.count)),
            ])
        }
        return .object([
            "store": .string("\(catalogue.owner.store)"), "bases": .array(bases), "commits": .array(chains),
            "problems": .array(catalogue.problems.map { .string("\($0)") }),
            "from": catalogue.bases.first.map { version($0.version) } ?? .null,
            "until": catalogue.lastVersion.map(version) ?? .null,
        ])
    }

    private static func list(_ directory: String, isJSON: Bool) throws {
        let catalogue = try ArchiveCatalogue(directory)
        if isJSON { try StandardOutput.print(object(of: catalogue).json) } else { try printLines(of: catalogue) }
        guard !catalogue.bases.isEmpty, catalogue.lastVersion != nil else {
            throw CommandFailure("\(directory) has no complete base: nothing can be restored yet")
        }
        if !catalogue.problems.isEmpty { throw CommandFailure("\(directory): \(catalogue.problems.count) problems") }
    }

    private static func printLines(of catalogue: ArchiveCatalogue) throws {
        try StandardOutput.print("store \(catalogue.owner.store)")
        for base in catalogue.bases where !base.isEmpty {
            try StandardOutput.print(
                "base \(base.number): \(text(base.version)), \(base.byteCount) bytes in \(base.parts.count) files")
        }
        for chain in catalogue.chains {
            let bytes = chain.files.reduce(0) { $0 + $1.payloadBytes }
            let commits = chain.files.reduce(0) { $0 + $1.recordCount }
            try StandardOutput.print(
                "commits: \(commits) of \(bytes) bytes in \(chain.files.count) files, after \(text(chain.after)) until "
                    + "\(text(chain.last))")
        }
        for problem in catalogue.problems { try StandardOutput.print("problem: \(problem)") }
        if let note = catalogue.unfinishedNote { try StandardOutput.print("note: \(note)") }
        guard let first = catalogue.bases.first, let last = catalogue.lastVersion else { return }
        try StandardOutput.print("restores from \(text(first.version)) to \(text(last))")
    }

    private static func check(_ directory: String, _ arguments: ParsedArguments) throws {
        var line = ProgressFlags.line(arguments)
        defer { line.clear() }
        let problems = try ArchiveCheck.run(directory) { line.update($0) }
        line.clear()
        if arguments[json] {
            let texts = problems.map { JSONValue.string("\($0)") }
            try StandardOutput.print(JSONValue.object(["problems": .array(texts)]).json)
        } else {
            for problem in problems { try StandardOutput.print("problem: \(problem)") }
            if let note = try ArchiveCatalogue(directory).unfinishedNote { try StandardOutput.print("note: \(note)") }
        }
        if !problems.isEmpty { throw CommandFailure("\(directory): \(problems.count) problems") }
        if !arguments[json] { try StandardOutput.print("\(directory): no problems") }
    }

    private static func prune(_ directory: String, _ arguments: ParsedArguments) throws {
        let (now, retention) = (SystemClock.microseconds(), UInt64(arguments[retention].milliseconds) * 1_000)
        let outcome = try ArchiveRetention.pruneUnused(directory, before: now > retention ? now - retention : 0)
        try StandardOutput.print(
            "\(directory): removed \(outcome.bases) bases and \(outcome.files) files of commits")
    }

    /// A version as a time, and as the number that `hearth restore --version` takes.
    private static func text(_ version: CommitVersion) -> String {
        if version == .zero { return "the beginning" }
        return "\(PointInTime(microseconds: version.microseconds).flagText) (version \(version))"
    }
}
