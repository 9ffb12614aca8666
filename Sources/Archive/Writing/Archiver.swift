// The archive of a store that is open.
//
//      thread            does
//      ──────            ────
//      archive           each interval: copies new records of the log, decides on bases, removes what is too old
//      archive base      makes one base; records are copied meanwhile
//
// Commits wait for neither. The log keeps what the archive has not taken (`WriteAheadLog.hold`), up to a bound.
//
// Several servers of one store may have the same archive (`ArchiveSettings.mayWrite`). The one that may write opens it,
// takes its lock, and continues where the archive ends. It gives the lock back when it may write no more.

internal import Basics
internal import CommitLog
package import EmbeddedEngine
internal import FileSystem
internal import Glibc
package import Storage
internal import Synchronization

/// Archives the commits of an engine. Thread-safe.
package final class Archiver: Sendable {
    private struct State {
        var thread: SystemThread?
        var hasEnded = false
        var isStopping = false
        /// Looks asked for, and done.
        var flushesRequested: UInt64 = 0
        var flushesDone: UInt64 = 0
        /// A base is being made, or its outcome waits for the archive's thread.
        var isMakingBase = false
        var baseOutcome: Result<ArchiveBase, StorageError>?
        var statistics = ArchiveStatistics()
        var failureReport = RepeatedReport()
        /// This server is the one that archives.
        var isWriting: Bool
        /// When the archive was complete, on the monotonic clock.
        var completeNanoseconds = SystemClock.monotonicNanoseconds()
    }

    private let engine: EmbeddedEngine
    private let settings: ArchiveSettings
    private let state: Monitor<State>
    private let cancelsBase = Atomic<Bool>(false)

    /// When what is older than the retention is removed next, and by which time.
    private struct Removal {
        var nextNanoseconds: UInt64 = 0
        var time = SettledTime()
    }

    private static let pruneIntervalNanoseconds: UInt64 = 3_600_000_000_000
    /// Time between two looks whether this server may write to an archive that others have too, in milliseconds.
    private static let sharedIntervalMilliseconds: UInt64 = 1_000

    /// Opens or creates the archive, and starts its thread. If its disk cannot be reached at present, that is tried
    /// again later. An archive that several servers have is opened by the thread; what is wrong with it is an event.
    ///
    /// - Throws: `corrupt` if the archive is of another store, or has commits that this one does not have; `locked` if
    ///   another process writes to it; `unsupportedFormat`; `inputOutput` if it is in the data directory.
    package init(_ engine: EmbeddedEngine, _ settings: ArchiveSettings) throws(StorageError) {
        self.engine = engine
        self.settings = settings
        state = Monitor(State(isWriting: settings.mayWrite == nil))
        try Directory.checkApart(engine.directory, settings.directory, for: "an archive")
        var worker = ArchiveWorker(engine, settings)
        if settings.mayWrite == nil {
            do throws(StorageError) {
                try worker.open()
            } catch {
                guard [.inputOutput, .full].contains(error.code) else { throw error }
                noteFailure(error)
            }
        }
        let box = Handover(worker)
        let thread = try SystemThread.start("archive") { [self] in run(box.value) }
        state.withLock { $0.thread = thread }
    }

    /// Waits until the archive has every commit that is durable now. Returns at once if the archive fails.
    ///
    /// - Returns: whether it has.
    package func flush() -> Bool {
        let version = engine.log.durableVersion
        let request = state.update { state in
            state.flushesRequested += 1
            return state.flushesRequested
        }
        return state.wait { state in
            if state.hasEnded || state.flushesDone >= request { return state.statistics.version >= version }
            return nil
        }
    }

    /// Archives the last commits, and ends the threads. Waits for an archive that hangs as long as the settings say.
    /// To be called once, when there are no more commits, and before the engine is closed.
    package func stop() {
        let deadline = SystemClock.monotonicNanoseconds() + settings.stopMilliseconds * 1_000_000
        let thread = state.update { state in
            state.isStopping = true
            return state.thread.take()
        }
        let hasEnded = state.wait(untilNanoseconds: deadline) { $0.hasEnded ? true : nil } ?? false
        cancelsBase.store(true, ordering: .relaxed)
        if hasEnded { thread?.join() } else { thread?.detach() }
        let (statistics, isWriting) = (self.statistics, state.withLock { $0.isWriting })
        if isWriting, !hasEnded || statistics.version < engine.log.durableVersion {
            settings.onEvent(.incomplete(statistics.version))
        }
    }

    package var statistics: ArchiveStatistics {
        let durable = engine.log.durableVersion
        return state.withLock { state in
            var statistics = state.statistics
            if state.isWriting, statistics.version < durable {
                statistics.lagMilliseconds =
                    (SystemClock.monotonicNanoseconds() - state.completeNanoseconds) / 1_000_000
            }
            return statistics
        }
    }
}

/// Hands a value to a thread.
private final class Handover: @unchecked Sendable {  // Read once, by the thread that is started with it.
    let value: ArchiveWorker

    init(_ value: ArchiveWorker) { self.value = value }
}

// MARK: - The archive's thread

extension Archiver {
    private func run(_ first: ArchiveWorker) {
        var worker = first
        if worker.isOpen { noteOpened(worker) }
        var removal = Removal()
        while true {
            let (request, isLast) = state.withLock { ($0.flushesRequested, $0.isStopping) }
            look(&worker, &removal)
            state.update { $0.flushesDone = request }
            if isLast, isBaseSettled(worker) { break }
            waitForWork(worker, request)
        }
        worker.close()
        state.update { $0.hasEnded = true }
    }

    /// Waits for the next look.
    private func waitForWork(_ worker: ArchiveWorker, _ request: UInt64) {
        let isShared = settings.mayWrite != nil && !worker.isOpen
        let interval = isShared ? Self.sharedIntervalMilliseconds : settings.intervalMilliseconds
        let deadline =
            SystemClock.monotonicNanoseconds() + min(interval, settings.intervalMilliseconds) * 1_000_000
        let isWaitingForBase = worker.lacksBase
        _ = state.wait(untilNanoseconds: deadline) { state -> Bool? in
            let isDue = state.flushesRequested > request || state.baseOutcome != nil
            return isDue || state.isStopping && !(isWaitingForBase && state.isMakingBase) ? true : nil
        }
    }

    /// Whether nothing more is to be done about bases at the end: an archive without any waits for its first one.
    private func isBaseSettled(_ worker: ArchiveWorker) -> Bool {
        let isMaking = state.withLock { $0.isMakingBase }
        if isMaking, worker.lacksBase { return false }
        cancelsBase.store(true, ordering: .relaxed)
        // The engine must not be closed while its files are copied.
        state.wait { $0.isMakingBase && $0.baseOutcome == nil ? nil : () }
        return true
    }

    /// Whether this server is the one that writes to the archive.
    private func mayWrite() -> Bool { settings.mayWrite?() ?? true }

    /// Leaves the archive to another server.
    private func release(_ worker: inout ArchiveWorker) {
        cancelsBase.store(true, ordering: .relaxed)
        let outcome = state.wait { state -> Result<ArchiveBase, StorageError>?? in
            if state.isMakingBase, state.baseOutcome == nil { return nil }
            state.isMakingBase = false
            return .some(state.baseOutcome.take())
        }
        cancelsBase.store(false, ordering: .relaxed)
        if let outcome { worker.noteBase(outcome) }
        worker.close()
        state.update { state in
            state.isWriting = false
            state.statistics.failure = nil
        }
    }

    /// Does what is to be done now.
    private func look(_ worker: inout ArchiveWorker, _ removal: inout Removal) {
        let settled = removal.time.now(
            wallMicroseconds: settings.clock(), elapsedMilliseconds: settings.elapsedMilliseconds())
        guard mayWrite() else { return release(&worker) }
        let start = SystemClock.monotonicNanoseconds()
        state.withLock { state in
            if !state.isWriting { state.completeNanoseconds = start }
            state.isWriting = true
        }
        do throws(StorageError) {
            if !worker.isOpen {
                try worker.open()
                noteOpened(worker)
            }
            let outcome = try worker.copyRecords()
            if let gap = outcome.gap {
                state.withLock { $0.statistics.gaps += 1 }
                settings.onEvent(.gap(after: gap.after, until: gap.until))
            }
            noteComplete(worker, outcome.bytes, since: start)
            let hasNewBase = try takeBase(&worker)
            if hasNewBase || SystemClock.monotonicNanoseconds() >= removal.nextNanoseconds {
                removal.nextNanoseconds = SystemClock.monotonicNanoseconds() + Self.pruneIntervalNanoseconds
                try prune(now: settled)
            }
        } catch {
            // An attempt that ended because another server leads does not count as a failure.
            guard mayWrite() else { return release(&worker) }
            noteFailure(error)
        }
        considerBase(worker)
    }

    private func noteOpened(_ worker: ArchiveWorker) {
        settings.onEvent(.opened(worker.end))
        if Directory.areOnOneDevice(engine.directory, settings.directory) { settings.onEvent(.sameDevice) }
        for problem in worker.problems { settings.onEvent(.damaged(problem)) }
        state.withLock { state in
            state.statistics.version = worker.end
            state.statistics.baseVersion = worker.newestBase?.version
        }
    }

    private func noteComplete(_ worker: ArchiveWorker, _ bytes: Int, since start: UInt64) {
        let hadFailed = state.update { state in
            defer { state.statistics.failure = nil }
            state.statistics.version = worker.end
            state.statistics.bytesWritten += UInt64(bytes)
            state.completeNanoseconds = start
            return state.statistics.failure != nil
        }
        if hadFailed { settings.onEvent(.recovered) }
    }

    private func noteFailure(_ error: StorageError) {
        let (wasLocked, isDue) = state.update { state in
            defer { state.statistics.failure = error }
            state.statistics.failures += 1
            if state.statistics.failure == nil { state.failureReport = RepeatedReport() }
            return (
                state.statistics.failure?.code == .locked,
                state.failureReport.isDue("\(error)", at: SystemClock.monotonicMilliseconds())
            )
        }
        guard error.code == .locked else { return isDue ? settings.onEvent(.failing(error)) : () }
        if !wasLocked { settings.onEvent(.waiting) }
    }

    /// - Parameter now: the settled time.
    private func prune(now: UInt64) throws(StorageError) {
        let retention = settings.retentionMilliseconds * 1_000
        let outcome = try ArchiveRetention.prune(settings.directory, before: now > retention ? now - retention : 0)
        if outcome != ArchiveRetention.Outcome() {
            settings.onEvent(.pruned(bases: outcome.bases, files: outcome.files))
        }
    }
}

// MARK: - Bases

extension Archiver {
    /// Starts making a base if one is due and none is being made.
    private func considerBase(_ worker: ArchiveWorker) {
        guard worker.isOpen, worker.isBaseDue(now: settings.clock()) else { return }
        let isFree = state.withLock { state in
            if state.isMakingBase || state.isStopping && !worker.lacksBase { return false }
            state.isMakingBase = true
            return true
        }
        guard isFree else { return }
        let writer = worker.baseWriter(
            isCancelled: { self.cancelsBase.load(ordering: .relaxed) || !self.mayWrite() })
        let box = BaseWriterBox(writer)
        do throws(StorageError) {
            let thread = try SystemThread.start("archive base") { [self] in
                SystemThread.giveWay()
                let outcome = Result { () throws(StorageError) in try box.value.run() }
                state.update { $0.baseOutcome = outcome }
            }
            thread.detach()
        } catch {
            state.update { $0.baseOutcome = .failure(error) }
        }
    }

    /// Takes the outcome of the base that was made.
    /// - Returns: whether there is a new one.
    private func takeBase(_ worker: inout ArchiveWorker) throws(StorageError) -> Bool {
        let outcome = state.update { state -> Result<ArchiveBase, StorageError>? in
            guard let outcome = state.baseOutcome else { return nil }
            state.baseOutcome = nil
            state.isMakingBase = false
            return outcome
        }
        guard let outcome else { return false }
        worker.noteBase(outcome)
        let base = try outcome.get()
        state.withLock { state in
            state.statistics.bases += 1
            state.statistics.baseVersion = base.version
            state.statistics.bytesWritten += UInt64(base.byteCount)
        }
        settings.onEvent(.base(base.version, byteCount: base.byteCount))
        return true
    }
}

/// Hands a base to the thread that writes it.
private final class BaseWriterBox: @unchecked Sendable {  // Read once, by the thread that is started with it.
    let value: BaseWriter

    init(_ value: BaseWriter) { self.value = value }
}
