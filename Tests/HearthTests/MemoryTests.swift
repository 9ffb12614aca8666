// What a server's memory comes back to.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct MemoryTests {
    /// Anonymous memory in RAM, in KiB: `RssAnon` of proc_pid_status(5).
    private func residentKilobytes(_ server: ServerProcess) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(server.process.identifier)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") })
        return try #require(Int(line.split(whereSeparator: { !$0.isNumber })[0]))
    }

    @Test
    func `Memory of connections that have gone is given back to the system`() throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        expectEqual(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit), 0)
        let directory = TemporaryDirectory("memory")
        let server = try ServerProcess(data: directory.path(of: "data"), arguments: ["--loops", "2"])
        _ = HTTPTestClient(port: server.port).request("GET", "/metrics")
        let before = try residentKilobytes(server)
        var clients: [HTTPTestClient] = []
        // Each leaves most of a request with the server.
        let part =
            "POST /v1/projects/p/databases/d/documents:commit HTTP/1.1\r\n"
            + "Host: localhost\r\nContent-Length: 100000\r\n\r\n"
            + String(repeating: "x", count: 60_000)
        for _ in 0..<2_000 {
            let client = HTTPTestClient(port: server.port)
            client.send(part)
            clients.append(client)
        }
        var most = before
        try waitUntil("the server holds the parts of all requests") {
            most = try max(most, residentKilobytes(server))
            return most >= before + 2_000 * 50
        }
        clients = []
        // Looked at once a second.
        try waitUntil("the memory is given back: \(before) KiB before, \(most) KiB at most") {
            try residentKilobytes(server) <= before + (most - before) / 4
        }
        expectEqual(server.stop(), 0)
    }
}
