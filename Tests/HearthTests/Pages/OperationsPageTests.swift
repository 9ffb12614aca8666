// The commands of docs/operations.md, run as they stand there.

import Foundation
import TLSTestSupport
import TestSupport
import Testing

/// Runs each line of the page that begins with `$ ` in a shell, in the order of the page. What the page shows below a
/// line is what the command prints.
///
/// The directories of the page stand for some in the temporary directory of the test, and its ports for free ones.
@Suite(.timeLimit(.minutes(20)))
struct OperationsPageTests {
    private let directory = TemporaryDirectory("operations")
    private let authority = TestAuthority()

    private struct Command {
        var line: String
        /// The lines below it.
        var output: [String] = []
    }

    private static func commands() throws -> [Command] {
        let page = try String(contentsOf: Repository.url("docs/operations.md"), encoding: .utf8)
        var commands: [Command] = []
        // The text between every second pair of fences is a block.
        for (number, block) in page.components(separatedBy: "```").enumerated() where number % 2 == 1 {
            let first = commands.count
            for line in block.split(separator: "\n") {
                if line.hasPrefix("$ ") {
                    commands.append(Command(line: String(line.dropFirst(2))))
                } else if commands.count > first {
                    commands[commands.count - 1].output.append(String(line))
                }
            }
        }
        return commands
    }

    /// A shell that executes the line.
    private func shell(_ line: String, _ environment: [String: String] = [:]) -> HearthProcess {
        var line = line
        // The path of the directory may itself begin with /tmp.
        for (place, name) in [("/tmp/", "try-"), ("/var/lib/", "lib-"), ("/backups/", "backup-")] {
            line = line.replacingOccurrences(of: place, with: directory.path(of: name))
        }
        let script = "cd '\(directory.path)' && PATH='\(directory.path(of: "bin"))':$PATH && exec \(line)"
        return HearthProcess(["-c", script], environment: environment, executable: "/bin/bash")
    }

    /// Starts a server with a line of the page.
    /// - Returns: the server with its port.
    private func serve(_ line: String) throws -> (process: HearthProcess, port: String) {
        let process = shell(
            line.replacingOccurrences(of: " --port 8080", with: "").replacingOccurrences(
                of: "--host 0.0.0.0", with: "--host 127.0.0.1"), ["HEARTH_PORT": "0"])
        try process.start()
        let ready = try #require(process.waitForLine(prefix: "hearth ready on "), "\(line): \(process.errors)")
        return (process, String(ready.split(separator: ":")[1]))
    }

    private func stop(_ server: HearthProcess) {
        server.signal(SIGTERM)
        server.waitForEnd()
        expectEqual(server.status, 0, "\(server.errors)")
    }

    private func run(_ line: String, _ environment: [String: String]) throws -> [String] {
        let process = shell(line, environment)
        try process.start()
        process.waitForEnd()
        expectEqual(process.status, 0, "\(line): \(process.errors)")
        return process.output.split(separator: "\n").map(String.init)
    }

    private func write(_ name: String, _ bytes: some Sequence<UInt8>) throws {
        try Data(bytes).write(to: URL(filePath: directory.path(of: name)))
    }

    /// The files that the page takes for granted.
    private func writeFiles() throws {
        try FileManager.default.createDirectory(atPath: directory.path(of: "bin"), withIntermediateDirectories: false)
        try FileManager.default.createSymbolicLink(
            atPath: directory.path(of: "bin/hearth"), withDestinationPath: HearthBinary.path)
        let rules = "match /databases/{d}/documents/{p=**} { allow read, write: if true; }"
        try write("firestore.rules", "service cloud.firestore { \(rules) }".utf8)
        let emulator = #""emulators": {"firestore": {"host": "127.0.0.1", "port": 8080}}"#
        try write("firebase.json", #"{"firestore": {"rules": "firestore.rules"}, \#(emulator)}"#.utf8)
        let issued = authority.issue(["DNS:localhost"])
        try write("server.pem", issued.certificate)
        try write("server.key", issued.key.privatePEM)
        try write("ca.pem", authority.certificate)
    }

    @Test func `The commands of the operations page work in their order and print what the page shows`() throws {
        try writeFiles()
        var servers: [(process: HearthProcess, port: String)] = []
        var address = ["HEARTH_ADDRESS": ""]
        var count = 0
        for command in try Self.commands() {
            count += 1
            let words = command.line.split(separator: " ")
            switch (words[0], words[1]) {
            // Tests/Interop/official_admin.py makes the calls of grpcurl, which Debian does not have.
            case ("grpcurl", _): continue
            case ("hearth", "serve") where command.line.contains("--config") || command.line.contains("--fork-of"):
                stop(try serve(command.line).process)
            case ("hearth", "serve"):
                servers.append(try serve(command.line))
                address = ["HEARTH_ADDRESS": "127.0.0.1:\(servers[0].port)"]
                if servers.count > 1 { continue }
                for document in [
                    #"books/ulysses '{"author": "Joyce", "year": 1922}'"#,
                    #"books/ulysses/reviews/a '{"book": "/books/ulysses", "stars": 5}'"#,
                ] {
                    _ = try run("hearth set \(document)", address)
                }
            case ("hearth", "get") where command.line.contains("--tls-ca"):
                let port = try #require(servers.last).port
                let here = command.line.replacingOccurrences(of: "db.example.org:8080", with: "localhost:\(port)")
                _ = try run(
                    here.replacingOccurrences(of: "get users/ada", with: #"set users/ada '{"born": 1815}'"#), [:])
                let output = try run(here, [:])
                expectEqual(output, [#"{"__name__":"users/ada","born":1815}"#])
            default:
                // Nobody can be asked here.
                let answer = command.line.hasSuffix("--recursive") ? " --yes" : ""
                let output = try run(command.line + answer, address)
                if !command.output.isEmpty { expectEqual(output, command.output, "\(command.line)") }
            }
        }
        for server in servers { stop(server.process) }
        expect(servers.count == 3 && count >= 30, "\(count) commands")
    }
}
