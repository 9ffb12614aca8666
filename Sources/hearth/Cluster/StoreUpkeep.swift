// What a server does beside the log for all stores whose logs lie in one PostgreSQL database: one thread with one
// connection, however many stores there are.
//
//     every two seconds ──► one statement announces this server for all stores
//                      └──► each store: tasks of the table of databases, is a base due?, is its directory there?
//
// Nothing of one store holds up another one: a base is made by threads of its store, a directory is looked at by
// another thread, and a statement that waits for a lock is given up.

import Basics
import PostgreSQLLog

/// Thread-safe.
final class StoreUpkeep: Sendable {
    private struct State {
        var makers: [BaseMaker] = []
        var mustLook = false
    }

    private let database: String
    private let thread = WorkThread(name: "upkeep", State())

    private static let intervalMilliseconds: UInt64 = 2_000
    private static let statementMilliseconds: UInt64 = 10_000
    /// A lock that something else holds must not hold up the other stores.
    private static let settings = "SET lock_timeout = 2000"

    /// - Parameter database: the address of the database.
    init(database: String) { self.database = database }

    /// Looks after a store from now on.
    func add(_ maker: BaseMaker) throws {
        try thread.add(run: { [self] in run() }) { $0.makers.append(maker) }
    }

    /// Leaves a store alone from now on. Does not wait: what is under way for it begins no base any more.
    func remove(_ maker: BaseMaker) {
        thread.update { $0.makers.removeAll { $0 === maker } }
        maker.stop()
    }

    /// Looks at once.
    func look() { thread.update { $0.mustLook = true } }

    // MARK: The thread

    private func run() {
        let session = KeptSession(address: database, answerMilliseconds: Self.statementMilliseconds) { session in
            try session.run(SQLStatement(script: Self.settings))
        }
        defer { session.close() }
        var looks: [ObjectIdentifier: BaseMaker.Looks] = [:]
        while let makers = pause() {
            let current = Set(makers.map { ObjectIdentifier($0) })
            looks = looks.filter { current.contains($0.key) }
            do {
                try session.use { try round(makers, $0, &looks) }
            } catch {
                for maker in makers { maker.report(error, &looks[ObjectIdentifier(maker), default: .init()].report) }
            }
        }
    }

    /// Waits until it is time to look.
    /// - Returns: the stores to look after; nil if there are none, and the thread ends.
    private func pause() -> [BaseMaker]? {
        let deadline = SystemClock.monotonicNanoseconds() + Self.intervalMilliseconds * 1_000_000
        thread.pause(untilNanoseconds: deadline) { $0.mustLook || $0.makers.isEmpty }
        return thread.take { state in
            state.mustLook = false
            return state.makers.isEmpty ? nil : state.makers
        }
    }

    private func round(
        _ makers: [BaseMaker], _ session: PostgreSQLSession, _ looks: inout [ObjectIdentifier: BaseMaker.Looks]
    ) throws {
        do throws(SQLFailure) {
            let figures = makers.map { (name: $0.tables.name, figures: $0.announced) }
            try session.run(makers[0].tables.announcement(of: figures, version: CommandRouter.version))
        } catch {
            if error.isConnectionLost { throw error }
            // The rows are for people, and for servers that hand stores over.
            for maker in makers {
                maker.report(error, &looks[ObjectIdentifier(maker), default: .init()].announcement)
            }
        }
        let asking = makers.filter(\.needsServers)
        if !asking.isEmpty {
            let rows = try session.run(StoreTables.servers(ofEach: asking.map(\.tables.name)))
            let servers = Dictionary(grouping: rows) { $0.text(0) }
            for maker in asking { maker.note(servers: Set(servers[maker.tables.name, default: []].map { $0.text(1) })) }
        }
        for maker in makers { try maker.look(session, &looks[ObjectIdentifier(maker), default: .init()]) }
    }
}
