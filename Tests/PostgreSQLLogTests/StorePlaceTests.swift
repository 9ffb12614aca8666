// Stores whose logs lie in other databases than the home database, over a real PostgreSQL.

import Replication
import Storage
import TestSupport
import Testing

@testable import PostgreSQLLog

@Suite(.serialized, .timeLimit(.minutes(20)))
struct StorePlaceTests {
    private let server: PostgreSQLServer
    private let home: PostgreSQLSession
    private let placed = StoreTables(name: "b", advertised: "")
    private let place = StorePlace(
        store: "b", identity: .random(), address: "postgresql://there/db", database: .random())

    /// A home database with the store `a`, which shares.
    init() throws {
        server = try PostgreSQLServer()
        home = try PostgreSQLSession(address: server.address)
        try home.run(StoreTables.creation)
        try home.run(StoreTables.creationOfDatabases)
        let tables = StoreTables(name: "a", advertised: "")
        try home.run(tables.adoption(.random(), timeline: 1, ceiling: 0))
        try home.run(tables.sharing(in: 1))
    }

    private func add(_ database: String, to candidates: [String] = ["a", "b"]) throws -> String? {
        let limits = DatabaseLimits(count: 10, bytes: 10_000, bytesEach: 1)
        try home.run(StoreTables.adding(database, to: candidates, of: ["a", "b"], limits))
        return try home.run(StoreTables.store(of: database)).first?.text(0)
    }

    private func level(_ tables: StoreTables, _ session: PostgreSQLSession) throws -> UInt64? {
        StoreRow(try session.run(tables.statement(.observe, closed: 0, timeline: 0)))?.level
    }

    @Test
    func `A store that lies elsewhere takes databases once it is noted that it shares, and takes part in moves`() throws
    {
        defer { home.close() }
        try expectEqual(StorePlace.all(home), [])
        for _ in 0..<2 { try home.run(StoreTables.columnsOfPlaces) }
        try expectEqual(StorePlace.all(home), [])
        try expectEqual(home.run(StoreTables.placing(place)).count, 1)
        try expect(home.run(StoreTables.placing(place)).isEmpty)
        try expectEqual(StorePlace.all(home), [place])
        // Earlier versions refuse the level.
        try expectEqual(level(placed, home).map(StoreTables.isElsewhere), true)
        try expect(level(placed, home) ?? 0 > StoreTables.movesLevel)

        try expectNil(add("x"))
        try home.run(placed.notingThatItShares)
        try expectEqual(home.run(StoreTables.sharingCount(of: ["a", "b"])).first?.number(0), 2)
        try expectEqual(add("x"), "a")
        try expectEqual(add("y"), "b")
        // A database goes to a store that may get it, whichever has fewer.
        try expectEqual(add("z", to: ["a"]), "a")
        try expectEqual(add("u", to: ["a"]), "a")
        try expectEqual(home.run(StoreTables.moving("x", to: "b")).first?.number(0), 1)
        try expectEqual(home.run(StoreTables.moving("y", to: "a")).first?.number(0), 1)
        try expectEqual(level(StoreTables(name: "a", advertised: ""), home), StoreTables.movesLevel)
        try expectEqual(level(placed, home).map(StoreTables.isElsewhere), true)

        try home.run(StoreTables.addressing(.random(), at: "postgresql://elsewhere/db"))
        try expectEqual(StorePlace.all(home), [place])
        try home.run(StoreTables.addressing(place.database, at: "postgresql://elsewhere/db"))
        try expectEqual(StorePlace.all(home).map(\.address), ["postgresql://elsewhere/db"])
    }

    @Test
    func `The own row of a store says that it shares and moves at once, in the epoch of its leader`() throws {
        defer { home.close() }
        try home.run(placed.adoption(.random(), timeline: 1, ceiling: 0))
        try expect(home.run(placed.sharing(in: 7, level: StoreTables.movesLevel)).isEmpty)
        try expectEqual(level(placed, home), StoreTables.level)
        try expectEqual(home.run(placed.sharing(in: 1, level: StoreTables.movesLevel)).count, 1)
        try expectEqual(level(placed, home), StoreTables.movesLevel)
        // It is never taken back, so the next leader finds it.
        try expectEqual(home.run(placed.sharing(in: 7, level: StoreTables.movesLevel)).count, 1)
    }

    @Test
    func `A database knows who it is and whose stores it has, and that does not change`() throws {
        defer { home.close() }
        try expectNil(DatabaseOwner(home))
        try home.run(StoreTables.creationOfIdentity)
        try expectNil(DatabaseOwner(home))
        let first = DatabaseOwner(identity: .random(), home: .random())
        try home.run(StoreTables.entering(first))
        try home.run(StoreTables.entering(DatabaseOwner(identity: .random(), home: .random())))
        try expectEqual(DatabaseOwner(home), first)
        expect(!first.isHome)
    }

    @Test
    func `An address with a password is recognised, and no text of a failure has it`() throws {
        home.close()
        let open = [
            "postgresql://hearth@10.0.0.9/hearth", "postgres://a,b:5433/hearth?sslmode=require", "service=orders",
            "host=10.0.0.9 user=hearth dbname=hearth", "hearth",
        ]
        for address in open { expectNil(PostgreSQLConnection.problem(ofOpenAddress: address), "\(address)") }
        let secret = [
            "postgresql://hearth:geheim@10.0.0.9/hearth", "postgresql://10.0.0.9/hearth?password=geheim",
            "host=10.0.0.9 password=geheim", "host=10.0.0.9 sslpassword='geheim'",
        ]
        for address in secret {
            let problem = try #require(PostgreSQLConnection.problem(ofOpenAddress: address), "\(address)")
            expect(problem.contains("has a password") && !problem.contains("geheim"))
        }
        // Without a scheme, or with @ and / that are not escaped, a part of the password is somewhere else.
        let malformed = [
            "postgresql://hearth:geheim@[::1/hearth", "host=a geheim", "hearth:geheim@10.0.0.9/hearth",
            "http://hearth:geheim@10.0.0.9/hearth", "postgresql://hearth:x@geheim@10.0.0.9/hearth",
            "postgresql://hearth:geheim/x@10.0.0.9/hearth", "postgresql://hearth:1/geheim@10.0.0.9/hearth",
        ]
        for address in malformed + ["", "service=a\nhost=b"] {
            let problem = try #require(PostgreSQLConnection.problem(ofOpenAddress: address), "\(address)")
            expect(!problem.contains("geheim"))
        }
        for address in malformed {
            let failure = #expect(throws: SQLFailure.self) { try PostgreSQLSession(address: address) }
            expectEqual(failure?.message.contains("not one of PostgreSQL"), true, "\(address)")
            expectEqual(failure?.message.contains("geheim"), false, "\(address)")
        }
    }

    @Test
    func `What is wrong with a host is said`() throws {
        home.close()
        let failure = #expect(throws: SQLFailure.self) {
            try PostgreSQLSession(address: "postgresql://hearth@nowhere.invalid/hearth")
        }
        expectEqual(failure?.message.contains("nowhere.invalid"), true, "\(String(describing: failure))")
        expectEqual(failure?.isConnectionLost, true)
    }
}
