import DocumentJSON
import DocumentModel
import FirestoreMessages
import HearthClient
import ManagedExport

/// `hearth export`: writes documents as JSON lines or as a managed export.
enum ExportCommand: AsyncSubcommand {
    static let name = "export"
    static let summary = "Writes documents as JSON lines or as a managed export."
    static let words: [String] = []
    static let discussion = """
        Reads one consistent version of a collection or a database from a running server.

        --format lines writes one JSON object per document and line, ordered by document
        name. hearth load reads the output and restores the same documents.
        docs/json-lines.md describes the format.

        --all exports the whole database. The lines have the names of the documents in full,
        and hearth load without --collection reads them, those of several databases too.

        --format managed writes a new folder in the format of Google's managed exports,
        which hearth import, gcloud firestore import and the official emulator read. Without
        --collection it has the whole database. The format has no create and update times,
        indexes and rules; docs/migrate.md says what follows from that.

        Examples:

          hearth export --collection books > books.jsonl
          hearth export --address 10.0.0.7:8080 --collection users --recursive --output users.jsonl
          hearth export --all --project my-project > my-project.jsonl
          hearth export --project my-project --format managed --output ./export-2026-01-31
          hearth export --collection books --at 2031-05-02T08:15:30Z
        """

    static let collection = Flag<String>(
        "collection", "PATH", required: false,
        help: "The collection to export, for example books or users/ada/books.")
    static let recursive = Flag(switch: "recursive", help: "Also export subcollections, at any depth.")
    static let all = Flag(switch: "all", help: "Export all documents of the database.")
    static let format = Flag(
        "format", "FORMAT", default: ExportFormat.lines, help: "lines (JSON lines) or managed (a folder).")
    static let output = Flag<String>(
        "output", "PATH", required: false,
        help: "Write to this file instead of standard output, or, with --format managed, to this new folder.")

    static let flagGroups = [
        FlagGroup(
            heading: "Source",
            flags: [ServerFlags.address, collection] + ServerFlags.rest + [recursive, all, ReadingFlags.at]),
        FlagGroup(heading: "Options", flags: [format, output] + ProgressFlags.all),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let place = try place(arguments)
        let output = try makeOutput(place, arguments)
        try await ReadingFlags.withClient(arguments, of: arguments[ServerFlags.address]) { client in
            var exporter = Exporter(
                client: client, place: place, readTime: arguments.value(of: ReadingFlags.at)?.time,
                progressLine: ProgressFlags.line(arguments))
            let count = try await exporter.run { try output.write($0) }
            try output.finish()
            if !arguments[ProgressFlags.quiet] {
                StandardError.write("exported \(ProgressLine.grouped(count)) documents\n")
            }
        }
    }

    private static func place(_ arguments: ParsedArguments) throws -> SubtreeReader.Place {
        let database = try ReadingFlags.database(arguments)
        guard let word = arguments.value(of: collection) else {
            if arguments[all] || arguments[format] == .managed { return .database(database) }
            throw UsageError(message: "--collection or --all is missing")
        }
        if arguments[all] { throw UsageError(message: "--collection and --all cannot be combined") }
        let path = try CollectionPath(database: database, path: PathWords.path(word))
        return arguments[recursive] ? .collection(path) : .collectionAlone(path)
    }

    private static func makeOutput(_ place: SubtreeReader.Place, _ arguments: ParsedArguments) throws
        -> any ExportOutput
    {
        let path = arguments.value(of: output)
        switch arguments[format] {
        case .lines:
            let bytes = try ExportBytes(path)
            // Names and references in full.
            if arguments[all] { return LineOutput(bytes, prefix: "", database: "") }
            return LineOutput(bytes, prefix: Exporter.prefix(of: place), database: place.database.description)
        case .managed:
            guard let path else { throw UsageError(message: "--format managed needs --output, a new folder") }
            if !arguments[ProgressFlags.quiet] {
                StandardError.write(
                    "exporting \(place.database); the format has no create and update times, indexes and rules\n")
            }
            return try ManagedOutput(path, database: place.database)
        }
    }
}
