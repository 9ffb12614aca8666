// The users whose tokens all servers of a cluster refuse.
//
//     hearth token revoke-user at any server ──► hearth.revocations ── once a second ──► each server
//
// A revocation is in force, and in the directory, of the server that is asked before it is in the database. Each new
// session with the database compares all of both, so what a restored database lacks comes back.

import Basics
import Identity
import PostgreSQLLog

/// Thread-safe.
final class ClusterRevocations: SharedRevocations {
    /// What was read.
    private struct Seen {
        var session: UInt64 = 0
        var number: UInt64 = 0
    }

    private let home: HomeDatabase
    private let seen = Monitor(Seen())

    init(_ home: HomeDatabase) { self.home = home }

    func news() throws(RequestError) -> RevocationNews {
        try seen.withLock { (seen) throws(RequestError) in
            let before = seen
            let (session, rows) = try home.run { session in
                RevocationsTable.added(after: session == before.session ? before.number : 0)
            }
            let isWhole = session != before.session
            let last = rows.map { $0.number(0) ?? 0 }.max() ?? 0
            seen = Seen(session: session, number: max(last, isWhole ? 0 : before.number))
            return RevocationNews(Self.moments(of: rows), isWhole: isWhole)
        }
    }

    /// What the rows of ``RevocationsTable/added(after:)`` say.
    static func moments(of rows: [SQLRow]) -> Revocations.Moments {
        Dictionary(
            rows.map { ($0.bytes(1), Int64(bitPattern: $0.number(2) ?? 0)) }, uniquingKeysWith: max)
    }

    func add(_ moments: Revocations.Moments) throws(RequestError) {
        var left = moments.map { (uid: $0.key, moment: $0.value) }[...]
        while !left.isEmpty {
            let batch = Array(left.prefix(RevocationsTable.batchMax))
            guard try home.run(RevocationsTable.adding(batch)).first?.number(0) == 1 else {
                throw RequestError(
                    .resourceExhausted,
                    "The cluster keeps the revoked tokens of at most \(RevocationsTable.usersMax) users.")
            }
            left = left.dropFirst(batch.count)
        }
    }
}
