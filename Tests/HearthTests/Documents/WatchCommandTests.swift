// hearth watch against a running server.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct WatchCommandTests {
    /// Starts the command and waits for its first line.
    private func watch(_ server: ServerProcess, _ words: [String], first: String) throws -> HearthProcess {
        let process = HearthProcess(["watch", "--address", "127.0.0.1:\(server.port)"] + words)
        try process.start()
        expect(process.waitForLine(prefix: first) != nil, "\(process.errors)")
        return process
    }

    private func stop(_ process: HearthProcess) {
        process.signal(SIGINT)
        process.waitForEnd()
        expectEqual(process.status, -SIGINT)
    }

    @Test
    func `A query's results, then changes as they come; also after kill -9 of the server`() async throws {
        let directory = TemporaryDirectory("watch")
        let data = directory.path(of: "data")
        var server = try ServerProcess(data: data)
        let client = try TestClient(server)
        for number in 1...3 { try await client.set("c/d\(number)", number: number) }
        let process = try watch(
            server, ["c", "--where", "n > 1", "--order-by", "n:desc", "--limit", "2"], first: "added\t")
        try await client.set("c/d4", number: 4)
        expect(process.waitForLine(prefix: "removed\tc/d2") != nil)
        await client.close()
        server.kill()
        server = try ServerProcess(data: data, port: server.port)
        let other = try TestClient(server)
        try await other.set("c/d4", number: 5)
        expect(process.waitForLine(prefix: "modified\t") != nil)
        await other.close()
        stop(process)
        expectEqual(
            process.output,
            """
            added\t{"__name__":"c/d2","n":2}
            added\t{"__name__":"c/d3","n":3}
            removed\tc/d2
            added\t{"__name__":"c/d4","n":4}
            modified\t{"__name__":"c/d4","n":5}

            """)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A removed document has one line, whatever its id`() async throws {
        let directory = TemporaryDirectory("watch-removed")
        let server = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(server)
        try await client.set("c/d\nremoved\tc", number: 1)
        let process = try watch(server, ["c"], first: "added\t")
        try await client.delete("c/d\nremoved\tc")
        expect(process.waitForLine(prefix: "removed\t") != nil)
        await client.close()
        stop(process)
        expect(process.output.hasSuffix("\n" + #"removed"# + "\t" + #""c/d\nremoved\tc""# + "\n"), "\(process.output)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A document as JSON objects`() async throws {
        let directory = TemporaryDirectory("watch-document")
        let server = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(server)
        try await client.set("c/d", number: 1)
        let process = try watch(server, ["c/d", "--json"], first: "{")
        try await client.set("c/d", number: 2)
        expect(process.waitForLine(prefix: #"{"change":"modified""#) != nil)
        await client.close()
        stop(process)
        expectEqual(
            process.output,
            """
            {"change":"added","path":"c/d","document":{"__name__":"c/d","n":1}}
            {"change":"modified","path":"c/d","document":{"__name__":"c/d","n":2}}

            """)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A user whose tokens are revoked watches no longer`() throws {
        let directory = TemporaryDirectory("watch-revoked")
        let (users, data) = (try SignedInUsers(directory), directory.path(of: "data"))
        let server = try ServerProcess(data: data, arguments: users.flags)
        let address = ["--address", "127.0.0.1:\(server.port)"]
        let key = try #require(users.environment["HEARTH_FOLLOW_TOKEN"])
        let written = try HearthBinary.run(["set", "c/d", "{}"] + address, environment: ["HEARTH_TOKEN": key])
        expectEqual(written.status, 0, "\(written.errors)")
        let process = HearthProcess(
            ["watch", "c/d"] + address, environment: ["HEARTH_TOKEN": try users.token("ada")])
        try process.start()
        expect(process.waitForLine(prefix: "added\t") != nil, "\(process.errors)")
        try expectEqual(HearthBinary.run(["token", "revoke-user", "ada", "--data", data]).status, 0)
        process.waitForEnd()
        expectEqual(process.status, 1)
        let reason = "the user's tokens have been revoked (UNAUTHENTICATED)\n"
        expect(process.errors.hasSuffix(reason), "\(process.errors)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Conditions on a document, a query that breaks a rule, a server that cannot be reached`() throws {
        let usage = try HearthBinary.run(["watch", "c/d", "n == 1"])
        expect(usage.status == 2 && usage.errors.contains("conditions need a collection"), "\(usage.errors)")
        // Port 9 (discard) of this machine: nothing listens there.
        let unreachable = try HearthBinary.run(["watch", "--address", "127.0.0.1:9", "c"])
        expect(unreachable.status == 1 && !unreachable.errors.isEmpty)
        let directory = TemporaryDirectory("watch-errors")
        let server = try ServerProcess(data: directory.path(of: "data"))
        let group = ["watch", "--address", "127.0.0.1:\(server.port)", "c/d/e", "--group"]
        let refused = try HearthBinary.run(group)
        expect(refused.status == 1 && refused.errors.contains("document parent"), "\(refused.errors)")
        expectEqual(server.stop(), 0)
    }
}
