// Makes bases of a store while it is served, and trims the log that they cover.
//
//     StoreUpkeep      due? ──┐
//     thread "bases"          └──► fork ─────────────────► entered ──► log trimmed, old bases dropped
//     thread "base"                 └──► written, read back ─┘              └──► old folders removed
//
// StoreUpkeep looks after all stores of a PostgreSQL database, and waits for none of them. The thread "bases" exists
// while a base is made. The thread "base" has the fork and the place of the bases, and nothing of the store. So a disk
// that hangs holds up neither commits nor the closing of the store: the owner does not wait for it, and what it writes
// is not entered.

import Archive
import Basics
import DocumentStore
import FirestoreService
import PostgreSQLLog
import Replication
import Storage

/// What a server does about bases.
struct BaseSettings: Sendable {
    /// A base is made when the log is larger than this, and than the last base.
    var bytesMin: Int
    /// The directory for bases of all stores; nil: they lie in tables.
    var directory: String?
    /// How long a base is kept after a newer one has replaced it.
    var keptMilliseconds: UInt64
}

/// What a server has done about the bases of a store since it started. Thread-safe.
final class BaseFigures: Sendable {
    private let figures = Monitor(ClusterFigures.Bases())

    var current: ClusterFigures.Bases { figures.withLock { $0 } }

    func change(_ body: (inout ClusterFigures.Bases) -> Void) { figures.withLock { body(&$0) } }
}

/// Has a base made when one is due at the server that leads. Thread-safe.
final class BaseMaker: Sendable {
    /// What is known from one look to the next. For the thread that looks.
    struct Looks {
        /// The directory is looked at again.
        fileprivate var nextVisit: UInt64 = 0
        fileprivate var visit: DetachedWork<Void>?
        /// Why the store cannot be looked after.
        var report = RepeatedReport()
        /// Why this server cannot be announced.
        var announcement = RepeatedReport()
    }

    private let database: String
    private let bases: StoreBases
    private let timeline: UInt64
    private let settings: BaseSettings
    private let figures: BaseFigures
    private let tasks: StoreTasks?
    private let log: Log
    private let store: DocumentStore
    private let driver: MemberDriver
    private let state = Monitor(State())

    private struct State {
        var isStopping = false
        /// Makes a base.
        var thread: SystemThread?
        var isMaking = false
        var failures: UInt64 = 0
        /// No base is begun before.
        var nextMaking: UInt64 = 0
        /// When what the last base covers is dropped; nil if nothing is left of it. A server that begins to lead does
        /// not know what the one before has dropped.
        var nextTrim: UInt64? = 0
    }

    /// After failures the next attempt waits, at most this long.
    private static let pauseMilliseconds: UInt64 = 2_000
    private static let pauseMillisecondsMax: UInt64 = 300_000
    /// Time between two attempts to drop what a base covers.
    private static let trimMilliseconds: UInt64 = 60_000
    /// How long one waits for a table that something else reads, such as a dump. Servers that read it would wait too.
    private static let trimSettings = SQLStatement(script: "SET lock_timeout = 2000")
    /// How often a server looks whether it has the directory.
    private static let visitMilliseconds: UInt64 = 30_000
    /// When a disk that does nothing is reported, and when nobody waits for it any more.
    private static let silenceMilliseconds: UInt64 = 30_000
    private static let silenceMillisecondsMax: UInt64 = 600_000
    /// How long the end of a server waits for a piece that is being written.
    private static let patienceMilliseconds: UInt64 = 3_000

    /// - Parameters:
    ///   - timeline: where the history of the store begins.
    ///   - tasks: done with each look; nil if there are none.
    init(
        _ store: DocumentStore, _ driver: MemberDriver, database: String, bases: StoreBases, timeline: UInt64,
        settings: BaseSettings, figures: BaseFigures, _ tasks: StoreTasks?, log: Log
    ) {
        self.store = store
        self.driver = driver
        self.database = database
        self.bases = bases
        self.timeline = timeline
        self.settings = settings
        self.figures = figures
        self.tasks = tasks
        self.log = log
    }

    var tables: StoreTables { bases.tables }

    /// What this server says of the store.
    var announced: MemberState.Figures { driver.state.figures }

    /// Gives up a base that is being made, and begins no other one. Waits for the thread that makes it.
    func stop() {
        let thread = state.update { state in
            state.isStopping = true
            return state.thread.take()
        }
        thread?.join()
    }

    private var isStopping: Bool { state.withLock { $0.isStopping } }

    /// Whether the servers of the store must be known.
    var needsServers: Bool { tasks != nil }

    /// The servers of the store were read.
    func note(servers: Set<String>) { tasks?.note(servers) }

    /// Does what is to be done in the database, and has a base made if one is due. Waits for the database alone.
    /// - Throws: `SQLFailure` if the session is lost.
    func look(_ session: PostgreSQLSession, _ looks: inout Looks) throws {
        do {
            if let server = try tasks?.run(session, tables) {
                log(.info, "cluster_store_handed_over", ["store": tables.name, "server": server])
            }
            try visit(&looks, session)
            if driver.state.holdsLease, mayBegin {
                if try Self.isDue(bases, bytesMin: settings.bytesMin, session) {
                    try begin { self.makeOrWait() }
                } else if isTrimDue {
                    try begin { self.trimOrWait() }
                }
            }
        } catch {
            report(error, &looks.report)
            if let error = error as? SQLFailure, error.isConnectionLost { throw error }
        }
    }

    /// The store could not be looked after. The same is reported once a minute.
    func report(_ error: any Error, _ report: inout RepeatedReport) {
        let problem = ErrorText.describe(error)
        guard report.isDue(problem, at: SystemClock.monotonicMilliseconds()) else { return }
        log(.warning, "base_failed", ["message": problem])
    }

    private var mayBegin: Bool {
        state.withLock { state in
            !state.isStopping && !state.isMaking && SystemClock.monotonicMilliseconds() >= state.nextMaking
        }
    }

    private var isTrimDue: Bool {
        // A server that has not opened the archive yet does not know what it lacks.
        if store.archiveHold?.version == .zero { return false }
        return state.withLock { $0.nextTrim.map { SystemClock.monotonicMilliseconds() >= $0 } ?? false }
    }

    /// Starts the thread that makes a base, or drops what the last one covers.
    private func begin(_ work: @escaping @Sendable () -> Void) throws {
        let last = try state.update { state throws -> SystemThread? in
            if state.isStopping { return nil }
            let last = state.thread
            state.thread = try SystemThread(name: "bases") { [self] in
                work()
                self.state.update { $0.isMaking = false }
            }
            state.isMaking = true
            return last
        }
        // It has ended.
        last?.join()
    }

    /// A base may take hours, and a session that is idle as long may end.
    private func connected<Output>(_ body: (PostgreSQLSession) throws -> Output) throws -> Output {
        let session = try PostgreSQLSession(address: database)
        defer { session.close() }
        return try body(session)
    }

    /// Makes a base. After a failure the next attempt waits, since it writes as much again.
    private func makeOrWait() {
        do {
            if try make() { state.update { $0.failures = 0 } }
        } catch {
            if isStopping { return }
            log(.warning, "base_failed", ["message": ErrorText.describe(error)])
            figures.change { $0.failed += 1 }
            state.update { state in
                let pause = Self.pauseMilliseconds << min(state.failures, 10)
                state.failures += 1
                state.nextMaking = SystemClock.monotonicMilliseconds() + min(pause, Self.pauseMillisecondsMax)
            }
        }
    }

    /// Whether a base is to be made: the tables of the log that the last one does not replace are larger than it and
    /// than a number of bytes, a quarter of which came after it; or a server without a state could not start.
    static func isDue(_ bases: StoreBases, bytesMin: Int, _ session: PostgreSQLSession) throws -> Bool {
        let tables = bases.tables
        let last = BaseRow(try session.run(tables.lastBase))
        // The log that continues the last one may have gone for a later one, which was found damaged since.
        let isContinued = try last.map { try LogPresence.continues(after: $0.place, tables, session) } ?? false
        if !isContinued, try !bases.logHasEverything(session) { return true }
        func bytes(_ statement: SQLStatement) throws -> UInt64 { try session.run(statement).first?.number(0) ?? 0 }
        let bytesMax = max(UInt64(bytesMin), last?.byteCount ?? 0)
        guard try bytes(tables.logBytes(after: last?.place.sequence ?? 0)) > bytesMax else { return false }
        guard let last else { return true }
        // Of the first of these tables the base has a part, perhaps all: the next one would be the same.
        let firstOfNextTable = (StoreTables.tableNumber(of: last.place.sequence) + 1) * StoreTables.groupsPerTable + 1
        var bytesAfter = try bytes(tables.logBytes(after: firstOfNextTable))
        do {
            bytesAfter += try bytes(tables.logBytesInTable(after: last.place.sequence))
        } catch let error as SQLFailure where error.isMissingTable {
            // Nothing of it is left.
        }
        return bytesAfter > bytesMax / 4
    }

    /// The last group before which the log is not needed any more: that of a base, or an earlier one that the archive
    /// and the servers have, unless the log after it is larger than what may be kept for them.
    ///
    /// - Parameters:
    ///   - base: the last group that the base has.
    ///   - hold: what the archive has, and the bytes that may be kept for it; nil without an archive.
    ///   - readersBytesMax: what may be kept for servers that read it, in bytes.
    static func lastSuperfluous(
        base: UInt64, hold: (version: CommitVersion, bytesMax: Int)?, readersBytesMax: UInt64, _ tables: StoreTables,
        _ session: PostgreSQLSession
    ) throws -> UInt64 {
        func bytes(after sequence: UInt64) throws -> UInt64 {
            try session.run(tables.logBytes(after: sequence)).first?.number(0) ?? 0
        }
        var base = base
        if let read = try session.run(tables.groupOfReaders).first?.number(0), read < base,
            try bytes(after: read) <= readersBytesMax
        {
            base = read
        }
        guard let hold else { return base }
        var archived: UInt64 = 0
        do {
            archived = try LogLookup.place(before: hold.version.microseconds, tables, session).sequence
        } catch let error as StorageError where error.code == .versionTooOld {
            // It lacks everything that there is.
        }
        return try bytes(after: archived) > UInt64(hold.bytesMax) ? base : min(base, archived)
    }

    // MARK: Making a base

    /// - Returns: whether there is a new base.
    private func make() throws -> Bool {
        let started = SystemClock.monotonicMilliseconds()
        let base = try StoreBase(of: store)
        let bytes = base.byteCount
        guard let place = driver.places.place(ofCheckpoint: base.version) else { return false }
        let order = try connected { session in
            StoreBases.Order(
                number: (try session.run(tables.baseCount).first?.number(0) ?? 0) + 1, place: place,
                epoch: driver.state.figures.epoch, timeline: timeline,
                kept: try bases.keptFolders(forMilliseconds: settings.keptMilliseconds, damaged: true, session))
        }
        log(.info, "base_making", ["bytes": String(bytes), "sequence": String(place.sequence)])
        guard let row = try written(HandedOver(base), order) else { return false }
        // The base may be entered whatever the answer is.
        state.update { $0.nextTrim = 0 }
        guard try enter(row) else { return false }
        let milliseconds = SystemClock.monotonicMilliseconds() - started
        log(
            .info, "base_made",
            [
                "bytes": String(row.byteCount), "sequence": String(place.sequence),
                "milliseconds": String(milliseconds), "place": row.location.text,
            ])
        figures.change { figures in
            figures.made += 1
            figures.lastBytes = row.byteCount
            figures.lastMilliseconds = milliseconds
        }
        trimOrWait()
        return true
    }

    /// Has the base written by another thread.
    /// - Returns: nil if it was given up.
    private func written(_ base: HandedOver<StoreBase>, _ order: StoreBases.Order) throws -> BaseRow? {
        let (bases, database, making, member) = (bases, database, state, driver.state)
        let work = try DetachedWork("base") { pulse in
            try bases.write(base.value, order, database: database) { _ in
                pulse.beat() && member.holdsLease && !making.withLock { $0.isStopping }
            }
        }
        return try outcome(of: work)
    }

    /// Waits for work of another thread.
    /// - Throws: what the work throws; `closed` if the store is being closed before its end, `inputOutput` if it has
    ///   done nothing for long.
    private func outcome<Output>(of work: DetachedWork<Output>) throws -> Output {
        var stopping: UInt64?
        while true {
            if let result = work.wait(milliseconds: 100) { return try result.get() }
            if isStopping {
                let now = SystemClock.monotonicMilliseconds()
                stopping = stopping ?? now
                guard now < (stopping ?? now) + Self.patienceMilliseconds else {
                    work.pulse.giveUp()
                    throw StorageError(.closed, "the store is being closed while a base is written")
                }
            }
            try look(at: work.pulse)
        }
    }

    /// Reports a disk that hangs, and gives up in the end: it may be mounted again.
    private func look(at pulse: WorkPulse) throws(StorageError) {
        let silence = pulse.silenceMilliseconds
        if let shared = bases.shared, silence >= Self.silenceMilliseconds {
            noteDirectory("it does not answer", shared)
        }
        guard silence >= Self.silenceMillisecondsMax else { return }
        pulse.giveUp()
        throw StorageError(.inputOutput, "no piece of a base was written for \(silence / 1_000) seconds")
    }

    /// Enters a base while this server leads. A statement without an answer may have been executed, and is repeated.
    /// - Returns: false if another server leads.
    /// - Throws: a `StorageError` if the log does not have the last group of the base, or there is another base of its
    ///   number. `SQLFailure`.
    private func enter(_ row: BaseRow) throws -> Bool {
        var failure: SQLFailure?
        for _ in 0..<Self.entriesMax {
            let epoch = driver.state.figures.epoch
            guard driver.state.holdsLease else { return false }
            do {
                if try connected({ try !$0.run(tables.entering(row, epoch: epoch)).isEmpty }) { return true }
                failure = nil
            } catch let error as SQLFailure where error.isConnectionLost {
                failure = error
            }
            // This server has raised its own epoch, another one leads, or the database has lost the last group.
            SystemThread.sleep(microseconds: 100_000)
        }
        if let failure { throw failure }
        throw StorageError(
            .failed,
            "the base is not entered: the log does not have its last group \(row.place.sequence), or there is another "
                + "base \(row.number)")
    }

    private static let entriesMax = 10

    // MARK: Afterwards

    /// Drops what the last base covers. What cannot be dropped now, or is kept for others, is tried again.
    private func trimOrWait() {
        var isTrimmed = false
        do {
            isTrimmed = try connected { session in
                try session.run(Self.trimSettings)
                return try BaseRow(session.run(tables.lastBase)).map { try trim(after: $0, session) } ?? true
            }
        } catch {
            if isStopping { return }
            log(.warning, "log_not_trimmed", ["message": ErrorText.describe(error)])
        }
        let next = isTrimmed ? nil : SystemClock.monotonicMilliseconds() + Self.trimMilliseconds
        state.update { $0.nextTrim = next }
    }

    /// - Returns: false if something of the log is kept for the archive or a server.
    private func trim(after base: BaseRow, _ session: PostgreSQLSession) throws -> Bool {
        // Less, and one that is as slow as the next base is made would start from a base again and again.
        let readersBytesMax = 2 * max(UInt64(settings.bytesMin), base.byteCount)
        let last = try Self.lastSuperfluous(
            base: base.place.sequence, hold: store.archiveHold, readersBytesMax: readersBytesMax, tables, session)
        let superfluous = tables.superfluousTables(
            for: last, lastBase: base, keptMilliseconds: settings.keptMilliseconds)
        for table in try session.run(superfluous) {
            try session.run(StoreTables.dropping("hearth." + table.text(0)))
            log(.info, "log_trimmed", ["table": table.text(0)])
        }
        let isAll = last == base.place.sequence
        guard let shared = bases.shared, driver.state.holdsLease else { return isAll }
        let epoch = driver.state.figures.epoch
        let kept = try bases.keptFolders(forMilliseconds: settings.keptMilliseconds, damaged: false, session)
        // Without a base there the directory may not be that of the store yet.
        guard driver.state.holdsLease, !kept.isEmpty else { return isAll }
        let work = try DetachedWork("base removal") { pulse in
            try shared.remove(except: kept, throughEpoch: epoch) { !pulse.beat() }
        }
        for folder in try outcome(of: work) {
            log(.info, "base_removed", ["folder": folder])
        }
        return isAll
    }

    // MARK: The directory

    /// Looks from time to time whether this server has the directory, so that one that is not mounted is noticed before
    /// it is needed. The leader makes it that of the store, unless the store has bases in such a directory already:
    /// then this must be it.
    private func visit(_ looks: inout Looks, _ session: PostgreSQLSession) throws {
        guard let shared = bases.shared else { return }
        if let visit = looks.visit {
            guard let result = visit.wait(milliseconds: 0) else { return noteDirectory("it does not answer", shared) }
            looks.visit = nil
            switch result {
            case .success: noteDirectory(nil, shared)
            case .failure(let error): noteDirectory(ErrorText.describe(error), shared)
            }
        }
        let now = SystemClock.monotonicMilliseconds()
        guard now >= looks.nextVisit else { return }
        let isUsed = try !bases.keptFolders(forMilliseconds: 0, damaged: true, session).isEmpty
        guard isUsed || driver.state.holdsLease else { return }
        looks.nextVisit = now + Self.visitMilliseconds
        looks.visit = try DetachedWork("base directory") { _ in try isUsed ? shared.checkMark() : shared.claim() }
    }

    private func noteDirectory(_ problem: String?, _ shared: SharedBases) {
        var wasReachable: Bool?
        figures.change { figures in
            wasReachable = figures.isReachable
            figures.isReachable = problem == nil
        }
        guard wasReachable != (problem == nil) else { return }
        if let problem {
            log(.warning, "bases_unreachable", ["directory": shared.directory, "message": problem])
        } else {
            log(.info, "bases_reachable", ["directory": shared.directory])
        }
    }
}
