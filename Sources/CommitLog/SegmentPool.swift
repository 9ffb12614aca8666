// Segments to write next: prepared ahead by a separate thread, recycled when the runs have caught up.
//
// The file `log/reserve` is the space of one more segment. On a full disk it becomes a segment for commits that only
// delete.

internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

/// A segment that was handed out.
struct UsedSegment: Sendable {
    let segment: LogSegment
    /// Of the groups that have their place in it; zero if there are none.
    var lastVersion = CommitVersion.zero
}

/// Hands out segments in sequence and takes back those that are no longer needed. Thread-safe.
final class SegmentPool: Sendable {
    private struct State {
        /// Handed out and maybe needed by recovery, in sequence; the last one is being written.
        var inUse: [UsedSegment] = []
        /// The segment with the last group; 0 if there is none.
        var writing: UInt64 = 0
        /// Records up to here may be gone.
        var base = CommitVersion.zero
        /// Ready to be handed out, in sequence.
        var ready: [LogSegment] = []
        /// Files whose contents are no longer needed.
        var free: [FreeFile] = []
        var nextSequence: UInt64 = 1
        /// What the next segment must hold at least; more than usual for a giant group.
        var demandBytes: Int
        /// Why the last segment could not be prepared, and when to try again (monotonic clock).
        var error: StorageError?
        var retryNanoseconds: UInt64 = 0
        /// A segment has been refused since.
        var isRefusing = false
        /// The reserve, which may be smaller than it should be, and when to try again to make one of its size.
        var reserve: FreeFile?
        var reserveRetryNanoseconds: UInt64 = 0
        var isMakingReserve = false
        /// A commit that only deletes waits for the reserve to be prepared.
        var isReserveWanted = false
        var isStopping = false

        /// Free files to keep.
        var spareFilesMax: Int

        var needsSegment: Bool { (ready.last?.byteCount ?? 0) < demandBytes }

        /// The place of a file among `free` that becomes a segment of a size without new space.
        func recyclable(byteCount: Int) -> Int? { free.lastIndex { $0.byteCount == byteCount } }
    }

    /// A segment file with nothing worth keeping.
    struct FreeFile: Sendable {
        let path: String
        let byteCount: Int
    }

    private enum Task {
        case stop
        case prepare(sequence: UInt64, byteCount: Int, recycling: FreeFile?)
        case remove(FreeFile)
        case makeReserve(of: FreeFile?)
    }

    private let directory: String
    private let segmentBytes: Int
    private let spareFilesMax: Int
    /// The file of the reserve, as it should be; of no bytes if there is to be none.
    private let reserve: FreeFile
    private let fault: FaultInjection
    private let place: LockedPlace
    private let state: Monitor<State>

    /// After a failure to prepare, this long until the next attempt.
    private static let retryAfterNanoseconds: UInt64 = 200_000_000
    private static let reserveRetryAfterNanoseconds: UInt64 = 5_000_000_000

    init(directory: String, options: EngineOptions, place: LockedPlace = LockedPlace(nil)) {
        self.directory = directory
        self.place = place
        segmentBytes = LogFormat.roundedToPage(options.logSegmentBytes)
        spareFilesMax = options.logSpareSegmentsMax
        reserve = FreeFile(path: directory + "/reserve", byteCount: LogFormat.roundedToPage(options.logReserveBytes))
        fault = FaultInjection(fault: options.fault)
        state = Monitor(State(demandBytes: segmentBytes, spareFilesMax: options.logSpareSegmentsMax))
    }

    /// Takes over what recovery found, and the reserve. Comes before everything else.
    func adopt(_ log: RecoveredLog) {
        let reserve = reserveOnDisk()
        state.update { state in
            state.reserve = reserve
            let used = min(log.endSegmentIndex + 1, log.segments.count)
            state.inUse = Array(log.segments[..<used])
            state.ready = log.segments[used...].map(\.segment)
            state.writing = state.inUse.last?.segment.sequence ?? 0
            state.base = log.base
            state.free = log.free
            state.nextSequence = log.highestSequence + 1
        }
    }

    /// The next segment, at least `byteCount` large. Waits while it is being prepared.
    /// - Parameter mayUseReserve: it is for a commit that only deletes.
    /// - Throws: `full` or `inputOutput` when none can be prepared at present, `closed`.
    func next(byteCount: Int, mayUseReserve: Bool) throws(StorageError) -> LogSegment {
        state.update { $0.demandBytes = max($0.demandBytes, byteCount) }
        defer { state.wake() }
        return try state.wait { state throws(StorageError) -> LogSegment? in
            // A ready one that is too small keeps its place in the row, empty; recovery passes it by.
            while !state.ready.isEmpty {
                let segment = state.ready.removeFirst()
                state.inUse.append(UsedSegment(segment: segment))
                guard segment.byteCount >= byteCount else { continue }
                state.demandBytes = self.segmentBytes
                return segment
            }
            if state.isStopping { throw StorageError(.closed, "the log is closed") }
            guard let error = state.error else { return nil }
            if state.isReserveWanted || mayUseReserve && state.isMakingReserve { return nil }
            if mayUseReserve, let reserve = state.reserve, reserve.byteCount >= byteCount {
                state.isReserveWanted = true
                return nil
            }
            state.demandBytes = self.segmentBytes
            state.isRefusing = true
            throw error
        }
    }

    /// Takes back the segments before `sequence`: the runs have all their commits, durably.
    func release(before sequence: UInt64) {
        state.update { state in
            while let first = state.inUse.first, first.segment.sequence < sequence, state.inUse.count > 1 {
                state.inUse.removeFirst()
                state.base = max(state.base, first.lastVersion)
                state.free.append(FreeFile(path: first.segment.file.path, byteCount: first.segment.byteCount))
            }
            state.spareFilesMax = self.spareFilesMax
            // What was released can be used again, without new space.
            if state.recyclable(byteCount: self.segmentBytes) != nil { state.error = nil }
        }
    }

    /// A group up to `version` has its place in a segment that was handed out.
    func noteGroup(upTo version: CommitVersion, in sequence: UInt64) {
        state.withLock { state in
            guard let place = state.inUse.lastIndex(where: { $0.segment.sequence == sequence }) else { return }
            state.inUse[place].lastVersion = version
            state.writing = sequence
        }
    }

    /// The first segment that has, or may get, a record after `version`.
    func firstSegment(after version: CommitVersion) -> UInt64 {
        state.withLock { state in
            let used = state.inUse.first { $0.lastVersion > version || $0.segment.sequence >= state.writing }
            return used?.segment.sequence ?? state.ready.first?.sequence ?? state.nextSequence
        }
    }

    /// The first of the segments before a sequence that have about so many bytes.
    func firstSegment(before sequence: UInt64, keeping bytes: Int) -> UInt64 {
        state.withLock { state in
            var first = sequence
            var left = bytes
            for used in state.inUse.reversed() where used.segment.sequence < sequence {
                guard left > 0, state.error == nil else { break }
                left -= used.segment.byteCount
                first = used.segment.sequence
            }
            return first
        }
    }

    /// The first segment to keep when the runs have all records up to `version`, and an archive those up to `held`.
    ///
    /// Segments are kept for the archive as long as they are at most `bytesMax` together, and the disk has space.
    func firstKept(after version: CommitVersion, held: CommitVersion, bytesMax: Int) -> UInt64 {
        let needed = firstSegment(after: version)
        if held >= version { return needed }
        let wanted = firstSegment(after: held)
        return state.withLock { state in
            let kept = state.inUse.filter { wanted..<max(wanted, needed) ~= $0.segment.sequence }
            let bytes = kept.reduce(0) { $0 + $1.segment.byteCount }
            return bytes <= bytesMax && state.error == nil ? min(wanted, needed) : needed
        }
    }

    /// The first segment from a sequence on that was handed out.
    func segment(from sequence: UInt64) -> LogSegment? {
        state.withLock { state in state.inUse.first { $0.segment.sequence >= sequence }?.segment }
    }

    /// The first segment that may be needed.
    var firstInUse: UInt64? { state.withLock { $0.inUse.first?.segment.sequence } }

    /// Records up to here may be gone.
    var base: CommitVersion { state.withLock { $0.base } }

    /// Gives most of the free files' space back, until segments are released again: nobody is writing.
    func trim() {
        state.update { $0.spareFilesMax = min(self.spareFilesMax, 1) }
    }

    /// Removes the files that are not needed. Comes last, after `run` has returned; what cannot be removed stays,
    /// unused.
    func removeFree() {
        let free = state.withLock { state in
            defer { state.free = [] }
            return state.free
        }
        if place.isIntact { for file in free { try? Directory.removeFile(file.path) } }
    }

    /// Why no further segment can be prepared, as of the last attempt: the log lasts for what is left of the segments
    /// there are.
    var error: StorageError? { state.withLock { $0.error } }

    /// Why commits are refused, or will be with the end of the segment being written.
    var shortage: StorageError? { state.withLock { $0.ready.isEmpty || $0.isRefusing ? $0.error : nil } }

    /// Bytes of the reserve that is there.
    var bytesReserved: Int { state.withLock { $0.reserve?.byteCount ?? 0 } }

    /// Segments handed out, and those ready or free.
    var counts: (inUse: Int, spare: Int) {
        state.withLock { ($0.inUse.count, $0.ready.count + $0.free.count) }
    }

    /// The first segment that has no frames yet, or else the one being written.
    var firstUnwritten: UInt64 {
        state.withLock { $0.ready.first?.sequence ?? $0.inUse.last?.segment.sequence ?? $0.nextSequence }
    }

    /// Whether there is a segment at all: a new directory has none until the first is prepared.
    var hasSegments: Bool { state.withLock { !$0.ready.isEmpty || !$0.inUse.isEmpty } }

    /// Makes `run` return and `next` fail.
    func stop() {
        state.update { $0.isStopping = true }
    }

    /// Prepares segments until `stop`: the body of the pool's thread.
    func run() {
        while true {
            let deadline = SystemClock.monotonicNanoseconds() + Self.retryAfterNanoseconds
            guard let task = state.wait(untilNanoseconds: deadline, { self.nextTask(&$0) }) else { continue }
            do throws(StorageError) {
                try place.check()
            } catch {
                if case .stop = task { return }
                putBack(task, error)
                continue
            }
            switch task {
            case .stop: return
            case .remove(let file): try? Directory.removeFile(file.path)
            case .makeReserve(let file): makeReserve(of: file)
            case .prepare(let sequence, let byteCount, let old): prepare(sequence, byteCount, old)
            }
        }
    }

    private func nextTask(_ state: inout State) -> Task? {
        if state.isStopping { return .stop }
        if state.isReserveWanted, let reserve = state.reserve.take() {
            return .prepare(sequence: state.nextSequence, byteCount: reserve.byteCount, recycling: reserve)
        }
        let now = SystemClock.monotonicNanoseconds()
        if state.needsSegment, state.error == nil || now >= state.retryNanoseconds {
            let isUsual = state.demandBytes == segmentBytes
            let recyclable = isUsual ? state.recyclable(byteCount: segmentBytes) : nil
            return .prepare(
                sequence: state.nextSequence, byteCount: state.demandBytes,
                recycling: recyclable.map { state.free.remove(at: $0) })
        }
        if reserve.byteCount > state.reserve?.byteCount ?? 0 {
            // A released segment of its size needs no space. As free space, others might take it.
            let old = state.free.firstIndex { $0.byteCount == reserve.byteCount }
            if old != nil || now >= state.reserveRetryNanoseconds {
                state.isMakingReserve = true
                return .makeReserve(of: old.map { state.free.remove(at: $0) })
            }
        }
        if let odd = state.free.firstIndex(where: { $0.byteCount != segmentBytes }) {
            return .remove(state.free.remove(at: odd))
        }
        if state.free.count > state.spareFilesMax { return .remove(state.free.removeFirst()) }
        return nil
    }

    /// Leaves a task for later, and waits a little: another directory may be in the place of this one.
    private func putBack(_ task: Task, _ error: StorageError) {
        state.update { state in
            switch task {
            case .stop: break
            case .remove(let file): state.free.append(file)
            case .makeReserve(let old):
                if let old { state.free.append(old) }
                state.isMakingReserve = false
            case .prepare(_, _, let old):
                if let old { state.free.append(old) }
                state.isReserveWanted = false
                state.error = error
            }
        }
        let end = SystemClock.monotonicNanoseconds() + Self.retryAfterNanoseconds
        _ = state.wait(untilNanoseconds: end) { $0.isStopping ? true : nil }
    }

    private func prepare(_ sequence: UInt64, _ byteCount: Int, _ old: FreeFile?) {
        do throws(StorageError) {
            let segment = try LogSegment.prepare(
                sequence: sequence, byteCount: byteCount, recycling: old?.path, in: directory, fault: fault)
            state.update { state in
                state.ready.append(segment)
                state.nextSequence = sequence + 1
                if state.isReserveWanted {
                    state.isReserveWanted = false
                } else {
                    state.error = nil
                    state.isRefusing = false
                }
            }
        } catch {
            state.update { state in
                // What was released during the attempt needs no new space: it is used at once.
                let isWorthRetry =
                    old == nil && byteCount == self.segmentBytes && state.recyclable(byteCount: byteCount) != nil
                state.error = isWorthRetry ? nil : error
                state.isReserveWanted = false
                state.retryNanoseconds = SystemClock.monotonicNanoseconds() + Self.retryAfterNanoseconds
            }
        }
    }

    /// Makes the reserve, of a released segment if there is one of its size. The space counts, not the contents.
    private func makeReserve(of old: FreeFile?) {
        do throws(StorageError) {
            if let old { try Directory.rename(old.path, to: reserve.path) }
            let file = try File(reserve.path, flags: O_RDWR | O_CREAT)
            if try LogSegment.wholeBytes(of: file) != reserve.byteCount {
                try LogSegment.allocate(file, byteCount: reserve.byteCount, fault: fault)
            }
            state.update {
                $0.reserve = self.reserve
                $0.isMakingReserve = false
            }
        } catch {
            // A smaller one is kept.
            let kept = reserveOnDisk()
            if kept == nil { try? Directory.removeFile(reserve.path) }
            state.update {
                $0.reserve = kept
                $0.isMakingReserve = false
                $0.reserveRetryNanoseconds = SystemClock.monotonicNanoseconds() + Self.reserveRetryAfterNanoseconds
            }
        }
    }

    /// The reserve that is there, for example of an earlier process; nil for one that is larger than it should be.
    /// Called before the first commit, which may be a delete that needs it.
    private func reserveOnDisk() -> FreeFile? {
        guard let file = try? File(reserve.path, flags: O_RDONLY), let bytes = try? LogSegment.wholeBytes(of: file),
            bytes <= reserve.byteCount
        else { return nil }
        return FreeFile(path: reserve.path, byteCount: bytes)
    }

    /// Keeps the space of a segment that a process was preparing when it was killed: others might take it, and deletes
    /// on a full disk need it. Comes before `adopt`.
    /// - Returns: the file, if it can become a segment of the usual size. Otherwise it is the reserve now, or removed.
    func keepUnfinished(_ path: String) throws(StorageError) -> String? {
        let bytes = try LogSegment.wholeBytes(of: try File(path, flags: O_RDONLY))
        if bytes == reserve.byteCount, reserveOnDisk() == nil {
            try Directory.rename(path, to: reserve.path)
            return nil
        }
        if bytes == segmentBytes { return path }
        try Directory.removeFile(path)
        return nil
    }
}
