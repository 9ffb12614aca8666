// The command line of `hearth`: help that teaches, errors that say what to do.

import Foundation
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct CommandLineTests {
    static let commands = CommandTable.shown.map { $0.name }

    @Test(arguments: [["--help"], ["-h"], ["help"]])
    func `The overview names every command`(_ arguments: [String]) throws {
        let outcome = try HearthBinary.run(arguments)
        expectEqual(outcome.status, 0)
        for command in Self.commands { expect(outcome.output.contains("  \(command) ")) }
        expect(outcome.errors.isEmpty)
    }

    @Test
    func `Without a command the overview is shown and the status is 2`() throws {
        let outcome = try HearthBinary.run([])
        expectEqual(outcome.status, 2)
        expect(outcome.output.contains("usage: hearth COMMAND"))
    }

    @Test(arguments: commands)
    func `Every command explains itself`(_ command: String) throws {
        let outcome = try HearthBinary.run([command, "--help"])
        expectEqual(outcome.status, 0)
        expect(outcome.output.hasPrefix("usage: hearth \(command) "))
        expect(outcome.output.contains("Example"))
        for line in outcome.output.split(separator: "\n") { expect(line.count <= 120, "\(line)") }
        try expectEqual(HearthBinary.run(["help", command]).output, outcome.output)
    }

    @Test
    func `A command for a directory that does not exist fails and creates nothing`() throws {
        let directory = TemporaryDirectory("nothing")
        let (none, target) = (directory.path(of: "none"), directory.path(of: "target"))
        let (rules, indexes) = (directory.path(of: "firestore.rules"), directory.path(of: "indexes.json"))
        let allowed = "service cloud.firestore { match /databases/{d}/documents/{p=**} { allow read: if true; } }"
        try Data(allowed.utf8).write(to: URL(filePath: rules))
        try Data(#"{"indexes": []}"#.utf8).write(to: URL(filePath: indexes))
        let commands: [[String]] = [
            ["ls", "--data", none], ["get", "c/a", "--data", none], ["query", "c", "--data", none],
            ["check", "--data", none], ["check", "--repair", "--data", none], ["backup", "--data", none, target],
            ["archive", "list", none], ["archive", "check", none], ["archive", "prune", none], ["fork", none, target],
            ["restore", "--data", target, none], ["restore", "--from", none, "--to", target],
            ["salvage", none, target], ["upgrade", none], ["upgrade", none, "--dry-run"],
            ["upgrade", none, "--confirm"], ["upgrade", none, "--back", "--yes"], ["promote", "--data", none],
            ["promote", "--force", "--data", none], ["databases", "list", "--data", none],
            ["databases", "create", "staging", "--data", none], ["indexes", "list", "--data", none],
            ["indexes", "suggest", "--data", none], ["indexes", "apply", indexes, "--data", none],
            ["rules", "list", "--data", none], ["rules", "apply", rules, "--data", none], ["status", "--data", none],
            ["health", "--data", none], ["migrate", "--from", none, "--to", "postgresql://127.0.0.1:1/none"],
            ["serve", "--fork-of", none, "--port", "0"],
        ]
        for words in commands {
            let outcome = try HearthBinary.run(words)
            expectEqual(outcome.status, 1, "\(words): \(outcome.errors)")
            expect(outcome.errors.contains(none), "\(words): \(outcome.errors)")
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        expectEqual(left, ["firestore.rules", "indexes.json"])
    }

    /// Needs root, to be another user.
    @Test
    func `A directory of another user is said to be that, and not to be missing`() throws {
        let directory = TemporaryDirectory("owner")
        let data = directory.path(of: "data")
        try expectEqual(ServerProcess(data: data).stop(), 0)
        // Where the other user may execute it.
        let program = directory.path(of: "hearth")
        try FileManager.default.copyItem(atPath: HearthBinary.path, toPath: program)
        for path in [directory.path, program] {
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
        for words in [
            ["check"], ["get", "c/x"], ["backup", "copy"], ["serve", "--port", "0"], ["health"], ["status"],
            ["token", "revoke-user", "ada"], ["rules", "list"], ["indexes", "list"],
        ] {
            let user = ["--reuid=65534", "--regid=65534", "--clear-groups"]
            let outcome = try HearthBinary.run(
                user + [program] + words + ["--data", data], executable: "/usr/bin/setpriv")
            expectEqual(outcome.status, 1, "\(words): \(outcome)")
            expectEqual(
                outcome.errors, "hearth: \(data) belongs to the user root alone: run the command as this user\n",
                "\(words): \(outcome.errors)")
        }
    }

    @Test
    func `An argument that is not UTF-8 is refused with its number, and nothing is done`() throws {
        let directory = TemporaryDirectory("bytes")
        let script = "exec \"$0\" restore --data \"$1/$(printf 'caf\\351')\" \"$1\""
        let outcome = try HearthBinary.run(
            ["-c", script, HearthBinary.path, directory.path], executable: "/bin/sh")
        expectEqual(outcome.status, 2, "\(outcome)")
        expectEqual(outcome.errors, "hearth: the argument number 3 is not UTF-8\n")
        try expect(FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    }

    @Test
    func `The help of serve has defaults and environment variables`() throws {
        let output = try HearthBinary.run(["serve", "--help"]).output
        for flag in [
            "--data DIR", "--host HOST", "--port PORT", "--loops N", "--max-connections N", "--drain-time TIME",
        ] {
            expect(output.contains("  \(flag)\n"), "\(flag)")
        }
        expect(output.contains("Default 8080."))
        expect(output.contains("HEARTH_DATA"))
    }

    @Test(arguments: [
        (["serv"], "did you mean serve?"), (["serve", "--prot", "1"], "did you mean --port?"),
        (["serve", "--port"], "--port needs a value"), (["serve", "--port", "x"], "--port must be a whole number"),
        (["serve", "--port", "65536"], "between 0 and 65535"), (["serve", "--port=-1"], "between 0 and 65535"),
        (["serve", "--port", "1", "--port", "2"], "--port may be given only once"),
        (["serve", "extra"], "unexpected argument"), (["serve", "--max-message", "10 apples"], "a size such as"),
        (["serve", "--max-message", "1KiB"], "between 64KiB and 1GiB"),
        (["serve", "--idle-time", "10"], "a time such as"), (["serve", "--log-level", "loud"], "debug, info"),
        (["backup"], "missing argument TARGET"), (["get"], "missing argument NAME"), (["-x"], "unknown command"),
        (["help", "serv"], "did you mean serve?"), (["indexes"], "missing argument ACTION: apply, list or suggest"),
        (["get", "/books/"], "\"/books/\" is a collection, not a document; hearth ls books lists its documents"),
    ])
    func `What is not understood is explained with status 2`(_ arguments: [String], _ expected: String) throws {
        let outcome = try HearthBinary.run(arguments)
        expectEqual(outcome.status, 2)
        expect(outcome.errors.contains(expected), "\(outcome.errors)")
        expect(outcome.errors.contains("--help"))
        expect(outcome.output.isEmpty)
    }

    @Test
    func `Where /proc is not mounted there is help, and commands say what is missing`() throws {
        let script = #"mount -t tmpfs none /proc && exec "$0" "$@""#
        func run(_ words: [String]) throws -> HearthProcess {
            let arguments = ["--map-root-user", "--mount", "/bin/sh", "-c", script, HearthBinary.path]
            let process = HearthProcess(arguments + words, executable: "/usr/bin/unshare")
            try process.start()
            process.waitForEnd()
            return process
        }
        try expect(run(["--version"]).output.hasPrefix("hearth "))
        try expect(run(["check", "--help"]).output.hasPrefix("usage: hearth check"))
        let outcome = try run(["check", "--data", "/nowhere"])
        expect(outcome.status == 1 && outcome.errors.contains("/nowhere is not a"), "\(outcome.errors)")
        let refused = try run(["get", "users/ada"])
        expect(refused.status == 1 && refused.errors.contains("hearth get needs /proc"), "\(refused.errors)")
    }

    @Test
    func `A wrong environment variable is named`() throws {
        let outcome = try HearthBinary.run(["serve"], environment: ["HEARTH_MAX_CONNECTIONS": "many"])
        expectEqual(outcome.status, 2)
        expect(outcome.errors.contains("HEARTH_MAX_CONNECTIONS must be a whole number"))
    }
}
