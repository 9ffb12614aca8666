// `hearth serve --socket`, and the commands and programs that connect to it.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ServeSocketTests {
    private let directory = TemporaryDirectory("serve-socket")

    private var path: String { directory.path(of: "hearth.sock") }

    private func serve(_ arguments: String...) throws -> ServerProcess {
        try ServerProcess(data: directory.path(of: "data"), arguments: ["--socket", path] + arguments)
    }

    /// - Parameter address: what names the socket.
    private func number(_ address: String) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["get", "c/a", "--address", address, "--timeout", "10s"])
    }

    @Test
    func `Commands load and read over it, and again after kill -9`() throws {
        let lines = directory.path(of: "lines.jsonl")
        try Data(#"{"__name__":"a","n":7}"#.utf8).write(to: URL(fileURLWithPath: lines))
        let first = try serve()
        let load = try HearthBinary.run([
            "load", "--quiet", "--collection", "c", "--address", "unix:\(path)", lines,
        ])
        #expect(load.status == 0, "\(load.errors)")
        first.kill()
        #expect(FileManager.default.fileExists(atPath: path))
        let refused = try HearthBinary.run(["get", "c/a", "--address", "unix:\(path)", "--timeout", "1500ms"])
        #expect(refused.status == 1 && refused.errors.contains("connect to \(path)"), "\(refused.errors)")
        let second = try serve("--socket-mode", "0600")
        for address in ["unix:\(path)", "unix://\(path)"] {
            let found = try number(address)
            #expect(found.status == 0 && found.output.contains("7"), "\(found.errors)")
        }
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(second.stop() == 0)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test
    func `A client that waits connects when the server is there`() throws {
        let waiting = HearthProcess(["get", "c/a", "--address", "unix:\(path)", "--timeout", "10m"])
        try waiting.start()
        #expect(waiting.waitForError("waiting for unix:\(path): cannot connect to \(path)"))
        let server = try serve()
        waiting.waitForEnd()
        #expect(waiting.errors.contains("c/a"), "\(waiting.errors)")
        #expect(server.stop() == 0)
    }

    @Test(arguments: [
        (["--socket-mode", "888"], "an octal number of at most 0777"), (["--socket-mode", "1777"], "an octal number"),
        (["--socket-group", "no such group"], "a group of this machine"),
    ])
    func `Permissions that do not exist end the start with the reason`(flags: [String], reason: String) throws {
        let outcome = try HearthBinary.run(["serve", "--port", "0", "--socket", path] + flags)
        #expect(outcome.status == 2 && outcome.errors.contains(reason), "\(outcome.errors)")
    }

    @Test
    func `A path that is taken ends the start with the reason`() throws {
        let server = try serve()
        let outcome = try HearthBinary.run([
            "serve", "--port", "0", "--data", directory.path(of: "other"), "--socket", path,
        ])
        #expect(outcome.status == 1 && outcome.errors.contains("\(path): Address already in use"), "\(outcome.errors)")
        #expect(outcome.errors.contains("--socket names another one"))
        #expect(server.stop() == 0)
    }
}
