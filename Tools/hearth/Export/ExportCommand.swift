// hearth export: a collection as JSON lines.

import DocumentJSON
import DocumentModel
import FirebaseFirestore
import FirestoreMessages
import Foundation

enum ExportCommand: Subcommand {
    static let name = "export"
    static let summary = "Writes a collection of a running server as JSON lines."
    static let words: [String] = []
    static let discussion = """
        Writes every document of a collection, in the order of their names, one JSON object a line, as the collection stood at
        one moment. hearth load reads what export writes, and gives the same documents again; docs/json-lines.md describes
        the lines.

        Examples:
          hearth export --collection books > books.jsonl
          hearth export --address 10.0.0.7:8080 --collection users --recursive --output users.jsonl
        """

    static let collection = Flag<String>("collection", "PATH", required: true, help: "What to export, for example books or users/ada/books.")
    static let recursive = Flag(switch: "recursive", help: "Also export the sub-collections, at any depth.")
    static let output = Flag<String>("output", "FILE", required: false, help: "Write to FILE instead of standard output.")
    static let quiet = Flag(switch: "quiet", help: "Print no progress.")

    static let flagGroups = [
        FlagGroup(heading: "What", flags: [ServerFlags.address, collection, ServerFlags.project, ServerFlags.database, recursive]),
        FlagGroup(heading: "How", flags: [output, quiet]),
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
            if !arguments[quiet] { FileHandle.standardError.write(Data("exported \(ProgressLine.grouped(count)) documents\n".utf8)) }
        } catch {
            await client.close()
            throw error
        }
        await client.close()
    }

    private static func openOutput(_ path: String?) throws -> FileHandle {
        guard let path else { return .standardOutput }
        guard FileManager.default.createFile(atPath: path, contents: nil), let file = FileHandle(forWritingAtPath: path) else {
            throw CommandFailure("cannot write \(path)")
        }
        return file
    }
}
