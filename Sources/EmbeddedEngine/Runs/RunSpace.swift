// Disk space for the runs, allocated before it is needed.
//
// A commit is acknowledged only if there are blocks for what a checkpoint will write of it. They belong to the file
// `runs/space`, which has no other contents. A checkpoint allocates the blocks of its run from the disk; if the disk
// has none, `space` gives back as many and the run takes them.
//
//      runs/space     │ the memtables │ slack │ reserve │ merges │
//
// The slack is for what other processes take in between, for blocks, filters and the manifest. The reserve is for
// commits that only delete, since they can free space on a full disk, and up to half of it for revocations and rules
// (`SpareSpace`). Merges give the space back. They need some for the moment, which is allocated too when the disk has
// less than four times as much. Merges that free space may take half of slack and reserve; the other half is left to
// deletes, also if the process is killed and its files are removed.
//
// The blocks outlive the process. On a full disk the reserve may be smaller than it should be, and deletes still use
// what is left of it.
//
// On a file system without fallocate the free space is compared instead, and nothing is reserved.

internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage
internal import Synchronization

/// The disk space of one directory's runs. Thread-safe.
final class RunSpace: Sendable {
    private struct State {
        /// Every block of `space` before this offset is allocated.
        var allocatedEnd = 0
        /// Bytes of memtables when it was looked last whether there is space.
        var heldBytes = 0
        /// Bytes that memtables may have at most by what was admitted since.
        var admittedBytes = 0
        /// Bytes that merges may need for the moment, and what of `space` is for that. While merges have taken it, or
        /// there was no space for it, it is not there.
        var mergeBytes = 0
        var mergeAllocated = 0
        /// Why ordinary commits are refused, and when to look again (monotonic clock).
        var shortage: StorageError?
        var retryNanoseconds: UInt64 = 0
        /// The last shortage, and when it was found.
        var lastShortage: (error: StorageError, nanoseconds: UInt64)?
        var hasAllocation = true
    }

    private let file: File
    /// Nothing is allocated and nothing given back.
    private let isReadOnly: Bool
    private let fault: FaultInjection
    /// Kept for commits that only delete, in bytes.
    private let reserveBytes: Int
    /// Allocated at once when there is room.
    private let stepBytes: Int
    private let state: Monitor<State>
    /// Bytes of memtables that ordinary commits may fill without a further look.
    private let coveredBytes = Atomic<Int>(-1)
    private let shortageFlag = Atomic<Bool>(false)
    private let pressureFlag = Atomic<Bool>(false)

    /// The name of the file in the directory of the runs.
    static let fileName = "space"

    private static let slackBytes = 1 << 20
    /// Given back at once for a file.
    private static let pieceBytes = 64 << 10
    private static let blockBytes = 4096
    private static let retryAfterNanoseconds: UInt64 = 200_000_000

    /// - Parameter memtableBytesMax: of the engine; a small one has small steps.
    init(
        _ path: String, memtableBytesMax: Int, reserveBytes: Int, isReadOnly: Bool = false, fault: FaultInjection
    ) throws(StorageError) {
        self.isReadOnly = isReadOnly
        self.reserveBytes = reserveBytes
        stepBytes = min(max(memtableBytesMax / 8, 64 << 10), 4 << 20)
        self.fault = fault
        if isReadOnly {
            // Only for the errors of what is refused.
            file = try File(Directory.parent(of: path), flags: O_RDONLY | O_DIRECTORY)
            state = Monitor(State(hasAllocation: false))
            return
        }
        file = try File(path, flags: O_RDWR | O_CREAT)
        // A copied file may have holes instead of blocks.
        let size = try file.byteCount()
        if try file.allocatedBytes() < size {
            try file.resize(to: 0)
            state = Monitor(State())
        } else {
            state = Monitor(State(allocatedEnd: size))
        }
    }

    /// Set while ordinary commits are refused.
    var isShort: Bool { shortageFlag.load(ordering: .relaxed) }
    /// Set while the next commits may be refused.
    var isPressed: Bool { pressureFlag.load(ordering: .relaxed) }
    var shortage: StorageError? { state.withLock { $0.shortage } }
    /// The last shortage, if it was found in the last two seconds.
    var recentShortage: StorageError? {
        let last = state.withLock { $0.lastShortage }
        guard let last, SystemClock.monotonicNanoseconds() < last.nanoseconds + 2_000_000_000 else { return nil }
        return last.error
    }

    /// Bytes of the reserve that are there now.
    var bytesReserved: Int {
        state.withLock { state in
            state.hasAllocation ? min(max(state.allocatedEnd - Self.slackBytes, 0), reserveBytes) : 0
        }
    }

    private func updateCovered(_ state: inout State) {
        let left = state.allocatedEnd - Self.slackBytes - reserveBytes - state.mergeAllocated
        coveredBytes.store(left < 0 ? -1 : left, ordering: .relaxed)
        state.admittedBytes = max(state.admittedBytes, left)
    }

    /// What merges leave of `space`: the place of memtables, and half of slack and reserve for deletes.
    private func leastEnd(_ state: State) -> Int {
        state.admittedBytes + (Self.slackBytes + reserveBytes) / 2
    }
}

// MARK: - Commits

extension RunSpace {
    /// Makes sure that memtables of `heldBytes` together will find their place in runs.
    /// - Parameters:
    ///   - mayUseReserve: the commit only deletes.
    ///   - isFinal: a failure is a refusal, and shown as a shortage. Else the caller asks again after a checkpoint.
    /// - Throws: `full`; then nothing has changed.
    func admit(heldBytes: Int, mayUseReserve: Bool, isFinal: Bool) throws(StorageError) {
        if isReadOnly || heldBytes <= coveredBytes.load(ordering: .relaxed) { return }
        try state.withLock { state throws(StorageError) in
            if mayUseReserve, admitDeletes(&state, heldBytes: heldBytes) { return }
            if let shortage = state.shortage, SystemClock.monotonicNanoseconds() < state.retryNanoseconds {
                throw shortage
            }
            do throws(StorageError) {
                try cover(&state, heldBytes: heldBytes, isFinal: isFinal)
            } catch {
                // What could be allocated may be enough for this commit.
                if mayUseReserve, admitDeletes(&state, heldBytes: heldBytes) { return }
                throw error
            }
        }
    }

    /// Whether memtables with a commit that only deletes have their place. Half of what there is for merges is left to
    /// them: they free space.
    private func admitDeletes(_ state: inout State, heldBytes: Int) -> Bool {
        let others = state.heldBytes + Self.slackBytes + reserveBytes
        let forMerges = min(max(state.allocatedEnd - others, 0), state.mergeAllocated)
        guard heldBytes <= state.allocatedEnd - forMerges / 2 else { return false }
        state.admittedBytes = max(state.admittedBytes, heldBytes)
        return true
    }

    /// Looks again whether there is space, and fills up the reserve. Gives back what is allocated for much more.
    func recheck(heldBytes: Int) {
        if isReadOnly { return }
        state.withLock { state in
            if state.shortage != nil, SystemClock.monotonicNanoseconds() < state.retryNanoseconds { return }
            try? cover(&state, heldBytes: heldBytes, isFinal: true)
            let needed = heldBytes + Self.slackBytes + reserveBytes + state.mergeAllocated
            if state.shortage == nil, state.allocatedEnd > needed + 16 * stepBytes {
                giveBack(&state, state.allocatedEnd - needed - stepBytes)
            }
        }
    }

    /// Gives back all except slack and reserve, as there are no memtables any more.
    func shrink() {
        state.withLock { state in
            let needed = Self.slackBytes + reserveBytes
            if state.shortage == nil, state.allocatedEnd > needed { giveBack(&state, state.allocatedEnd - needed) }
        }
    }

    /// Notes what merges may need for the moment, as runs have changed.
    func setMergeBytes(_ bytes: Int) {
        state.withLock { $0.mergeBytes = bytes }
    }

    /// Allocates what memtables of `heldBytes` need, with slack and reserve, and notes whether that was possible.
    private func cover(_ state: inout State, heldBytes: Int, isFinal: Bool) throws(StorageError) {
        defer {
            updateCovered(&state)
            shortageFlag.store(state.shortage != nil, ordering: .relaxed)
        }
        (state.heldBytes, state.admittedBytes) = (heldBytes, heldBytes)
        let wanted = heldBytes + Self.slackBytes + reserveBytes
        do throws(StorageError) {
            let free = try file.freeBytes() + max(0, state.allocatedEnd - wanted)
            state.mergeAllocated = free >= 4 * state.mergeBytes ? 0 : state.mergeBytes
            let end = wanted + state.mergeAllocated
            do throws(StorageError) {
                try extend(&state, to: end + stepBytes)
                pressureFlag.store(false, ordering: .relaxed)
            } catch {
                pressureFlag.store(true, ordering: .relaxed)
                try extend(&state, to: end)
            }
            state.shortage = nil
        } catch {
            let now = SystemClock.monotonicNanoseconds()
            if isFinal {
                state.shortage = error
                state.lastShortage = (error, now)
            }
            state.retryNanoseconds = now + Self.retryAfterNanoseconds
            // Others may take what is free, for example of the files of a merge that was killed.
            if error.code == .full, let free = try? file.freeBytes() {
                let pieces = free / Self.pieceBytes - 1
                try? extend(&state, to: min(leastEnd(state), state.allocatedEnd + pieces * Self.pieceBytes))
            }
            throw error
        }
    }

    /// Allocates all blocks before `end`.
    /// - Throws: `full` when the file system, a quota or the limit of file sizes does not permit it; `inputOutput`.
    private func extend(_ state: inout State, to end: Int) throws(StorageError) {
        guard end > state.allocatedEnd else { return }
        try fault.check(.allocateRun, file: file.path)
        try file.checkSizeLimit(end)
        try file.checkFreeBytes(for: end)
        if state.hasAllocation {
            state.hasAllocation = try file.allocate(from: state.allocatedEnd, to: end)
            if state.hasAllocation { try file.resize(to: end) }
        }
        state.allocatedEnd = end
    }

    /// - Returns: whether blocks were given back.
    @discardableResult
    private func giveBack(_ state: inout State, _ bytes: Int) -> Bool {
        let end = max(0, state.allocatedEnd - bytes)
        guard state.hasAllocation, (try? file.resize(to: end)) != nil else { return false }
        state.allocatedEnd = end
        updateCovered(&state)
        return true
    }
}

// MARK: - Files

extension RunSpace {
    /// What writes a file.
    enum Purpose {
        /// A checkpoint, for which the space was allocated.
        case checkpoint
        /// A merge that frees space. It may take half of slack and reserve, but nothing that memtables need.
        case mergeForSpace
        /// Another merge, which takes what was allocated for merges.
        case merge
    }

    /// Allocates the blocks of a file between `end` and `newEnd`, from those of `space` if the disk has no others.
    /// - Throws: `full`, `inputOutput`.
    func provide(_ target: File, from end: inout Int, to newEnd: Int, for purpose: Purpose) throws(StorageError) {
        try fault.check(purpose == .checkpoint ? .writeRun : .writeMerge, file: target.path)
        try target.checkSizeLimit(newEnd)
        // One at a time: blocks that are given back for one file must not be taken by another, or by `space` again.
        try state.withLock { state throws(StorageError) in
            do throws(StorageError) {
                try fault.check(.allocateRun, file: target.path)
                _ = try target.allocate(from: end, to: newEnd)
            } catch {
                guard error.code == .full else { throw error }
                let kept =
                    switch purpose {
                    case .checkpoint: 0
                    case .mergeForSpace: leastEnd(state)
                    case .merge: state.admittedBytes + Self.slackBytes + reserveBytes
                    }
                guard try move(&state, to: target, from: end, to: newEnd, keeping: kept) else { throw error }
            }
        }
        end = newEnd
    }

    /// Allocates blocks of a file on a full disk, each piece after `space` has given back as much.
    ///
    /// Another process may take what is given back before it is allocated. So the pieces are small, and others of the
    /// slack replace them.
    /// - Returns: false if `space` has not enough; what was given back so far stays so.
    private func move(
        _ state: inout State, to target: File, from start: Int, to newEnd: Int, keeping kept: Int
    ) throws(StorageError) -> Bool {
        guard state.allocatedEnd - (newEnd - start) - Self.blockBytes >= kept else { return false }
        // For the blocks that list the file's.
        giveBack(&state, Self.blockBytes)
        var end = start
        while end < newEnd {
            let pieceEnd = min(end + Self.pieceBytes, newEnd)
            guard state.allocatedEnd - (pieceEnd - end) >= kept, giveBack(&state, pieceEnd - end) else { return false }
            do throws(StorageError) {
                _ = try target.allocate(from: end, to: pieceEnd)
                end = pieceEnd
            } catch {
                if error.code != .full { throw error }
            }
        }
        return true
    }

    /// Releases some bytes of the reserve for a small file of others. Half of slack and reserve is left to deletes.
    ///
    /// - Returns: false if there are not so many.
    func release(_ bytes: Int) -> Bool {
        if isReadOnly { return false }
        return state.withLock { state in
            state.allocatedEnd - bytes >= leastEnd(state) && giveBack(&state, bytes)
        }
    }

    /// The same for a directory of runs that no engine has open. What its memtables need is not known then, so half of
    /// the slack is left at least, and little is taken.
    ///
    /// - Returns: false if there are not so many.
    static func release(_ bytes: Int, of directory: String) -> Bool {
        guard let file = try? File("\(directory)/\(fileName)", flags: O_RDWR), let end = try? file.byteCount(),
            let allocated = try? file.allocatedBytes(), allocated >= end, end - bytes >= slackBytes / 2
        else { return false }
        return (try? file.resize(to: end - bytes)) != nil
    }

    /// Releases some bytes, so that a small file can be written.
    func makeRoom(_ bytes: Int) {
        state.withLock { _ = giveBack(&$0, bytes) }
    }
}
