// The security rules of a cluster, which all of its servers have in common.
//
//     hearth rules apply at any server ──► hearth.rules ── once a second ──► the directory of each server, in force
//
// Rules name databases in their paths, and every server serves all databases of all stores. So they belong to the
// cluster and not to a store: a database that moves is judged by the same rules before, during and after.

import Authorization
import Basics
import FirestoreService
import PostgreSQLLog

/// Thread-safe.
final class ClusterRules: SharedRules {
    private struct State {
        var session: PostgreSQLSession?
        var isMade = false
    }

    private let address: String
    /// Whether the database could not be reached when the server began.
    private let isAway: Bool
    private let log: Log
    /// Held while the database is asked. The session is used by one thread at a time.
    private let state = Monitor(State())
    private let isStopping = Monitor(false)
    private let thread = Monitor<SystemThread?>(nil)

    private static let intervalMilliseconds: UInt64 = 1_000
    private static let connectMilliseconds: UInt64 = 5_000
    private static let attemptsMax = 3

    /// - Parameters:
    ///   - address: of the home database.
    ///   - isAway: whether it cannot be reached, and this server had its rules before.
    init(address: String, isAway: Bool = false, log: Log) {
        self.address = address
        self.isAway = isAway
        self.log = log
    }

    // MARK: The table

    func texts(after number: Int) throws(RequestError) -> [(number: Int, text: String)] {
        try run(RulesTable.texts(after: UInt64(clamping: number))).map { row in
            (Int(clamping: row.number(0) ?? 0), row.text(1))
        }
    }

    func add(_ text: String, as number: Int, after last: Int) throws(RequestError) -> Bool {
        let (number, last) = (UInt64(clamping: number), UInt64(clamping: last))
        guard try !run(RulesTable.adding(text, as: number, after: last)).isEmpty else { return false }
        // What stays is removed with the next text.
        _ = try? run(RulesTable.trimming)
        return true
    }

    private func run(_ statement: SQLStatement) throws(RequestError) -> [SQLRow] {
        try state.withLock { (state) throws(RequestError) in
            do throws(SQLFailure) {
                return try Self.connected(&state, address).run(statement)
            } catch {
                state.session?.close()
                state.session = nil
                throw RequestError(
                    .unavailable, "The database of the cluster, which has its rules, cannot be used: \(error)")
            }
        }
    }

    private static func connected(_ state: inout State, _ address: String) throws(SQLFailure) -> PostgreSQLSession {
        if let session = state.session { return session }
        let session = try PostgreSQLSession(address: address, withinMilliseconds: connectMilliseconds)
        for attempt in 1...attemptsMax where !state.isMade {
            do throws(SQLFailure) {
                if try session.run(RulesTable.exists).first?.number(0) != 1 { try session.run(RulesTable.creation) }
                state.isMade = true
            } catch {
                // Another server makes it in the same moment.
                if attempt == attemptsMax { throw error }
            }
        }
        state.session = session
        return session
    }

    // MARK: Taking over

    /// Takes over the rules of the cluster before this server decides anything by rules. Those of its directory become
    /// those of a cluster that has none. Those that the directory had before stay in force while the database is away.
    ///
    /// - Throws: a `CommandFailure` if the database cannot be reached, or the rules have an error.
    func join(_ history: RulesHistory) throws {
        if isAway {
            let message = "the home database cannot be reached: the rules of before are in force"
            return log(.error, "rules_not_taken", ["message": message])
        }
        do throws(RequestError) {
            try RulesKeeper(history, shared: self).joinShared()
        } catch {
            throw CommandFailure("the rules of the cluster cannot be taken over: \(error.message)")
        }
    }

    /// Takes over from now on what other servers apply.
    func start(_ keeper: RulesKeeper) throws {
        let started = try SystemThread(name: "rules") { [self] in
            var lastFailure = ""
            while pause() { take(keeper, &lastFailure) }
        }
        thread.update { $0 = started }
    }

    private func take(_ keeper: RulesKeeper, _ lastFailure: inout String) {
        do throws(RequestError) {
            if let number = try keeper.takeShared() { log(.info, "rules_taken", ["number": String(number)]) }
            lastFailure = ""
        } catch {
            if error.message != lastFailure { log(.warning, "rules_not_taken", ["message": error.message]) }
            lastFailure = error.message
        }
    }

    private func pause() -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + Self.intervalMilliseconds * 1_000_000
        return isStopping.wait(untilNanoseconds: deadline) { $0 ? false : nil } ?? true
    }

    /// Ends the thread.
    func stop() {
        isStopping.update { $0 = true }
        thread.withLock { $0.take() }?.join()
    }
}
