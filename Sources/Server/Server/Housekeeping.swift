// What is done once a second, away from the event loops: the time limits of waiting reads, freed memory, and whether
// the disk is full.

internal import Basics
internal import CLinux
internal import DocumentStore
internal import FirestoreService
internal import Storage

/// The thread of the server's housekeeping: a round each second. Thread-safe.
///
/// Not a dispatch source: libdispatch traps where /proc is not mounted.
final class HousekeepingThread: Sendable {
    private let thread = PacedThread()

    private static let intervalMilliseconds: UInt64 = 1_000

    init(_ stores: [ServedStore], _ collections: CollectionTable, log: Log) throws {
        try thread.start(name: "housekeeping", everyMilliseconds: Self.intervalMilliseconds) { pause in
            var parts = stores.map { Housekeeping($0, log: stores.count == 1 ? log : log.with("store", $0.name)) }
            var memory = FreedMemory()
            var clock = ClockReport()
            while pause() {
                clock.look(log)
                for index in parts.indices where stores[index].isOpen { parts[index].look() }
                collections.secondPassed(stores.filter(\.isOpen).map(\.store))
                memory.look()
            }
        }
    }

    /// Ends the rounds, and waits for one that is under way.
    func stop() { thread.stop() }
}

/// Gives freed memory back to the system.
private struct FreedMemory {
    private var trims = TrimSchedule()

    /// glibc keeps freed memory between blocks that are in use; malloc_trim(3) gives back its pages. It takes the locks
    /// of all heaps in turn, some milliseconds each.
    mutating func look() {
        if trims.isDue(ProcessMemory.current) { malloc_trim(0) }
    }
}

/// When it is logged that the clock was set forward: `SettledTime` does not follow it yet, so nothing that it makes old
/// is removed. Asked once a second.
struct ClockReport {
    private var time = SettledTime()
    private var isReported = false

    /// Smaller steps are those of a clock that is kept right.
    private static let microsecondsMin: UInt64 = 60_000_000

    /// - Returns: by how many seconds the clock was set forward, when that is to be logged.
    mutating func step(wallMicroseconds wall: UInt64, elapsedMilliseconds: UInt64) -> UInt64? {
        let ahead = wall - time.now(wallMicroseconds: wall, elapsedMilliseconds: elapsedMilliseconds)
        let wasReported = isReported
        isReported = ahead >= Self.microsecondsMin
        return isReported && !wasReported ? ahead / 1_000_000 : nil
    }

    mutating func look(_ log: Log) {
        let step = step(
            wallMicroseconds: SystemClock.microseconds(), elapsedMilliseconds: SystemClock.monotonicMilliseconds())
        guard let step else { return }
        let message = "what expires by it, or is older than the retention of an archive, stays for another hour or two"
        log(.warning, "clock_set_forward", ["seconds": String(step), "message": message])
    }
}

/// Ends reads of a store that wait for too long, and logs when commits are refused for lack of space.
private struct Housekeeping {
    let served: ServedStore
    let log: Log
    private var shortage = ShortageReport()
    private var failure = ShortageReport()
    /// Failures of the store's own commits up to the last look.
    private var failuresSeen: UInt64 = 0
    private var failureReport = RepeatedReport()
    /// Damage of the scrub that has been logged.
    private var damageLogged: [StorageError] = []

    init(_ served: ServedStore, log: Log) {
        self.served = served
        self.log = log
        if let missing = store.missingTextLibraries { log(.warning, "text_libraries_missing", ["message": missing]) }
    }

    private var store: DocumentStore { served.store }

    mutating func look() {
        store.endExpiredWaits()
        reportShortage()
        reportWriteFailure()
        reportFailures()
        reportDamage()
        reportIndexes()
    }

    private mutating func reportShortage() {
        let error = store.recentShortage
        switch shortage.change(isShort: error != nil) {
        case .begins, .lasts:
            log(.error, "store_full", ["message": error.map { "\($0)" } ?? ""])
        case .ends: log(.info, "store_has_space")
        case nil: break
        }
    }

    private mutating func reportWriteFailure() {
        let error = store.recentWriteFailure
        switch failure.change(isShort: error != nil) {
        case .begins, .lasts:
            log(.error, "store_retrying", ["message": error.map { "\($0)" } ?? ""])
        case .ends: log(.info, "store_recovered")
        case nil: break
        }
    }

    /// Logs which indexes were made and dropped on demand.
    private func reportIndexes() {
        for event in store.takeIndexEvents() {
            let name: StaticString =
                switch event.change {
                case .requested: "index_requested"
                case .made: "index_made"
                case .dropped: "index_dropped"
                }
            log(
                .info, name,
                [
                    "database": event.database, "collection": event.collectionID, "field": event.field,
                    "kind": event.isOfElements ? "array-contains" : "values",
                ])
        }
    }

    /// Logs what the scrub has found since the last look.
    private mutating func reportDamage() {
        let damage = store.scrubDamage
        for error in damage where !damageLogged.contains(error) {
            log(.error, "damage_found", ["message": "\(error)"])
        }
        damageLogged = damage
    }

    /// Logs that the store's own commits have failed since the last look.
    private mutating func reportFailures() {
        let (count, last) = store.housekeepingFailures
        defer { failuresSeen = count }
        let text = last ?? ""
        guard count > failuresSeen, failureReport.isDue(text, at: SystemClock.monotonicMilliseconds()) else { return }
        log(.warning, "housekeeping_failed", ["message": text])
    }
}

/// When a full disk, or one that fails, is logged: when it is found, once a minute while it lasts, and when it ends.
/// Asked once a second.
struct ShortageReport {
    enum Change { case begins, lasts, ends }

    private var isReported = false
    private var secondsSinceReport = pauseSeconds

    static let pauseSeconds = 60

    mutating func change(isShort: Bool) -> Change? {
        secondsSinceReport += 1
        if !isShort {
            defer { isReported = false }
            return isReported ? .ends : nil
        }
        guard secondsSinceReport >= Self.pauseSeconds else { return nil }
        secondsSinceReport = 0
        defer { isReported = true }
        return isReported ? .lasts : .begins
    }
}
