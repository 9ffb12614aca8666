// Removing history that has become too old, a bounded step at a time, between checkpoints.

internal import CLMDB
internal import Synchronization

/// One walk through all of history. Runs on the background thread.
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
        removedMax = core.tree.space?.isShort == true ? Self.removedMaxWhenTight : Self.removedMax
    }

    /// Walks on for one step.
    /// - Throws: `full`, `inputOutput`, `corrupt`; nothing is removed then.
    mutating func step(_ state: inout TreeState) throws(StorageError) {
        var transaction: OpaquePointer?
        let tree = core.tree
        unsafe try Tree.check(mdb_txn_begin(tree.environment, nil, 0, &transaction), "cannot begin a sweep", tree.path)
        do throws(StorageError) {
            var swept = state
            swept.horizon = max(state.horizon, horizon)
            let removed = unsafe try removeOld(transaction!)
            guard removed > 0 else {
                unsafe mdb_txn_abort(transaction)
                return
            }
            unsafe try tree.put(swept, transaction!)
            try core.fault.check(.commitTree, file: tree.path)
            // Before the removal can be seen.
            core.horizon.store(swept.horizon.microseconds, ordering: .sequentiallyConsistent)
            let committing = unsafe transaction!
            unsafe transaction = nil
            unsafe try tree.commit(committing, dirtyBytes: removed * 2 * tree.pageBytes)
            state = swept
            core.counters.historyEntriesSwept.add(UInt64(removed), ordering: .relaxed)
        } catch {
            if let transaction = unsafe transaction { unsafe mdb_txn_abort(transaction) }
            throw error
        }
    }

    private mutating func removeOld(_ transaction: OpaquePointer) throws(StorageError) -> Int {
        var opened: OpaquePointer?
        unsafe try Tree.check(
            mdb_cursor_open(transaction, core.tree.history, &opened), "cannot open a cursor", core.tree.path)
        let cursor = unsafe opened!
        defer { unsafe mdb_cursor_close(cursor) }
        var key = unsafe MDB_val()
        var data = unsafe MDB_val()
        var status = unsafe position(cursor, &key, &data)
        var removed = 0
        for _ in 0..<Self.lookedAtMax {
            if status == MDB_NOTFOUND {
                isFinished = true
                return removed
            }
            try Tree.check(status, "cannot read history", core.tree.path)
            let entry = unsafe UnsafeRawBufferPointer(data)
            guard entry.count >= HistoryEntry.headerBytes else { throw Tree.shortEntry() }
            if unsafe HistoryEntry.superseded(entry) <= horizon.microseconds {
                if removed == removedMax { break }
                removed += 1
                // LMDB's next MDB_NEXT gives the entry that follows the removed one.
                unsafe try Tree.check(mdb_cursor_del(cursor, 0), "cannot remove history", core.tree.path)
            }
            status = unsafe mdb_cursor_get(cursor, &key, &data, MDB_NEXT)
        }
        if status == MDB_NOTFOUND {
            isFinished = true
            return removed
        }
        try Tree.check(status, "cannot read history", core.tree.path)
        lastKey = unsafe Array(UnsafeRawBufferPointer(key))
        return removed
    }

    /// Goes to where the step before stopped.
    private func position(_ cursor: OpaquePointer, _ key: inout MDB_val, _ data: inout MDB_val) -> Int32 {
        guard let lastKey else { return unsafe mdb_cursor_get(cursor, &key, &data, MDB_FIRST) }
        return unsafe lastKey.withUnsafeBytes { bytes in
            unsafe key = MDB_val(bytes)
            return unsafe mdb_cursor_get(cursor, &key, &data, MDB_SET_RANGE)
        }
    }
}
