// `hearth get`: documents by name, as lines of JSON.

import Basics
import DocumentJSON
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import HearthClient
import Server

/// Prints documents of a server or a data directory.
enum GetCommand: AsyncSubcommand {
    static let name = "get"
    static let summary = "Prints documents by name, as lines of JSON."
    static let words = ["NAME..."]
    static let flagGroups = [FlagGroup(heading: "Flags", flags: ReadingFlags.all + [ReadingFlags.at, json])]

    static let json = Flag(switch: "json", help: "Changes nothing: documents are lines of JSON anyway.")

    static let discussion = """
        NAME is a document's path, such as books/ulysses or books/ulysses/reviews/1, or its
        full name, projects/P/databases/D/documents/books/ulysses.

        Each document is one line of JSON, in the format that hearth export writes and
        hearth load reads (docs/json-lines.md). A document that does not exist is reported
        on standard error, and the exit status is 1.

        Examples:

          hearth get books/ulysses
          hearth get --address 10.0.0.5:8080 --project shop orders/1 orders/2
          hearth get --data /var/lib/hearth books/ulysses
          hearth get --at 2031-05-02T08:15:30Z books/ulysses
        """

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let names = try arguments.words.map { try fullName($0, database) }
        var printer = DocumentPrinter(database: database)
        var missing: [String] = []
        try await ReadingFlags.withClient(arguments) { client in
            for name in names {
                let consistency = ReadingFlags.consistency(arguments)
                if let document = try await client.getDocument(name, consistency: consistency) {
                    try printer.print(name: name, fields: document.fields)
                } else {
                    missing.append(name)
                }
            }
        }
        if !missing.isEmpty { throw CommandFailure("not found: \(missing.joined(separator: ", "))") }
    }

    private static func fullName(_ word: String, _ database: DatabaseName) throws -> String {
        if word.hasPrefix("projects/") { return try DocumentPath(word).description }
        return try PlaceWord.document(word, database).description
    }
}

/// The flags of the commands that read from a running server, or from a data directory that none serves.
enum ReadingFlags {
    static let data = Flag<String>(
        "data", "DIR", required: false,
        help: "Read this data directory, through the server that uses it, or directly if there is none.")
    static let all: [any FlagDeclaration] = [ServerFlags.address, data] + ServerFlags.rest

    static let at = Flag<PointInTime>(
        "at", "TIME", required: false,
        help: "Read the state of this time, such as 2031-05-02T08:15:30Z, within the retention of the server.")

    /// What a read with `--at` is to see.
    static func consistency(_ arguments: ParsedArguments) -> ReadConsistency {
        arguments.value(of: at).map { .readTime($0.time) } ?? .latest
    }

    static func database(_ arguments: ParsedArguments) throws -> DatabaseName {
        try DatabaseName(project: arguments[ServerFlags.project], database: arguments[ServerFlags.database])
    }

    /// Lends a client of the server and closes it afterwards. A directory that none serves is served for as long.
    static func withClient<Answer>(
        _ arguments: ParsedArguments, _ body: (HearthClient) async throws -> Answer
    ) async throws -> Answer {
        guard let directory = try directory(arguments) else {
            return try await withClient(arguments, of: arguments[ServerFlags.address], body)
        }
        if let address = try? AdminClient.address(directory: directory) {
            return try await withClient(arguments, of: address, body)
        }
        let (server, token) = try serve(directory)
        defer { server.stop() }
        return try await withClient(arguments, of: "127.0.0.1:\(server.port)", ownToken: token, body)
    }

    /// The directory to read; nil if a server is named. One that the environment names gives way to a server on the
    /// command line.
    static func directory(_ arguments: ParsedArguments) throws -> String? {
        guard arguments.given.contains(ServerFlags.address.name) else { return arguments.value(of: data) }
        if arguments.given.contains(data.name) { throw UsageError(message: "--address and --data cannot be combined") }
        return nil
    }

    /// Opens a directory and serves it on a port of this machine that the system picks. Other programs of the machine
    /// reach the port too, so it asks for a token that this process alone has. Who reads the files may read the
    /// documents: the rules of the directory are not asked.
    ///
    /// - Returns: also the token.
    private static func serve(_ directory: String) throws -> (DatabaseServer, token: String) {
        try PathWords.checkDataDirectory(directory)
        let log = Log.standardError(level: .error)
        var configuration = DatabaseServerConfiguration(store: .forTool(directory), log: log)
        configuration.transport.port = 0
        configuration.http.allowedHosts = .local(and: [])
        let (authorization, token) = try TemporaryAccess.make(log)
        configuration.authorization = authorization
        configuration.drainMilliseconds = 0
        configuration.summaryMilliseconds = 0
        do {
            return (try DatabaseServer.start(configuration), token)
        } catch {
            throw CommandFailure("cannot read \(directory): \(ErrorText.describe(error))")
        }
    }

    /// Lends a client of the server at an address and closes it afterwards.
    ///
    /// - Parameter ownToken: the token for a server of this process.
    static func withClient<Answer>(
        _ arguments: ParsedArguments, of address: String, ownToken: String? = nil,
        _ body: (HearthClient) async throws -> Answer
    ) async throws -> Answer {
        let client = try HearthClient(ServerFlags.configuration(arguments, of: address, ownToken: ownToken))
        do {
            let answer = try await body(client)
            await client.close()
            return answer
        } catch {
            await client.close()
            guard ownToken == nil, let refusal = error as? RequestError,
                let server = ServerFlags.page(of: address, arguments),
                let link = ConsoleLink.text(for: refusal, server: server, try database(arguments))
            else { throw error }
            throw CommandFailure("\(ErrorText.describe(error))\nsee \(link)")
        }
    }
}

/// Prints documents as lines of JSON on standard output.
struct DocumentPrinter {
    private let root: String
    private var writer: JSONLineWriter

    init(database: DatabaseName) {
        root = database.documentsRoot + "/"
        writer = JSONLineWriter(database: database.description)
    }

    /// Prints one document, named by its path below the database's documents.
    mutating func print(name: String, fields: [UInt8]) throws {
        let path = name.hasUTF8Prefix(root) ? name.dropping(prefix: root) : name
        let line = try writer.line(name: path, fields: fields.span.bytes)
        try StandardOutput.write(line + [0x0A])
    }

    /// Prints one value after a word.
    mutating func print(value: [UInt8], after word: String) throws {
        try StandardOutput.print(word + json(of: value))
    }

    /// A value as JSON.
    mutating func json(of value: [UInt8]) throws -> String {
        String(decoding: try writer.json(of: value.span.bytes), as: UTF8.self)
    }
}
