// `hearth watch`: a document or the results of a query, and their changes as they come.

import Basics
import DocumentJSON
import DocumentModel
import FirestoreMessages
import HearthClient

/// Prints a document or the results of a query, then every change.
enum WatchCommand: AsyncSubcommand {
    static let name = "watch"
    static let summary = "Prints a document or the results of a query, then every change."
    static let words = ["PATH", "[CONDITION...]"]

    static let discussion = """
        PATH is the path of a document, such as books/ulysses, or of a collection, such as
        books. For a collection, conditions and flags choose the documents as hearth query
        does.

        Each change is one line: added, modified or removed, a tab, then the document as
        hearth get prints it; for a removed document its path, as hearth ls prints it. The
        first lines are the documents that exist now. All changes of one commit are printed
        together. After a lost connection the command connects again and prints what it has
        missed.

        Ctrl-C ends the command, and so does the server when the token has expired or is
        revoked.

        Examples:

          hearth watch books/ulysses
          hearth watch tasks --where 'done == false' --order-by created:desc --limit 50
          hearth watch reviews --group --json
        """

    static let json = Flag(
        switch: "json", help: "Print each change as a JSON object with the fields change, path and document.")

    static let flagGroups = [
        FlagGroup(
            heading: "Query",
            flags: [
                QueryCommand.conditions, QueryCommand.orderBy, QueryCommand.limit, QueryCommand.offset,
                QueryCommand.select, QueryCommand.group,
            ]),
        FlagGroup(heading: "Output", flags: [json]),
        FlagGroup(
            heading: "Server",
            flags: ServerFlags.all),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let subject = try subject(arguments, database)
        var printer = ChangePrinter(database: database, isJSON: arguments[json])
        StandardOutput.endWithReader()
        try await ReadingFlags.withClient(arguments, of: arguments[ServerFlags.address]) { client in
            // A server that cannot be reached, or a query that breaks a rule, fails before anything is watched.
            if case .query(let parent, var query?) = subject {
                query.limit = min(query.limit ?? 1, 1)
                _ = try await client.runQuery(RunQueryRequest(parent: parent, query: query))
            } else if case .documents(let names) = subject, let name = names.first {
                _ = try await client.getDocument(name)
            }
            for try await changes in client.watch(subject, in: database) { try printer.print(changes) }
        }
    }

    private static func subject(
        _ arguments: ParsedArguments, _ database: DatabaseName
    ) throws -> ListenTarget.Kind {
        let path = PathWords.path(arguments.words[0])
        let segments = path.slashSeparated.count
        guard segments.isMultiple(of: 2) else {
            let (parent, query) = try QueryCommand.query(arguments, database)
            return .query(parent: parent, query)
        }
        let isQuery =
            arguments.words.count > 1 || arguments[QueryCommand.group]
            || !arguments.values(of: QueryCommand.conditions).isEmpty
        if isQuery { throw UsageError(message: "conditions need a collection; \(arguments.words[0]) is a document") }
        return .documents([try DocumentPath(database: database, path: path).description])
    }
}

/// Prints changes as lines on standard output.
private struct ChangePrinter {
    private let root: String
    private let isJSON: Bool
    private var writer: JSONLineWriter
    /// Paths of the documents that were printed and not removed.
    private var known: Set<String> = []

    init(database: DatabaseName, isJSON: Bool) {
        root = database.documentsRoot + "/"
        self.isJSON = isJSON
        writer = JSONLineWriter(database: database.description)
    }

    mutating func print(_ changes: [WatchedDocument]) throws {
        for change in changes {
            let path = change.name.dropping(prefix: root)
            guard let content = change.content else {
                known.remove(path)
                try StandardOutput.print(
                    isJSON
                        ? #"{"change":"removed","path":\#(JSONText.quoted(path))}"#
                        : "removed\t\(PathWords.printed(path))")
                continue
            }
            let kind = known.insert(path).inserted ? "added" : "modified"
            let line = String(decoding: try writer.line(name: path, fields: content.fields.span.bytes), as: UTF8.self)
            try StandardOutput.print(
                isJSON
                    ? #"{"change":"\#(kind)","path":\#(JSONText.quoted(path)),"document":\#(line)}"#
                    : "\(kind)\t\(line)")
        }
        // Lines of a pipe would wait in the buffer.
        try StandardOutput.flush()
    }
}
