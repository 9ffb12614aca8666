// What the servers of a cluster have in common, in a home database that may be restored.

import Authorization
import Basics
import FirestoreService
import Glibc
import Identity
import PostgreSQLLog
import TestSupport
import Testing

@testable import hearth

@Suite(.serialized, .timeLimit(.minutes(20)))
struct HomeDatabaseTests {
    @Test
    func `Tables that a restored database lacks are made again`() throws {
        let server = try PostgreSQLServer()
        let home = HomeDatabase(address: server.address)
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try StoreTables.make(session)
        try expectEqual(home.run(RulesTable.exists).first?.number(0), 1)
        // A restore to a time before the tables, which ends all sessions.
        try restore("DROP TABLE hearth.rules, hearth.secrets", session)
        #expect(throws: RequestError.self) { try home.run(RulesTable.exists) }
        try expectEqual(home.run(RulesTable.exists).first?.number(0), 1)
        // To a time before all of them, or it is another database.
        try restore("DROP SCHEMA hearth CASCADE", session)
        #expect(throws: RequestError.self) { try home.run(RulesTable.exists) }
        let refusal = #expect(throws: RequestError.self) { try home.run(RulesTable.exists) }
        expectEqual(refusal?.message.contains("has no stores of a cluster"), true, "\(String(describing: refusal))")
        let schema = SQLStatement("SELECT to_regnamespace('hearth') IS NOT NULL")
        try expectEqual(session.run(schema).first?.number(0), 0)
    }

    private func restore(_ change: String, _ session: PostgreSQLSession) throws {
        try session.run(SQLStatement(script: change))
        try session.run(
            SQLStatement(
                """
                SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity
                WHERE application_name = 'hearth' AND pid <> pg_backend_pid()
                """))
    }

    @Test
    func `A server that starts waits for a home database that is starting again`() async throws {
        let directory = TemporaryDirectory("home")
        let server = try PostgreSQLServer()
        let session = try PostgreSQLSession(address: server.address)
        try StoreTables.make(session)
        session.close()
        let lines = Monitor<[String]>([])
        let security = ClusterSecurity(
            address: server.address, log: Log(level: .info) { line in lines.update { $0.append("\(line)") } })
        server.stop(SIGINT)
        let path = directory.path
        let secret = Task.detached { try security.joinSecret(of: IdentityDirectory(dataDirectory: path)) }
        try await eventually("it waits") { lines.withLock { $0 }.contains { $0.contains("cluster_waiting") } }
        try server.start()
        try await secret.value
        try security.join(RulesHistory(dataDirectory: path))
    }
}
