// `hearth indexes suggest`, and the log of slow calls.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct SuggestTests {
    private let directory = TemporaryDirectory("suggest")
    private var data: String { directory.path(of: "data") }

    private func run(_ arguments: [String]) throws -> HearthBinary.Outcome {
        let outcome = try HearthBinary.run(arguments)
        expectEqual(outcome.status, 0, "\(arguments): \(outcome.errors)")
        return outcome
    }

    private func load(_ count: Int, _ server: ServerProcess) throws {
        let lines = (0..<count).map { #"{"__name__":"d\#($0)","a":\#($0 % 5),"b":\#($0),"c":"\#($0 % 3)"}"# }
        let file = directory.path(of: "lines")
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(filePath: file))
        _ = try run(["load", "--collection", "c", "--quiet", "--address", "127.0.0.1:\(server.port)", file])
    }

    @Test func `Queries leave the indexes that they lacked, and the file that has them can be applied`() throws {
        let server = try ServerProcess(data: data)
        let address = ["--address", "127.0.0.1:\(server.port)"]
        try load(50, server)
        try expectEqual(
            run(["indexes", "suggest", "--data", data]).output, "{\n  \"indexes\": [],\n  \"fieldOverrides\": []\n}\n")
        let query = ["query", "c", "--where", "a == 1", "--where", "c == 2", "--order-by", "b:desc"]
        for _ in 0..<3 { _ = try run(query + address) }
        let suggested = try run(["indexes", "suggest"] + address)
        expect(suggested.errors.contains("3 queries read"), "\(suggested.errors)")
        expect(!(try run(["indexes", "list", "--data", data]).output.contains("WANTED")))
        let file = directory.path(of: "firestore.indexes.json")
        try Data(suggested.output.utf8).write(to: URL(filePath: file))
        try expect(run(["indexes", "apply", file, "--data", data]).output.hasPrefix("1 indexes and 0"))
        // What is declared is not wanted any more.
        let after = try run(["indexes", "suggest", "--data", data])
        expect(after.output == suggested.output && after.errors.isEmpty, "\(after)")
        expectEqual(server.stop(), 0)
    }

    @Test func `A query that strict mode refuses leaves its index too`() throws {
        let server = try ServerProcess(data: data, arguments: ["--index-mode", "strict"])
        try load(5, server)
        let query = try HearthBinary.run(
            ["query", "c", "--where", "a == 1", "--order-by", "b", "--address", "127.0.0.1:\(server.port)"])
        expect(query.status == 1 && query.errors.contains("requires an index"), "\(query.errors)")
        try expect(run(["indexes", "suggest", "--data", data]).output.contains(#""fieldPath":"b""#))
        expectEqual(server.stop(), 0)
    }

    @Test func `A call that takes longer than the limit is logged with its plan`() throws {
        let server = try ServerProcess(data: data, arguments: ["--slow-call-ms", "1", "--automatic-indexes", "off"])
        try load(5_000, server)
        _ = try run(["query", "c", "--where", "b < 0", "--address", "127.0.0.1:\(server.port)"])
        expectEqual(server.stop(), 0)
        let line = server.process.errors.split(separator: "\n").first {
            $0.contains("event=slow_call method=RunQuery code=OK milliseconds=")
        }
        expectEqual(line?.contains("projects/hearth/databases/(default)"), true, "\(server.process.errors)")
    }
}
