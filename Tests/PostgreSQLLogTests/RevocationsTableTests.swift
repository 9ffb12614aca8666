// The table of revoked users in a real PostgreSQL.

import Basics
import PostgreSQLLog
import Synchronization
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct RevocationsTableTests {
    private let database: PostgreSQLServer
    private let session: PostgreSQLSession

    init() throws {
        database = try PostgreSQLServer()
        session = try PostgreSQLSession(address: database.address)
        for _ in 0..<2 { try session.run(RevocationsTable.creation) }
    }

    private func add(_ users: [(String, Int64)]) throws -> Bool {
        let rows = try session.run(RevocationsTable.adding(users.map { (Array($0.0.utf8), $0.1) }))
        return rows.first?.number(0) == 1
    }

    /// Identifier and moment of what was added after a number, and the last number.
    private func added(after number: UInt64 = 0) throws -> (moments: [String: Int64], last: UInt64) {
        let rows = try session.run(RevocationsTable.added(after: number))
        let moments = rows.map { (String(decoding: $0.bytes(1), as: UTF8.self), Int64(bitPattern: $0.number(2) ?? 0)) }
        return (Dictionary(uniqueKeysWithValues: moments), rows.map { $0.number(0) ?? 0 }.max() ?? number)
    }

    @Test
    func `Users are added in batches, the later moment counts, and what is new has a higher number`() throws {
        #expect(throws: SQLFailure.self) { try add([("u1", 3), (String(repeating: "x", count: 513), 1)]) }
        try expectEqual(session.run(RevocationsTable.exists).first?.number(0), 1)
        try expect(add([("ada", 100), ("e,v'e\\", 100), ("é", -1)]))
        let first = try added()
        expectEqual(first.moments, ["ada": 100, "e,v'e\\": 100, "é": -1])
        try expect(add([("ada", 99), ("eve", 100)]))
        let second = try added(after: first.last)
        expect(second.moments == ["eve": 100] && second.last > first.last)
        try expect(add([("ada", 101)]))
        try expectEqual(added(after: second.last).moments, ["ada": 101])
        try expectEqual(added().moments.count, 4)
    }

    @Test
    func `Further users are refused beyond a number of them, and of bytes, and known ones are not`() throws {
        try session.run(
            SQLStatement(
                """
                INSERT INTO hearth.revocations
                SELECT convert_to('u' || i, 'UTF8'), 1, 0 FROM generate_series(1, \(RevocationsTable.usersMax)) AS i
                """))
        try expect(!add([("one more", 1)]))
        try expect(!add([("u1", 2), ("one more", 1)]))
        try expect(add([("u1", 2), ("u2", 2)]))
        try expectEqual(added(after: 0).moments, ["u1": 2, "u2": 2])
        try session.run(SQLStatement("DELETE FROM hearth.revocations"))
        try session.run(
            SQLStatement(
                """
                INSERT INTO hearth.revocations
                SELECT convert_to(lpad(i::text, 512, 'x'), 'UTF8'), 1, 0 FROM generate_series(1, 10240) AS i
                """))
        try expect(!add([("x", 1)]))
    }

    @Test
    func `Who reads what is new while several sessions add misses nothing`() throws {
        let (writers, each) = (3, 60)
        let address = database.address
        let failures = Mutex<[String]>([])
        let threads = try (0..<writers).map { writer in
            try SystemThread(name: "writer") {
                do {
                    let own = try PostgreSQLSession(address: address)
                    for number in 0..<each {
                        let users = (0...number % 3).map { (Array("\(writer)-\(number)-\($0)".utf8), Int64(1)) }
                        try own.run(RevocationsTable.adding(users.map { (uid: $0.0, moment: $0.1) }))
                    }
                    own.close()
                } catch {
                    failures.withLock { $0.append("\(error)") }
                }
            }
        }
        let wanted = writers * (0..<each).reduce(0) { $0 + 1 + $1 % 3 }
        var (seen, last): (Set<String>, UInt64) = ([], 0)
        try waitUntil("all are seen: \(failures.withLock { $0 })") {
            let news = try added(after: last)
            seen.formUnion(news.moments.keys)
            last = news.last
            return seen.count == wanted || !failures.withLock { $0.isEmpty }
        }
        for thread in threads { thread.join() }
        expect(failures.withLock { $0 } == [] && seen.count == wanted)
    }
}
