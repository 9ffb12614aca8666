// Removing history that has become too old, a bounded step at a time, between checkpoints.

internal import CLMDB
internal import Synchronization

/// One walk through all of history. Runs on the checkpoint thread.
@safe
struct HistorySweep {
    let core: EngineCore
    /// What was superseded up to here goes.
    let horizon: CommitVersion

    private var lastKey: [UInt8]?
    private(set) var isFinished = false

    /// Entries looked at, and removed, in one step: one write transaction.
    private static let lookedAtMax = 50_000
    private static let removedMax = 4_000
    /// The same on a disk that is nearly full: removing copies pages too.
    private static let removedMaxWhenTight = 100
    private let removedMax: Int

    init(core: EngineCore, horizon: CommitVersion) {
        self.core = core
        self.horizon = horizon
        removedMax = core.tree.space.isShort ? Self.removedMaxWhenTight : Self.removedMax
    }

    /// Walks on for one step.
    /// - Throws: `full`, `inputOutput`, `corrupt`; nothing is removed then.
    mutating func step(_ state: inout TreeState) throws(StorageError) {
        let tree = core.tree
        var swept = state
        swept.horizon = max(state.horizon, horizon)
        let (begun, base) = unsafe try tree.beginWriting()
        var transaction: OpaquePointer? = unsafe begun
        do throws(StorageError) {
            let removed = unsafe try removeOld(begun, base)
            guard removed > 0 else {
                unsafe mdb_txn_abort(transaction)
                return
            }
            unsafe try tree.put(swept, begun)
            try core.fault.check(.commitTree, file: tree.path)
            // Before the removal can be seen.
            core.horizon.store(swept.horizon.microseconds, ordering: .sequentiallyConsistent)
            unsafe transaction = nil
            unsafe try tree.commit(begun, dirtyBytes: removed * 2 * tree.pageBytes)
            state = swept
            core.counters.historyEntriesSwept.add(UInt64(removed), ordering: .relaxed)
        } catch {
            if let transaction = unsafe transaction { unsafe mdb_txn_abort(transaction) }
            throw error
        }
    }

    /// Removes what is old, as it is found in the state before; answers how many entries.
    private mutating func removeOld(_ transaction: OpaquePointer, _ base: TreeSnapshot) throws(StorageError) -> Int {
        var cursor = PageCursor<HistoryOrder>(base, base.history)
        if let lastKey {
            let buffer = ByteBuffer(capacity: lastKey.count)
            unsafe buffer.all.copyBytes(from: lastKey)
            _ = unsafe try cursor.seek(UnsafeRawBufferPointer(rebasing: buffer.all[..<lastKey.count]))
        } else {
            try cursor.moveToEnd(.forward)
        }
        var removed = 0
        var checkedLeaf: UInt64 = 0
        for _ in 0..<Self.lookedAtMax where cursor.isAtEntry {
            if unsafe HistoryEntry.superseded(try cursor.data()) <= horizon.microseconds {
                if removed == removedMax { break }
                removed += 1
                if checkedLeaf != cursor.leafNumber { try cursor.checkSurroundings() }
                checkedLeaf = cursor.leafNumber
                var key = unsafe MDB_val(cursor.key)
                unsafe try Tree.check(
                    mdb_del(transaction, core.tree.history, &key, nil), "cannot remove history", core.tree.path)
            }
            try cursor.step(.forward)
        }
        isFinished = !cursor.isAtEntry
        if cursor.isAtEntry { lastKey = unsafe Array(cursor.key) }
        return removed
    }
}
