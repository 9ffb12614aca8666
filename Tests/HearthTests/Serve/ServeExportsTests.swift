// hearth serve --import --export-on-exit, and the emulator's routes for exports.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ServeExportsTests {
    private let directory = TemporaryDirectory("serve-exports")

    private func serve(_ data: String, _ arguments: String...) throws -> ServerProcess {
        try ServerProcess(data: directory.path(of: data), arguments: arguments)
    }

    private func run(_ server: ServerProcess, _ words: String...) throws -> HearthBinary.Outcome {
        try HearthBinary.run(words + ["--address", "127.0.0.1:\(server.port)"])
    }

    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: directory.path(of: path)) }

    @Test
    func `What a server exports at its end another one imports at its start, and keeps it`() throws {
        let export = directory.path(of: "export")
        var server = try serve("a", "--export-on-exit", export)
        try expectEqual(run(server, "set", "c/x", #"{"n": 1}"#, "--project", "p").status, 0)
        try expectEqual(run(server, "set", "c/missing/s/y", #"{"n": 2}"#, "--project", "p").status, 0)
        expectEqual(server.stop(), 0)
        expect(exists("export/firebase-export-metadata.json"))

        // Another directory, and a write that a second start does not undo.
        server = try serve("b", "--import", export, "--export-on-exit", export)
        try expect(run(server, "get", "c/missing/s/y", "--project", "p").output.contains(#""n":2"#))
        try expectEqual(run(server, "set", "c/x", #"{"n": 3}"#, "--project", "p").status, 0)
        server.kill()
        server = try serve("b", "--import", export, "--export-on-exit", export)
        try expect(run(server, "get", "c/x", "--project", "p").output.contains(#""n":3"#))
        expectEqual(server.stop(), 0)
        server = try serve("c", "--import", export)
        try expect(run(server, "get", "c/x", "--project", "p").output.contains(#""n":3"#))

        expectEqual(server.stop(), 0)
        server = try serve("c", "--export-on-exit", directory.path(of: "other/"))
        expectEqual(server.stop(), 0)
        expect(exists("other/firebase-export-metadata.json"))
        try expectEqual(
            FileManager.default.contentsOfDirectory(atPath: directory.path).sorted(),
            ["a", "b", "c", "export", "other"])
        // A file of which nothing was copied.
        try Data().write(
            to: URL(fileURLWithPath: "\(export)/firestore_export/all_namespaces/all_kinds/output-0"))
        let refused = try HearthBinary.run(
            ["serve", "--data", directory.path(of: "d"), "--import", export, "--port", "0"])
        expect(refused.status == 1 && refused.errors.contains("the export is not complete"), "\(refused)")
    }

    @Test
    func `A server of several databases exports the one that is named, and reports that it needs a name`() throws {
        let export = directory.path(of: "export")
        var server = try serve("a", "--export-on-exit", export)
        for project in ["p", "q"] {
            try expectEqual(run(server, "set", "c/\(project)", "{}", "--project", project).status, 0)
        }
        expectEqual(server.stop(), 1)
        expect(!exists("export"))
        server = try serve(
            "a", "--export-on-exit", export, "--export-database",
            "projects/q/databases/(default)")
        expectEqual(server.stop(), 0)
        let other = try serve("b", "--import", export)
        try expectEqual(run(other, "get", "c/q", "--project", "q").status, 0)
        try expect(run(other, "get", "c/p", "--project", "p").status != 0)
        expectEqual(other.stop(), 0)
    }

    @Test
    func `A server that could not keep its promise does not start`() throws {
        let full = directory.path(of: "full")
        try FileManager.default.createDirectory(atPath: "\(full)/photos", withIntermediateDirectories: true)
        for arguments in [["--export-on-exit", full], ["--import", directory.path(of: "none")]] {
            let outcome = try HearthBinary.run(
                ["serve", "--data", directory.path(of: "data"), "--port", "0"] + arguments)
            expectEqual(outcome.status, 1, "\(outcome)")
        }
        expect(exists("full/photos"))
    }

    @Test
    func `The emulator's routes export and import on an open server alone`() throws {
        let server = try serve("a")
        try expectEqual(run(server, "set", "c/x", #"{"n": 1}"#, "--project", "p").status, 0)
        func post(_ port: Int, _ verb: String, _ body: String) throws -> HTTPTestClient.Reply {
            let target = "/emulator/v1/projects/p:\(verb)"
            return try #require(HTTPTestClient(port: port).request("POST", target, body: body))
        }
        func body(_ folder: String, _ database: String = "(default)", name: String? = "copy") -> String {
            let name = name.map { #", "export_name": "\#($0)""# } ?? ""
            return #"{"database": "projects/p/databases/\#(database)", "export_directory": "\#(folder)"\#(name)}"#
        }
        let exported = try post(server.port, "export", body(directory.path))
        expectEqual(exported.status, 200, "\(exported)")
        expect(exists("copy/copy.overall_export_metadata"))
        try expectEqual(post(server.port, "export", body(directory.path)).status, 400)
        for wrong in [body("relative"), body(directory.path, name: "../x"), "{}", "[", body(directory.path, name: nil)]
        {
            try expectEqual(post(server.port, "export", wrong).status, 400)
        }
        let metadata = directory.path(of: "copy/copy.overall_export_metadata")
        let imported = try post(server.port, "import", body(metadata, "second", name: nil))
        expectEqual(imported.status, 200, "\(imported)")
        let found = try run(server, "get", "c/x", "--project", "p", "--database", "second")
        expect(found.output.contains(#""n":1"#), "\(found)")
        try expectEqual(post(server.port, "import", body("/none", name: nil)).status, 400)
        expectEqual(server.stop(), 0)

        // A server with principals is closed, whatever its flags.
        let principals = directory.path(of: "principals.json")
        let added = try HearthBinary.run(
            ["token", "create", "boss", "--principals", principals, "--role", "admin", "--project", "*", "--api-key"])
        expectEqual(added.status, 0, "\(added)")
        let closed = try serve("b", "--principals", principals, "--emulator-endpoints", "on")
        let refused = try post(closed.port, "export", body(directory.path, name: "closed"))
        expect([401, 403].contains(refused.status), "\(refused)")
        expect(!exists("closed"))
        expectEqual(closed.stop(), 0)
    }
}
