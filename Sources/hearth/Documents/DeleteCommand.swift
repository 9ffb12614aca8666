// `hearth delete`: documents, or everything at and below a place.

import DocumentModel
import FirestoreMessages
import Glibc
import HearthClient

/// Deletes documents.
enum DeleteCommand: AsyncSubcommand {
    static let name = "delete"
    static let summary = "Deletes documents, or whole collections."
    static let words = ["NAME..."]
    static let flagGroups = [
        FlagGroup(heading: "Delete", flags: [recursive, yes] + ProgressFlags.all),
        FlagGroup(heading: "Server", flags: ServerFlags.all),
    ]
    static let discussion = """
        Deletes the documents in one commit: all of them, or none if one does not exist.
        Subcollections of a deleted document stay.

        With --recursive each NAME is a document, which is deleted with everything below it,
        or a collection, of which everything is deleted. The command counts the documents
        first and asks for each NAME. Documents are deleted in commits of 500. If the
        command is interrupted, run it again. Documents that others write meanwhile may stay.

        Examples:

          hearth delete books/ulysses books/dubliners
          hearth delete users/ada --recursive
          hearth delete logs --recursive --yes
        """

    static let recursive = Flag(switch: "recursive", help: "Also delete what is below; NAME may be a collection.")
    static let yes = Flag(switch: "yes", help: "Do not ask before --recursive deletes.")

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let places = try arguments.words.map { try PlaceWord.read($0, database) }
        try await ReadingFlags.withClient(arguments, of: arguments[ServerFlags.address]) { client in
            guard arguments[recursive] else { return try await deleteDocuments(client, places, arguments, database) }
            for (place, word) in zip(places, arguments.words) {
                try await deleteTree(client, place, word, arguments)
            }
        }
    }

    private static func deleteDocuments(
        _ client: HearthClient, _ places: [PlaceWord], _ arguments: ParsedArguments, _ database: DatabaseName
    ) async throws {
        var writes = CommitWrites(database: database)
        for (place, word) in zip(places, arguments.words) {
            guard case .document(let path) = place else {
                throw UsageError(message: "\"\(word)\" is not a document; --recursive deletes collections")
            }
            writes.delete(path.description, precondition: .exists(true))
        }
        try await client.commit(writes)
    }

    private static func deleteTree(
        _ client: HearthClient, _ place: PlaceWord, _ word: String, _ arguments: ParsedArguments
    ) async throws {
        let (below, document) = try parts(of: place, word)
        let exists: Bool
        if let document { exists = try await client.getDocument(document.description) != nil } else { exists = false }
        var count = exists ? 1 : 0
        var counting = try await SubtreeReader(client, below, namesOnly: true)
        while case let page = try await counting.next(), !page.isEmpty { count += page.count }
        if count == 0 { throw CommandFailure("\(word): nothing to delete") }
        try confirm(word, count, arguments)

        var progress = ProgressFlags.line(arguments)
        var batches = WriteBatches(client, below.database)
        var deleted = 0
        var reader = try await SubtreeReader(client, below, namesOnly: true)
        while case let page = try await reader.next(), !page.isEmpty {
            for document in page { _ = try await batches.add { $0.delete(document.name) } }
            deleted += page.count
            progress.update(documents: deleted, bytes: 0, totalBytes: nil)
        }
        // The document goes last: what an interruption leaves is found below it.
        if let document, exists {
            _ = try await batches.add { $0.delete(document.description) }
            deleted += 1
        }
        try await batches.flush()
        progress.clear()
        if !arguments[ProgressFlags.quiet] {
            StandardError.write("\(word): \(ProgressLine.grouped(deleted, "document")) deleted\n")
        }
    }

    private static func parts(of place: PlaceWord, _ word: String) throws -> (SubtreeReader.Place, DocumentPath?) {
        switch place {
        case .collection(let path): (.collection(path), nil)
        case .document(let path): (.below(path), path)
        case .root: throw UsageError(message: "\"\(word)\" is not a document or a collection")
        }
    }

    /// Asks on the terminal.
    private static func confirm(_ word: String, _ count: Int, _ arguments: ParsedArguments) throws {
        if arguments[yes] { return }
        let what = ProgressLine.grouped(count, "document")
        guard isatty(STDIN_FILENO) == 1 else {
            throw CommandFailure("\(word): \(what) would be deleted; confirm with --yes")
        }
        StandardError.write("Delete \(what) at \(word)? Type the path to confirm: ")
        guard readLine(strippingNewline: true) == word else { throw CommandFailure("\(word): nothing was deleted") }
    }
}
