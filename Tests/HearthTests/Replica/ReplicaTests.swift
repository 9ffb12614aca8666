// hearth serve --follow and hearth promote as processes.

import Basics
import DocumentStore
import EmbeddedEngine
import Foundation
import Identity
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ReplicaTests {
    private let directory = TemporaryDirectory("replica")
    private var data: String { directory.path(of: "data") }
    private var copy: String { directory.path(of: "copy") }

    private static let kept = ["--log-keep", "16MiB"]

    private func source(port: Int? = nil) throws -> ServerProcess {
        try ServerProcess(data: data, port: port, arguments: Self.kept)
    }

    private func replica(of source: ServerProcess, _ arguments: [String] = []) throws -> ServerProcess {
        try ServerProcess(data: copy, arguments: ["--follow", "127.0.0.1:\(source.port)"] + arguments)
    }

    /// Waits until a document has a number at a server.
    private func expectNumber(_ server: ServerProcess, _ path: String, is number: Int) async throws {
        let client = try TestClient(server)
        try await eventually("\(path) is \(number)") { try await client.number(path) == number }
        await client.close()
    }

    private func page(_ server: ServerProcess) throws -> String {
        try #require(HTTPTestClient(port: server.port).request("GET", "/metrics")).body
    }

    private func expectSound() throws {
        for path in [data, copy] {
            let check = try HearthBinary.run(["check", "--data", path])
            expectEqual(check.status, 0, "\(check.output) \(check.errors)")
        }
    }

    @Test
    func `A replica copies the source, follows it, refuses writes if it is to, and says how old it is`() async throws {
        let source = try source()
        let client = try TestClient(source)
        for number in 0..<20 { try await client.set("c/d\(number)", number: number) }
        let replica = try replica(of: source, ["--follow-read-only"])
        try await expectNumber(replica, "c/d19", is: 19)
        let watch = HearthProcess(["watch", "--address", "127.0.0.1:\(replica.port)", "c/d1"])
        try watch.start()
        expect(watch.waitForLine(prefix: "added\t") != nil, "\(watch.errors)")
        try await client.set("c/d1", number: 100)
        expect(watch.waitForLine(prefix: "modified\t{\"__name__\":\"c/d1\",\"n\":100}") != nil, "\(watch.errors)")
        watch.signal(SIGINT)
        watch.waitForEnd()

        let written = try HearthBinary.run(
            ["set", "--address", "127.0.0.1:\(replica.port)", "c/x", #"{"n":1}"#])
        expect(written.status != 0 && written.errors.contains("write to 127.0.0.1:\(source.port)"), "\(written)")
        let metrics = try page(replica)
        expect(metrics.contains("hearth_replica_connected 1\n"))
        let there = try page(source)
        expect(there.contains("hearth_followers 1\n"))
        expect(there.contains("hearth_replica_lag_seconds 0"))
        await client.close()
        expectEqual(replica.stop(), 0)
        expectEqual(source.stop(), 0)
        try expectSound()
    }

    @Test
    func `A replica continues after kill -9 and clean restarts of either side, without a new copy`() async throws {
        var source = try source()
        let port = source.port
        var replica = try replica(of: source)
        var number = 0
        for round in 0..<6 {
            let client = try TestClient(source)
            for _ in 0..<30 {
                number += 1
                try await client.set("c/d\(number % 7)", number: number)
                if number % 30 == 15, round % 2 == 0 {
                    if round % 4 == 0 { replica.kill() } else { expectEqual(replica.stop(), 0) }
                    replica = try self.replica(of: source)
                    expect(!replica.process.errors.contains("base_fetching"))
                }
            }
            await client.close()
            if round % 2 == 1 {
                if round == 1 { source.kill() } else { expectEqual(source.stop(), 0) }
                source = try self.source(port: port)
            }
        }
        let client = try TestClient(source)
        try await client.set("c/last", number: number)
        await client.close()
        try await expectNumber(replica, "c/last", is: number)
        for index in 0..<7 {
            let last = (number - 6...number).first { $0 % 7 == index } ?? 0
            try await expectNumber(replica, "c/d\(index)", is: last)
        }
        expectEqual(replica.stop(), 0)
        expect(!replica.process.errors.contains("replica_outdated"))
        expectEqual(source.stop(), 0)
        try expectSound()
    }

    @Test
    func `A replica derives the entries of an index for searches as its source does`() async throws {
        let source = try source()
        let file = directory.path(of: "indexes.json")
        let field = #"{"fieldPath":"t","searchConfig":{"textSpec":{}}}"#
        let index = "{\"collectionGroup\":\"c\",\"queryScope\":\"COLLECTION\",\"fields\":[\(field)]}"
        try "{\"indexes\":[\(index)]}".write(toFile: file, atomically: true, encoding: .utf8)
        let applied = try HearthBinary.run(["indexes", "apply", file, "--data", data])
        expectEqual(applied.status, 0, "\(applied.errors)")
        let replica = try replica(of: source)
        let client = try TestClient(source)
        for number in 0..<10 {
            let words = (0..<40).map { "word\($0 * number)" }.joined(separator: " ")
            let set = try HearthBinary.run(
                ["set", "--address", "127.0.0.1:\(source.port)", "c/d", "{\"t\":\"\(words)\"}"])
            expectEqual(set.status, 0, "\(set.errors)")
            try await client.set("d/last", number: number)
            // What was derived before was compared when this is there.
            try await expectNumber(replica, "d/last", is: number)
        }
        await client.close()
        expectEqual(replica.stop(), 0)
        expect(!replica.process.errors.contains("replica_differs"), "\(replica.process.errors)")
        expectEqual(source.stop(), 0)
        try expectSound()
    }

    /// Whether a directory has a revocation of a user.
    private func refuses(_ uid: String, _ data: String) throws -> Bool {
        try IdentityDirectory(dataDirectory: data).revocations().isRevoked(uid: uid, signedInAt: 0)
    }

    @Test
    func `Users who are revoked at the source are refused by its replicas, and after a new copy`() async throws {
        let source = try source()
        try expectEqual(HearthBinary.run(["token", "revoke-user", "ada", "--data", data]).status, 0)
        var replica = try replica(of: source)
        try await eventually("it refuses who was revoked before: \(replica.process.errors)") {
            try refuses("ada", copy)
        }
        try expectEqual(HearthBinary.run(["token", "revoke-user", "bob", "--data", copy]).status, 0)
        try expectEqual(HearthBinary.run(["token", "revoke-user", "eve", "--data", data]).status, 0)
        try await eventually("it refuses who is revoked now: \(replica.process.errors)") { try refuses("eve", copy) }
        expect(replica.process.waitForError("event=revocations_followed users=1"))
        expectEqual(replica.stop(), 0)
        expectEqual(source.stop(), 0)
        // Another store takes the place of its state.
        let other = try ServerProcess(data: directory.path(of: "other"))
        let client = try TestClient(other)
        try await client.set("c/b", number: 2)
        await client.close()
        replica = try self.replica(of: other)
        expect(replica.process.waitForError("replica_rebuilt"), "\(replica.process.errors)")
        try await eventually("the replica is ready again") {
            replica.process.output.components(separatedBy: "hearth ready on").count == 3
        }
        for uid in ["ada", "eve", "bob"] { try expect(refuses(uid, copy), "\(uid)") }
        expectEqual(replica.stop(), 0)
        expectEqual(other.stop(), 0)
    }

    private static let documents = "/v1/projects/hearth/databases/(default)/documents"

    @Test
    func `Writes at a replica are applied once, over kill -9 and restarts of the source`() async throws {
        var source = try source()
        let port = source.port
        let replica = try replica(of: source, ["--strict-reads"])
        let increment = """
            {"writes":[{"transform":{"document":"projects/hearth/databases/(default)/documents/c/n",
            "fieldTransforms":[{"fieldPath":"n","increment":{"integerValue":"1"}}]}}]}
            """
        let begun = try #require(
            HTTPTestClient(port: replica.port).request("POST", Self.documents + ":beginTransaction", body: "{}"))
        let transaction = try #require(begun.body.components(separatedBy: "\"").dropFirst(3).first)
        let count = 120
        let done = Mutex(0)
        let address = replica.port
        let writer = Task.detached {
            let http = HTTPTestClient(port: address)
            for number in 1...count {
                let reply = http.request("POST", Self.documents + ":commit", body: increment)
                expectEqual(reply?.status, 200, "\(String(describing: reply))")
                let read = http.request("GET", Self.documents + "/c/n")
                expectEqual(read?.body.contains("\"integerValue\": \"\(number)\""), true, "\(String(describing: read))")
                done.withLock { $0 = number }
            }
        }
        for (round, number) in [20, 50, 80].enumerated() {
            try await eventually("\(number) commits have replies") { done.withLock { $0 } >= number }
            if round == 1 { expectEqual(source.stop(), 0) } else { source.kill() }
            source = try self.source(port: port)
        }
        await writer.value
        try await expectNumber(source, "c/n", is: count)
        let lost = HTTPTestClient(port: replica.port).request(
            "GET", Self.documents + "/c/n?transaction=\(transaction.replacing("+", with: "%2B"))")
        expectEqual(lost?.status, 409, "\(String(describing: lost))")
        expectEqual(replica.stop(), 0)
        expectEqual(source.stop(), 0)
        try expectSound()
    }

    @Test
    func `A replica of another store is copied again, and says why; files of the operator stay`() async throws {
        let first = try source()
        let client = try TestClient(first)
        try await client.set("c/a", number: 1)
        // A mount point has one of them before the first copy.
        try FileManager.default.createDirectory(atPath: "\(copy)/lost+found", withIntermediateDirectories: true)
        try Data().write(to: URL(fileURLWithPath: "\(copy)/principals.json"))
        var replica = try replica(of: first)
        try await expectNumber(replica, "c/a", is: 1)
        await client.close()
        expectEqual(replica.stop(), 0)
        expectEqual(first.stop(), 0)

        let other = try ServerProcess(data: directory.path(of: "other"))
        let second = try TestClient(other)
        try await second.set("c/b", number: 2)
        replica = try self.replica(of: other)
        expect(replica.process.waitForError("replica_rebuilt"), "\(replica.process.errors)")
        expect(replica.process.errors.contains("the replica has the history of another store"))
        // The process has started again, at another port.
        try await eventually("the replica is ready again") {
            replica.process.output.components(separatedBy: "hearth ready on").count == 3
        }
        await second.close()
        expectEqual(replica.stop(), 0)
        let left = try FileManager.default.contentsOfDirectory(atPath: copy)
        expect(left.contains("lost+found") && left.contains("principals.json"), "\(left)")
        let check = try HearthBinary.run(["get", "c/b", "--address", "127.0.0.1:\(other.port)"])
        expectEqual(check.status, 0, "\(check.errors)")
        expectEqual(other.stop(), 0)
    }

    @Test
    func `A promoted replica has the last commit; the source takes no writes and does not start again`() async throws {
        let source = try source()
        let client = try TestClient(source)
        try await client.set("c/a", number: 1)
        let replica = try replica(of: source)
        try await expectNumber(replica, "c/a", is: 1)
        expectEqual(replica.stop(), 0)
        for number in 2...40 { try await client.set("c/a", number: number) }

        let promoted = try HearthBinary.run(["promote", "--data", copy])
        expect(promoted.status == 0 && promoted.output.contains("with all commits"), "\(promoted.errors)")
        await #expect(throws: RequestError.self) { try await client.set("c/a", number: 41) }
        try await expectEqual(client.number("c/a"), 40)
        await client.close()
        expectEqual(source.stop(), 0)
        let again = try HearthBinary.run(["serve", "--data", data, "--port", "0"])
        expect(again.status != 0 && again.errors.contains("SUPERSEDED"), "\(again.errors)")

        let server = try ServerProcess(data: copy)
        let there = try TestClient(server)
        try await expectEqual(there.number("c/a"), 40)
        try await there.set("c/a", number: 42)
        await there.close()
        expectEqual(server.stop(), 0)
        try expectSound()
    }

    @Test
    func `A source continues to take writes if its replica cannot continue, or is damaged`() async throws {
        let first = try source()
        let replica = try replica(of: first)
        expectEqual(replica.stop(), 0)
        expectEqual(first.stop(), 0)
        // Another store is at the address.
        let second = try ServerProcess(data: directory.path(of: "other"), port: first.port)
        let client = try TestClient(second)
        try await client.set("c/a", number: 1)
        let outdated = try HearthBinary.run(["promote", "--data", copy])
        expect(outdated.status == 1 && outdated.errors.contains("the history of another store"), "\(outdated)")
        expect(outdated.errors.contains("was not asked to step down"), "\(outdated)")
        try await client.set("c/a", number: 2)

        let runs = "\(copy)/runs"
        for name in try FileManager.default.contentsOfDirectory(atPath: runs) where name.hasPrefix("manifest") {
            try Data("damage".utf8).write(to: URL(fileURLWithPath: "\(runs)/\(name)"))
        }
        let damaged = try HearthBinary.run(["promote", "--data", copy])
        expectEqual(damaged.status, 1, "\(damaged)")
        try await client.set("c/a", number: 3)
        await client.close()
        expectEqual(second.stop(), 0)
        let again = try ServerProcess(data: directory.path(of: "other"))
        expectEqual(again.stop(), 0)
    }

    @Test
    func `A replica whose new copy is not in its place yet is promoted with that copy`() async throws {
        let source = try source()
        let client = try TestClient(source)
        try await client.set("c/a", number: 1)
        let replica = try replica(of: source)
        try await expectNumber(replica, "c/a", is: 1)
        expectEqual(replica.stop(), 0)
        try await client.set("c/a", number: 2)
        await client.close()
        let other = directory.path(of: "other")
        let second = try ServerProcess(data: other, arguments: ["--follow", "127.0.0.1:\(source.port)"])
        try await expectNumber(second, "c/a", is: 2)
        expectEqual(second.stop(), 0)
        source.kill()
        // As a replica was killed that had received all of a copy.
        let files = FileManager.default
        try files.removeItem(atPath: "\(other)/LOCK")
        try files.moveItem(atPath: other, toPath: "\(copy)/BASE")

        let promoted = try HearthBinary.run(["promote", "--data", copy, "--force"])
        expectEqual(promoted.status, 0, "\(promoted)")
        let server = try ServerProcess(data: copy)
        try await expectNumber(server, "c/a", is: 2)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `One replica of a source is promoted, at any of its attempts, and no second one`() async throws {
        let source = try source()
        let client = try TestClient(source)
        try await client.set("c/a", number: 1)
        let other = directory.path(of: "other")
        let second = try ServerProcess(data: other, arguments: ["--follow", "127.0.0.1:\(source.port)"])
        try await expectNumber(second, "c/a", is: 1)
        expectEqual(second.stop(), 0)
        let first = try replica(of: source)
        try await expectNumber(first, "c/a", is: 1)
        expectEqual(first.stop(), 0)
        // An attempt that ended when the source had stepped down: the directory is as it was then.
        let number = try ReplicaFile.successor(in: copy)
        let before = try String(contentsOfFile: "\(copy)/REPLICA", encoding: .utf8)
        try expectEqual(HearthBinary.run(["promote", "--data", copy]).status, 0)
        try before.write(toFile: "\(copy)/REPLICA", atomically: true, encoding: .utf8)
        try expectEqual(ReplicaFile.successor(in: copy), number)
        let again = try HearthBinary.run(["promote", "--data", copy])
        expectEqual(again.status, 0, "\(again.errors)")

        let refused = try HearthBinary.run(["promote", "--data", other])
        expectEqual(refused.status, 1, "\(refused.output)")
        expect(refused.errors.contains("another one has its place already"), "\(refused.errors)")
        try expectEqual(ReplicaFile.source(in: other), "127.0.0.1:\(source.port)")
        await client.close()
        expectEqual(source.stop(), 0)
    }

    @Test
    func `A promoted replica has the rules that the source got while it did not run`() async throws {
        func apply(_ statement: String) throws -> String {
            let path = directory.path(of: "firestore.rules")
            let text = "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { \(statement) } } }\n"
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            let applied = try HearthBinary.run(["rules", "apply", path, "--data", data])
            expectEqual(applied.status, 0, "\(applied)")
            return text
        }
        // Without access control; rules are kept all the same.
        let source = try ServerProcess(data: data, arguments: Self.kept + ["--insecure"])
        let before = try apply("allow read;")
        let client = try TestClient(source)
        try await client.set("c/a", number: 1)
        await client.close()
        let replica = try replica(of: source, ["--insecure"])
        try await expectNumber(replica, "c/a", is: 1)
        expectEqual(replica.stop(), 0)
        try expectEqual(HearthBinary.run(["rules", "show", "--data", copy]).output, before)
        let after = try apply("allow read: if false;")
        let promoted = try HearthBinary.run(["promote", "--data", copy])
        expectEqual(promoted.status, 0, "\(promoted)")
        try expectEqual(HearthBinary.run(["rules", "show", "--data", copy]).output, after)
        expectEqual(source.stop(), 0)
    }

    @Test
    func `A replica is promoted by force without its source, and says what it has`() async throws {
        let source = try source()
        let client = try TestClient(source)
        try await client.set("c/a", number: 1)
        let replica = try replica(of: source)
        try await expectNumber(replica, "c/a", is: 1)
        expectEqual(replica.stop(), 0)
        try await client.set("c/a", number: 2)
        await client.close()
        source.kill()

        let refused = try HearthBinary.run(["promote", "--data", copy])
        expect(refused.status != 0, "\(refused.output)")
        let unmarked = try HearthBinary.run(["serve", "--data", copy, "--port", "0"])
        expect(unmarked.status != 0 && unmarked.errors.contains("is a replica of"), "\(unmarked.errors)")
        let promoted = try HearthBinary.run(["promote", "--data", copy, "--force"])
        expect(promoted.status == 0 && promoted.output.contains("later commits of the source are lost"), "\(promoted)")
        let second = try HearthBinary.run(["promote", "--data", copy, "--force"])
        expect(second.status != 0 && second.errors.contains("is not a replica"), "\(second.errors)")

        let server = try ServerProcess(data: copy)
        let there = try TestClient(server)
        try await expectEqual(there.number("c/a"), 1)
        try await there.set("c/a", number: 3)
        // The old server has commits that the new one lacks: it does not become a replica over them.
        let met = try HearthBinary.run(["serve", "--data", data, "--port", "0", "--follow", "127.0.0.1:\(server.port)"])
        expect(met.status != 0 && met.errors.contains("has an independent store"), "\(met.errors)")
        await there.close()
        expectEqual(server.stop(), 0)
        try expectSound()
    }

    @Test
    func `What is promoted by force begins above all times that its reads had, whatever its clock says`() async throws {
        let source = try source()
        let client = try TestClient(source)
        let written = try await client.commitTime(of: "c/a", number: 1)
        let replica = try replica(of: source)
        try await expectNumber(replica, "c/a", is: 1)
        let there = try TestClient(replica)
        // The source gets no further commit: it is the note that counts as soon as reads have later times.
        var readTime = written
        try await eventually("reads are later than the last commit") {
            readTime = try await there.readTime("c/a")
            return readTime > written
        }
        await there.close()
        try expect(ReplicaFile.timeMax(in: copy) >= readTime)
        expectEqual(replica.stop(), 0)
        await client.close()
        source.kill()

        // As if the clock of the source had been an hour ahead of this machine's.
        let late = SystemClock.microseconds() + 3_600_000_000
        try ReplicaFile.note(timeMax: late, in: copy)
        let number = try ReplicaFile.successor(in: copy)
        try expectEqual(ReplicaFile.successor(in: copy), number)
        try expectEqual(ReplicaFile.timeMax(in: copy), late)
        try expectEqual(ReplicaFile.source(in: copy), "127.0.0.1:\(source.port)")
        let promoted = try HearthBinary.run(["promote", "--data", copy, "--force"])
        expectEqual(promoted.status, 0, "\(promoted)")
        let server = try ServerProcess(data: copy)
        let later = try TestClient(server)
        try await expect(later.commitTime(of: "c/a", number: 2) > late)
        await later.close()
        // Tokens of the source for such times are not valid either.
        let timeline = try #require(try ClusterFile.timeline(in: copy))
        expect(timeline > late)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A command without a server changes nothing in the directory of a replica`() async throws {
        let source = try source()
        let client = try TestClient(source)
        try await client.set("c/a", number: 1)
        let replica = try replica(of: source)
        try await expectNumber(replica, "c/a", is: 1)
        expectEqual(replica.stop(), 0)
        let indexes = directory.path(of: "indexes.json")
        let field = #"{"fieldPath": "n", "order": "ASCENDING"}, {"fieldPath": "m", "order": "ASCENDING"}"#
        let text = #"{"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": ["# + field + "]}]}"
        try Data(text.utf8).write(to: URL(fileURLWithPath: indexes))
        let applied = try HearthBinary.run(["indexes", "apply", indexes, "--data", copy])
        expect(applied.status == 1 && applied.errors.contains("is a replica"), "\(applied)")
        let read = try HearthBinary.run(["get", "c/a", "--data", copy])
        expect(read.status == 0 && read.output.contains("\"n\":1"), "\(read)")
        let backup = try HearthBinary.run(["backup", directory.path(of: "backup"), "--data", copy])
        expectEqual(backup.status, 0, "\(backup)")

        try await client.set("c/a", number: 2)
        let again = try self.replica(of: source)
        try await expectNumber(again, "c/a", is: 2)
        expect(!again.process.errors.contains("event=replica_outdated"), "\(again.process.errors)")
        await client.close()
        expectEqual(again.stop(), 0)
        expectEqual(source.stop(), 0)
    }

    @Test
    func `A new replica of a source whose log is empty copies it once`() async throws {
        let first = try ServerProcess(data: data)
        let client = try TestClient(first)
        try await client.set("c/a", number: 1)
        await client.close()
        expectEqual(first.stop(), 0)
        let source = try source()
        let replica = try replica(of: source)
        try await eventually("it follows: \(replica.process.errors)") {
            replica.process.errors.contains("event=following")
        }
        expect(!replica.process.errors.contains("event=replica_outdated"), "\(replica.process.errors)")
        let again = try TestClient(source)
        try await again.set("c/a", number: 2)
        await again.close()
        try await expectNumber(replica, "c/a", is: 2)
        expectEqual(replica.stop(), 0)
        expectEqual(source.stop(), 0)
    }
}
