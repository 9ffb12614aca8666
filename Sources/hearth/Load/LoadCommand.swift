import DocumentModel
import HearthClient
import QueryEngine

/// `hearth load`: loads JSON lines into a collection.
enum LoadCommand: AsyncSubcommand {
    static let name = "load"
    static let summary = "Loads JSON lines into a collection."
    static let words = ["FILE"]
    static let discussion = """
        Reads FILE (- is standard input), one JSON object per line, and stores each object
        as a document on a running server. FILE may be compressed with gzip, and it may be a
        JSON array of objects. Types that JSON lacks are objects with one
        member; docs/json-lines.md lists them:

          {"$timestamp": "2026-01-31T12:00:00Z"}  {"$bytes": "aGk="}
          {"$reference": "users/ada"}  {"$geoPoint": [52.5, 13.4]}
          {"$vector": [0.1, 0.2]}  {"$double": "NaN"}

        A line names its document with the member "__name__" (the path below the collection)
        or with the member that --id-field names. A line with neither gets an id of 20
        characters. Existing documents are replaced.

        The load stops at the first invalid line and prints the reason; all lines before it
        are stored. FILE.hearth-load keeps the position until the load is complete: --resume
        continues there and stores no line twice.

        Examples:

          hearth load --collection books books.jsonl
          hearth load --address 10.0.0.7:8080 --collection books --id-field isbn books.json.gz
          hearth export --all | hearth load --address 10.0.0.7:8080 -
        """

    static let collection = Flag<String>(
        "collection", "PATH", required: false,
        help: """
            The collection to load into, for example books or users/ada/books. Without it each line names its document \
            in full, as hearth export --all writes it.
            """)
    static let idField = Flag<String>(
        "id-field", "NAME", required: false,
        help: "The member of each line that holds the document id. It is also stored as a field.")
    static let inFlight = Flag(
        "in-flight", "COUNT", default: 8, in: 1...256, help: "Commits of up to 500 documents in flight at once.")
    static let connections = Flag("connections", "COUNT", default: 4, in: 1...64, help: "Connections to the server.")
    static let sortMemory = Flag(
        "sort-memory", "SIZE", default: .mebibytes(1_024), in: .mebibytes(2)...ByteCount(bytes: 1 << 40),
        help: "Limit of the memory for sorting documents by name, which makes loading faster."
    )
    static let skipBad = Flag<String>(
        "skip-bad", "FILE", required: false, help: "Write invalid lines to FILE, each after its reason, and continue.")
    static let resume = Flag(switch: "resume", help: "Continue an interrupted load of the same file.")

    static let flagGroups = [
        FlagGroup(
            heading: "Target",
            flags: [ServerFlags.address, collection] + ServerFlags.rest),
        FlagGroup(
            heading: "Options",
            flags: [idField, skipBad, resume, sortMemory, inFlight, connections] + ProgressFlags.all),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let input = arguments.words[0]
        let database = try ReadingFlags.database(arguments)
        let path = try arguments.value(of: collection).map {
            try CollectionPath(database: database, path: PathWords.path($0))
        }
        try checkNames(path, arguments)
        let state = try initialState(input, path, arguments)
        var configuration = try ServerFlags.configuration(arguments, of: arguments[ServerFlags.address])
        configuration.connectionsPerLoop = arguments[connections]
        configuration.callsPerConnection = 1
        let client = try HearthClient(configuration)
        let rules = LineRules(
            collection: path, idField: arguments.value(of: idField), seed: state.seed,
            stopsAtBadLine: !arguments.has(skipBad))
        var loader = Loader(
            Loader.Options(
                input: input, database: path?.database, statePath: input == "-" ? nil : LoadState.path(for: input),
                open: { try LineInput(path: input, from: $0, rules) }, place: { "\(input):\($0)" },
                commitsInFlight: arguments[inFlight],
                skipBadPath: arguments.value(of: skipBad), progressLine: ProgressFlags.line(arguments)),
            client: client, state: state, isResumed: arguments[resume])
        do {
            let summary = try await loader.run()
            try StandardOutput.print("loaded \(summary)")
        } catch {
            await client.close()
            throw error
        }
        await client.close()
    }

    /// Refuses flags that have no effect on documents that are named in full.
    private static func checkNames(_ collection: CollectionPath?, _ arguments: ParsedArguments) throws {
        guard collection == nil else { return }
        for name in [ServerFlags.project.name, ServerFlags.database.name, idField.name]
        where arguments.given.contains(name) {
            throw UsageError(message: "--\(name) needs --collection; without it the lines name their documents in full")
        }
    }

    /// Bytes of input that are sorted at once: half of the memory, as the next window is read meanwhile. What comes
    /// through a pipe is sent as it comes.
    private static func windowBytes(_ input: String, _ arguments: ParsedArguments) -> Int {
        input == "-" ? 1 << 20 : arguments[sortMemory].bytes / 2
    }

    /// A new load's state, or that of the interrupted one.
    private static func initialState(_ input: String, _ collection: CollectionPath?, _ arguments: ParsedArguments)
        throws
        -> LoadState
    {
        let idField = arguments.value(of: idField)
        let fresh = LoadState(
            collection: collection?.description ?? "the documents that it names", idField: idField,
            seed: .random(in: 0...LoadState.seedMax),
            windowBytes: windowBytes(input, arguments))
        guard input != "-" else {
            if arguments[resume] {
                throw UsageError(message: "--resume needs a file, because standard input cannot be read again")
            }
            return fresh
        }
        return try LoadState.initial(
            for: input, fresh, resumes: arguments[resume], place: { "line \($0)" },
            describe: { "\($0.collection) with id field \($0.idField ?? "none")" })
    }
}
