// Users whose tokens the servers of a cluster refuse, as processes over a real PostgreSQL.

import DocumentJSON
import Foundation
import PostgreSQLLog
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(30)))
struct ClusterRevocationsTests {
    private let directory = TemporaryDirectory("cluster-revocations")
    private let database: PostgreSQLServer
    private let users: SignedInUsers

    init() throws {
        database = try PostgreSQLServer()
        users = try SignedInUsers(directory)
    }

    private func node(_ name: String) throws -> ClusterNode {
        try ClusterNode(database.address, data: directory.path(of: name), arguments: users.flags)
    }

    private func start(_ node: ClusterNode) throws { try node.start(environment: users.environment) }

    private func token(_ uid: String) throws -> String { try users.token(uid) }

    private func status(_ token: String, at node: ClusterNode) -> Int? {
        SignedInUsers.status(token, port: node.port, host: node.host)
    }

    private func expectStatus(_ wanted: Int, _ token: String, at nodes: [ClusterNode], _ comment: String) async throws {
        for node in nodes {
            try await eventually("\(node.data) replies \(wanted) \(comment): \(node.log.suffix(2_000))") {
                status(token, at: node) == wanted
            }
        }
    }

    /// Without the database: 503 comes before 401 from a server whose store is closed, as while another becomes the
    /// leader.
    private func expectRefused(_ token: String, at node: ClusterNode) {
        let status = status(token, at: node)
        expect(status == 401 || status == 503, "\(String(describing: status)) \(node.log.suffix(4_000))")
    }

    private func revoke(_ uid: String, _ flags: String...) throws -> HearthBinary.Outcome {
        try HearthBinary.run(["token", "revoke-user", uid] + flags)
    }

    private func sql(_ script: String) throws {
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        try session.run(SQLStatement(script: script))
    }

    private func usersInDatabase() throws -> Int {
        let session = try PostgreSQLSession(address: database.address)
        defer { session.close() }
        return try session.run(RevocationsTable.added(after: 0)).count
    }

    @Test
    func `A user who is revoked at one server is refused by the others, and by a new one from the start`() async throws
    {
        let (ada, eve, bob) = (try token("ada"), try token("eve"), try token("bob"))
        let nodes = [try node("a"), try node("b")]
        for node in nodes { try start(node) }
        for token in [ada, eve, bob] { try await expectStatus(404, token, at: nodes, "at first") }
        let revoked = try revoke("ada", "--data", nodes[0].data)
        expect(revoked.status == 0 && revoked.output.contains("at all servers of the cluster"), "\(revoked)")
        try await expectEqual(nodes[0].statusOfOpenStore { status(ada, at: nodes[0]) }, 401)
        try await expectStatus(401, ada, at: nodes, "to a user who is revoked")
        try await eventually("the log says it: \(nodes[1].log)") {
            nodes[1].log.contains("event=revocations_taken users=1")
        }
        // Without a server.
        let direct = try revoke("eve", "--cluster", database.address)
        expect(direct.status == 0 && direct.output.contains("at all servers of the cluster"), "\(direct)")
        try await expectStatus(401, eve, at: nodes, "to a user who is revoked in the database")
        let late = try node("late")
        try start(late)
        for token in [ada, eve] {
            try await expectEqual(late.statusOfOpenStore { status(token, at: late) }, 401)
        }
        try await expectStatus(404, bob, at: nodes + [late], "to another user")
        expectEqual(late.stop(), 0)

        // A server that does not run takes no order.
        let offline = try revoke("bob", "--data", late.data)
        expect(offline.status == 1 && offline.errors.contains("--cluster"), "\(offline)")
        try expectEqual(usersInDatabase(), 2)
        let named = try revoke("bob", "--data", late.data, "--cluster", database.address)
        expectEqual(named.status, 0, "\(named)")
        try await expectStatus(401, bob, at: nodes, "to a user who is revoked with a directory that no server uses")
        let nowhere = try revoke("bob", "--cluster", database.address(of: "template1"))
        expect(nowhere.status == 1 && nowhere.errors.contains("is not the home database"), "\(nowhere)")
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
    }

    @Test
    func `An access token that one server gives is accepted by the others`() async throws {
        let nodes = [try node("a"), try node("b")]
        for node in nodes { try start(node) }
        let key = try #require(users.environment["HEARTH_FOLLOW_TOKEN"])
        let client = HTTPTestClient(port: nodes[0].port)
        let session = try #require(
            client.request("POST", "/console/session", body: "", headers: ["Authorization: Bearer \(key)"]))
        let token = try #require(JSONValue.read(Array(session.body.utf8))["token"]?.text, "\(session)")
        expect(token.hasPrefix("hearthat_"))
        try await expectStatus(404, token, at: nodes, "to an access token")
        try await expectStatus(401, token + "x", at: nodes, "to a wrong one")
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
        // The copy in the directory is the same, and a new secret voids the tokens.
        try sql("DELETE FROM hearth.secrets")
        for node in nodes { try start(node) }
        try await expectStatus(401, token, at: nodes, "to an access token with the secret of before")
        try await expectStatus(404, key, at: nodes, "to the key")
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
    }

    @Test
    func `No revocation is lost while the database is away, and when it is restored to an earlier state`() async throws
    {
        let (ada, eve) = (try token("ada"), try token("eve"))
        let nodes = [try node("a"), try node("b")]
        for node in nodes { try start(node) }
        try await expectStatus(404, eve, at: nodes, "at first")
        try expectEqual(revoke("ada", "--data", nodes[0].data).status, 0)
        try await expectStatus(401, ada, at: nodes, "to a user who is revoked")

        database.stop(SIGQUIT)
        for node in nodes { expectRefused(ada, at: node) }
        let away = try revoke("eve", "--data", nodes[0].data)
        expect(away.status == 1 && away.errors.contains("at this server only"), "\(away)")
        expectRefused(eve, at: nodes[0])
        try await eventually("it says that it does not learn more: \(nodes[1].log.suffix(2_000))") {
            nodes[1].log.contains("event=revocations_not_taken")
        }
        try database.start()
        try await expectStatus(401, eve, at: nodes, "after the database is back")
        try expectEqual(usersInDatabase(), 2)

        // A state without them, as after a restore, under servers that run.
        try sql("DELETE FROM hearth.revocations; UPDATE hearth.revocations_turn SET number = 0")
        database.stop(SIGQUIT)
        try database.start()
        try await eventually("the database has them again: \(nodes.map { $0.log.suffix(1_000) })") {
            try usersInDatabase() == 2
        }
        // The same under servers that start afterwards: one that has them, and one whose disk is lost.
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
        try sql("DROP TABLE hearth.revocations, hearth.revocations_turn")
        try FileManager.default.removeItem(atPath: nodes[1].data)
        for node in nodes {
            try start(node)
            for token in [ada, eve] {
                try await expectEqual(node.statusOfOpenStore { status(token, at: node) }, 401)
            }
        }
        for node in nodes { expectEqual(node.stop(), 0, "\(node.log.suffix(2_000))") }
    }

    @Test
    func `The revocations of a directory go into its cluster with it, and come back`() async throws {
        let data = directory.path(of: "alone")
        let source = try ServerProcess(data: data)
        // A server that knows no users keeps it for those that do.
        try expectEqual(revoke("ada", "--data", data).status, 0)
        expectEqual(source.stop(), 0)
        try expectEqual(revoke("eve", "--data", data).status, 0)
        let moved = try HearthBinary.run(["migrate", "--from", data, "--to", database.address])
        expectEqual(moved.status, 0, "\(moved)")
        let (ada, eve, bob) = (try token("ada"), try token("eve"), try token("bob"))
        let node = try node("a")
        try start(node)
        for token in [ada, eve] {
            try await expectEqual(node.statusOfOpenStore { status(token, at: node) }, 401)
        }
        try await expectStatus(404, bob, at: [node], "to another user")
        try expectEqual(revoke("bob", "--data", node.data).status, 0)
        let back = directory.path(of: "back")
        let returned = try HearthBinary.run(["migrate", "--from", database.address, "--to", back])
        expectEqual(returned.status, 0, "\(returned)")
        _ = node.stop()
        let server = try ServerProcess(data: back, arguments: users.flags)
        let client = HTTPTestClient(port: server.port)
        for token in [ada, eve, bob] {
            let reply = client.request(
                "GET", "/v1/projects/hearth/databases/(default)/documents/c/d",
                headers: ["Authorization: Bearer \(token)"])
            expectEqual(reply?.status, 401)
        }
        expectEqual(server.stop(), 0)
    }
}
