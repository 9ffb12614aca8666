// `hearth rules apply`, `rollback`, `list` and `show`.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RulesApplyTests {
    private static let document = "/v1/projects/p/databases/(default)/documents/c/x"

    private let directory = TemporaryDirectory("rules")
    private var data: String { directory.path(of: "data") }

    /// Writes rules with one statement and returns the path of the file.
    private func file(_ name: String, _ statement: String) throws -> String {
        try write(
            name, "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { \(statement) } } }\n")
    }

    private func write(_ name: String, _ text: String) throws -> String {
        let path = directory.path(of: name)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func rules(
        _ words: String..., environment: [String: String] = [:]
    ) throws -> HearthBinary.Outcome {
        let place = words.contains("--to") ? [] : ["--data", data]
        return try HearthBinary.run(["rules"] + words + place, environment: environment)
    }

    private func status(_ server: ServerProcess) -> Int? {
        HTTPTestClient(port: server.port).request("GET", Self.document)?.status
    }

    /// Makes the data directory.
    private func makeDirectory() throws { try expectEqual(ServerProcess(data: data).stop(), 0) }

    @Test
    func `check reports rules that do not parse, beside the state of the documents`() throws {
        try makeDirectory()
        try expectEqual(HearthBinary.run(["check", "--data", data]).output.contains("the rules number"), false)
        try expectEqual(rules("apply", file("get.rules", "allow get;")).status, 0)
        let sound = try HearthBinary.run(["check", "--data", data])
        expect(sound.status == 0 && sound.output.hasSuffix("\(data): the rules number 1 have no errors\n"))
        let kept = "\(data)/rules/000001.rules"
        for text in ["service x", "}"] {
            try Data(text.utf8).write(to: URL(fileURLWithPath: kept))
            let found = try HearthBinary.run(["check", "--data", data])
            expect(found.status == 1 && found.output.hasPrefix("problem: \(kept) has errors"), "\(found.output)")
            expect(found.output.contains(": no problems; 0 documents"), "\(found.output)")
            expect(found.errors.contains("hearth rules rollback"), "\(found.errors)")
            let object = try HearthBinary.run(["check", "--json", "--data", data])
            expect(object.status == 1 && object.output.hasPrefix("{\"problems\":[\"\(kept) has errors"), "\(object)")
        }
        try Data([0xFF]).write(to: URL(fileURLWithPath: kept))
        let repaired = try HearthBinary.run(["check", "--repair", "--data", data])
        expect(repaired.status == 1 && repaired.output.contains("rules are not UTF-8"), "\(repaired.output)")
    }

    @Test
    func `get and query of a directory need neither its rules nor a token`() throws {
        let server = try ServerProcess(data: data)
        let http = HTTPTestClient(port: server.port)
        let body = "{\"fields\":{\"n\":{\"integerValue\":7}}}"
        expectEqual(http.request("PATCH", Self.document, body: body)?.status, 200)
        expectEqual(server.stop(), 0)
        try expectEqual(rules("apply", file("none.rules", "allow get: if false;")).status, 0)
        let place = ["--data", data, "--project", "p"]
        let line = "{\"__name__\":\"c/x\",\"n\":7}\n"
        let environments = [[:], ["HEARTH_TOKEN": "none"], ["HEARTH_TLS": "true"]]
        for environment in environments {
            let got = try HearthBinary.run(["get", "c/x"] + place, environment: environment)
            expectEqual(got.output, line, "\(environment): \(got.errors)")
            let found = try HearthBinary.run(["query", "c"] + place, environment: environment)
            expectEqual(found.output, line, "\(environment): \(found.errors)")
        }
        // Rules that do not parse are in the way of a server, and not of its owner.
        try Data("service x".utf8).write(to: URL(fileURLWithPath: "\(data)/rules/000001.rules"))
        try expectEqual(HearthBinary.run(["get", "c/x"] + place).output, line)
        // A server decides by its rules.
        try expectEqual(rules("apply", file("none.rules", "allow get: if false;")).status, 0)
        let closed = try ServerProcess(data: data)
        let refused = try HearthBinary.run(["get", "c/x"] + place)
        expect(refused.status == 1 && refused.output.isEmpty, "\(refused.errors)")
        expectEqual(closed.stop(), 0)
    }

    @Test
    func `Rules close a server that was open while it serves, and the next start keeps them`() throws {
        let (create, get) = (try file("create.rules", "allow create;"), try file("get.rules", "allow get;"))
        let server = try ServerProcess(data: data)
        expectEqual(status(server), 404)
        let first = try rules("apply", create)
        expectEqual(first.status, 0, "\(first.errors)")
        expect(first.output.hasPrefix("\(create) is in force as number 1\nThe server was open. It is closed now"))
        expectEqual(status(server), 403)
        try expectEqual(rules("apply", get).output, "\(get) is in force as number 2\n")
        expectEqual(status(server), 404)
        let again = try rules("apply", get)
        expectEqual(again.output, "\(get) is in force already as number 2; nothing has changed\n")
        try expectEqual(rules("rollback").output, "the rules before are in force as number 3\n")
        expectEqual(status(server), 403)
        let list = try rules("list").output.split(separator: "\n").map { $0.split(separator: "\t") }
        expect(list.map(\.count) == [3, 3, 4] && list.map(\.first) == ["1", "2", "3"] && list[2][3] == "in force")
        expect(server.process.waitForError("event=rules_applied number=3 security=closed"))
        expectEqual(server.stop(), 0)

        let next = try ServerProcess(data: data)
        expect(next.process.waitForError("security=closed"))
        expectEqual(status(next), 403)
        try expectEqual(rules("show").output, String(contentsOfFile: create, encoding: .utf8))
        try expectEqual(rules("show", "2").output, String(contentsOfFile: get, encoding: .utf8))
        expectEqual(next.stop(), 0)
    }

    @Test
    func `A reload keeps the rules that were applied last`() throws {
        let principals = try write("principals.json", #"{"principals":[]}"#)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: principals)
        let server = try ServerProcess(data: data, arguments: ["--principals", principals])
        expectEqual(status(server), 401)
        try expectEqual(rules("apply", try file("create.rules", "allow create;")).status, 0)
        try expectEqual(rules("apply", try file("get.rules", "allow get;")).status, 0)
        server.process.signal(SIGHUP)
        expect(server.process.waitForError("event=reloaded parts=security"))
        expectEqual(status(server), 404)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Without a server the directory is changed itself, and what cannot be used ends a start`() throws {
        let good = try file("get.rules", "allow get;")
        try expect(rules("apply", good).errors.contains("is not a Hearth data directory"))
        try makeDirectory()
        try expect(rules("rollback").errors.contains("There are no rules before the current ones."))
        let first = try rules("apply", good)
        expectEqual(first.output, "\(good) is in force as number 1, from the next start of a server on\n")
        let kept = "\(data)/rules/000002.rules"
        for (text, error) in [([0xFF], "rules are not UTF-8"), (Array("service {".utf8), "1:9: error: Unexpected '{'")]
        {
            try Data(text).write(to: URL(fileURLWithPath: kept))
            let start = try HearthBinary.run(["serve", "--data", data, "--port", "0"])
            expect(start.status == 1 && start.errors.contains(error) && start.errors.contains(kept), "\(start.errors)")
        }
        try expect(rules("apply", good).output.contains("number 3"))
        let checked = try HearthBinary.run(["serve", "--data", data, "--check-config"])
        expect(checked.output.hasPrefix("security: closed\n"))
        expect(checked.output.contains("rules: \(data)/rules/000003.rules, 1 allow statements\n"))
    }

    @Test
    func `A server does not start without the newest rules, and a salvaged directory has no older ones instead`() throws
    {
        try makeDirectory()
        for statement in ["allow read;", "allow get;"] {
            try expectEqual(rules("apply", try file("x.rules", statement)).status, 0)
        }
        let newest = "\(data)/rules/000002.rules"
        func expectRefused(_ place: String) throws {
            let start = try HearthBinary.run(["serve", "--data", place, "--port", "0"])
            expect(start.status == 1 && start.errors.contains("the newest rules are missing"), "\(start.errors)")
            expect(start.errors.contains("\(place)/rules/000002.rules"), "\(start.errors)")
            expect(start.errors.contains("hearth rules apply"), "\(start.errors)")
        }
        try Data([0xFF]).write(to: URL(fileURLWithPath: newest))
        let saved = directory.path(of: "saved")
        let salvaged = try HearthBinary.run(["salvage", data, saved])
        expect(salvaged.status == 0 && salvaged.output.contains("unreadable: "), "\(salvaged)")
        expect(salvaged.output.contains(newest), "\(salvaged.output)")
        try expectRefused(saved)
        try FileManager.default.removeItem(atPath: newest)
        try expectRefused(data)
        try expect(HearthBinary.run(["check", "--data", data]).output.contains("the newest rules are missing"))
        try expect(rules("list").errors.contains("the newest rules are missing"))
        try expect(rules("show", "1").output.contains("allow read;"))
        try expect(rules("rollback").output.contains("number 3"))
        let server = try ServerProcess(data: data)
        expect(server.process.waitForError("security=closed"))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Rules with an error are shown with line, column, caret and remedy, and not applied`() throws {
        try makeDirectory()
        let wrong = try rules("apply", try file("wrong.rules", "allow get: if resource.data.n/2 == 1;"))
        expect(wrong.status == 1 && wrong.output.contains(":1:104: error: Unexpected '/2'"), "\(wrong.output)")
        expect(wrong.output.contains("^~\n") && wrong.output.contains("Write a space after '/' to divide."))
        try expect(rules("list").output.isEmpty)
        let warned = try rules("apply", try file("warned.rules", "allow git;"))
        expect(warned.status == 0 && warned.output.contains("warning: Invalid method name: git."), "\(warned.output)")
    }

    @Test
    func `A server with --rules takes no others`() throws {
        let (get, create) = (try file("get.rules", "allow get;"), try file("create.rules", "allow create;"))
        try makeDirectory()
        try expectEqual(rules("apply", create).status, 0)
        let server = try ServerProcess(data: data, arguments: ["--rules", get])
        expectEqual(status(server), 404)
        for outcome in [try rules("apply", create), try rules("rollback")] {
            expect(outcome.status == 1 && outcome.errors.contains("takes its rules from \(get) (--rules)"))
        }
        try expect(rules("list").output.hasSuffix(" bytes\n\(get) (--rules) is in force\n"))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An admin applies rules over the network, others do not`() throws {
        let principals = directory.path(of: "principals.json")
        func key(_ role: String) throws -> [String: String] {
            let made = try HearthBinary.run([
                "token", "create", role, "--principals", principals, "--role", role, "--project", "*", "--api-key",
            ])
            expectEqual(made.status, 0, "\(made.errors)")
            return ["HEARTH_TOKEN": String(made.output.dropLast())]
        }
        let (admin, writer) = (try key("admin"), try key("writer"))
        let server = try ServerProcess(data: data, arguments: ["--principals", principals])
        let address = "127.0.0.1:\(server.port)"
        let get = try file("get.rules", "allow get;")
        let anonymous = try rules("apply", get, "--to", address)
        expect(anonymous.status == 1 && anonymous.errors.contains("UNAUTHENTICATED"), "\(anonymous.errors)")
        let refused = try rules("apply", get, "--to", address, environment: writer)
        expect(refused.status == 1 && refused.errors.contains("PERMISSION_DENIED"), "\(refused.errors)")
        expectEqual(status(server), 401)
        let applied = try rules("apply", get, "--to", address, environment: admin)
        expectEqual(applied.output, "\(get) is in force as number 1\n", "\(applied.errors)")
        expectEqual(status(server), 404)
        let text = try String(contentsOfFile: get, encoding: .utf8)
        try expectEqual(rules("show", "--to", address, environment: admin).output, text)
        try expectEqual(rules("show", "1", "--to", address, environment: writer).status, 1)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Backups, restored directories and salvaged ones have the rules with their times`() throws {
        let server = try ServerProcess(data: data)
        try expectEqual(rules("apply", try file("create.rules", "allow create;")).status, 0)
        try expectEqual(rules("apply", try file("get.rules", "allow get;")).status, 0)
        let list = try rules("list").output
        let served = directory.path(of: "served")
        try expectEqual(HearthBinary.run(["backup", "--data", data, served]).status, 0)
        expectEqual(server.stop(), 0)
        // What a process that ended has left is not copied.
        try Data("x".utf8).write(to: URL(fileURLWithPath: "\(data)/rules/000003.rules.1.new"))
        let (copy, restored, saved) = (
            directory.path(of: "copy"), directory.path(of: "restored"), directory.path(of: "saved")
        )
        try expectEqual(HearthBinary.run(["backup", "--data", data, copy]).status, 0)
        try expectEqual(HearthBinary.run(["restore", "--data", restored, copy]).status, 0)
        try expectEqual(HearthBinary.run(["salvage", data, saved]).status, 0)
        for place in [served, copy, restored, saved] {
            try expectEqual(HearthBinary.run(["rules", "list", "--data", place]).output, list, "\(place)")
            let names = try FileManager.default.contentsOfDirectory(atPath: "\(place)/rules").sorted()
            expectEqual(names, ["000001.rules", "000002.newest", "000002.rules"], "\(place)")
        }
        let again = try ServerProcess(data: restored)
        expect(again.process.waitForError("security=closed"))
        expectEqual(again.stop(), 0)
    }

    @Test
    func `Words that do not fit the action are refused`() throws {
        let cases = [
            (["apply"], "usage: hearth rules apply FILE"), (["list", "x"], "unexpected argument \"x\""),
            (["show", "x"], "is not a number of hearth rules list"), (["show", "0"], "is not a number"),
            (["drop"], "is not check, test, explain, apply, rollback, list or show"),
            (["list", "--to", "127.0.0.1:1", "--data", data], "cannot be combined"),
        ]
        for (words, text) in cases {
            let outcome = try HearthBinary.run(["rules"] + words)
            expect(outcome.status == 2 && outcome.errors.contains(text), "\(words): \(outcome.errors)")
        }
    }
}
