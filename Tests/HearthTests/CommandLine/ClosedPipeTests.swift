// Output whose reader goes away, and output that cannot be written.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ClosedPipeTests {
    private let directory = TemporaryDirectory("pipe")

    /// What a shell prints of a pipeline; `"$0"` is hearth.
    private func shell(_ script: String) throws -> HearthProcess {
        let process = HearthProcess(["-c", script, HearthBinary.path], executable: "/bin/bash")
        try process.start()
        process.waitForEnd()
        return process
    }

    /// A server with documents of more bytes than a pipe holds.
    private func fill() throws -> ServerProcess {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let text = String(repeating: "x", count: 400)
        let lines = (0..<3_000).map { #"{"__name__":"d\#($0)","text":"\#(text)"}"# }
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: directory.path(of: "c.jsonl")))
        let loaded = try HearthBinary.run([
            "load", directory.path(of: "c.jsonl"), "--collection", "c", "--address", "127.0.0.1:\(server.port)",
        ])
        expectEqual(loaded.status, 0, "\(loaded.errors)")
        return server
    }

    @Test
    func `A command whose reader has gone ends quietly, as other tools do; watch too, while nothing changes`() throws {
        let server = try fill()
        let address = "--address 127.0.0.1:\(server.port)"
        for (command, first) in [
            ("export --collection c --quiet \(address)", #"{"__name__":"d0""#),
            ("query c \(address)", #"{"__name__":"c/d0""#), ("watch c \(address)", "added"),
            ("watch c/d0 \(address)", "added"),
            ("query c --data \(directory.path(of: "data"))", #"{"__name__":"c/d0""#),
        ] {
            let outcome = try shell(#""$0" \#(command) | head -1; echo "status ${PIPESTATUS[0]}""#)
            let lines = outcome.output.split(separator: "\n")
            expect(lines.count == 2 && lines[0].hasPrefix(first), "\(command): \(outcome.output)")
            expectEqual(lines.last, "status \(128 + SIGPIPE)", "\(command)")
            expect(outcome.errors.isEmpty, "\(command): \(outcome.errors)")
        }
        expectEqual(server.stop(), 0)
        // Also where the command itself serves the directory: it is left in order.
        let data = directory.path(of: "data")
        let direct = try shell(#""$0" query c --data \#(data) | head -1; echo "status ${PIPESTATUS[0]}""#)
        expect(direct.output.hasSuffix("status \(128 + SIGPIPE)\n") && direct.errors.isEmpty, "\(direct.errors)")
        expect(!FileManager.default.fileExists(atPath: "\(data)/admin.sock"))
    }

    @Test
    func `A load that is complete leaves nothing, whether or not its last line can be printed`() throws {
        let server = try fill()
        let outcome = try shell(
            #""$0" load \#(directory.path(of: "c.jsonl")) --collection c --quiet "#
                + "--address 127.0.0.1:\(server.port) | true"
        )
        expect(outcome.errors.isEmpty, "\(outcome.errors)")
        expect(!FileManager.default.fileExists(atPath: directory.path(of: "c.jsonl.hearth-load")))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Output that cannot be written is an error`() throws {
        let server = try fill()
        let address = "--address 127.0.0.1:\(server.port)"
        for command in [
            "export --collection c --quiet \(address)", "query c \(address)", "query c --count \(address)",
            "get c/d0 \(address)", "watch c \(address)",
            "--help", "--version", "help get", "serve --help",
            "indexes list \(address)", "indexes list --data \(directory.path(of: "data"))",
        ] {
            let outcome = try shell(#""$0" \#(command) >/dev/full"#)
            let isSilent = command.hasPrefix("indexes list")
            expectEqual(outcome.status, isSilent ? 0 : 1, "\(command)")
            expect(isSilent || outcome.errors.contains("No space left on device"), "\(command): \(outcome.errors)")
        }
        // A file of another kind is written to, not replaced.
        let pipe = directory.path(of: "pipe")
        let script = #"""
            mkfifo \#(pipe); cat \#(pipe) >/dev/null 2>&1 &
            "$0" export --collection c --quiet --output \#(pipe) \#(address)
            test -p \#(pipe) && echo pipe; kill $! 2>/dev/null
            """#
        try expectEqual(shell(script).output, "pipe\n")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A server that is started without standard streams writes its log into none of its files`() throws {
        let data = directory.path(of: "data")
        let port = try LoopbackSocket.reservePort()
        let outcome = try shell(
            #"""
            "$0" serve --data \#(data) --port \#(port) --statistics-interval 250ms <&- >&- 2>&- &
            until "$0" set c/a '{"n": 1}' --address 127.0.0.1:\#(port); do sleep 0.1; done
            readlink /proc/$!/fd/0 /proc/$!/fd/1 /proc/$!/fd/2
            "$0" get c/a --address 127.0.0.1:\#(port) >&- 2>\#(data).errors; echo "status $?"
            kill -9 $!; wait $! 2>/dev/null
            "$0" get c/a --data \#(data)
            """#)
        expectEqual(outcome.output, "/\n/\n/\nstatus 1\n" + #"{"__name__":"c/a","n":1}"# + "\n", "\(outcome.errors)")
        let errors = try String(contentsOfFile: "\(data).errors", encoding: .utf8)
        expectEqual(errors, "hearth: cannot write to standard output: Bad file descriptor\n")
    }
}
