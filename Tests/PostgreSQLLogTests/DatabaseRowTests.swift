// The rows of databases that move, over a real PostgreSQL.

import PostgreSQLLog
import Replication
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct DatabaseRowTests {
    private let server: PostgreSQLServer
    private let name = "projects/p/databases/(default)"

    init() throws { server = try PostgreSQLServer() }

    /// Two stores that share, and a database in the first one.
    private func prepare(_ session: PostgreSQLSession) throws {
        try session.run(StoreTables.creation)
        try session.run(StoreTables.creationOfDatabases)
        for store in ["a", "b"] {
            let tables = StoreTables(name: store, advertised: "")
            try session.run(tables.adoption(.random(), timeline: 1, ceiling: 0))
            try session.run(tables.sharing(in: 1))
        }
        try session.run(StoreTables(name: "a", advertised: "").entering(name))
    }

    private func row(_ session: PostgreSQLSession) throws -> DatabaseRow {
        try #require(StoreTables.moveRows(try session.run(StoreTables.row(of: name))).first).row
    }

    private func isDone(_ statement: SQLStatement, _ session: PostgreSQLSession) throws -> Bool {
        try !session.run(statement).isEmpty
    }

    private func begins(_ store: String, _ session: PostgreSQLSession) throws -> Bool {
        try session.run(StoreTables.moving(name, to: store)).first?.number(0) == 1
    }

    private func levels(_ session: PostgreSQLSession) throws -> [UInt64?] {
        try session.run(SQLStatement("SELECT level FROM hearth.stores ORDER BY name")).map { $0.number(0) }
    }

    @Test
    func `A move is begun, announced and recorded by its generation alone, and raises both stores`() throws {
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try prepare(session)
        try expectEqual(row(session), DatabaseRow(store: "a"))
        let before = try session.run(StoreTables.databasesMark)
        try expectEqual(levels(session), [2, 2])
        try expect(!begins("a", session))
        try expect(begins("b", session))
        try expect(!begins("b", session))
        try expectEqual(levels(session), [3, 3])
        try expectEqual(row(session), DatabaseRow(store: "a", movingTo: "b", generation: 1))
        try expect(session.run(StoreTables.databasesMark).first?.columns != before.first?.columns)
        try session.run(StoreTables.noting(name, generation: 1, documents: 7, note: "it waits"))
        try session.run(StoreTables.noting(name, generation: 2, documents: 8, note: ""))
        let moves = StoreTables.moveRows(try session.run(StoreTables.moves))
        expect(moves.map(\.documents) == [7] && moves.first?.note == "it waits")

        try expect(!isDone(StoreTables.announcingRelease(name, generation: 2), session))
        try expect(!isDone(StoreTables.recordingMove(name, generation: 2), session))
        try expect(isDone(StoreTables.announcingRelease(name, generation: 1), session))
        try expect(isDone(StoreTables.announcingRelease(name, generation: 1), session))
        try expect(!isDone(StoreTables.givingUp(name, generation: 1, note: ""), session))
        try expect(isDone(StoreTables.recordingMove(name, generation: 1), session))
        try expect(!isDone(StoreTables.recordingMove(name, generation: 1), session))
        try expectEqual(row(session), DatabaseRow(store: "b", generation: 1))
        try expect(session.run(StoreTables.moves).isEmpty)
    }

    @Test
    func `A move is given up before its release is announced, and what comes late changes nothing`() throws {
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try prepare(session)
        try expect(begins("b", session))
        try expect(!isDone(StoreTables.givingUp(name, generation: 0, note: ""), session))
        try expect(isDone(StoreTables.givingUp(name, generation: 1, note: "no more"), session))
        try expectEqual(row(session), DatabaseRow(store: "a", generation: 2))
        for late in [
            StoreTables.announcingRelease(name, generation: 1), StoreTables.recordingMove(name, generation: 1),
            StoreTables.givingUp(name, generation: 1, note: ""),
        ] { try expect(!isDone(late, session)) }
        try expect(begins("b", session))
        try expectEqual(row(session), DatabaseRow(store: "a", movingTo: "b", generation: 3))
        // The stores know of a later move than the table.
        try expect(isDone(StoreTables.givingUp(name, generation: 3, note: ""), session))
        try expectEqual(session.run(StoreTables.moving(name, to: "b", after: 7)).first?.number(0), 1)
        try expectEqual(row(session), DatabaseRow(store: "a", movingTo: "b", generation: 8))
    }

    @Test
    func `A table of an earlier version gets the columns, and stores that share still share`() throws {
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try session.run(SQLStatement(script: "CREATE SCHEMA hearth"))
        try session.run(
            SQLStatement(
                script: """
                    CREATE TABLE hearth.databases (name text PRIMARY KEY, store text NOT NULL);
                    INSERT INTO hearth.databases VALUES ('\(name)', 'a');
                    """))
        try prepare(session)
        try expectEqual(row(session), DatabaseRow(store: "a"))
        try expect(begins("b", session))
        // A store of level 3 takes new databases, and says again that it shares.
        let tables = StoreTables(name: "a", advertised: "")
        try expect(isDone(tables.sharing(in: 9), session))
        try expectEqual(levels(session), [3, 3])
        try expectEqual(session.run(StoreTables.sharingCount(of: ["a", "b"])).first?.number(0), 2)
        let other = "projects/p/databases/other"
        let needed = UInt64(name.utf8.count + 100 + other.utf8.count + 100)
        for (count, bytes, isAdded) in [(1, 1_000, false), (2, needed - 1, false), (2, needed, true)] {
            let limits = DatabaseLimits(count: UInt64(count), bytes: bytes, bytesEach: 100)
            try session.run(StoreTables.adding(other, to: ["a", "b"], of: ["a", "b"], limits))
            try expectEqual(session.run(StoreTables.store(of: other)).isEmpty, !isAdded)
        }
        try expectEqual(session.run(StoreTables.store(of: "projects/p/databases/other")).first?.text(0), "b")
    }

    @Test
    func `A database does not move to a store that does not share, or is none`() throws {
        let session = try PostgreSQLSession(address: server.address)
        defer { session.close() }
        try prepare(session)
        try session.run(StoreTables(name: "c", advertised: "").adoption(.random(), timeline: 1, ceiling: 0))
        for store in ["c", "nowhere"] { try expect(!begins(store, session)) }
        try expectEqual(row(session), DatabaseRow(store: "a"))
    }
}
