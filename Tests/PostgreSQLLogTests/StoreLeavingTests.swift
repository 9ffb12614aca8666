// The lock-out of a store that leaves its database, over a real PostgreSQL: statements that are executed late.

import PostgreSQLLog
import Replication
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct StoreLeavingTests {
    private let server: PostgreSQLServer
    private let tables = StoreTables(name: "main", advertised: "a:1")
    private let first = ServerIdentity(high: 1, low: 11)
    private let second = ServerIdentity(high: 2, low: 22)

    init() throws { server = try PostgreSQLServer() }

    private func prepare() throws -> PostgreSQLSession {
        let session = try PostgreSQLSession(address: server.address)
        try session.run(StoreTables.creation)
        try session.run(tables.adoption(.random(), timeline: 1, ceiling: 0))
        return session
    }

    private func row(_ session: PostgreSQLSession) throws -> StoreRow {
        try #require(StoreRow(try session.run(tables.statement(.observe, closed: 0, timeline: 0))))
    }

    private func isDone(_ statement: SQLStatement, _ session: PostgreSQLSession) throws -> Bool {
        try #require(StoreRow(try session.run(statement))).isDone
    }

    @Test
    func `A lock-out that is executed after it was taken back changes nothing`() throws {
        let session = try prepare()
        defer { session.close() }
        let seen = try row(session)
        // Its answer is lost, and it is executed yet.
        let lockOut = tables.lockingOut(seen, for: first)
        try expect(isDone(tables.takingBack(seen, from: first), session))
        try expect(!isDone(lockOut, session))
        try expectEqual(row(session).level, StoreTables.level)

        // Executed before it is taken back, which may be asked twice.
        let again = try row(session)
        try expect(isDone(tables.lockingOut(again, for: first), session))
        try expectEqual(row(session).level, StoreTables.leavingLevel)
        try expect(isDone(tables.takingBack(again, from: first), session))
        try expect(!isDone(tables.takingBack(again, from: first), session))
        try expectEqual(row(session).level, StoreTables.level)
        try expect(!isDone(tables.leaving(for: first), session))

        // One attempt follows another one, whose statements come late.
        let before = try row(session)
        try expect(isDone(tables.lockingOut(before, for: first), session))
        try expect(isDone(tables.lockingOut(row(session), for: second), session))
        try expect(!isDone(tables.leaving(for: first), session))
        try expect(isDone(tables.leaving(for: second), session))
        try expect(isDone(tables.leaving(for: second), session))
        try expect(!isDone(tables.takingBack(before, from: first), session))
        try expect(!isDone(tables.lockingOut(before, for: first), session))
        try expectEqual(row(session).level, StoreTables.movedLevel)

        // A store that was moved stays moved for a further attempt.
        try expect(isDone(tables.lockingOut(row(session), for: first), session))
        try expectEqual(row(session).level, StoreTables.movedLevel)
    }

    @Test
    func `A store that begins to share, or gets another leader, is not locked out as it was seen`() throws {
        let session = try prepare()
        defer { session.close() }
        let seen = try row(session)
        try expect(!session.run(tables.sharing(in: seen.lease.epoch.number)).isEmpty)
        try expect(!isDone(tables.lockingOut(seen, for: first), session))
        try expect(StoreTables.isSharing(level: row(session).level))
        try expect(!isDone(tables.takingBack(seen, from: first), session))
        try expect(StoreTables.isSharing(level: row(session).level))

        let shared = try row(session)
        let claim = LeaseStatement.claim(shared.lease.epoch, renewals: shared.lease.renewals, holder: second)
        try expect(isDone(tables.statement(claim, closed: 0, timeline: 0), session))
        try expect(!isDone(tables.lockingOut(shared, for: first), session))
        try expectEqual(row(session).lease.holder, second)
    }
}
