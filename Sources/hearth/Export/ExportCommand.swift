import DocumentJSON
import DocumentModel
import FirebaseFirestore
import FirestoreMessages
import Foundation

/// `hearth export`: writes a collection as JSON lines.
enum ExportCommand: Subcommand {
    static let name = "export"
    static let summary = "Writes the documents of a collection as JSON lines."
    static let words: [String] = []
    static let discussion = """
        Reads one consistent version of a collection from a running server and writes
        one JSON object per document and line, ordered by document name. hearth load reads
        the output and restores the same documents. docs/json-lines.md describes the
        format.

        Examples:

          hearth export --collection books > books.jsonl
          hearth export --address 10.0.0.7:8080 --collection users --recursive --output users.jsonl
        """

    static let collection = Flag<String>(
        "collection", "PATH", required: true, help: "The collection to export, for example books or users/ada/books.")
    static let recursive = Flag(switch: "recursive", help: "Also export subcollections, at any depth.")
    static let output = Flag<String>(
        "output", "FILE", required: false, help: "Write to FILE instead of standard output.")
    static let quiet = Flag(switch: "quiet", help: "Do not print progress.")

    static let flagGroups = [
        FlagGroup(
            heading: "Source",
            flags: [ServerFlags.address, collection, ServerFlags.project, ServerFlags.database, recursive]),
        FlagGroup(heading: "Options", flags: [output, quiet]),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let path = try CollectionPath(database: database, path: arguments[collection])
        let client = try HearthClient(HearthClient.Configuration(address: arguments[ServerFlags.address]))
        do {
            var exporter = Exporter(
                client: client, collection: path, isRecursive: arguments[recursive],
                output: try openOutput(arguments.value(of: output)), isQuiet: arguments[quiet])
            let count = try await exporter.run()
            if !arguments[quiet] {
                FileHandle.standardError.write(Data("exported \(ProgressLine.grouped(count)) documents\n".utf8))
            }
        } catch {
            await client.close()
            throw error
        }
        await client.close()
    }

    private static func openOutput(_ path: String?) throws -> FileHandle {
        guard let path else { return .standardOutput }
        guard FileManager.default.createFile(atPath: path, contents: nil), let file = FileHandle(forWritingAtPath: path)
        else {
            throw CommandFailure("cannot write \(path)")
        }
        return file
    }
}
