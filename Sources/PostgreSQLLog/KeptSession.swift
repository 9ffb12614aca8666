// A session that is kept from one use to the next, and made again when it was lost.

/// Belongs to one thread at a time. Each use may block.
///
/// After a failure of the database the session is closed, and the next use makes another one. So nothing is left of the
/// failed statement, neither a lock nor an open transaction.
///
/// **Nothing is executed again here.** When a session is lost the outcome of its statement is unknown: it may have been
/// executed, and it may be executed yet. Its caller gets the failure. What callers execute again may be executed twice,
/// and late: it changes rows by their epoch, generation or number, or enters what may be there already.
package final class KeptSession {
    private let address: String
    private let answerMilliseconds: UInt64
    private let prepare: (PostgreSQLSession) throws -> Void
    private var session: PostgreSQLSession?
    /// How many sessions there were. The database may have lost something, or be another one, when there is a new one.
    package private(set) var number: UInt64 = 0

    private static let connectMilliseconds: UInt64 = 5_000

    /// - Parameters:
    ///   - milliseconds: the longest wait for a statement that does not name one.
    ///   - prepare: called with each new session; one for which this throws is not used.
    package init(
        address: String, answerMilliseconds milliseconds: UInt64 = 60_000,
        prepare: @escaping (PostgreSQLSession) throws -> Void = { _ in }
    ) {
        self.address = address
        answerMilliseconds = milliseconds
        self.prepare = prepare
    }

    /// Whether there is a session, which may have been lost without notice.
    package var isOpen: Bool { session != nil }

    /// Executes statements.
    /// - Throws: `SQLFailure`, without a state if there is no connection; and what `prepare` and `body` throw.
    package func use<Output>(_ body: (PostgreSQLSession) throws -> Output) throws -> Output {
        let session = try connected()
        do {
            return try body(session)
        } catch let error as SQLFailure {
            close()
            throw error
        }
    }

    /// Executes one statement.
    /// - Throws: as ``use(_:)``.
    @discardableResult
    package func run(_ statement: SQLStatement) throws -> [SQLRow] { try use { try $0.run(statement) } }

    /// Ends the session; the next use makes another one.
    package func close() {
        session?.close()
        session = nil
    }

    private func connected() throws -> PostgreSQLSession {
        if let session { return session }
        let session = try PostgreSQLSession(address: address, withinMilliseconds: Self.connectMilliseconds)
        session.waitsMilliseconds = answerMilliseconds
        do {
            try prepare(session)
        } catch {
            session.close()
            throw error
        }
        self.session = session
        number += 1
        return session
    }
}
