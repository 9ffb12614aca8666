// Users whose tokens a replica refuses, as processes.

import Basics
import DocumentStore
import Foundation
import Identity
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ReplicaRevocationsTests {
    private let directory = TemporaryDirectory("replica-revocations")
    private let users: SignedInUsers
    private var data: String { directory.path(of: "data") }
    private var copy: String { directory.path(of: "copy") }

    init() throws { users = try SignedInUsers(directory) }

    private func source(port: Int? = nil) throws -> ServerProcess {
        try ServerProcess(data: data, port: port, arguments: users.flags + ["--log-keep", "16MiB"])
    }

    private func replica(of source: ServerProcess, _ name: String = "copy") throws -> ServerProcess {
        try ServerProcess(
            data: directory.path(of: name), arguments: users.flags + ["--follow", "127.0.0.1:\(source.port)"],
            environment: users.environment)
    }

    private func revoke(_ uid: String, _ data: String) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["token", "revoke-user", uid, "--data", data])
    }

    private func status(_ token: String, _ server: ServerProcess) -> Int? {
        SignedInUsers.status(token, port: server.port)
    }

    /// Whether `replica` says that it serves users by the revocations of before; waits for it.
    private func servesWithoutSource(_ replica: ServerProcess) -> Bool {
        replica.process.waitForError("event=revocations_not_followed")
    }

    private func expectStatus(_ wanted: Int, _ token: String, _ server: ServerProcess, _ comment: String) async throws {
        try await eventually("\(wanted) \(comment): \(server.process.errors.suffix(2_000))") {
            status(token, server) == wanted
        }
    }

    @Test
    func `A replica serves no user before it knows whom its source has revoked`() async throws {
        let (ada, eve, bob) = (try users.token("ada"), try users.token("eve"), try users.token("bob"))
        let source = try source()
        try expectEqual(revoke("ada", data).status, 0)
        var replica = try replica(of: source)
        // The copy of the source has its revocations.
        try expect(IdentityDirectory(dataDirectory: copy).revocations().isRevoked(uid: "ada", signedInAt: 0))
        try await expectStatus(401, ada, replica, "to a user who is revoked")
        try await expectStatus(404, eve, replica, "to another one")
        expectEqual(replica.stop(), 0)

        try expectEqual(revoke("eve", data).status, 0)
        // The source takes connections and says nothing.
        source.process.signal(SIGSTOP)
        replica = try self.replica(of: source)
        for (token, wanted) in [(ada, 401), (eve, 503), (bob, 503)] {
            // On a slow machine the replica may have waited for its source for as long as it waits.
            expect(status(token, replica) == wanted || servesWithoutSource(replica), "\(replica.process.errors)")
        }
        let key = try #require(users.environment["HEARTH_FOLLOW_TOKEN"])
        expectEqual(status(key, replica), 404)
        source.process.signal(SIGCONT)
        try await expectStatus(404, bob, replica, "to a user when the revocations have come")
        expect(status(eve, replica) == 401 || servesWithoutSource(replica))
        try await expectStatus(401, eve, replica, "to a user who was revoked meanwhile")
        expectEqual(replica.stop(), 0)
        expectEqual(source.stop(), 0)

        // Its source is away: what it had before is in force.
        replica = try self.replica(of: source)
        try await expectStatus(404, bob, replica, "to a user without the source")
        expect(servesWithoutSource(replica))
        for token in [ada, eve] { expectEqual(status(token, replica), 401) }
        expectEqual(replica.stop(), 0)
    }

    @Test
    func `A user who is revoked at a replica is refused by its source and the other replicas, later if it is away`()
        async throws
    {
        let (ada, eve, bob) = (try users.token("ada"), try users.token("eve"), try users.token("bob"))
        var source = try source()
        let port = source.port
        let replicas = [try replica(of: source), try replica(of: source, "other")]
        for token in [ada, eve] { try await expectStatus(404, token, replicas[1], "at first") }
        let revoked = try revoke("ada", copy)
        expect(revoked.status == 0 && revoked.output.contains("also at the source 127.0.0.1:\(port)"), "\(revoked)")
        expectEqual(status(ada, replicas[0]), 401)
        expectEqual(status(ada, source), 401)
        try await expectStatus(401, ada, replicas[1], "to a user who is revoked at another replica")

        source.kill()
        let away = try revoke("eve", copy)
        expect(away.status == 1 && away.errors.contains("at this server only"), "\(away)")
        expectEqual(status(eve, replicas[0]), 401)
        // Who signs in again is not revoked by what is sent later.
        let again = try users.token("eve", secondsAgo: 0)
        source = try self.source(port: port)
        try await expectStatus(401, eve, source, "from the source that is back")
        try await expectStatus(401, eve, replicas[1], "from its other replica")
        for server in replicas + [source] {
            try await expectStatus(404, again, server, "to a user who has signed in since")
            try await expectStatus(404, bob, server, "to another user")
        }

        // A promoted replica has what was revoked while it did not run.
        expectEqual(replicas[1].stop(), 0)
        try expectEqual(revoke("bob", data).status, 0)
        let promoted = try HearthBinary.run(
            ["promote", "--data", directory.path(of: "other")], environment: users.environment)
        expectEqual(promoted.status, 0, "\(promoted.errors)")
        try expect(
            IdentityDirectory(dataDirectory: directory.path(of: "other")).revocations().isRevoked(
                uid: "bob", signedInAt: 0))
        expectEqual(replicas[0].stop(), 0)
        expectEqual(source.stop(), 0)
    }

    @Test
    func `A revocation at a replica whose clock is late counts from the time of its source`() async throws {
        // Versions that are an hour ahead of this machine's clock are those of a source whose clock is.
        let ahead = SystemClock.microseconds() + 3_600_000_000
        let first = try source()
        expectEqual(first.stop(), 0)
        try ReplicaFile.note(timeMax: ahead, in: data)
        try expectEqual(HearthBinary.run(["promote", "--data", data, "--force"]).status, 0)
        let source = try source()
        let key = try #require(users.environment["HEARTH_FOLLOW_TOKEN"])
        let written = try HearthBinary.run(
            ["set", "--address", "127.0.0.1:\(source.port)", "c/x", "{\"n\":1}"], environment: ["HEARTH_TOKEN": key])
        expectEqual(written.status, 0, "\(written)")
        let replica = try replica(of: source)
        try await expectStatus(404, users.token("bob"), replica, "at first")
        let revoked = try revoke("ada", copy)
        expect(revoked.output.contains("also at the source"), "\(revoked) \(replica.process.errors)")
        for data in [copy, data] {
            let moments = try IdentityDirectory(dataDirectory: data).revocations().moments
            let moment = try #require(moments[Array("ada".utf8)])
            expect(moment > Int64(ahead / 1_000_000))
        }
        expectEqual(replica.stop(), 0)
        expectEqual(source.stop(), 0)
    }
}
