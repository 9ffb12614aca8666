// `hearth serve` as a process: ready line, ports, directories it refuses, signals.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ServeTests {
    @Test
    func `The ready line names the port that the system picked, and the server answers there`() async throws {
        let directory = TemporaryDirectory("serve")
        let server = try ServerProcess(data: directory.path(of: "data"))
        expect(server.port > 0)
        expectEqual(server.process.output, "hearth ready on 127.0.0.1:\(server.port)\n")
        let client = try TestClient(server)
        try await client.set("c/x", number: 7)
        try await expectEqual(client.number("c/x"), 7)
        await client.close()
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Flags come from the environment too, and the command line wins`() throws {
        let directory = TemporaryDirectory("serve")
        let process = HearthProcess(
            ["serve", "--port", "0"],
            environment: ["HEARTH_DATA": directory.path(of: "data"), "HEARTH_PORT": "1", "HEARTH_LOOPS": "1"])
        try process.start()
        expect(process.waitForLine(prefix: "hearth ready on 127.0.0.1:") != nil)
        process.signal(SIGTERM)
        process.waitForEnd()
        expectEqual(process.status, 0)
        expect(process.errors.contains(" loops=1"))
        expect(FileManager.default.fileExists(atPath: directory.path(of: "data/FORMAT")))
    }

    @Test
    func `The log is lines of key=value with time, level and event`() throws {
        let directory = TemporaryDirectory("serve")
        let server = try ServerProcess(data: directory.path(of: "data"))
        expectEqual(server.stop(), 0)
        let lines = server.process.errors.split(separator: "\n")
        for line in lines { expect(line.hasPrefix("time=") && line.contains(" level=") && line.contains(" event=")) }
        let events = lines.compactMap { line in
            line.split(separator: " ").first { $0.hasPrefix("event=") }.map { String($0.dropFirst(6)) }
        }
        expectEqual(events, ["starting", "ready", "draining", "statistics", "stopped"])
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `SIGTERM and SIGINT stop in order, and what was written is there afterwards`(_ signal: Int32) async throws {
        let directory = TemporaryDirectory("serve")
        let first = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(first)
        try await client.set("c/x", number: 41)
        first.process.signal(signal)
        first.process.waitForEnd()
        expectEqual(first.process.status, 0)
        await client.close()
        let second = try ServerProcess(data: directory.path(of: "data"))
        let again = try TestClient(second)
        try await expectEqual(again.number("c/x"), 41)
        await again.close()
        expectEqual(second.stop(), 0)
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `Before the server is ready SIGTERM and SIGINT end it at once`(_ signal: Int32) throws {
        let directory = TemporaryDirectory("serve")
        let source = try LoopbackSocket.silentPort()
        let process = HearthProcess([
            "serve", "--data", directory.path(of: "data"), "--port", "0", "--follow", "127.0.0.1:\(source)",
        ])
        try process.start()
        expect(process.waitForError("event=base_fetching"))
        process.signal(SIGHUP)
        process.signal(signal)
        process.waitForEnd()
        expectEqual(process.status, -signal, "\(process.errors)")
        expect(process.errors.contains("event=start_interrupted signal="))
        expect(process.output.isEmpty)
    }

    @Test
    func `SIGHUP reloads and does not stop; another signal then stops in order`() async throws {
        let directory = TemporaryDirectory("serve")
        let server = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(server)
        for number in 1...2 {
            server.process.signal(SIGHUP)
            try waitUntil("it has reloaded") {
                server.process.errors.split(separator: "\n").count { $0.contains("event=reloaded parts=none") }
                    == number
            }
            try await client.set("c/x", number: number)
        }
        await client.close()
        expectEqual(server.stop(), 0)
        expect(server.process.errors.contains("event=stopped"))
    }

    @Test
    func `After kill -9 every answered write is there`() async throws {
        let directory = TemporaryDirectory("serve")
        let first = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(first)
        for number in 0..<20 { try await client.set("c/d\(number)", number: number) }
        first.kill()
        await client.close()
        let second = try ServerProcess(data: directory.path(of: "data"))
        let again = try TestClient(second)
        for number in 0..<20 { try await expectEqual(again.number("c/d\(number)"), number) }
        await again.close()
        expectEqual(second.stop(), 0)
        try expectEqual(HearthBinary.run(["check", "--data", directory.path(of: "data")]).status, 0)
    }

    /// The server gets 200 MiB more than it has: a new memtable of 64 MiB reserves three times as much.
    @Test
    func `A server that has no memory for a checkpoint at its end ends all the same, and the log has its state`()
        async throws
    {
        let directory = TemporaryDirectory("serve")
        let first = try ServerProcess(data: directory.path(of: "data"))
        let process = first.process.identifier
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8).split(separator: "\n")
        let kilobytes = try #require(status.first { $0.hasPrefix("VmSize:") }.flatMap { Int($0.filter(\.isNumber)) })
        let limited = try HearthBinary.run(
            ["--pid", "\(process)", "--as=\((kilobytes + (200 << 10)) << 10):"], executable: "/usr/bin/prlimit")
        expectEqual(limited.status, 0, "\(limited.errors)")
        let client = try TestClient(first)
        try await client.set("c/x", number: 41)
        await client.close()
        expectEqual(first.stop(), 0, "\(first.process.errors)")
        let second = try ServerProcess(data: directory.path(of: "data"))
        let again = try TestClient(second)
        try await expectEqual(again.number("c/x"), 41)
        await again.close()
        expectEqual(second.stop(), 0)
    }

    /// What threads get where the limit is small, where it is none and where it is larger than the memory.
    @Test(arguments: ["256", "unlimited", "1073741824"])
    func `Rules and pipelines that nest as deeply as permitted need no limit of stacks`(_ limit: String) throws {
        let directory = TemporaryDirectory("stack")
        let data = directory.path(of: "data")
        let file = directory.path(of: "deep.rules")
        try Data(Self.deepRules.utf8).write(to: URL(fileURLWithPath: file))
        let root = "/v1/projects/p/databases/(default)/documents"
        func process(_ words: [String]) -> HearthProcess {
            let script = "ulimit -s \(limit) || ulimit -s \"$(ulimit -H -s)\"; exec \"$0\" \"$@\""
            return HearthProcess(["-c", script, HearthBinary.path] + words, executable: "/bin/bash")
        }
        let check = process(["rules", "check", file])
        try check.start()
        check.waitForEnd()
        expectEqual(check.status, 0, "\(check.output)\(check.errors)")

        let serve = ["serve", "--data", data, "--port", "0", "--loops", "1"]
        let ruled = process(serve + ["--rules", file])
        let user = try client(of: ruled)
        expectEqual(user.request("PATCH", "\(root)/c/a", body: #"{"fields":{}}"#)?.status, 200)
        ruled.signal(SIGHUP)
        expect(ruled.waitForError("event=reloaded parts=security"))
        ruled.signal(SIGTERM)
        ruled.waitForEnd()
        expectEqual(ruled.status, 0)

        let open = process(serve)
        let caller = try client(of: open)
        let stages = String(repeating: #",{"name":"where","args":[{"booleanValue":true}]}"#, count: 249)
        let pipeline = #"{"stages":[{"name":"collection","args":[{"referenceValue":"/c"}]}\#(stages)]}"#
        let reply = caller.request(
            "POST", "\(root):executePipeline", body: #"{"structuredPipeline":{"pipeline":\#(pipeline)}}"#)
        expectEqual(reply?.status, 200, "\(reply?.body ?? "")")
        open.signal(SIGTERM)
        open.waitForEnd()
        expectEqual(open.status, 0)
    }

    /// A client of a server that is started.
    private func client(of server: HearthProcess) throws -> HTTPTestClient {
        try server.start()
        let line = try #require(server.waitForLine(prefix: "hearth ready on "), "\(server.errors)")
        return HTTPTestClient(port: try #require(line.split(separator: ":").last.flatMap { Int($0) }))
    }

    /// Twenty functions that call each other, each with as many brackets as are permitted.
    private static var deepRules: String {
        let brackets = (String(repeating: "[", count: 40), String(repeating: "][0]", count: 40))
        let functions = (0..<20).map { "function f\($0)() { return \(brackets.0)f\($0 + 1)()\(brackets.1); }" }
        return """
            rules_version = '2';
            service cloud.firestore { match /databases/{database}/documents {
            \(functions.joined(separator: "\n"))
            function f20() { return true; }
            match /{document=**} { allow read, write: if true || f0(); } } }
            """
    }

    @Test
    func `A second server on the same directory is refused`() throws {
        let directory = TemporaryDirectory("serve")
        let first = try ServerProcess(data: directory.path(of: "data"))
        let second = try HearthBinary.run(["serve", "--data", directory.path(of: "data"), "--port", "0"])
        expectEqual(second.status, 1)
        expect(second.output.isEmpty)
        expect(second.errors.contains("another process"), "\(second.errors)")
        expect(first.process.isRunning)
        expectEqual(first.stop(), 0)
    }

    @Test
    func `A directory of an unknown format is refused and left alone`() throws {
        let directory = TemporaryDirectory("serve")
        let data = directory.path(of: "data")
        try expectEqual(ServerProcess(data: data).stop(), 0)
        let format = data + "/FORMAT"
        let strange = Data("hearth-data 999999\n".utf8)
        try strange.write(to: URL(fileURLWithPath: format))
        let outcome = try HearthBinary.run(["serve", "--data", data, "--port", "0"])
        expectEqual(outcome.status, 1)
        expect(outcome.output.isEmpty)
        expect(outcome.errors.lowercased().contains("format"), "\(outcome.errors)")
        try expectEqual(Data(contentsOf: URL(fileURLWithPath: format)), strange)
    }

    @Test
    func `A port that is taken is an error with status 1`() throws {
        let directory = TemporaryDirectory("serve")
        let first = try ServerProcess(data: directory.path(of: "one"), arguments: ["--loops", "1"])
        func serve(_ host: String) throws -> HearthBinary.Outcome {
            try HearthBinary.run([
                "serve", "--data", directory.path(of: "two"), "--host", host, "--insecure", "--port",
                String(first.port),
            ])
        }
        let second = try serve("127.0.0.1")
        expect(second.status == 1 && second.errors.contains("--port names another one"), "\(second.errors)")
        let third = try serve("256.0.0.1")
        expect(third.status == 1 && third.errors.contains("256.0.0.1"), "\(third.errors)")
        expect(!third.errors.contains("--port names"), "\(third.errors)")
        expectEqual(first.stop(), 0)
    }

    @Test
    func `A data directory that cannot be made is an error with status 1`() throws {
        let outcome = try HearthBinary.run(["serve", "--data", "/dev/null/data", "--port", "0"])
        expectEqual(outcome.status, 1)
        expect(outcome.errors.contains("/dev/null/data"))
    }
}
