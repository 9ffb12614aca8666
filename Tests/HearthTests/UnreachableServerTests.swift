// Every client command without a server: it says that it waits, ends, and gives the true reason.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct UnreachableServerTests {
    private let directory = TemporaryDirectory("unreachable")

    /// The client commands, with a file to load.
    private func commands() throws -> [[String]] {
        let file = directory.path(of: "c.jsonl")
        try Data(#"{"__name__":"x","n":1}"#.utf8).write(to: URL(fileURLWithPath: file))
        return [
            ["get", "c/x"], ["query", "c"], ["query", "c", "--count"], ["query", "c", "--explain"], ["watch", "c"],
            ["watch", "c/x"], ["export", "--collection", "c"], ["load", file, "--collection", "c"],
            ["indexes", "list"],
        ]
    }

    @Test
    func `Every client command says what it waits for, and ends with the reason`() throws {
        for command in try commands() {
            // Port 9 (discard) of this machine: nothing listens there.
            let outcome = try HearthBinary.run(command + ["--address", "127.0.0.1:9", "--timeout", "1500ms"])
            expectEqual(outcome.status, 1, "\(command): \(outcome.errors)")
            expect(outcome.output.isEmpty)
            let lines = outcome.errors.split(separator: "\n")
            expectEqual(lines.count, 2, "\(command): \(outcome.errors)")
            expectEqual(lines.first?.hasPrefix("hearth: waiting for 127.0.0.1:9: "), true, "\(outcome.errors)")
            expectEqual(lines.last?.contains("cannot be reached"), true, "\(outcome.errors)")
            expectEqual(lines.last?.contains("Start one with hearth serve"), true, "\(outcome.errors)")
            expect(lines.allSatisfy { $0.contains("connection refused") }, "\(outcome.errors)")
        }
        // A load that could not begin can begin again.
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["c.jsonl"])
    }

    @Test
    func `What helps follows from the cause, whatever words the address has`() throws {
        let socket = directory.path(of: "this port requires TLS, the peer's certificate")
        let outcome = try HearthBinary.run(["get", "c/x", "--address", "unix:\(socket)", "--timeout", "100ms"])
        expect(outcome.status == 1 && outcome.errors.contains(socket), "\(outcome.errors)")
        expect(outcome.errors.contains("Start one with hearth serve"), "\(outcome.errors)")
    }

    @Test
    func `Every client command has the same timeout`() throws {
        for command in try Set(commands().map { $0[0] }) {
            let help = try HearthBinary.run([command, "--help"]).output
            expect(help.contains("--timeout TIME"), "\(command)")
            expect(help.contains("Default 10s."), "\(command)")
        }
    }

    @Test
    func `A name without an address, and a server of another kind, are the reason`() throws {
        let label = String(repeating: "x", count: 70)
        let unknown = try HearthBinary.run(["get", "c/x", "--address", "\(label):8080", "--timeout", "2s"])
        expect(unknown.status == 1 && unknown.errors.contains("cannot find the host"), "\(unknown.errors)")
        let web = try ForeignServer()
        let foreign = try HearthBinary.run(["get", "c/x", "--address", "127.0.0.1:\(web.port)", "--timeout", "2s"])
        expect(foreign.status == 1 && foreign.errors.contains("it is not a Hearth server"), "\(foreign.errors)")
        withExtendedLifetime(web) {}
    }

    @Test
    func `A server that comes in time is used, and one that goes is waited for`() async throws {
        let data = directory.path(of: "data")
        let first = try ServerProcess(data: data)
        let port = first.port
        let client = try TestClient(first)
        try await client.set("c/x", number: 7)
        await client.close()
        expectEqual(first.stop(), 0)
        let address = ["--address", "127.0.0.1:\(port)", "--timeout", "10m"]
        let early = HearthProcess(["get", "c/x"] + address)
        try early.start()
        expect(early.waitForError("waiting for 127.0.0.1:\(port)"))
        let second = try ServerProcess(data: data, port: port)
        early.waitForEnd()
        expect(early.status == 0 && early.output == "{\"__name__\":\"c/x\",\"n\":7}\n", "\(early.errors)")
        let watch = HearthProcess(["watch", "c"] + address)
        try watch.start()
        expect(watch.waitForLine(prefix: "added") != nil)
        second.kill()
        expect(watch.waitForError("waiting for 127.0.0.1:\(port)"))
        let third = try ServerProcess(data: data, port: port)
        let other = try TestClient(third)
        try await other.set("c/x", number: 8)
        expect(watch.waitForLine(prefix: "modified") != nil)
        await other.close()
        watch.signal(SIGKILL)
        watch.waitForEnd()
        expectEqual(third.stop(), 0)
    }
}

/// A server of this machine that answers every connection as a web server would.
private final class ForeignServer: Sendable {
    let port: Int
    private let descriptor: Int32

    init() throws {
        let (descriptor, port) = try LoopbackSocket.listen()
        self.descriptor = descriptor
        self.port = port
        Thread.detachNewThread {
            let answer = Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".utf8)
            while true {
                let connection = accept(descriptor, nil, nil)
                if connection < 0 { return }
                send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
                shutdown(connection, Int32(SHUT_WR))
                var rest = [UInt8](repeating: 0, count: 4_096)
                while recv(connection, &rest, rest.count, 0) > 0 {}
                close(connection)
            }
        }
    }

    deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
