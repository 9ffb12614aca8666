// hearth load: JSON lines into a collection.

import DocumentModel
import FirebaseFirestore

enum LoadCommand: Subcommand {
    static let name = "load"
    static let summary = "Loads JSON lines into a collection of a running server."
    static let words = ["FILE"]
    static let discussion = """
        Reads FILE (- is standard input), one JSON object a line, and stores each as a document. What JSON lacks is written
        as an object of one member: {"$timestamp": "2026-01-31T12:00:00Z"}, {"$bytes": "aGk="}, {"$reference": "users/ada"},
        {"$geoPoint": [52.5, 13.4]}, {"$vector": [0.1, 0.2]}, {"$double": "NaN"}. docs/json-lines.md has the whole table.

        A line names its document by the member "__name__" (its path below the collection) or by the member that --id-field
        names; lines with neither get an id of 20 characters. Documents that exist are replaced.

        The load stops at the first bad line and says why; everything before that line is stored. How far it came is kept in
        FILE.hearth-load until it is done: --resume goes on from there without storing anything twice.

        Examples:
          hearth load --collection books books.jsonl
          zcat books.jsonl.gz | hearth load --address 10.0.0.7:8080 --collection books --id-field isbn -
        """

    static let collection = Flag<String>(
        "collection", "PATH", required: true, help: "Where the documents go, for example books or users/ada/books.")
    static let idField = Flag<String>(
        "id-field", "NAME", required: false, help: "The member of each line that holds the document's id; it is stored too.")
    static let inFlight = Flag("in-flight", "COUNT", default: 8, in: 1...256, help: "Commits of up to 500 documents under way at once.")
    static let connections = Flag("connections", "COUNT", default: 4, in: 1...64, help: "Connections to the server.")
    static let sortMemory = Flag(
        "sort-memory", "SIZE", default: .mebibytes(1_024), in: .mebibytes(2)...ByteCount(bytes: 1 << 40),
        help: "Memory for sorting documents by name, which makes loading faster and the server's tree smaller; about as much is taken as a file has, up to this.")
    static let skipBad = Flag<String>(
        "skip-bad", "FILE", required: false, help: "Put bad lines into FILE, each below its reason, and go on.")
    static let resume = Flag(switch: "resume", help: "Go on with a load of the same file that was interrupted.")
    static let quiet = Flag(switch: "quiet", help: "Print no progress.")

    static let flagGroups = [
        FlagGroup(heading: "Where to", flags: [ServerFlags.address, collection, ServerFlags.project, ServerFlags.database]),
        FlagGroup(heading: "How", flags: [idField, skipBad, resume, sortMemory, inFlight, connections, quiet]),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let input = arguments.words[0]
        let database = try ReadingFlags.database(arguments)
        let path = try CollectionPath(database: database, path: arguments[collection])
        let state = try initialState(input, path, arguments)
        var configuration = try HearthClient.Configuration(address: arguments[ServerFlags.address])
        configuration.connectionsPerLoop = arguments[connections]
        configuration.callsPerConnection = 1
        let client = try HearthClient(configuration)
        var loader = try Loader(
            Loader.Options(
                input: input, collection: path, idField: arguments.value(of: idField), windowBytes: state.windowBytes, commitsInFlight: arguments[inFlight],
                skipBadPath: arguments.value(of: skipBad), isQuiet: arguments[quiet]),
            client: client, state: state)
        do {
            try await loader.run()
        } catch {
            await client.close()
            throw error
        }
        await client.close()
    }

    /// Bytes of input that are sorted at once: half of the memory, as the next window is read meanwhile. What comes through a pipe
    /// is sent as it comes.
    private static func windowBytes(_ input: String, _ arguments: ParsedArguments) -> Int {
        input == "-" ? 1 << 20 : arguments[sortMemory].bytes / 2
    }

    /// A new load's state, or that of the interrupted one.
    private static func initialState(_ input: String, _ collection: CollectionPath, _ arguments: ParsedArguments) throws -> LoadState {
        let idField = arguments.value(of: idField)
        let fresh = LoadState(collection: collection.description, idField: idField, seed: .random(in: 0...UInt64.max), windowBytes: windowBytes(input, arguments))
        guard input != "-" else {
            if arguments[resume] { throw UsageError(message: "--resume needs a file: standard input cannot be read again") }
            return fresh
        }
        let statePath = LoadState.path(for: input)
        guard let old = try LoadState.read(from: statePath) else {
            if arguments[resume] { throw CommandFailure("there is no interrupted load of \(input) (no \(statePath))") }
            return fresh
        }
        guard arguments[resume] else {
            throw CommandFailure(
                "a load of \(input) was interrupted at line \(old.progress.lines + 1); go on with --resume, or delete \(statePath) to begin again")
        }
        guard old.collection == fresh.collection, old.idField == idField else {
            throw CommandFailure(
                "the interrupted load went to \(old.collection) with id field \(old.idField ?? "none"); say the same, or delete \(statePath)")
        }
        return old
    }
}
