// What is done once a second, away from the event loops: the time limits of waiting reads, freed memory, and whether
// the disk is full.

internal import CLinux
internal import Dispatch
internal import DocumentStore
internal import FirestoreService
internal import Storage
internal import Synchronization

/// Ends reads that wait for too long, gives memory back to the system, and logs when commits are refused for lack of
/// space. Thread-safe.
final class HousekeepingTimer: @unchecked Sendable {  // A dispatch source may be used by all threads.
    private let store: DocumentStore
    private let log: Log
    private let queue = DispatchQueue(label: "hearth.housekeeper", qos: .utility)
    private let timer: any DispatchSourceTimer
    private let state = Mutex(State())

    private struct State {
        var trims = TrimSchedule()
        var shortage = ShortageReport()
        var failure = ShortageReport()
        /// Failures of the store's own commits that have been logged.
        var failuresLogged: UInt64 = 0
    }

    init(store: DocumentStore, log: Log) {
        self.store = store
        self.log = log
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + 1, repeating: 1)
        timer.setEventHandler { [weak self] in self?.look() }
        timer.activate()
    }

    /// Ends the rounds, and waits for one that is under way.
    func stop() {
        timer.cancel()
        queue.sync {}
    }

    private func look() {
        store.endExpiredWaits()
        reportShortage()
        reportWriteFailure()
        reportFailures()
        reportIndexes()
        trim()
    }

    /// glibc keeps freed memory between blocks that are in use; malloc_trim(3) gives back its pages. It takes the locks
    /// of all heaps in turn, some milliseconds each.
    private func trim() {
        let memory = ProcessMemory.current
        if state.withLock({ $0.trims.isDue(memory) }) { malloc_trim(0) }
    }

    private func reportShortage() {
        let shortage = store.recentShortage
        switch state.withLock({ $0.shortage.change(isShort: shortage != nil) }) {
        case .begins, .lasts:
            log(.error, "store_full", ["message": shortage.map { "\($0)" } ?? ""])
        case .ends: log(.info, "store_has_space")
        case nil: break
        }
    }

    private func reportWriteFailure() {
        let failure = store.recentWriteFailure
        switch state.withLock({ $0.failure.change(isShort: failure != nil) }) {
        case .begins, .lasts:
            log(.error, "store_retrying", ["message": failure.map { "\($0)" } ?? ""])
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

    /// Logs that the store's own commits have failed since the last look.
    private func reportFailures() {
        let (count, last) = store.housekeepingFailures
        let isNew = state.withLock { state in
            defer { state.failuresLogged = count }
            return count > state.failuresLogged
        }
        if isNew { log(.warning, "housekeeping_failed", ["message": last ?? ""]) }
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
