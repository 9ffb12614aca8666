// `hearth set`: one document from JSON.

import DocumentModel
import FirestoreMessages
import HearthClient

/// Writes a document.
enum SetCommand: AsyncSubcommand {
    static let name = "set"
    static let summary = "Writes a document from JSON."
    static let words = ["NAME", "[JSON]"]
    static let flagGroups = [
        FlagGroup(heading: "Write", flags: [merge, create]), FlagGroup(heading: "Server", flags: ServerFlags.all),
    ]
    static let discussion = """
        Replaces the document NAME, or creates it. JSON is an object in the format of
        hearth get (docs/json-lines.md). Without it, or for -, it is read from standard
        input. A member __name__ must be NAME.

        Examples:

          hearth set books/ulysses '{"title": "Ulysses", "year": 1922}'
          hearth set books/ulysses '{"urls": {"cover": "c.png"}}' --merge
          hearth get books/ulysses | hearth set books/ulysses --address other.example:8080
        """

    static let merge = Flag(
        switch: "merge", help: "Keep the fields that JSON does not have, also within maps, if the document exists.")
    static let create = Flag(switch: "create", help: "Fail if the document exists.")

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let path = try PlaceWord.document(arguments.words[0], database)
        let text = try DocumentText(arguments.words.dropFirst().first, for: path)
        if arguments[merge], arguments[create] {
            throw UsageError(message: "--merge and --create cannot be combined: nothing exists to merge with")
        }
        var writes = CommitWrites(database: database)
        writes.set(
            path.description, fields: text.fields.documentBytes,
            mask: arguments[merge] ? try text.fields.mergePaths.map(\.description) : nil,
            precondition: arguments[create] ? .exists(false) : nil)
        try await ReadingFlags.withClient(arguments, of: arguments[ServerFlags.address]) { client in
            _ = try await client.commit(writes)
        }
    }
}

/// Changes fields of a document.
enum UpdateCommand: AsyncSubcommand {
    static let name = "update"
    static let summary = "Changes fields of a document that exists."
    static let words = ["NAME", "[FIELD=VALUE...]"]
    static let flagGroups = [
        FlagGroup(heading: "Write", flags: [remove]), FlagGroup(heading: "Server", flags: ServerFlags.all),
    ]
    static let discussion = """
        Changes the fields that are given and keeps all others. It fails if the document
        does not exist. FIELD and VALUE are written as in the conditions of hearth query:
        year=1922 is an integer, title=Ulysses a string, code='"1922"' a string too, and
        dots lead into maps. A VALUE in braces or brackets is JSON (docs/json-lines.md).

        Examples:

          hearth update books/ulysses year=1922 urls.cover=https://books.example/c.png
          hearth update books/ulysses 'tags=["novel", "modernist"]' --remove draft
        """

    static let remove = Flag<String>(repeatable: "remove", "FIELD", help: "Remove the field.")

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let path = try PlaceWord.document(arguments.words[0], database)
        let changes = try FieldChanges(
            assignments: arguments.words.dropFirst(), removals: arguments.values(of: remove), database)
        var writes = CommitWrites(database: database)
        writes.set(
            path.description, fields: changes.fields.documentBytes, mask: changes.paths.map(\.description),
            precondition: .exists(true))
        try await ReadingFlags.withClient(arguments, of: arguments[ServerFlags.address]) { client in
            _ = try await client.commit(writes)
        }
    }
}
