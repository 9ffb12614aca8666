// The home database of a cluster, for what its servers have in common beside the logs of stores.

import Basics
import PostgreSQLLog
import Synchronization

/// Thread-safe: one statement is executed at a time. Each call may block.
final class HomeDatabase: Sendable {
    private let session: Monitor<KeptSession>
    private let lost = Atomic<Bool>(false)

    private static let answerMilliseconds: UInt64 = 20_000
    private static let attemptsMax = 3
    private static let tables = [
        (exists: RulesTable.exists, creation: RulesTable.creation),
        (exists: RevocationsTable.exists, creation: RevocationsTable.creation),
        (exists: SecretsTable.exists, creation: SecretsTable.creation),
    ]

    init(address: String) {
        session = Monitor(
            KeptSession(address: address, answerMilliseconds: Self.answerMilliseconds, prepare: Self.makeTables))
    }

    /// Whether the last statement has failed since there was no connection: the database may be starting again.
    var isConnectionLost: Bool { lost.load(ordering: .acquiring) }

    /// Executes a statement.
    /// - Throws: `UNAVAILABLE`: the database cannot be used, or the outcome is not known.
    @discardableResult
    func run(_ statement: SQLStatement) throws(RequestError) -> [SQLRow] { try run { _ in statement }.rows }

    /// Executes a statement that depends on the session.
    /// - Parameter statement: gets ``KeptSession/number``.
    /// - Returns: also this number.
    /// - Throws: `UNAVAILABLE`, as above.
    func run(
        _ statement: (_ session: UInt64) -> SQLStatement
    ) throws(RequestError) -> (session: UInt64, rows: [SQLRow]) {
        try session.withLock { (kept) throws(RequestError) in
            do {
                let answer = try kept.use { (kept.number, try $0.run(statement(kept.number))) }
                lost.store(false, ordering: .releasing)
                return answer
            } catch {
                lost.store((error as? SQLFailure)?.isConnectionLost == true, ordering: .releasing)
                throw RequestError(
                    .unavailable,
                    "The home database of the cluster, which has its rules and revocations, cannot be used: \(error)")
            }
        }
    }

    /// A database that was restored may lack tables. One without a table of stores is not this one, or was restored to
    /// a time before it: nothing is made there.
    private static func makeTables(_ session: PostgreSQLSession) throws {
        guard try session.run(StoreTables.exists).first?.number(0) == 1 else { throw NoStores() }
        for attempt in 1...attemptsMax {
            do {
                for table in tables where try session.run(table.exists).first?.number(0) != 1 {
                    try session.run(table.creation)
                }
                return
            } catch {
                // Another server makes it in the same moment.
                if attempt == attemptsMax { throw error }
            }
        }
    }
}

/// A database that lacks the tables of a cluster.
struct NoStores: Error, CustomStringConvertible {
    var description: String {
        "it has no stores of a cluster: it was restored to a time before them, or the address leads to another database"
    }
}
