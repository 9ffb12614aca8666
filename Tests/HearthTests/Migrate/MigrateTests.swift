// `hearth migrate` with another Hearth as the source: under writes and kills of every side, over TLS, with tokens.

import Basics
import Foundation
import TLSTestSupport
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct MigrateTests {
    private let directory = TemporaryDirectory("migrate")

    private var state: String { directory.path(of: "state") }

    private func words(_ source: Int, _ target: Int, _ more: [String]) -> [String] {
        [
            "migrate", "--from-firestore", "hearth", "--endpoint", "127.0.0.1:\(source)", "--plain", "--to",
            "127.0.0.1:\(target)", "--state", state,
        ] + more
    }

    private func load(_ lines: [String], into server: ServerProcess) throws {
        let file = directory.path(of: "in.jsonl")
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: file))
        let outcome = try HearthBinary.run(["load", "--address", "127.0.0.1:\(server.port)", "--quiet", file])
        expectEqual(outcome.status, 0, "\(outcome.errors)")
    }

    private func lines(_ server: ServerProcess, project: String = "hearth") throws -> String {
        let outcome = try HearthBinary.run([
            "export", "--all", "--project", project, "--address", "127.0.0.1:\(server.port)", "--quiet",
        ])
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        return outcome.output
    }

    private static let root = "projects/hearth/databases/(default)/documents"

    /// Documents of every type, some below documents that do not exist.
    private static func documents(_ count: Int) -> [String] {
        let types =
            #""a":null,"b":true,"c":-5,"d":2.0,"e":{"$double":"NaN"},"f":"é\n","#
            + #""g":{"$bytes":"AAEC"},"h":{"$timestamp":"1969-12-31T23:59:59.5Z"},"#
            + #""i":{"$reference":"\#(root)/x/y"},"j":{"$geoPoint":[1.5,-2.0]},"k":[1,{"l":[]}],"m":{"x":{"y":-0.0}},"#
            + #""n":{"$vector":[0.5,1.0]}"#
        return [#"{"__name__":"\#(root)/c/types",\#(types)}"#, #"{"__name__":"\#(root)/c/missing/sub/deep"}"#]
            + (0..<count).map { #"{"__name__":"\#(root)/c/d\#($0)","n":\#($0)}"# }
            + (0..<count).map { #"{"__name__":"\#(root)/c/d\#($0 % 7)/posts/p\#($0)","n":\#($0)}"# }
    }

    @Test
    func `What the target had and lacks is put right, and reported by collection`() throws {
        let source = try ServerProcess(data: directory.path(of: "source"))
        let target = try ServerProcess(data: directory.path(of: "target"))
        try load(Self.documents(1_200), into: source)
        try load(
            [
                #"{"__name__":"\#(Self.root)/c/d3","n":-1}"#, #"{"__name__":"\#(Self.root)/c/zz/old/o"}"#,
                #"{"__name__":"\#(Self.root)/aa/before"}"#,
            ], into: target)
        // Nobody is there to be asked.
        let asks = try HearthBinary.run(words(source.port, target.port, []))
        expect(asks.status == 2 && asks.errors.contains("--yes"), "\(asks.errors)")
        expect(asks.output.contains("has 2,402 documents") && asks.output.contains("4,804 reads"), "\(asks.output)")
        let done = try HearthBinary.run(words(source.port, target.port, ["--yes"]))
        expectEqual(done.status, 0, "\(done.errors)")
        expect(done.output.contains("\n  c: 1,201 documents, "), "\(done.output)")
        expect(done.output.contains("\n  c/*/posts: 1,200 documents, "), "\(done.output)")
        expect(done.output.contains("\n  c/*/sub: 1 documents, 0 bytes, sum "), "\(done.output)")
        expect(done.output.contains("added 0, changed 0 and deleted 2 documents"), "\(done.output)")
        try expectEqual(lines(target), lines(source))
        expect(!FileManager.default.fileExists(atPath: state))

        // Into another project, whose references are its own.
        let moved = try HearthBinary.run(
            words(source.port, target.port, ["--yes", "--quiet", "--project", "p2", "--map-project"]))
        expect(moved.status == 0 && moved.errors.isEmpty, "\(moved.errors)")
        let expected = try lines(source).replacingOccurrences(of: "projects/hearth/", with: "projects/p2/")
        try expectEqual(lines(target, project: "p2"), expected)
        // An empty database has nothing to copy, and is copied.
        let empty = try HearthBinary.run([
            "migrate", "--from-firestore", "none", "--endpoint", "127.0.0.1:\(source.port)", "--plain", "--to",
            "127.0.0.1:\(target.port)", "--state", state, "--yes", "--project", "p2", "--quiet",
        ])
        expect(empty.status == 0 && empty.output.contains("deleted 2,402 documents"), "\(empty.output)\(empty.errors)")
        try expect(lines(target, project: "p2").isEmpty)
    }

    @Test
    func `The rehearsal of docs/migrate.md runs as it stands`() throws {
        let outcome = try PageScript.run("docs/migrate.md", in: directory)
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        let lines = outcome.output.split(separator: "\n").map(String.init)
        // In the target of the migration, after the import and after the load of CSV.
        expectEqual(lines.count { $0 == #"{"__name__":"orders/3","total":30}"# }, 2, "\(outcome.output)")
        expect(lines.contains { $0.contains("users/ada/orders/2") }, "\(outcome.output)")
        expect(lines.contains { $0.contains("projects/back/") && $0.contains("orders/3") }, "\(outcome.output)")
    }

    /// Starts a migration that follows changes.
    private func follow(_ source: Int, _ target: Int, _ more: [String]) throws -> HearthProcess {
        let process = HearthProcess(words(source, target, ["--yes", "--follow", "--timeout", "1s"] + more))
        try process.start()
        return process
    }

    /// Writes and deletes documents, new collections among them.
    private func write(_ client: TestClient, _ random: inout SeededGenerator, _ count: Int) async throws {
        for number in 0..<count {
            let id = Int.random(in: 0..<300, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: try await client.delete("c/d\(id)")
            case 1: try await client.set("c/d\(id % 7)/posts/p\(id)", number: number)
            case 2: try await client.set("new\(id % 3)/x\(id)", number: number)
            default: try await client.set("c/d\(id)", number: number)
            }
        }
    }

    @Test
    func `Writes during kills of every side are at the target in the end`() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        var source = try ServerProcess(data: directory.path(of: "source"))
        var target = try ServerProcess(data: directory.path(of: "target"))
        try load(Self.documents(2_000), into: source)
        let client = try TestClient(source)
        let copies = try TestClient(target)
        let first = try follow(source.port, target.port, [])
        try await write(client, &random, 40)
        // Killed while it copies, or soon after.
        try waitUntil("documents are copied") {
            let text = (try? String(contentsOfFile: state, encoding: .utf8)) ?? ""
            return text.contains(#""last": "projects"#) || text.contains(#""isDone": true"#)
        }
        first.signal(SIGKILL)
        first.waitForEnd()
        try await write(client, &random, 40)
        // Continued while the source is away.
        source.kill()
        let second = try follow(source.port, target.port, ["--resume"])
        expect(second.waitForError("waiting for the source"), "\(second.errors)")
        source = try ServerProcess(data: directory.path(of: "source"), port: source.port)
        expect(second.waitForError("caught up"), "\(second.errors)")
        try await client.set("c/d1", number: 1_001)
        try await eventually("a change is followed") { try await copies.number("c/d1") == 1_001 }
        // The source and the target crash while changes are followed.
        try await write(client, &random, 40)
        source.kill()
        source = try ServerProcess(data: directory.path(of: "source"), port: source.port)
        try await write(client, &random, 40)
        target.kill()
        target = try ServerProcess(data: directory.path(of: "target"), port: target.port)
        try await write(client, &random, 40)
        try await client.set("c/d2", number: 1_002)
        try await eventually("changes are followed again") { try await copies.number("c/d2") == 1_002 }
        second.signal(SIGTERM)
        second.waitForEnd()
        expectEqual(second.status, 0, "\(second.errors)")
        try expectEqual(lines(target), lines(source))
        expect(second.output.contains("hearth/databases/(default) has the "), "\(second.output)")
        await client.close()
        await copies.close()
        for server in [source, target] { expectEqual(server.stop(), 0) }
    }

    @Test
    func `Changes are followed again after the source, or a proxy before it, has cancelled the call`() async throws {
        let source = try ServerProcess(data: directory.path(of: "source"))
        let target = try ServerProcess(data: directory.path(of: "target"))
        let relay = try CancellingRelay(to: source.port)
        let (client, copies) = (try TestClient(source), try TestClient(target))
        try await client.set("c/a", number: 1)
        let process = try follow(relay.port, target.port, [])
        expect(process.waitForError("caught up"), "\(process.errors)")
        for number in 2...3 {
            expect(relay.cancelCalls() > 0)
            try await client.set("c/a", number: number)
            try await eventually("changes are followed again") { try await copies.number("c/a") == number }
        }
        expect(process.errors.contains("waiting for the source: the server cancelled the call"), "\(process.errors)")
        process.signal(SIGTERM)
        process.waitForEnd()
        expectEqual(process.status, 0, "\(process.errors)")
        await client.close()
        await copies.close()
        for server in [source, target] { expectEqual(server.stop(), 0) }
    }

    @Test
    func `A second signal ends a migration whose source is away`() async throws {
        let source = try ServerProcess(data: directory.path(of: "source"))
        let target = try ServerProcess(data: directory.path(of: "target"))
        let client = try TestClient(source)
        try await client.set("c/a", number: 1)
        await client.close()
        let process = try follow(source.port, target.port, [])
        expect(process.waitForError("caught up"), "\(process.errors)")
        source.kill()
        process.signal(SIGINT)
        expect(process.waitForError("a second signal ends at once"), "\(process.errors)")
        process.signal(SIGINT)
        process.waitForEnd()
        expectEqual(process.status, 128 + SIGINT, "\(process.errors)")
        expectEqual(target.stop(), 0)
    }

    @Test
    func `Collections of the root that are new are followed, with what is below them, and those of an empty source`()
        async throws
    {
        let source = try ServerProcess(data: directory.path(of: "source"))
        let target = try ServerProcess(data: directory.path(of: "target"))
        let (client, copies) = (try TestClient(source), try TestClient(target))
        let first = try follow(source.port, target.port, ["--new-collections", "100ms"])
        expect(first.waitForError("following the changes"), "\(first.errors)")
        for number in 1...3 {
            try await client.set("new\(number)/a", number: number)
            try await eventually("new\(number) is followed") { try await copies.number("new\(number)/a") == number }
            try await client.set("new\(number)/b", number: number)
            try await client.set("new1/a", number: 10 + number)
            try await eventually("changes of new\(number) and of new1 are followed") {
                let numbers = (try await copies.number("new\(number)/b"), try await copies.number("new1/a"))
                return numbers == (number, 10 + number)
            }
        }
        // The state has them: what is written while nobody listens is followed afterwards.
        try waitUntil("the state has the groups") {
            let text = (try? String(contentsOfFile: state, encoding: .utf8)) ?? ""
            return text.contains("new3")
        }
        first.signal(SIGKILL)
        first.waitForEnd()
        try await client.set("new2/a", number: 22)
        let second = try follow(source.port, target.port, ["--resume"])
        try await eventually("new2 is followed again") { try await copies.number("new2/a") == 22 }
        second.signal(SIGTERM)
        second.waitForEnd()
        expectEqual(second.status, 0, "\(second.errors)")
        expect(!second.output.contains("the comparison added"), "\(second.output)")
        try expectEqual(lines(target), lines(source))
        await client.close()
        await copies.close()
        for server in [source, target] { expectEqual(server.stop(), 0) }
    }

    @Test
    func `A state is continued by name only, and with the same flags`() throws {
        let source = try ServerProcess(data: directory.path(of: "source"))
        try load(Self.documents(1), into: source)
        let none = try HearthBinary.run(words(source.port, source.port, ["--resume", "--project", "q"]))
        expect(none.status == 1 && none.errors.contains("no interrupted migration"), "\(none.errors)")
        let process = try follow(source.port, source.port, ["--project", "q"])
        expect(process.waitForError("caught up"), "\(process.errors)")
        process.signal(SIGKILL)
        process.waitForEnd()
        let again = try HearthBinary.run(words(source.port, source.port, ["--yes", "--project", "q"]))
        expect(again.status == 1 && again.errors.contains("--resume"), "\(again.errors)")
        let other = try HearthBinary.run(words(source.port, source.port, ["--resume", "--project", "r"]))
        expect(other.status == 1 && other.errors.contains("use the same flags"), "\(other.errors)")
        try Data("{}".utf8).write(to: URL(fileURLWithPath: state))
        let damaged = try HearthBinary.run(words(source.port, source.port, ["--resume", "--project", "q"]))
        expect(damaged.status == 1 && damaged.errors.contains("is not the state of a migration"), "\(damaged.errors)")
    }

    @Test
    func `The token comes from a file, which is read again when it is refused, over TLS`() async throws {
        let authority = TestAuthority()
        func write(_ name: String, _ bytes: [UInt8]) throws -> String {
            let path = directory.path(of: name)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            return path
        }
        let issued = authority.issue(["IP:127.0.0.1"])
        let principals = directory.path(of: "principals.json")
        func key(_ name: String) throws -> String {
            try HearthBinary.run([
                "token", "create", name, "--api-key", "--principals", principals, "--role", "writer", "--project",
                "hearth", "--bypass-rules",
            ]).output
        }
        let serve = try [
            "--tls-cert", write("server.pem", issued.certificate), "--tls-key",
            write("server.key", issued.key.privatePEM), "--principals", principals,
        ]
        let token = try write("token", Array(key("first").utf8))
        let data = directory.path(of: "source")
        var source = try ServerProcess(data: data, arguments: serve)
        let target = try ServerProcess(data: directory.path(of: "target"))
        let ca = try write("ca.pem", authority.certificate)
        let words = [
            "migrate", "--from-firestore", "hearth", "--endpoint", "127.0.0.1:\(source.port)", "--endpoint-ca", ca,
            "--to", "127.0.0.1:\(target.port)", "--state", state, "--yes",
        ]
        // Without a token, and without the authority.
        let anonymous = try HearthBinary.run(words)
        expect(anonymous.status == 1 && anonymous.errors.contains("UNAUTHENTICATED"), "\(anonymous.errors)")
        let untrusted = try HearthBinary.run(words.filter { $0 != "--endpoint-ca" && $0 != ca } + ["--timeout", "1s"])
        expect(untrusted.status == 1 && untrusted.errors.contains("certificate"), "\(untrusted.errors)")
        let process = HearthProcess(words + ["--token-file", token, "--follow"])
        try process.start()
        expect(process.waitForError("following the changes"), "\(process.errors)")
        // The server has another key after a restart; the file has it later still.
        source.kill()
        try expectEqual(HearthBinary.run(["token", "revoke", "first", "--principals", principals]).status, 0)
        let second = try key("second")
        source = try ServerProcess(data: data, port: source.port, arguments: serve)
        process.signal(SIGTERM)
        expect(process.waitForError("waiting for the source: "), "\(process.errors)")
        _ = try write("token", Array(second.utf8))
        process.waitForEnd()
        expectEqual(process.status, 0, "\(process.errors)")
        expect(process.output.contains("has the 0 documents"), "\(process.output)")
    }
}
