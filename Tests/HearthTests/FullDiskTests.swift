// A server whose disk fills up: what it refuses, what it still takes, and that it comes back.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct FullDiskTests {
    private static let root = "/v1/projects/p/databases/d/documents"
    private static let flags = [
        "--log-segment", "1MiB", "--memtable", "4MiB", "--disk-reserve", "4MiB", "--retention", "1s",
    ]
    private static let body = #"{"fields":{"v":{"bytesValue":"\#(String(repeating: "QUJD", count: 16 << 10))"}}}"#

    private let disk: TemporaryDisk
    private var data: String { disk.path(of: "data") }

    init() throws { disk = try TemporaryDisk(megabytes: 64) }

    /// Creates documents until one is refused; answers the ids of those that were acknowledged.
    private func fill(_ server: ServerProcess, _ prefix: String) throws -> [String] {
        let client = HTTPTestClient(port: server.port)
        var stored: [String] = []
        while true {
            let id = "\(prefix)\(stored.count)"
            let reply = try #require(client.request("POST", "\(Self.root)/c?documentId=\(id)", body: Self.body))
            if reply.status != 200 {
                expectEqual(reply.status, 429)
                expect(reply.body.contains("RESOURCE_EXHAUSTED"))
                return stored
            }
            stored.append(id)
        }
    }

    private func expectStored(_ server: ServerProcess, _ ids: some Sequence<String>, _ status: Int = 200) {
        let client = HTTPTestClient(port: server.port)
        let other = ids.filter { client.request("GET", "\(Self.root)/c/\($0)?mask.fieldPaths=none")?.status != status }
        expectEqual(other, [])
    }

    private func get(_ server: ServerProcess, _ page: String) throws -> HTTPTestClient.Reply {
        try #require(HTTPTestClient(port: server.port).request("GET", page))
    }

    /// What a server reports of its disk.
    private struct Report {
        let ready: HTTPTestClient.Reply
        let health: HearthBinary.Outcome
        let metrics: String

        var saysFull: Bool {
            ready.status == 503 && health.status == 1 && metrics.contains("\nhearth_store_full 1\n")
        }
    }

    private func report(_ server: ServerProcess) throws -> Report {
        Report(
            ready: try get(server, "/readyz"), health: try HearthBinary.run(["health", "--data", data]),
            metrics: try get(server, "/metrics").body)
    }

    /// Fills the disk to its last block, with documents as long as the server takes them, and then with another file.
    private func fillUp(_ server: ServerProcess, _ prefix: String = "a") throws -> [String] {
        let stored = try fill(server, prefix)
        try disk.fill()
        return stored + (try fill(server, "\(prefix)-b"))
    }

    @Test
    func `Commits are refused and reads succeed; deletes are accepted and free space, and commits resume`() throws {
        let server = try ServerProcess(data: data, arguments: Self.flags)
        var stored = try fillUp(server)
        expect(stored.count > 500)
        // A checkpoint or a merge that ends now frees space.
        var report = try report(server)
        try waitUntil("the server is full while all its reports are read") {
            if !report.saysFull {
                stored += try fillUp(server, "a\(stored.count)-")
                report = try self.report(server)
            }
            return report.saysFull
        }
        expect(report.ready.body.hasPrefix("not ready: the disk is full; commits other than deletes are refused: "))
        expect(report.health.output.isEmpty)
        expect(report.health.errors.hasPrefix("hearth: not ready: the disk is full; "), "\(report.health.errors)")
        let metrics = report.metrics
        expect(metrics.contains("\nhearth_store_failed 0\n"))
        expect(metrics.contains("\nhearth_disk_reserve_bytes \(4 << 20)\n"))
        try waitUntil("the log reports it") { server.process.errors.contains("event=store_full") }
        expectStored(server, stored)
        let client = HTTPTestClient(port: server.port)
        for id in stored.prefix(stored.count / 2) {
            expectEqual(client.request("DELETE", "\(Self.root)/c/\(id)")?.status, 200)
        }
        // Once history and the retention let go of what was deleted.
        for number in 0..<(stored.count / 4) {
            try waitUntil("a write is accepted again") {
                client.request("POST", "\(Self.root)/c?documentId=more\(number)", body: Self.body)?.status == 200
            }
        }
        try waitUntil("the server is ready again") { try get(server, "/readyz").status == 200 }
        expectStored(server, stored.prefix(stored.count / 2), 404)
        expectStored(server, stored.dropFirst(stored.count / 2))
        expectStored(server, (0..<(stored.count / 4)).map { "more\($0)" })
        expectEqual(server.stop(), 0)
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 0)
    }

    @Test
    func `On a full disk a user is revoked and rules are applied, durably`() throws {
        let server = try ServerProcess(data: data, arguments: Self.flags)
        _ = try fillUp(server)
        try disk.fill()
        let revoked = try HearthBinary.run(["token", "revoke-user", "ada", "--data", data])
        expectEqual(revoked.status, 0, "\(revoked.errors)")
        let other = TemporaryDirectory("rules")
        for (number, statement) in ["allow read;", "allow get: if false;"].enumerated() {
            let file = other.path(of: "\(number).rules")
            let text = "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { \(statement) } } }\n"
            try Data(text.utf8).write(to: URL(fileURLWithPath: file))
            try disk.fill()
            let applied = try HearthBinary.run(["rules", "apply", file, "--data", data])
            expectEqual(applied.status, 0, "\(applied.errors)")
        }
        expectEqual(HTTPTestClient(port: server.port).request("GET", "\(Self.root)/c/a0")?.status, 403)
        server.kill()
        let list = try HearthBinary.run(["rules", "list", "--data", data])
        expectEqual(list.output.split(separator: "\n").count, 2, "\(list)")
        let kept = try String(contentsOfFile: "\(data)/identity/revocations.json", encoding: .utf8)
        expect(kept.contains("616461"), "\(kept)")
    }

    @Test
    func `A replica on a full disk notes up to where it is read, and follows`() throws {
        let other = TemporaryDirectory("source")
        let source = try ServerProcess(data: other.path(of: "data"))
        let replica = try ServerProcess(
            data: data, arguments: Self.flags + ["--follow", "127.0.0.1:\(source.port)"])
        func bound() throws -> UInt64 {
            let lines = try String(contentsOfFile: "\(data)/REPLICA", encoding: .utf8).split(
                separator: "\n", omittingEmptySubsequences: false)
            return UInt64(lines[2]) ?? 0
        }
        try waitUntil("a bound is noted") { try bound() > 0 }
        let first = try bound()
        try waitUntil("a later bound is noted") {
            try disk.fill()
            return try bound() > first
        }
        let client = HTTPTestClient(port: source.port)
        expectEqual(client.request("POST", "\(Self.root)/c?documentId=x", body: #"{"fields":{}}"#)?.status, 200)
        try waitUntil("the replica has it") {
            HTTPTestClient(port: replica.port).request("GET", "\(Self.root)/c/x")?.status == 200
        }
        expectEqual(replica.stop(), 0)
        expectEqual(source.stop(), 0)
    }

    @Test
    func `Without a server too a full disk refuses neither a revocation nor rules`() throws {
        let server = try ServerProcess(data: data, arguments: Self.flags)
        let stored = try fillUp(server)
        server.kill()
        let other = TemporaryDirectory("rules")
        let file = other.path(of: "rules")
        let text = "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { allow read; } } }\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        try disk.fill()
        let revoked = try HearthBinary.run(["token", "revoke-user", "ada", "--data", data])
        expectEqual(revoked.status, 0, "\(revoked.errors)")
        try disk.fill()
        let applied = try HearthBinary.run(["rules", "apply", file, "--data", data])
        expectEqual(applied.status, 0, "\(applied.errors)")
        let kept = try String(contentsOfFile: "\(data)/identity/revocations.json", encoding: .utf8)
        expect(kept.contains("616461"), "\(kept)")
        // What was acknowledged is there, and deletes find their space.
        let again = try ServerProcess(data: data, arguments: Self.flags)
        expectStored(again, stored)
        expectEqual(again.stop(), 0)
    }

    @Test
    func `A limit of file sizes counts as a full disk, and does not end the server`() throws {
        let server = try ServerProcess(data: data, arguments: Self.flags)
        // Segments of the log are smaller, a run is not.
        try limitFiles(of: server, to: "\(3 << 20)")
        let stored = try fill(server, "a")
        expect(stored.count > 10)
        try expect(get(server, "/readyz").body.contains("RLIMIT_FSIZE"))
        expectStored(server, stored)
        try limitFiles(of: server, to: "unlimited")
        let client = HTTPTestClient(port: server.port)
        try waitUntil("a write is accepted again") {
            client.request("POST", "\(Self.root)/c?documentId=late", body: Self.body)?.status == 200
        }
        expectEqual(server.stop(), 0)
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 0)
    }

    private func limitFiles(of server: ServerProcess, to bytes: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/prlimit")
        process.arguments = ["--pid", String(server.process.identifier), "--fsize=\(bytes):unlimited"]
        try process.run()
        process.waitUntilExit()
        expectEqual(process.terminationStatus, 0)
    }

    @Test
    func `A server starts on a full disk after a kill or an orderly end, reads all, and commits when there is room`()
        throws
    {
        let first = try ServerProcess(data: data, arguments: Self.flags)
        var stored = try fillUp(first)
        first.kill()
        try disk.fill()
        let second = try ServerProcess(data: data, arguments: Self.flags)
        expectStored(second, stored)
        try waitUntil("the server is full") {
            stored += try fill(second, "c\(stored.count)-")
            return try get(second, "/readyz").status == 503
        }
        expectEqual(HTTPTestClient(port: second.port).request("DELETE", "\(Self.root)/c/\(stored[0])")?.status, 200)
        expectEqual(second.stop(), 0)
        try disk.fill()
        let third = try ServerProcess(data: data, arguments: Self.flags)
        expectStored(third, stored.dropFirst())
        expectStored(third, stored.prefix(1), 404)
        try disk.remove()
        let client = HTTPTestClient(port: third.port)
        try waitUntil("a write is accepted again") {
            client.request("POST", "\(Self.root)/c?documentId=late", body: Self.body)?.status == 200
        }
        try waitUntil("the server is ready again") { try get(third, "/readyz").status == 200 }
        expectEqual(third.stop(), 0)
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 0)
    }
}
