// The official Python client against a real server: limits, deadlines, many streams, slow readers, contention. What the
// client does and expects is in Tests/Interop/official_client.py, a function for each test here.

import Foundation
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct PythonClientTests {
    private let directory = TemporaryDirectory("hearth-official-client")

    private func serve(_ arguments: String...) throws -> ServerProcess {
        try ServerProcess(data: directory.path(of: "data"), arguments: ["--log-level", "warning"] + arguments)
    }

    /// Runs a scenario to its end.
    private func run(_ server: ServerProcess, _ scenario: String, _ arguments: String...) throws {
        let outcome = try OfficialClient.run(["127.0.0.1:\(server.port)", scenario] + arguments)
        expectEqual(outcome.status, 0, "\(outcome.text)")
        if !outcome.text.isEmpty { print("\(scenario): \(outcome.text)") }
    }

    /// Longer runs are asked for.
    private let isSoak = ProcessInfo.processInfo.environment["HEARTH_SOAK"] != nil

    /// A collection of documents, each with a number and a text; some 60 MB in all.
    private func load(_ server: ServerProcess, count: Int) throws {
        let text = String(repeating: "x", count: 60_000_000 / count)
        let lines = (0..<count).map { #"{"__name__":"d\#($0)","n":\#($0),"text":"\#(text)"}"# }
        let file = directory.path(of: "many.jsonl")
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: file))
        let outcome = try HearthBinary.run(
            [
                "load", "--address", "127.0.0.1:\(server.port)", "--quiet", "--project", "interop", "--collection",
                "many", file,
            ])
        expectEqual(outcome.status, 0, "\(outcome.errors)")
    }

    @Test
    func `Every value type there and back, by set, update, transform and query`() throws {
        let server = try serve()
        try run(server, "values")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Limits are refused with the right code, and the connection stays usable`() throws {
        let server = try serve()
        try run(server, "limits")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Projects and databases are isolated from each other`() throws {
        let server = try serve()
        try run(server, "databases")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A client that knows nothing of Firestore calls it by what reflection returns`() throws {
        let server = try serve()
        try run(server, "reflection")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Deadlines, cancelled streams, a thousand streams at once, and a slow reader of a large result`() throws {
        let server = try serve("--max-streams", "2000")
        let count = isSoak ? 100_000 : 15_000
        try load(server, count: count)
        try run(server, "deadlines", "\(count)")
        try run(server, "streams", "1000")
        try run(server, "slow", "\(count)", "\(server.process.identifier)")
        expectEqual(server.stop(), 0)
    }

    @Test(arguments: ["optimistic", "pessimistic"])
    func `32 processes that change one document in transactions all finish, and the sum is exact`(mode: String) throws {
        let server = try serve("--concurrency-mode", mode)
        try run(server, "contention", "32", isSoak ? "50" : "4")
        expectEqual(server.stop(), 0)
    }
}

/// Runs a program of Tests/Interop with the official client.
enum OfficialClient {
    struct Outcome {
        let status: Int32
        /// What it printed, errors included.
        let text: String
    }

    struct Missing: Error, CustomStringConvertible {
        let interpreter: String
        var description: String {
            """
            The tests with the official client need Python with google-cloud-firestore and grpcio-reflection; \
            \(interpreter) does not exist.
            Tools/install-dependencies --tests makes one at the root of the package; HEARTH_PYTHON names another.
            """
        }
    }

    static func run(_ arguments: [String], program: String = "official_client.py") throws -> Outcome {
        let interpreter = Repository.python
        guard FileManager.default.isExecutableFile(atPath: interpreter) else { throw Missing(interpreter: interpreter) }
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: interpreter)
        process.arguments = [Repository.url("Tests/Interop/\(program)").path] + arguments
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Outcome(status: process.terminationStatus, text: text.trimmingCharacters(in: .whitespacesAndNewlines))
    }
}
