// `hearth ls`: what is at a place.

import Basics
import DocumentJSON
import DocumentModel
import FirestoreMessages
import HearthClient

/// Lists collections and documents.
enum ListCommand: AsyncSubcommand {
    static let name = "ls"
    static let summary = "Lists the collections of a database or document, or the documents of a collection."
    static let words = ["[NAME]"]
    static let flagGroups = [
        FlagGroup(heading: "List", flags: [limit, json]), FlagGroup(heading: "Server", flags: ReadingFlags.all),
    ]
    static let discussion = """
        Prints one path in each line, in the order of the names: the collections of the
        database, or those below the document NAME, with a slash at the end; or the
        documents of the collection NAME. A document that does not exist but has documents
        below it is marked as missing. A path with control characters, and one that could be
        taken for such a line or mark, is in quotes as JSON has it; scripts may use --json.

        Examples:

          hearth ls
          hearth ls books
          hearth ls books/ulysses --data /var/lib/hearth
        """

    static let limit = Flag("limit", "N", in: 1...Int(Int32.max), help: "The maximum number of lines.")
    static let json = Flag(switch: "json", help: "Print objects with the members path, kind and exists.")

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let place = try PlaceWord.read(arguments.words.first ?? "", database)
        var printer = Printer(database: database, isJSON: arguments[json], left: arguments.value(of: limit) ?? .max)
        try await ReadingFlags.withClient(arguments) { client in
            switch place {
            case .root: try await printCollections(client, below: database.documentsRoot, &printer)
            case .document(let path): try await printCollections(client, below: path.description, &printer)
            case .collection(let path): try await printDocuments(client, of: path, &printer)
            }
        }
    }

    private static func printCollections(
        _ client: HearthClient, below parent: String, _ printer: inout Printer
    ) async throws {
        var request = ListCollectionIdsRequest(parent: parent, pageSize: 300)
        repeat {
            let page = try await client.listCollectionIds(request)
            for id in page.collectionIDs {
                guard try printer.print("\(parent)/\(id)", kind: "collection", exists: true) else { return }
            }
            request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty
    }

    private static func printDocuments(
        _ client: HearthClient, of collection: CollectionPath, _ printer: inout Printer
    ) async throws {
        var request = ListDocumentsRequest(
            parent: collection.parent?.description ?? collection.database.documentsRoot,
            collectionID: collection.collectionID, pageSize: 300, mask: DocumentMask(paths: []), showMissing: true)
        repeat {
            let page = try await client.listDocuments(request)
            for document in page.documents {
                let exists = document.updateTime != nil
                guard try printer.print(document.name, kind: "document", exists: exists) else { return }
            }
            request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty
    }

    /// Prints paths until the limit is reached.
    private struct Printer {
        let database: DatabaseName
        let isJSON: Bool
        var left: Int

        private static let missing = " (missing)"

        /// - Returns: whether more may be printed.
        mutating func print(_ name: String, kind: String, exists: Bool) throws -> Bool {
            let path = name.dropping(prefix: database.documentsRoot + "/")
            if isJSON {
                let object = JSONValue.object([
                    "path": .string(path), "kind": .string(kind), "exists": .boolean(exists),
                ])
                try StandardOutput.print(object.json)
            } else {
                let line = PathWords.printed(path + (kind == "collection" ? "/" : ""), without: Self.missing)
                try StandardOutput.print(line + (exists ? "" : Self.missing))
            }
            left -= 1
            return left > 0
        }
    }
}
