// The commands on pages for operators, run as they stand there.

import Foundation
import TestSupport
import Testing

/// Runs each line of a page that begins with `$ hearth`, or with `$ sudo -u hearth hearth`, in the order of the page,
/// in a directory for this test.
///
/// Each directory of the page stands for one in the temporary directory of the test.
@Suite(.timeLimit(.minutes(20)))
struct PageCommandsTests {
    private let directory = TemporaryDirectory("page")

    /// The command lines of a page, without `$ hearth`.
    private static func commands(_ page: String) throws -> [String] {
        try String(contentsOf: Repository.url("docs/\(page).md"), encoding: .utf8).split(separator: "\n")
            .map { $0.replacingOccurrences(of: "$ sudo -u hearth hearth ", with: "$ hearth ") }
            .filter { $0.hasPrefix("$ hearth ") }.map { String($0.dropFirst("$ hearth ".count)) }
    }

    private func words(_ line: String) -> [String] {
        line.split(separator: " ").map { word in
            for place in ["/var/lib/", "/var/backups/hearth/", "/backups/"] where word.hasPrefix(place) {
                return directory.path(of: String(word.dropFirst(place.count)))
            }
            let files = ["firestore.rules", "books.jsonl", "firestore.indexes.json", "firebase.json"]
            return files.contains(String(word)) ? directory.path(of: String(word)) : String(word)
        }
    }

    private func run(_ line: String, _ server: ServerProcess? = nil) throws -> HearthBinary.Outcome {
        let environment = server.map { ["HEARTH_ADDRESS": "127.0.0.1:\($0.port)"] } ?? [:]
        let outcome = try HearthBinary.run(words(line), environment: environment)
        expectEqual(outcome.status, 0, "hearth \(line): \(outcome.errors)")
        return outcome
    }

    private func write(_ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: URL(filePath: directory.path(of: name)))
    }

    @Test func `The commands of the upgrade page work in their order`() throws {
        let server = try ServerProcess(data: directory.path(of: "hearth"))
        var running: ServerProcess? = server
        for line in try Self.commands("upgrade") {
            switch line.split(separator: " ")[0] {
            case "upgrade" where line.contains("--back"):
                // Nothing is kept in a directory that was never upgraded.
                let outcome = try HearthBinary.run(words(line) + ["--yes"])
                expect(outcome.status == 1 && outcome.errors.contains("no way back"), "\(outcome.errors)")
            case "upgrade":
                if let ended = running { expectEqual(ended.stop(), 0) }
                running = nil
                _ = try run(line)
            case "serve":
                let again = try ServerProcess(data: directory.path(of: "hearth"))
                expectEqual(again.stop(), 0)
            case "backup": _ = try run(line, running)
            case "export", "load":
                if running == nil { running = try ServerProcess(data: directory.path(of: "hearth")) }
                _ = try run(line, running)
            default: Issue.record("the page has another command: \(line)")
            }
        }
        expectEqual(running?.stop(), 0)
    }

    @Test func `The commands of the list before production work in their order`() throws {
        try write(
            "firestore.rules",
            "service cloud.firestore { match /databases/{d}/documents/{p=**} { allow read: if true; } }")
        let server = try ServerProcess(data: directory.path(of: "hearth"))
        var outputs: [String: String] = [:]
        for line in try Self.commands("production") {
            outputs[String(line.split(separator: " ")[0])] = try run(line, server).output
        }
        expectEqual(outputs["health"], "ready\n")
        expectEqual(outputs["serve"]?.contains("security: closed"), true)
        expectEqual(outputs["check"]?.contains("no problems"), true)
        expectEqual(outputs.keys.sorted(), ["backup", "check", "health", "indexes", "restore", "rules", "serve"])
        expectEqual(server.stop(), 0)
    }

    @Test func `The script of the sizing page measures each of its figures`() throws {
        let outcome = try HearthBinary.run(
            [Repository.url("Tools/sizing").path, HearthBinary.path, "2000", "4"], executable: "/bin/bash")
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        let figures = Dictionary(
            outcome.output.split(separator: "\n").compactMap { line -> (String, Double)? in
                guard let colon = line.firstIndex(of: ":") else { return nil }
                let number = line[colon...].dropFirst(2).prefix { $0.isNumber || $0 == "." || $0 == "-" }
                return Double(number).map { (String(line[..<colon]), $0) }
            }, uniquingKeysWith: { first, _ in first })
        let names = [
            "load", "disk", "document", "entries", "memory after a restart", "reads by name", "queries of one field",
            "listeners",
        ]
        for name in names { expect(figures[name] ?? 0 > 0, "\(name): \(outcome.output)") }
        expect(figures["entries"] ?? 0 > 5, "each field has an entry")
    }

    // MARK: Quick starts

    /// The code of a section of the page, with the address of the server.
    private func block(_ heading: String, _ server: ServerProcess) throws -> String {
        let page = try String(contentsOf: Repository.url("docs/quick-starts.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "## \(heading)\n").last)
        let block = try #require(section.components(separatedBy: "```").dropFirst().first)
        return block.split(separator: "\n", omittingEmptySubsequences: false).dropFirst().joined(separator: "\n")
            .replacingOccurrences(of: "127.0.0.1:8080", with: "127.0.0.1:\(server.port)")
    }

    @Test func `The quick start for curl works`() throws {
        let server = try ServerProcess(data: directory.path(of: "hearth"))
        var script = try block("curl", server)
        script = script.replacingOccurrences(of: "\n$ ", with: "\n").replacingOccurrences(of: "$ D=", with: "D=")
            .replacingOccurrences(of: "hearth query", with: "\"$HEARTH\" query")
            .replacingOccurrences(of: "curl \"", with: "curl -sS --fail \"")
        let outcome = try HearthBinary.run(
            ["-e", "-c", script],
            environment: ["HEARTH": HearthBinary.path, "HEARTH_ADDRESS": "127.0.0.1:\(server.port)"],
            executable: "/bin/bash")
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        expect(outcome.output.contains("\"integerValue\": \"1965\""))
        let last = #"{"__name__":"books/dune","title":"Dune","year":1965}"#
        expect(outcome.output.hasSuffix("\(last)\n"), "\(outcome)")
        expectEqual(server.stop(), 0)
    }

    @Test func `The quick start for Python works`() throws {
        let server = try ServerProcess(data: directory.path(of: "hearth"))
        let outcome = try HearthBinary.run(
            ["-c", try block("Python", server)],
            environment: ["FIRESTORE_EMULATOR_HOST": "127.0.0.1:\(server.port)"], executable: Repository.python)
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        expect(outcome.output.hasPrefix("ulysses {"))
        for field in ["'title': 'Ulysses'", "'year': 1922"] { expect(outcome.output.contains(field)) }
        expectEqual(server.stop(), 0)
    }
}
