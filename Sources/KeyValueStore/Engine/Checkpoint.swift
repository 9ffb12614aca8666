internal import Synchronization

/// Writes a frozen memtable to the tree, in key order, in transactions of bounded size.
///
/// Each transaction has all versions of its keys. Between two transactions the tree is a mixture of old and new keys:
/// history keeps it readable at any version, and recovery applies the memtable again. Keys without history cannot be
/// read at an older version, so the last transaction writes all of them. It also advances `checkpoint`, so recovery
/// reads them as of exactly that version.
struct Checkpoint {
    let core: EngineCore
    let frozen: FrozenOverlay
    /// Where the tree is; brought up to date by each transaction.
    var state: TreeState

    /// The newest entries of keys without history.
    private var deferred: [UInt32] = []
    private(set) var entryCount: UInt64 = 0

    init(core: EngineCore, frozen: FrozenOverlay, state: TreeState) {
        self.core = core
        self.frozen = frozen
        self.state = state
    }

    /// Writes the overlay to the tree; when this returns the tree holds every commit up to the overlay's last.
    /// - Throws: `full`: what has been written stays and may be written again; `inputOutput`, `corrupt`.
    mutating func run() throws(StorageError) {
        let overlay = frozen.overlay
        let newest = max(state.newest, overlay.versionMax)
        // Before any of it can be seen in the tree: readers at lower versions must look at history from now on.
        core.treeNewest.store(newest.microseconds, ordering: .sequentiallyConsistent)
        state.newest = newest
        var entry = overlay.firstEntry
        let transactionBytes = transactionBytes
        var update = try TreeUpdate.begin(core.tree, horizon: state.horizon)
        var entries: [UInt32] = []
        while entry != 0 {
            entry = Self.takeKey(of: overlay, from: entry, into: &entries)
            entryCount += UInt64(entries.count)
            if unsafe core.latestOnly.contains(overlay.key(entries[0])) {
                deferred.append(entries[0])
                continue
            }
            try update.apply(entries, of: overlay, keepsHistory: true)
            if update.dirtyBytes >= transactionBytes {
                try update.commit(state, fault: core.fault)
                update = try TreeUpdate.begin(core.tree, horizon: state.horizon)
            }
        }
        if !deferred.isEmpty { update.endOrder() }
        for entry in deferred {
            entries.removeAll(keepingCapacity: true)
            entries.append(entry)
            try update.apply(entries, of: overlay, keepsHistory: false)
        }
        state.checkpoint = max(state.checkpoint, overlay.versionMax)
        state.firstSegment = frozen.nextSegment
        try update.commit(state, fault: core.fault)
    }

    /// Memory of changed pages in one transaction: less on a disk that is nearly full, as each copies what it changes.
    private var transactionBytes: Int {
        let usual = core.options.checkpointTransactionBytes
        let isTight = core.tree.space.isTight(for: 4 * usual)
        return isTight ? min(usual, TreeSpace.smallTransactionBytes) : usual
    }

    /// Collects the versions of the key at `entry`, newest first; returns the entry after them.
    private static func takeKey(of overlay: Overlay, from entry: UInt32, into entries: inout [UInt32]) -> UInt32 {
        entries.removeAll(keepingCapacity: true)
        let key = unsafe overlay.key(entry)
        var following = entry
        repeat {
            entries.append(following)
            following = overlay.next(following)
        } while unsafe following != 0 && compareBytes(overlay.key(following), key) == 0
        return following
    }
}
