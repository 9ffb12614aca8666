import DocumentModel
import Glibc
import HearthClient
import QueryEngine

/// `hearth load`: loads JSON lines or CSV into a collection.
enum LoadCommand: AsyncSubcommand {
    static let name = "load"
    static let summary = "Loads JSON lines or CSV into a collection."
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

        A FILE with a name that ends with .csv or .csv.gz, or with --csv, is CSV with a header.
        Dots in the names of columns make maps. The load reads the file once, shows the types
        of the columns and asks. --types sets types of columns, and then it does not ask:
        --types inferred, or --types zip:string,added:timestamp. A name with a comma is in
        quotes: --types '"last, first":string'. The column __name__, or that of --id-field,
        names the documents. docs/csv.md has the rules.

        The load stops at the first invalid line and prints the reason; all lines before it
        are stored. FILE.hearth-load keeps the position until the load is complete: --resume
        continues there and stores no line twice. A pipe, as of <(COMMAND), is read as standard
        input is: as it comes, and without a position.

        Examples:

          hearth load --collection books books.jsonl
          hearth load --address 10.0.0.7:8080 --collection books --id-field isbn books.json.gz
          hearth load --collection books --id-field isbn books.csv
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
        "skip-bad", "FILE", required: false, help: "Write invalid lines to FILE, each with its reason, and continue.")
    static let resume = Flag(switch: "resume", help: "Continue an interrupted load of the same file.")
    static let csv = Flag(switch: "csv", help: "The input is CSV, whatever its name.")
    static let types = Flag<CSVTypes>(
        "types", "TYPES", required: false,
        help: "Types of columns of CSV: inferred, or COLUMN:TYPE,...; those that are not named are inferred.")

    static let flagGroups = [
        FlagGroup(
            heading: "Target",
            flags: [ServerFlags.address, collection] + ServerFlags.rest),
        FlagGroup(
            heading: "Options",
            flags: [idField, csv, types, skipBad, resume, sortMemory, inFlight, connections] + ProgressFlags.all),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let input = arguments.words[0]
        let database = try ReadingFlags.database(arguments)
        let path = try arguments.value(of: collection).map {
            try CollectionPath(database: database, path: PathWords.path($0))
        }
        try checkNames(path, arguments)
        let columns = try csvColumns(input, arguments)
        let state = try initialState(input, path, columns, arguments)
        var configuration = try ServerFlags.configuration(arguments, of: arguments[ServerFlags.address])
        configuration.connectionsPerLoop = arguments[connections]
        configuration.callsPerConnection = 1
        let client = try HearthClient(configuration)
        let rules = LineRules(
            collection: path, idField: arguments.value(of: idField), seed: state.seed,
            stopsAtBadLine: !arguments.has(skipBad), isCSV: columns != nil)
        let place: @Sendable (Int) -> String = {
            columns == nil ? "\(input):\($0)" : "\(input): record \($0)"
        }
        var loader = Loader(
            Loader.Options(
                input: input, database: path?.database,
                statePath: InputKind.isReadOnce(input) ? nil : LoadState.path(for: input),
                open: { try LineInput(path: input, columns: columns, from: $0, rules) },
                place: place, commitsInFlight: arguments[inFlight],
                skipBadPath: arguments.value(of: skipBad),
                openBad: { path in
                    if columns == nil { return try BadLines(path: path, place: place) }
                    return try BadRecords(path: path, of: input, place: place)
                },
                progressLine: ProgressFlags.line(arguments)),
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

    /// The columns of a CSV file, after a person or `--types` has agreed to them; nil for JSON lines.
    private static func csvColumns(_ input: String, _ arguments: ParsedArguments) throws -> CSVColumns? {
        guard arguments[csv] || input.hasSuffix(".csv") || input.hasSuffix(".csv.gz") else {
            if arguments.has(types) { throw UsageError(message: "--types is for CSV: give --csv") }
            return nil
        }
        let declared = arguments.value(of: types)
        // What comes through a pipe cannot be read twice: its columns are known from the header and the flag.
        if InputKind.isReadOnce(input) {
            let name = InputKind.name(of: input)
            if arguments.has(skipBad) {
                throw UsageError(message: "--skip-bad needs a file, because CSV from \(name) is read once")
            }
            guard let declared else { throw UsageError(message: "--types is missing: \(name) is read once") }
            return CSVColumns(readOnce: declared)
        }
        let survey = try CSVSurvey(input, declared ?? CSVTypes(), skipsBad: arguments.has(skipBad))
        if !arguments[ProgressFlags.quiet] || declared == nil {
            try StandardOutput.print(survey.description(of: input))
            try StandardOutput.flush()
        }
        if declared == nil, !arguments[resume] { try ask() }
        return survey.columns
    }

    private static func ask() throws {
        guard isatty(STDIN_FILENO) == 1 else {
            throw UsageError(message: "--types inferred is missing: nobody can be asked about the types")
        }
        StandardError.write("Load with these types (yes/no)? ")
        guard readLine(strippingNewline: true) == "yes" else { throw CommandFailure("nothing was loaded") }
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
        InputKind.isReadOnce(input) ? 1 << 20 : arguments[sortMemory].bytes / 2
    }

    /// A new load's state, or that of the interrupted one.
    private static func initialState(
        _ input: String, _ collection: CollectionPath?, _ columns: CSVColumns?, _ arguments: ParsedArguments
    ) throws -> LoadState {
        // What the documents are made with: a resumed load has to make the same ones.
        let named = arguments.value(of: idField)
        let idField = columns.map { "\(named ?? "none"), types \($0.typesText)" } ?? named
        let fresh = LoadState(
            collection: collection?.description ?? "the documents that it names", idField: idField,
            seed: .random(in: 0...LoadState.integerMax),
            windowBytes: windowBytes(input, arguments))
        if InputKind.isReadOnce(input) {
            if arguments[resume] {
                let name = InputKind.name(of: input)
                throw UsageError(message: "--resume needs a file, because \(name) cannot be read again")
            }
            return fresh
        }
        return try LoadState.initial(
            for: input, fresh, resumes: arguments[resume], place: { "line \($0)" },
            describe: { "\($0.collection) with id field \($0.idField ?? "none")" })
    }
}
