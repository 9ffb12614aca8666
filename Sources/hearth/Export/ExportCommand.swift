import DocumentJSON
import DocumentModel
import FirestoreMessages
import Glibc
import HearthClient

/// `hearth export`: writes a collection as JSON lines.
enum ExportCommand: AsyncSubcommand {
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
          hearth export --collection books --at 2031-05-02T08:15:30Z
        """

    static let collection = Flag<String>(
        "collection", "PATH", required: true, help: "The collection to export, for example books or users/ada/books.")
    static let recursive = Flag(switch: "recursive", help: "Also export subcollections, at any depth.")
    static let output = Flag<String>(
        "output", "FILE", required: false, help: "Write to FILE instead of standard output.")

    static let flagGroups = [
        FlagGroup(
            heading: "Source",
            flags: [ServerFlags.address, collection] + ServerFlags.rest + [recursive, ReadingFlags.at]),
        FlagGroup(heading: "Options", flags: [output] + ProgressFlags.all),
    ]

    static func run(_ arguments: ParsedArguments) async throws {
        let database = try ReadingFlags.database(arguments)
        let path = try CollectionPath(database: database, path: PathWords.path(arguments[collection]))
        let client = try HearthClient(ServerFlags.configuration(arguments, of: arguments[ServerFlags.address]))
        do {
            var exporter = Exporter(
                client: client, collection: path, isRecursive: arguments[recursive],
                readTime: arguments.value(of: ReadingFlags.at)?.time,
                output: try openOutput(arguments.value(of: output)), progressLine: ProgressFlags.line(arguments))
            let count = try await exporter.run()
            if !arguments[ProgressFlags.quiet] {
                StandardError.write("exported \(ProgressLine.grouped(count)) documents\n")
            }
        } catch {
            await client.close()
            throw error
        }
        await client.close()
    }

    /// What takes the lines: standard output, or a file, which is created.
    private static func openOutput(_ path: String?) throws -> Exporter.Output {
        guard let path else { return { try StandardOutput.write($0) } }
        let file = try OutputFile(path, flags: O_TRUNC)
        return { try file.write($0) }
    }
}
