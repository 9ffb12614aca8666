// Sessions that are kept, over a real PostgreSQL.

import Glibc
import TestSupport
import Testing

@testable import PostgreSQLLog

@Suite(.serialized, .timeLimit(.minutes(20)))
struct KeptSessionTests {
    private let server: PostgreSQLServer

    init() throws { server = try PostgreSQLServer() }

    private static let process = SQLStatement("SELECT pg_backend_pid()")

    private func process(of kept: KeptSession) throws -> UInt64? { try kept.run(Self.process).first?.number(0) }

    @Test
    func `A session is kept, and made and prepared again after a failure of the database alone`() throws {
        var prepared = 0
        let kept = KeptSession(address: server.address) { session in
            prepared += 1
            try session.run(SQLStatement(script: "SET lock_timeout = 1234"))
        }
        expect(!kept.isOpen && kept.number == 0)
        let first = try process(of: kept)
        try expectEqual(process(of: kept), first)
        struct Other: Error {}
        #expect(throws: Other.self) { try kept.use { _ in throw Other() } }
        try expectEqual(process(of: kept), first)
        expect(kept.isOpen && kept.number == 1 && prepared == 1)

        #expect(throws: SQLFailure.self) { try kept.run(SQLStatement("SELECT 1 / 0")) }
        expect(!kept.isOpen)
        try expect(process(of: kept) != first)
        try expectEqual(kept.run(SQLStatement("SHOW lock_timeout")).first?.text(0), "1234ms")
        expect(kept.number == 2 && prepared == 2)
        kept.close()
        expect(!kept.isOpen)
        _ = try process(of: kept)
        expectEqual(kept.number, 3)
    }

    @Test
    func `What lost its session is not executed again, and fails until there is a database`() throws {
        let kept = KeptSession(address: server.address)
        try kept.run(SQLStatement("CREATE TABLE counted (n integer)"))
        var executed = 0
        func add() throws {
            try kept.use { session in
                executed += 1
                try session.run(SQLStatement("INSERT INTO counted VALUES (1)"))
            }
        }
        try add()
        let other = try PostgreSQLSession(address: server.address)
        let first = try #require(try process(of: kept))
        try other.run(SQLStatement("SELECT pg_terminate_backend(\(first), 10000)"))
        other.close()
        expect(kept.isOpen)
        #expect(throws: SQLFailure.self) { try add() }
        expectEqual(executed, 2)
        try add()
        try expectEqual(kept.run(SQLStatement("SELECT count(*) FROM counted")).first?.number(0), 2)

        server.stop(SIGQUIT)
        #expect(throws: SQLFailure.self) { try add() }
        let failure = #expect(throws: SQLFailure.self) { try add() }
        expectEqual(failure?.isConnectionLost, true)
        expectEqual(executed, 4)
        try server.start()
        try add()
        expectEqual(executed, 5)
    }

    @Test
    func `A host that does not reply is not the first one again`() throws {
        let silent = try LoopbackSocket.silentPort()
        let address = "postgresql://hearth@127.0.0.1:\(silent),\(server.place)/postgres"
        for milliseconds: UInt64 in [5_000, 60_000, 60_000] {
            let session = try PostgreSQLSession(address: address, withinMilliseconds: milliseconds)
            try expectEqual(session.run(Self.process).count, 1)
            session.close()
        }
        expectEqual(DatabaseHosts[address]?.options.last?.1, "\(server.port),\(silent)")
    }

    @Test
    func `Hosts are tried in the order of the address, from the one on that was connected to last`() throws {
        var hosts = try #require(DatabaseHosts(names: "a,b,c", addresses: "", ports: "5433"))
        func order() -> [String] { hosts.options.map { "\($0.0) \($0.1)" } }
        expectEqual(order(), ["host a,b,c", "port 5433,5433,5433"])
        hosts.note(.connected, host: "b", port: "5433")
        expectEqual(order(), ["host b,c,a", "port 5433,5433,5433"])
        hosts.note(.silent, host: "c", port: "5433")
        expectEqual(order(), ["host a,b,c", "port 5433,5433,5433"])
        hosts.note(.silent, host: "c", port: "5433")
        hosts.note(.connected, host: "elsewhere", port: "5433")
        expectEqual(order(), ["host a,b,c", "port 5433,5433,5433"])

        hosts = try #require(DatabaseHosts(names: "", addresses: "10.0.0.1,10.0.0.2", ports: "1,2"))
        hosts.note(.silent, host: "10.0.0.1", port: "1")
        expectEqual(order(), ["hostaddr 10.0.0.2,10.0.0.1", "port 2,1"])
        hosts = try #require(DatabaseHosts(names: "a,a", addresses: "10.0.0.1,10.0.0.2", ports: "1,2"))
        hosts.note(.connected, host: "a", port: "2")
        expectEqual(order(), ["host a,a", "hostaddr 10.0.0.2,10.0.0.1", "port 2,1"])
        expectNil(DatabaseHosts(names: "a", addresses: "", ports: "1"))
        expectNil(DatabaseHosts(names: "a,b", addresses: "", ports: "1,2,3"))
    }

    @Test
    func `A session that cannot be prepared is not used`() throws {
        var isBroken = true
        let kept = KeptSession(address: server.address) { session in
            try session.run(SQLStatement(isBroken ? "SELECT broken" : "SELECT 1"))
        }
        #expect(throws: SQLFailure.self) { try kept.use { _ in Issue.record("it is used") } }
        expect(!kept.isOpen && kept.number == 0)
        isBroken = false
        _ = try process(of: kept)
        expectEqual(kept.number, 1)
    }

    @Test
    func `A change with a warning has an unknown outcome, as the standby may lack it; a read has not`() throws {
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try session.run(
            SQLStatement(
                script: """
                    CREATE TABLE counted (n integer);
                    CREATE FUNCTION warned() RETURNS integer LANGUAGE plpgsql
                        AS $$ BEGIN RAISE WARNING 'careful'; RETURN 1; END $$
                    """))
        let failure = #expect(throws: SQLFailure.self) {
            try session.run(SQLStatement("INSERT INTO counted SELECT warned()"))
        }
        expectEqual(failure?.isConnectionLost, true)
        try expectEqual(session.run(SQLStatement("SELECT warned()")).first?.number(0), 1)
        try expectEqual(session.run(SQLStatement("SELECT count(*) FROM counted")).first?.number(0), 1)
    }
}
