// A server that runs short of file descriptors: it works with what it has, and recovers.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct DescriptorTests {
    /// A flood of connections that say nothing.
    private final class Flood {
        private var clients: [HTTPTestClient] = []

        init(_ count: Int, port: Int) { clients = (0..<count).map { _ in HTTPTestClient(port: port) } }
    }

    /// Processor time of a process, in ticks of which `ticksPerSecond` are a second.
    private func processorTicks(_ process: Int32) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        // Fields 14 and 15; the second is a name in parentheses.
        let fields = text[text.index(after: text.lastIndex(of: ")")!)...].split(separator: " ")
        return Int(fields[11])! + Int(fields[12])!
    }

    private var ticksPerSecond: Int { sysconf(Int32(_SC_CLK_TCK)) }

    private func lines(_ server: ServerProcess, _ event: String) -> [Substring] {
        server.process.errors.split(separator: "\n").filter { $0.contains(" event=\(event)") }
    }

    /// Answers of a connection that was open before the flood; fails when they take most of a processor's time.
    private func expectService(_ client: HTTPTestClient, of server: ServerProcess) throws {
        let start = try processorTicks(server.process.identifier)
        var seconds = 0.0
        for _ in 0..<20 {
            expectEqual(client.request("GET", "/livez")?.status, 200)
            // The processor time is measured over a second in which the server has nothing to do.
            usleep(50_000)
            seconds += 0.05
        }
        let used = Double(try processorTicks(server.process.identifier) - start) / Double(ticksPerSecond)
        expect(used < seconds / 2, "\(used) s of processor time")
    }

    /// Returns when a new connection is served.
    private func expectRecovery(of server: ServerProcess) {
        var status: Int?
        for _ in 0..<500 where status != 200 {
            status = HTTPTestClient(port: server.port).request("GET", "/livez")?.status
            if status != 200 { usleep(10_000) }
        }
        expectEqual(status, 200)
    }

    @Test
    func `Connections are capped below the limit, and a flood of them disturbs nobody`() throws {
        let directory = TemporaryDirectory("descriptors")
        let server = try ServerProcess(data: directory.path(of: "data"), arguments: ["--loops", "2"], descriptors: 160)
        let capped = try #require(lines(server, "connections_capped").first)
        expect(capped.contains(" asked=10000 ") && capped.hasSuffix(" descriptors=160"))
        let client = HTTPTestClient(port: server.port)
        expectEqual(client.request("GET", "/livez")?.status, 200)
        var flood: Flood? = Flood(400, port: server.port)
        try expectService(client, of: server)
        // A commit needs files of the store.
        let path = "/v1/projects/p/databases/(default)/documents/c?documentId=d"
        expectEqual(client.request("POST", path, body: "{}")?.status, 200)
        expect(lines(server, "accept_failed").isEmpty)
        expect((1...20).contains(lines(server, "connection_refused").count))
        flood = nil
        expectRecovery(of: server)
        flood = Flood(400, port: server.port)
        expectEqual(server.stop(), 0)
        withExtendedLifetime(flood) {}
        expect(lines(server, "lines_suppressed").contains { $0.contains(" of=connection_refused ") })
    }

    @Test
    func `When none is left accepting pauses, and resumes when there are some again`() throws {
        let directory = TemporaryDirectory("descriptors")
        let server = try ServerProcess(data: directory.path(of: "data"), arguments: ["--loops", "2"])
        expect(lines(server, "connections_capped").isEmpty)
        let client = HTTPTestClient(port: server.port)
        expectEqual(client.request("GET", "/livez")?.status, 200)
        // From outside, below what the server could know at its start.
        let inUse = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(server.process.identifier)/fd").count
        let limiting = Process()
        limiting.executableURL = URL(fileURLWithPath: "/usr/bin/prlimit")
        limiting.arguments = ["--pid", String(server.process.identifier), "--nofile=\(inUse + 10)"]
        try limiting.run()
        limiting.waitUntilExit()
        expectEqual(limiting.terminationStatus, 0)
        var flood: Flood? = Flood(100, port: server.port)
        try expectService(client, of: server)
        expect((1...20).contains(lines(server, "accept_failed").count))
        flood = nil
        expectRecovery(of: server)
        flood = Flood(100, port: server.port)
        expectEqual(server.stop(), 0)
        withExtendedLifetime(flood) {}
    }

    @Test
    func `A limit that leaves no connection is a clear error`() throws {
        let directory = TemporaryDirectory("descriptors")
        let process = HearthProcess(["serve", "--data", directory.path(of: "data"), "--port", "0"], descriptors: 70)
        try process.start()
        process.waitForEnd()
        expectEqual(process.status, 1)
        expect(process.errors.contains("the limit of 70 file descriptors"), "\(process.errors)")
    }
}
