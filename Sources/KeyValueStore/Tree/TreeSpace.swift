// Disk space of the tree, allocated before the tree needs it.
//
// LMDB finds out that the disk is full in the middle of a checkpoint, long after the commits were acknowledged, and often reports
// it as EIO (a short write). So the space is allocated first: a commit is accepted only when the file has blocks for everything
// that the overlays will write to it. The blocks lie beyond the end of the file (fallocate(2) with FALLOC_FL_KEEP_SIZE), where
// no other process can take them, and LMDB uses them as the file grows.
//
//      data.mdb   ┌───────────────────────────┬──────────────────────┬───────────┬───────────────┐
//                 │ pages, in use or free     │ twice the overlays   │ slack     │ reserve       │
//                 └───────────────────────────┴──────────────────────┴───────────┴───────────────┘
//                 0                           end of the file                                    end of the allocated blocks
//
// Half of the free pages count as space for the overlays too. The slack is what copying pages takes for the moment. The reserve
// is for commits that only delete: they can free space on a full disk.
//
// When LMDB still answers EIO, the allocation tells what it means. If all blocks of the transaction were allocated, the disk has
// failed. If not, they are allocated now: when that fails too, the disk is full; when it succeeds, the transaction is tried again,
// once.
//
// The blocks outlive the process. When the tree is opened, the file tells where they end: on a full disk the reserve
// may be smaller than it should be, and deletes still use what is left of it.
//
// On a file system without fallocate the free space is compared instead, and nothing is reserved.

internal import Basics
internal import Glibc
internal import Synchronization

/// The space of one tree's file. Thread-safe.
final class TreeSpace: Sendable {
    private struct State {
        /// Every block before this offset is allocated.
        var allocatedEnd = 0
        /// Where new pages begin, less half of the free pages' bytes; as of the last `settle`.
        var base = 0
        /// Why ordinary commits are refused, and when to look again (monotonic clock).
        var shortage: StorageError?
        var retryNanoseconds: UInt64 = 0
        var hasAllocation = true
        /// A transaction that failed with EIO is being tried again.
        var isRetrying = false
    }

    private let file: File
    private let fault: FaultInjection
    /// Kept for commits that only delete, in bytes.
    private let reserveBytes: Int
    private let state: Monitor<State>
    /// Bytes of overlays that ordinary commits may fill without a further look.
    private let coveredBytes = Atomic<Int>(-1)
    private let shortageFlag = Atomic<Bool>(false)
    private let pressureFlag = Atomic<Bool>(false)

    /// Leaves half full, large values rounded up to pages: at most this many bytes of the tree for one of an overlay.
    private static let costFactor = 2
    /// What three small transactions of a checkpoint copy before their pages can be used again.
    private static let slackBytes = 3 * smallTransactionBytes
    /// Size of a checkpoint's transactions when the disk is nearly full.
    static let smallTransactionBytes = 1 << 20
    /// Allocated at once when there is room.
    private static let stepBytes = 4 << 20
    private static let retryAfterNanoseconds: UInt64 = 200_000_000

    init(_ path: String, reserveBytes: Int, fault: FaultInjection) throws(StorageError) {
        file = try File(path, flags: O_RDWR)
        self.reserveBytes = reserveBytes
        self.fault = fault
        state = Monitor(State(allocatedEnd: try Self.allocatedEnd(of: file)))
    }

    /// Set while ordinary commits are refused.
    var isShort: Bool { shortageFlag.load(ordering: .relaxed) }
    /// Set while the next commits may be refused.
    var isPressed: Bool { pressureFlag.load(ordering: .relaxed) }
    var shortage: StorageError? { state.withLock { $0.shortage } }

    /// Bytes of the reserve that are there now.
    var bytesReserved: Int {
        state.withLock { state in
            state.hasAllocation ? min(max(state.allocatedEnd - state.base, 0), reserveBytes) : 0
        }
    }

    /// The tree has changed: its pages end at `end`, and `freeBytes` of them are free.
    func settle(end: Int, freeBytes: Int) {
        state.withLock { state in
            state.base = end - freeBytes / 2
            state.isRetrying = false
            updateCovered(state)
        }
    }

    private func updateCovered(_ state: State) {
        let left = state.allocatedEnd - state.base - Self.slackBytes - reserveBytes
        coveredBytes.store(left < 0 ? -1 : left / Self.costFactor, ordering: .relaxed)
    }
}

// MARK: - Commits

extension TreeSpace {
    /// Makes sure that overlays of `heldBytes` together will find their place in the tree.
    /// - Parameters:
    ///   - mayUseReserve: the commit only deletes.
    ///   - isFinal: a failure is a refusal, and shown as a shortage. Else the caller asks again after a checkpoint.
    /// - Throws: `full`; then nothing has changed.
    func admit(heldBytes: Int, mayUseReserve: Bool, isFinal: Bool) throws(StorageError) {
        if heldBytes <= coveredBytes.load(ordering: .relaxed) { return }
        try state.withLock { state throws(StorageError) in
            if mayUseReserve, state.base + Self.costFactor * heldBytes <= state.allocatedEnd { return }
            if let shortage = state.shortage, SystemClock.monotonicNanoseconds() < state.retryNanoseconds {
                throw shortage
            }
            try cover(&state, heldBytes: heldBytes, isFinal: isFinal)
        }
    }

    /// Looks again whether there is space, after a refusal, and fills up the reserve.
    func recheck(heldBytes: Int) {
        state.withLock { state in
            if state.shortage != nil, SystemClock.monotonicNanoseconds() < state.retryNanoseconds { return }
            try? cover(&state, heldBytes: heldBytes, isFinal: true)
        }
    }

    /// Allocates what overlays of `heldBytes` need, with slack and reserve, and notes whether that was possible.
    private func cover(_ state: inout State, heldBytes: Int, isFinal: Bool) throws(StorageError) {
        defer {
            updateCovered(state)
            shortageFlag.store(state.shortage != nil, ordering: .relaxed)
        }
        let end = state.base + Self.costFactor * heldBytes + Self.slackBytes + reserveBytes
        do throws(StorageError) {
            do throws(StorageError) {
                try extend(&state, to: end + Self.stepBytes)
                pressureFlag.store(false, ordering: .relaxed)
            } catch {
                pressureFlag.store(true, ordering: .relaxed)
                try extend(&state, to: end)
            }
            state.shortage = nil
        } catch {
            if isFinal { state.shortage = error }
            state.retryNanoseconds = SystemClock.monotonicNanoseconds() + Self.retryAfterNanoseconds
            throw error
        }
    }
}

// MARK: - Checkpoints

extension TreeSpace {
    /// Whether a checkpoint should use small transactions, which need less space for the moment: less than `bytes` are
    /// free.
    func isTight(for bytes: Int) -> Bool {
        isShort || (try? file.freeBytes()).map { $0 < bytes } ?? false
    }

    /// What EIO from LMDB means for a transaction that changed about `dirtyBytes` of a tree whose pages ended at `end`:
    /// `full` if its blocks had not been allocated, else the error itself. Tries to allocate them, so that the same
    /// error on the next try is final.
    func explain(_ error: StorageError, end: Int, dirtyBytes: Int) -> StorageError {
        state.withLock { state in
            let needed = end + Self.costFactor * dirtyBytes + Self.slackBytes
            do throws(StorageError) {
                if state.isRetrying { return error }
                if try file.allocatedBytes() >= needed { return error }
                state.allocatedEnd = 0
                try extend(&state, to: needed)
                updateCovered(state)
                state.isRetrying = true
                return StorageError(.full, "\(error.message); its space had not been allocated", file: file.path)
            } catch let reason {
                return reason
            }
        }
    }
}

// MARK: - Allocating

extension TreeSpace {
    /// Allocates all blocks before `end`.
    /// - Throws: `full` when the file system, a quota or the limit of file sizes does not permit it; `inputOutput`.
    private func extend(_ state: inout State, to end: Int) throws(StorageError) {
        guard end > state.allocatedEnd else { return }
        try fault.check(.allocateTree, file: file.path)
        try file.checkSizeLimit(end)
        try file.checkFreeBytes(for: end)
        if state.hasAllocation { state.hasAllocation = try file.allocate(from: state.allocatedEnd, to: end) }
        state.allocatedEnd = end
    }

    /// The largest offset before which all blocks of a file are known to be allocated, beyond its end too.
    ///
    /// fstat(2) tells how many blocks there are, but not where. Allocating a block that is there takes no space, so as
    /// many blocks are allocated again from the start of the file. On a full disk that fails if the file has holes, or
    /// if the count includes blocks of the file system's own (the extent tree of ext4). Then fewer blocks are tried.
    private static func allocatedEnd(of file: File) throws(StorageError) -> Int {
        let bytes = try file.allocatedBytes()
        var excess = 0
        while excess < bytes {
            do throws(StorageError) {
                return try file.allocate(from: 0, to: bytes - excess) ? bytes - excess : 0
            } catch {
                guard error.code == .full else { throw error }
            }
            excess = max(2 * excess, 4096)
        }
        return 0
    }

    /// Allocates the file by which LMDB's readers find each other. It is written through a map: without a block for it,
    /// the process would end with SIGBUS. Call before LMDB opens it, as closing any descriptor of it gives up LMDB's
    /// locks.
    static func allocateReaderTable(_ path: String, readersMax: Int) throws(StorageError) {
        // 64 bytes a reader and two cache lines before them.
        let bytes = LogFormat.roundedToPage(readersMax * 64 + 4096)
        _ = try File(path, flags: O_RDWR | O_CREAT).allocate(from: 0, to: bytes)
    }
}
