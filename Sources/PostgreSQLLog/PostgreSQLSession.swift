// A connection for commands and for work beside the log: each call waits.

internal import Basics
internal import Glibc

/// A connection whose calls wait. Belongs to one thread.
package final class PostgreSQLSession {
    private let connection: PostgreSQLConnection
    /// The longest wait for a statement that does not name one.
    package var waitsMilliseconds: UInt64 = 60_000

    /// What the sessions of a store have in common: an append is acknowledged when it is on the disk, and on that of
    /// a synchronous standby, if there is one.
    static let settings = """
        SET synchronous_commit = on; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; \
        SET default_transaction_isolation = 'read committed'; SET client_min_messages = warning
        """

    /// Connects.
    /// - Parameter milliseconds: the longest wait for a host.
    /// - Throws: `SQLFailure` without a state if there is no connection.
    package init(address: String, withinMilliseconds milliseconds: UInt64 = 10_000) throws(SQLFailure) {
        if let problem = PostgreSQLConnection.libraryProblem { throw SQLFailure(state: "", message: problem) }
        connection = PostgreSQLConnection(address: address, settings: Self.settings)
        for attempt in 1... {
            if let problem = connection.open() { throw SQLFailure(state: "", message: problem) }
            switch try next(withinMilliseconds: milliseconds) {
            case .opened?: return
            case nil where attempt < DatabaseHosts[address]?.count ?? 1: continue
            case nil: throw Self.silence
            default: throw SQLFailure(state: "", message: "the database sends a result unasked")
            }
        }
    }

    private static let silence = SQLFailure(state: "", message: "the database does not answer in time")

    /// Executes a statement and returns its rows.
    /// - Parameter milliseconds: the longest wait; nil: ``waitsMilliseconds``.
    /// - Throws: what the database answers; without a state if the connection has ended, and then the outcome is
    ///   unknown.
    @discardableResult
    package func run(
        _ statement: SQLStatement, withinMilliseconds milliseconds: UInt64? = nil
    ) throws(SQLFailure) -> [SQLRow] {
        guard connection.isIdle else { throw SQLFailure(state: "", message: "the connection has ended") }
        var event = connection.send(statement)
        if event == nil {
            event = try next(withinMilliseconds: milliseconds ?? waitsMilliseconds)
            if event == nil { throw Self.silence }
        }
        switch event {
        case .finished(.rows(let rows, let hasWarning))?:
            guard hasWarning, !statement.isRead else { return rows }
            throw SQLFailure(state: "", message: "the database has not waited for its standby, and has warned")
        case .finished(.failed(let failure))?: throw failure
        case .ended(let reason)?: throw SQLFailure(state: "", message: reason)
        case .opened?, nil: throw SQLFailure(state: "", message: "the connection has ended")
        }
    }

    package func close() { connection.close() }

    /// - Returns: nil if nothing has come; the connection is closed.
    private func next(withinMilliseconds milliseconds: UInt64) throws(SQLFailure) -> PostgreSQLConnection.Event? {
        let deadline = SystemClock.monotonicMilliseconds() + milliseconds
        while let interest = connection.interest {
            let now = SystemClock.monotonicMilliseconds()
            guard now < deadline else {
                connection.abandon()
                return nil
            }
            var waiting = pollfd(fd: interest.descriptor, events: interest.events, revents: 0)
            _ = unsafe poll(&waiting, 1, Int32(clamping: min(deadline - now, 1_000)))
            guard waiting.revents != 0, let event = connection.advance() else { continue }
            if case .ended(let reason) = event { throw SQLFailure(state: "", message: reason) }
            return event
        }
        throw SQLFailure(state: "", message: "the connection has ended")
    }
}
