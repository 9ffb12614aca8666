// The command line of `hearth`: help that teaches, errors that say what to do.

import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct CommandLineTests {
    static let commands = [
        "serve", "get", "query", "load", "export", "check", "backup", "restore", "salvage", "indexes", "rules",
        "token", "health",
    ]

    @Test(arguments: [["--help"], ["-h"], ["help"]])
    func `The overview names every command`(_ arguments: [String]) throws {
        let outcome = try HearthBinary.run(arguments)
        #expect(outcome.status == 0)
        for command in Self.commands { #expect(outcome.output.contains("  \(command) ")) }
        #expect(outcome.errors.isEmpty)
    }

    @Test
    func `Without a command the overview is shown and the status is 2`() throws {
        let outcome = try HearthBinary.run([])
        #expect(outcome.status == 2)
        #expect(outcome.output.contains("usage: hearth COMMAND"))
    }

    @Test(arguments: commands)
    func `Every command explains itself`(_ command: String) throws {
        let outcome = try HearthBinary.run([command, "--help"])
        #expect(outcome.status == 0)
        #expect(outcome.output.hasPrefix("usage: hearth \(command) "))
        #expect(outcome.output.contains("Example"))
        for line in outcome.output.split(separator: "\n") { #expect(line.count <= 120, "\(line)") }
        #expect(try HearthBinary.run(["help", command]).output == outcome.output)
    }

    @Test
    func `The help of serve has defaults and environment variables`() throws {
        let output = try HearthBinary.run(["serve", "--help"]).output
        for flag in [
            "--data DIR", "--host HOST", "--port PORT", "--loops N", "--max-connections N", "--drain-time TIME",
        ] {
            #expect(output.contains("  \(flag)\n"), "\(flag)")
        }
        #expect(output.contains("Default 8080."))
        #expect(output.contains("HEARTH_DATA"))
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
        #expect(outcome.status == 2)
        #expect(outcome.errors.contains(expected), "\(outcome.errors)")
        #expect(outcome.errors.contains("--help"))
        #expect(outcome.output.isEmpty)
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
        #expect(try run(["--version"]).output.hasPrefix("hearth "))
        #expect(try run(["check", "--help"]).output.hasPrefix("usage: hearth check"))
        let outcome = try run(["check", "--data", "/nowhere"])
        #expect(outcome.status == 1 && outcome.errors.contains("/nowhere is not a"), "\(outcome.errors)")
        let refused = try run(["get", "users/ada"])
        #expect(refused.status == 1 && refused.errors.contains("hearth get needs /proc"), "\(refused.errors)")
    }

    @Test
    func `A wrong environment variable is named`() throws {
        let outcome = try HearthBinary.run(["serve"], environment: ["HEARTH_MAX_CONNECTIONS": "many"])
        #expect(outcome.status == 2)
        #expect(outcome.errors.contains("HEARTH_MAX_CONNECTIONS must be a whole number"))
    }
}
