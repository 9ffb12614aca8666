import DocumentModel
import FileSystem
import HearthClient
import ManagedExport
import QueryEngine

/// `hearth import`: loads a managed export of Firestore.
enum ImportCommand: AsyncSubcommand {
    static let name = "import"
    static let summary = "Loads a managed export of Firestore or its emulator."
    static let words = ["DIR"]
    static let discussion = """
        Reads DIR, an export of gcloud firestore export, of the official emulator or of
        hearth export --format managed, and stores its documents on a running server.
        Existing documents are replaced. The documents go to the database that --project
        and --database name, whatever project the export is of.

        Create and update times are not in the format; the import sets new ones. Indexes,
        rules and TTL policies are not in it either. References keep their project unless
        --map-project is given. Types that only Datastore has become the nearest type, and
        are counted; what has none stops the import, unless --skip-bad is given.

        The import stops at damage and names the file and the record; all documents before
        it are stored. It fails at its end if there are fewer documents than the metadata of
        the export counts. DIR.hearth-load keeps the position until the import is complete:
        --resume continues there.

        Examples:

          hearth import --project my-project 2026-01-31T12:00:00_12345
          hearth import --project staging --map-project ./firestore_export
        """

    static let mapProject = Flag(
        switch: "map-project",
        help: "References to documents of the exported database name those of the target database.")
    static let skipBad = Flag<String>(
        "skip-bad", "FILE", required: false,
        help: "Write to FILE which entities cannot become documents and why, and continue.")
    static let resume = Flag(switch: "resume", help: "Continue an interrupted import of the same folder.")

    static let flagGroups = [
        FlagGroup(heading: "Target", flags: ServerFlags.all),
        FlagGroup(
            heading: "Options",
            flags: [mapProject, skipBad, resume, LoadCommand.sortMemory, LoadCommand.inFlight, LoadCommand.connections]
                + ProgressFlags.all),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let input = Directory.resolved(arguments.words[0])
        let folder = try ExportFolder(input)
        let state = try initialState(input, folder, database, arguments)
        let rules = EntityInput.Rules(
            database: database, mapsReferences: arguments[mapProject], stopsAtBadLine: !arguments.has(skipBad))
        var configuration = try ServerFlags.configuration(arguments, of: arguments[ServerFlags.address])
        configuration.connectionsPerLoop = arguments[LoadCommand.connections]
        configuration.callsPerConnection = 1
        let client = try HearthClient(configuration)
        let place: @Sendable (Int) -> String = { EntityInput.name(of: $0, in: folder) }
        var loader = Loader(
            Loader.Options(
                input: input, database: database, statePath: LoadState.path(for: input),
                open: { try EntityInput(folder, from: $0, rules) },
                place: place, commitsInFlight: arguments[LoadCommand.inFlight],
                skipBadPath: arguments.value(of: skipBad), openBad: { try BadLines(path: $0, place: place) },
                progressLine: ProgressFlags.line(arguments)),
            client: client, state: state, isResumed: arguments[resume])
        do {
            let summary = try await loader.run()
            await client.close()
            try report(summary, loader, folder, rules)
        } catch {
            await client.close()
            throw error
        }
    }

    private static func initialState(
        _ input: String, _ folder: ExportFolder, _ database: DatabaseName, _ arguments: ParsedArguments
    ) throws -> LoadState {
        // What the documents are made with: a resumed import has to make the same ones.
        let made = arguments[mapProject] ? "map-project" : nil
        let fresh = LoadState(
            collection: database.description, idField: made, seed: 0,
            windowBytes: arguments[LoadCommand.sortMemory].bytes / 2)
        return try LoadState.initial(
            for: input, fresh, resumes: arguments[resume], place: { EntityInput.name(of: $0, in: folder) },
            describe: { "\($0.collection) with\($0.idField == nil ? "out" : "") --map-project" })
    }

    /// Prints what was imported.
    private static func report(
        _ summary: String, _ loader: Loader, _ folder: ExportFolder, _ rules: EntityInput.Rules
    ) throws {
        try StandardOutput.print("imported \(summary)")
        let notes = loader.notes
        for (collection, documents) in notes.collections.sorted(by: { $0.key < $1.key }) {
            try StandardOutput.print(line: "  \(collection): \(ProgressLine.grouped(documents))")
        }
        if notes.others > 0 { try StandardOutput.print("  other collections: \(ProgressLine.grouped(notes.others))") }
        for type in ConvertedType.allCases where notes.conversions[type] > 0 {
            try StandardOutput.print("converted: \(ProgressLine.grouped(notes.conversions[type])) \(type.conversion)")
        }
        if notes.conversions.foreignReferences > 0 {
            let count = ProgressLine.grouped(notes.conversions.foreignReferences)
            let hint = rules.mapsReferences ? "" : "; --map-project changes those of the exported database"
            try StandardOutput.print("\(count) references name documents of another database\(hint)")
        }
        for file in folder.unlisted {
            StandardError.write("hearth: the metadata does not list \(file), which was imported too\n")
        }
        let found = loader.state.progress.documents + loader.state.progress.skipped
        if found > folder.entities {
            StandardError.write(
                "hearth: the metadata counts \(ProgressLine.grouped(folder.entities)) entities, and the files have "
                    + "\(ProgressLine.grouped(found))\n")
        }
        try folder.checkComplete(found)
    }
}
