// The scrub: a thread that reads every file of a run from the disk and verifies it, so that damage is known before the
// data are needed.

internal import Basics
internal import CommitLog
internal import Storage
internal import Synchronization

/// Reads everything once in an interval. Thread-safe.
final class Scrubber: Sendable {
    private struct State {
        var thread: SystemThread?
        var isStopping = false
        /// What is damaged, by path.
        var damage: [String: StorageError] = [:]
        /// When the last pass ended, in microseconds since 1970; nil before the first end.
        var lastEnd: UInt64?
    }

    private let state = Monitor(State())
    private let bytesRead = Atomic<UInt64>(0)
    private let passes = Atomic<UInt64>(0)

    /// Bytes a second, at least: a small store is verified soon after each start.
    private static let rateMin = 8 << 20
    /// Damaged files that are remembered by name.
    private static let damageMax = 1_000

    /// Starts the thread, once. Without a thread of the system nothing is verified.
    func start(_ core: EngineCore) {
        state.withLock { state in
            if state.thread != nil || state.isStopping { return }
            state.thread = try? SystemThread.start("scrub") { [self] in run(core) }
        }
    }

    /// Ends the thread, which may be reading a file.
    func stop() {
        let thread = state.update { state in
            state.isStopping = true
            return state.thread.take()
        }
        thread?.join()
    }

    var statistics: ScrubStatistics {
        let (damage, lastEnd) = state.withLock { ($0.damage, $0.lastEnd) }
        return ScrubStatistics(
            passes: passes.load(ordering: .relaxed), bytesRead: bytesRead.load(ordering: .relaxed),
            lastEndMicroseconds: lastEnd, damage: damage.sorted { $0.key < $1.key }.map(\.value))
    }

    private func run(_ core: EngineCore) {
        let interval = core.options.scrubMilliseconds * 1_000_000
        while true {
            let start = SystemClock.monotonicNanoseconds()
            guard pass(core, intervalNanoseconds: interval) else { return }
            let now = core.options.clock()
            state.withLock { $0.lastEnd = now }
            passes.add(1, ordering: .relaxed)
            if pause(untilNanoseconds: start + interval) { return }
        }
    }

    /// - Returns: whether the thread is to end.
    private func pause(untilNanoseconds deadline: UInt64) -> Bool {
        state.wait(untilNanoseconds: deadline) { $0.isStopping ? true : nil } ?? false
    }
}

// MARK: - A pass

extension Scrubber {
    /// Reads every file that the store has at the time, those first that merges are to replace last.
    /// - Returns: false if the thread is to end.
    private func pass(_ core: EngineCore, intervalNanoseconds: UInt64) -> Bool {
        var seen: Set<UInt64> = []
        var damaged: Set<String> = []
        let rate = Self.bytesPerSecond(
            ofStore: core.runs.current.manifest.byteCount, intervalNanoseconds: intervalNanoseconds)
        let pace = Pace(bytesPerSecond: rate)
        while let file = core.runs.files.filter({ !seen.contains($0.number) }).min(by: { $0.number < $1.number }) {
            seen.insert(file.number)
            do throws(StorageError) {
                try verify(file, pace)
            } catch {
                if error.code == .closed { return false }
                note(error, of: file.path)
                damaged.insert(file.path)
            }
            if state.withLock({ $0.isStopping }) { return false }
        }
        verifyLog(core, &damaged)
        // What was merged since, or replaced, is not damaged any more.
        state.withLock { state in state.damage = state.damage.filter { damaged.contains($0.key) } }
        return true
    }

    /// The rate of a pass that takes four fifths of the interval, so that it ends within it while the store grows.
    static func bytesPerSecond(ofStore bytes: Int, intervalNanoseconds: UInt64) -> UInt64 {
        // A product of integers overflows at 14.8 GB.
        let rate = Double(bytes) * 1.25e9 / Double(max(intervalNanoseconds, 1))
        return UInt64(min(max(rate, Double(rateMin)), 1e12))
    }

    /// Reads a file from the disk to memory, and verifies what was read.
    /// - Throws: `corrupt`, `inputOutput`; `closed` if the thread is to end.
    private func verify(_ file: RunFile, _ pace: Pace) throws(StorageError) {
        let copy = try RunFile(reading: file) { bytes throws(StorageError) in
            self.bytesRead.add(UInt64(bytes), ordering: .relaxed)
            if self.pause(untilNanoseconds: pace.end(ofReading: bytes)) {
                throw StorageError(.closed, "the engine is closed")
            }
        }
        try copy.part.verifyBlocks()
        try copy.part.verifyPages()
    }

    /// Reads the groups that are in the log alone.
    private func verifyLog(_ core: EngineCore, _ damaged: inout Set<String>) {
        guard core.options.writesLog else { return }
        let records = core.log.records(after: CommitVersion(microseconds: core.checkpoint.load(ordering: .acquiring)))
        do throws(StorageError) {
            while try records.next() { bytesRead.add(UInt64(records.record.byteCount), ordering: .relaxed) }
        } catch {
            // What was trimmed meanwhile is in runs.
            if error.code == .versionTooOld { return }
            note(error, of: error.file ?? "log")
            damaged.insert(error.file ?? "log")
        }
    }

    private func note(_ error: StorageError, of path: String) {
        state.withLock { state in
            if state.damage.count < Self.damageMax || state.damage[path] != nil { state.damage[path] = error }
        }
    }
}

/// The pace of a pass.
private final class Pace {
    private let bytesPerSecond: UInt64
    private var deadline = SystemClock.monotonicNanoseconds()

    init(bytesPerSecond: UInt64) { self.bytesPerSecond = bytesPerSecond }

    /// When the next piece may be read, after one of so many bytes. A delay does not make later pieces faster.
    func end(ofReading bytes: Int) -> UInt64 {
        deadline = max(deadline, SystemClock.monotonicNanoseconds()) + UInt64(bytes) * 1_000_000_000 / bytesPerSecond
        return deadline
    }
}
