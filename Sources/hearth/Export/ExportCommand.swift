import DocumentJSON
import DocumentModel
import FirestoreMessages
import HearthClient
import ManagedExport

/// `hearth export`: writes documents as JSON lines, as CSV or as a managed export.
enum ExportCommand: AsyncSubcommand {
    static let name = "export"
    static let summary = "Writes documents as JSON lines, as CSV or as a managed export."
    static let words: [String] = []
    static let discussion = """
        Reads one consistent version of a collection or a database from a running server.

        --format lines writes one JSON object per document and line, ordered by document
        name. hearth load reads the output and restores the same documents.
        docs/json-lines.md describes the format.

        --all exports the whole database. The lines have the names of the documents in full,
        and hearth load without --collection reads them. With --database '*' it exports all
        databases of the project, and with --project '*' those of all projects, as of one
        time; this needs the right to administer the server.

        --format csv writes a header and a record for each document. Maps become columns
        with dots in their names. It reads the documents twice, and prints the types with
        which hearth load makes the same documents.

        --format managed writes a new folder in the format of Google's managed exports,
        which hearth import, gcloud firestore import and the official emulator read. Without
        --collection it has the whole database. The format has no create and update times,
        indexes and rules; docs/migrate.md says what follows from that.

        Examples:

          hearth export --collection books > books.jsonl
          hearth export --address 10.0.0.7:8080 --collection users --recursive --output users.jsonl
          hearth export --all --project my-project > my-project.jsonl
          hearth export --all --project '*' > everything.jsonl
          hearth export --collection books --format csv --output books.csv
          hearth export --project my-project --format managed --output ./export-2026-01-31
          hearth export --collection books --at 2031-05-02T08:15:30Z
        """

    static let collection = Flag<String>(
        "collection", "PATH", required: false,
        help: "The collection to export, for example books or users/ada/books.")
    static let recursive = Flag(switch: "recursive", help: "Also export subcollections, at any depth.")
    static let all = Flag(switch: "all", help: "Export all documents of the database.")
    static let format = Flag(
        "format", "FORMAT", default: ExportFormat.lines, help: "lines (JSON lines), csv or managed (a folder).")
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
        let isSeveral = namesSeveralDatabases(arguments)
        if isSeveral, !arguments[all] || arguments[format] == .managed {
            throw UsageError(message: "several databases need --all, and --format lines or csv")
        }
        let single = isSeveral ? nil : try place(arguments)
        // A folder that may not be written is refused before anything is read.
        let prepared = arguments[format] == .csv ? nil : try makeOutput(single, arguments)
        try await ReadingFlags.withClient(arguments, of: arguments[ServerFlags.address]) { client in
            let places = if let single { [single] } else { try await databases(arguments, client) }
            var reading = Reading(
                client: client, places: places, time: arguments.value(of: ReadingFlags.at)?.time,
                line: ProgressFlags.line(arguments))
            let output = if let prepared { prepared } else { try await makeCSV(single, &reading, arguments) }
            let count = try await reading.run(into: output)
            if !arguments[ProgressFlags.quiet] {
                StandardError.write("exported \(ProgressLine.grouped(count)) documents\n")
            }
        }
    }

    /// Reads the documents of places as of one time.
    private struct Reading {
        let client: HearthClient
        let places: [SubtreeReader.Place]
        /// Nil until the first reading, unless a time was asked for.
        var time: TimestampValue?
        let line: ProgressLine

        mutating func run(into output: any ExportOutput) async throws -> Int {
            var count = 0
            for place in places {
                let time = if let time { time } else { try await SubtreeReader.currentReadTime(client, place) }
                self.time = time
                var exporter = Exporter(client: client, place: place, readTime: time, progressLine: line)
                count += try await exporter.run { try output.write($0) }
            }
            try output.finish()
            return count
        }
    }

    private static let anyName = "*"

    private static func namesSeveralDatabases(_ arguments: ParsedArguments) -> Bool {
        arguments[ServerFlags.project] == anyName || arguments[ServerFlags.database] == anyName
    }

    private static func databases(
        _ arguments: ParsedArguments, _ client: HearthClient
    ) async throws -> [SubtreeReader.Place] {
        let isAnyProject = arguments[ServerFlags.project] == anyName
        let id = arguments[ServerFlags.database]
        let isAnyID = id == anyName || isAnyProject && !arguments.given.contains(ServerFlags.database.name)
        return try await client.databases(of: isAnyProject ? "-" : arguments[ServerFlags.project])
            .filter { isAnyID || $0.database == id }.map { .database($0) }
    }

    /// The output of CSV, whose columns are found by a first reading.
    private static func makeCSV(
        _ place: SubtreeReader.Place?, _ reading: inout Reading, _ arguments: ParsedArguments
    ) async throws -> any ExportOutput {
        let finder = CSVColumnFinder()
        _ = try await reading.run(into: finder)
        let columns = try finder.columns()
        if !arguments[ProgressFlags.quiet] {
            StandardError.write("to load it again: hearth load --types \(shellWord(CSVOutput.typesText(columns)))\n")
        }
        let bytes = try ExportBytes(arguments.value(of: output))
        guard let place, !arguments[all] else { return CSVOutput(bytes, prefix: "", database: "", columns) }
        return CSVOutput(
            bytes, prefix: Exporter.prefix(of: place), database: place.database.description, columns)
    }

    /// A text as one word of a shell. Bytes count, not characters.
    private static func shellWord(_ text: String) -> String {
        let quote = UInt8(ascii: "'")
        let escaped = text.utf8.flatMap { $0 == quote ? Array("'\\''".utf8) : [$0] }
        return String(decoding: [quote] + escaped + [quote], as: UTF8.self)
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

    /// The output of lines or of a managed export.
    ///
    /// - Parameter place: nil for several databases.
    private static func makeOutput(_ place: SubtreeReader.Place?, _ arguments: ParsedArguments) throws
        -> any ExportOutput
    {
        let path = arguments.value(of: output)
        let isManaged = arguments[format] == .managed
        guard let place, !arguments[all] || isManaged else {
            // Names and references in full.
            return LineOutput(try ExportBytes(path), prefix: "", database: "")
        }
        switch arguments[format] {
        case .lines, .csv:
            let bytes = try ExportBytes(path)
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
