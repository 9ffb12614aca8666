// Makes bases of a store while it is served, and trims the log that they cover.

import Basics
import DocumentStore
import FirestoreService
import PostgreSQLLog
import Replication
import Storage

/// Looks from time to time, on a thread, whether a base is due at the server that leads. Thread-safe.
final class BaseMaker: Sendable {
    private let database: String
    private let tables: StoreTables
    private let bytesMin: Int
    private let errands: StoreErrands?
    private let log: Log
    private let state = Monitor(State())
    private let thread = Monitor<SystemThread?>(nil)

    private struct State {
        var mustLook = false
        var isStopping = false
    }

    private static let intervalMilliseconds: UInt64 = 2_000

    /// - Parameter errands: done with each look; nil if there are none.
    init(database: String, tables: StoreTables, bytesMin: Int, _ errands: StoreErrands?, log: Log) {
        self.database = database
        self.tables = tables
        self.bytesMin = bytesMin
        self.errands = errands
        self.log = log
    }

    func start(_ store: DocumentStore, _ driver: MemberDriver) throws {
        let started = try SystemThread(name: "bases") { [self] in
            while pause() { look(store, driver) }
        }
        thread.update { $0 = started }
    }

    /// Ends the thread, and with it a base that is being made.
    func stop() {
        state.update { $0.isStopping = true }
        let running = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        running?.join()
    }

    /// Looks at once.
    func look() { state.update { $0.mustLook = true } }

    private func pause() -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + Self.intervalMilliseconds * 1_000_000
        return state.wait(untilNanoseconds: deadline) { state -> Bool? in
            defer { state.mustLook = false }
            return state.isStopping ? false : state.mustLook ? true : nil
        } ?? true
    }

    private func look(_ store: DocumentStore, _ driver: MemberDriver) {
        do {
            let session = try PostgreSQLSession(address: database)
            defer { session.close() }
            try session.run(tables.announcement(driver.state.figures, version: CommandRouter.version))
            if let server = try errands?.run(session, tables) {
                log(.info, "cluster_store_handed_over", ["store": tables.name, "server": server])
            }
            guard driver.state.holdsLease else { return }
            let last = BaseRow(try session.run(tables.lastBase))
            let logBytes = try session.run(tables.logBytes(after: last?.place.sequence ?? 0)).first?.number(0) ?? 0
            guard logBytes > max(UInt64(bytesMin), last?.byteCount ?? 0) else { return }
            try make(store, driver, session)
        } catch {
            log(.warning, "base_failed", ["message": ErrorText.describe(error)])
        }
    }

    /// The last group before which the log is not needed any more: that of a base, or an earlier one that the archive
    /// has, unless the log after it is larger than what may be kept for the archive.
    ///
    /// - Parameters:
    ///   - base: the last group that the base has.
    ///   - hold: what the archive has, and the bytes that may be kept for it; nil without an archive.
    static func lastSuperfluous(
        base: UInt64, hold: (version: CommitVersion, bytesMax: Int)?, _ tables: StoreTables,
        _ session: PostgreSQLSession
    ) throws -> UInt64 {
        guard let hold else { return base }
        var archived: UInt64 = 0
        do {
            archived = try LogLookup.place(before: hold.version.microseconds, tables, session).sequence
        } catch let error as StorageError where error.code == .versionTooOld {
            // It lacks everything that there is.
        }
        let bytes = try session.run(tables.logBytes(after: archived)).first?.number(0) ?? 0
        return bytes > UInt64(hold.bytesMax) ? base : min(base, archived)
    }

    private func make(_ store: DocumentStore, _ driver: MemberDriver, _ session: PostgreSQLSession) throws {
        let base = try StoreBase(of: store)
        guard let place = driver.places.place(ofCheckpoint: base.version) else { return }
        log(.info, "base_making", ["bytes": String(base.byteCount), "sequence": String(place.sequence)])
        let isMade = try BaseTransfer.make(of: base, at: place, tables, session) {
            driver.state.holdsLease && !state.withLock { $0.isStopping }
        }
        guard isMade else { return }
        log(.info, "base_made", ["bytes": String(base.byteCount), "sequence": String(place.sequence)])
        let last = try Self.lastSuperfluous(base: place.sequence, hold: store.archiveHold, tables, session)
        for table in try session.run(tables.superfluousTables(for: last)) {
            try session.run(StoreTables.dropping("hearth." + table.text(0)))
            log(.info, "log_trimmed", ["table": table.text(0)])
        }
    }
}
