internal import Basics
internal import Glibc
internal import Storage
internal import Synchronization

/// Finds pages of runs that the kernel has dropped, so that reads know that they must wait for them. Thread-safe.
///
/// A thread looks once a second whether the process had to wait for a page, or a read was pending. While that is so, it
/// asks the kernel about a part of the files.
final class PageSweeper: Sendable {
    private struct State {
        var thread: SystemThread?
        var isClosed = false
        /// Reads were pending since the thread looked last.
        var isNeeded = false
    }

    private let runs: RunStore
    /// A read was pending or a page was dropped a short time ago, or nobody has looked for that yet. Files that the
    /// engine has written since it was opened are in memory to begin with.
    let isCold: Atomic<Bool>
    private let state = Monitor(State())

    private static let pauseNanoseconds: UInt64 = 1_000_000_000
    /// Pauses without a wait after which everything counts as in memory.
    private static let quietPausesMin = 10
    /// Bytes of files that are looked at in a second.
    private static let bytesPerPause = 2 << 30

    init(_ runs: RunStore) {
        self.runs = runs
        isCold = Atomic(!runs.files.isEmpty)
    }

    func readWasPending() {
        isCold.store(true, ordering: .relaxed)
        state.withLock { $0.isNeeded = true }
    }

    /// Starts the thread, once. If the system has none left, pages that were dropped are read by the reads themselves.
    func start() {
        state.withLock { state in
            if state.thread != nil || state.isClosed { return }
            state.thread = try? SystemThread.start("page sweep") { [self] in run() }
        }
    }

    func close() {
        let thread = state.update { state in
            state.isClosed = true
            return state.thread
        }
        thread?.join()
    }

    private func run() {
        var faults = Self.majorFaults
        /// The number of the file that was looked at last.
        var last: UInt64 = 0
        var quietPauses = isCold.load(ordering: .relaxed) ? 0 : Self.quietPausesMin
        while !pause() {
            let now = Self.majorFaults
            let isNeeded = state.withLock { state in
                defer { state.isNeeded = false }
                return state.isNeeded
            }
            quietPauses = isNeeded || now != faults ? 0 : quietPauses + 1
            if quietPauses == 0 { last = sweep(after: last) }
            isCold.store(quietPauses < Self.quietPausesMin, ordering: .relaxed)
            faults = now
        }
    }

    /// - Returns: whether the engine was closed.
    private func pause() -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + Self.pauseNanoseconds
        return state.wait(untilNanoseconds: deadline) { $0.isClosed ? true : nil } ?? false
    }

    /// Looks at the files that follow one in the order of their numbers, as many as one pause allows.
    /// - Returns: the last of them.
    private func sweep(after last: UInt64) -> UInt64 {
        let files = runs.files.sorted { $0.number < $1.number }
        guard let first = files.firstIndex(where: { $0.number > last }) ?? files.indices.first else { return 0 }
        var bytesLeft = Self.bytesPerPause
        for file in files[first...] {
            file.part.sweep()
            bytesLeft -= file.byteCount
            if bytesLeft <= 0 { return file.number }
        }
        return 0
    }

    /// Pages that threads of the process had to wait for.
    private static var majorFaults: Int {
        var usage = rusage()
        return unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 ? usage.ru_majflt : 0
    }
}
