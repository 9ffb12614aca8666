// The home database of a cluster, for what its servers have in common beside the logs of stores.

import Basics
import PostgreSQLLog

/// A session with the home database, which is made when it is needed, and again when it was lost. Thread-safe: one
/// statement is executed at a time. Each call may block.
final class HomeDatabase: Sendable {
    private struct State {
        var session: PostgreSQLSession?
        /// How many sessions there were.
        var sessions: UInt64 = 0
        var isMade = false
    }

    private let address: String
    private let state = Monitor(State())

    private static let connectMilliseconds: UInt64 = 5_000
    private static let answerMilliseconds: UInt64 = 20_000
    private static let attemptsMax = 3
    private static let tables = [
        (exists: RulesTable.exists, creation: RulesTable.creation),
        (exists: RevocationsTable.exists, creation: RevocationsTable.creation),
        (exists: SecretsTable.exists, creation: SecretsTable.creation),
    ]

    init(address: String) { self.address = address }

    /// Executes a statement.
    /// - Throws: `UNAVAILABLE`: the database cannot be used, or the outcome is not known.
    @discardableResult
    func run(_ statement: SQLStatement) throws(RequestError) -> [SQLRow] { try run { _ in statement }.rows }

    /// Executes a statement that depends on the session.
    /// - Parameter statement: gets the number of the session. The database may have lost something, or be another one,
    ///   when the number is another one than before.
    /// - Returns: also this number.
    /// - Throws: `UNAVAILABLE`, as above.
    func run(
        _ statement: (_ session: UInt64) -> SQLStatement
    ) throws(RequestError) -> (session: UInt64, rows: [SQLRow]) {
        try state.withLock { (state) throws(RequestError) in
            do throws(SQLFailure) {
                let session = try Self.connected(&state, address)
                let rows = try session.run(
                    statement(state.sessions), withinMilliseconds: Self.answerMilliseconds)
                return (state.sessions, rows)
            } catch {
                state.session?.close()
                state.session = nil
                throw RequestError(
                    .unavailable,
                    "The home database of the cluster, which has its rules and revocations, cannot be used: \(error)")
            }
        }
    }

    private static func connected(_ state: inout State, _ address: String) throws(SQLFailure) -> PostgreSQLSession {
        if let session = state.session { return session }
        let session = try PostgreSQLSession(address: address, withinMilliseconds: connectMilliseconds)
        for attempt in 1...attemptsMax where !state.isMade {
            do throws(SQLFailure) {
                for table in tables where try session.run(table.exists).first?.number(0) != 1 {
                    try session.run(table.creation)
                }
                state.isMade = true
            } catch {
                // Another server makes it in the same moment.
                if attempt == attemptsMax { throw error }
            }
        }
        state.session = session
        state.sessions += 1
        return session
    }
}
