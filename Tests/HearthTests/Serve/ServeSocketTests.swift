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
        expectEqual(load.status, 0, "\(load.errors)")
        first.kill()
        expect(FileManager.default.fileExists(atPath: path))
        let refused = try HearthBinary.run(["get", "c/a", "--address", "unix:\(path)", "--timeout", "1500ms"])
        expect(refused.status == 1 && refused.errors.contains("connect to \(path)"), "\(refused.errors)")
        let second = try serve("--socket-mode", "0600")
        for address in ["unix:\(path)", "unix://\(path)"] {
            let found = try number(address)
            expect(found.status == 0 && found.output.contains("7"), "\(found.errors)")
        }
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        expect(attributes[.posixPermissions] as? Int == 0o600)
        expectEqual(second.stop(), 0)
        expect(!FileManager.default.fileExists(atPath: path))
    }

    /// The files below a directory, except for those that change while a server runs.
    private func settings(in path: String) -> [String] {
        let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        return names.filter { !$0.hasPrefix("log") && !$0.hasPrefix("runs") }.sorted()
    }

    @Test
    func `A server whose directory was moved away leaves the one that took its place alone`() throws {
        let (data, moved) = (directory.path(of: "data"), directory.path(of: "moved"))
        let rules = directory.path(of: "a.rules")
        let text = "service cloud.firestore { match /databases/{d}/documents { match /a/{b} { allow read; } } }\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: rules))
        let first = try ServerProcess(data: data, arguments: ["--archive", directory.path(of: "archive")])
        try FileManager.default.moveItem(atPath: data, toPath: moved)
        let second = try ServerProcess(data: data)
        let before = settings(in: data)
        expect(before.contains("admin.sock"))
        let applied = try HearthBinary.run(["rules", "apply", rules, "--data", moved])
        expect(applied.status == 1 && applied.errors.contains("was moved or removed"), "\(applied)")
        let revoked = try HearthBinary.run(["token", "revoke-user", "ada", "--data", moved])
        expect(revoked.status == 1 && revoked.errors.contains("was moved or removed"), "\(revoked)")
        expectEqual(settings(in: data), before)
        _ = first.stop()
        expectEqual(settings(in: data), before)
        let health = try HearthBinary.run(["health", "--data", data])
        expectEqual(health.status, 0, "\(health.errors)")
        expectEqual(second.stop(), 0)
    }

    @Test
    func `A client that waits connects when the server is there`() throws {
        let waiting = HearthProcess(["get", "c/a", "--address", "unix:\(path)", "--timeout", "10m"])
        try waiting.start()
        expect(waiting.waitForError("waiting for unix:\(path): cannot connect to \(path)"))
        let server = try serve()
        waiting.waitForEnd()
        expect(waiting.errors.contains("c/a"), "\(waiting.errors)")
        expectEqual(server.stop(), 0)
    }

    @Test(arguments: [
        (["--socket-mode", "888"], "an octal number of at most 0777"), (["--socket-mode", "1777"], "an octal number"),
        (["--socket-group", "no such group"], "a group of this machine"),
    ])
    func `Permissions that do not exist end the start with the reason`(flags: [String], reason: String) throws {
        let outcome = try HearthBinary.run(["serve", "--port", "0", "--socket", path] + flags)
        expect(outcome.status == 2 && outcome.errors.contains(reason), "\(outcome.errors)")
    }

    @Test
    func `A path that is taken ends the start with the reason`() throws {
        let server = try serve()
        let outcome = try HearthBinary.run([
            "serve", "--port", "0", "--data", directory.path(of: "other"), "--socket", path,
        ])
        expect(outcome.status == 1 && outcome.errors.contains("\(path): Address already in use"), "\(outcome.errors)")
        expect(outcome.errors.contains("--socket names another one"))
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A name that is too long for a socket ends the start with the reason, and leaves no file`() throws {
        let name = String(repeating: "s", count: 120)
        let outcome = try HearthBinary.run([
            "serve", "--port", "0", "--data", directory.path(of: "other"), "--socket", directory.path(of: name),
        ])
        expect(outcome.status == 1 && outcome.errors.contains(": File name too long"), "\(outcome.errors)")
        let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        expect(!files.contains { $0.hasPrefix("ss") }, "\(files)")
    }
}
