// A consistent copy of a directory while it is being served.

internal import CLMDB
internal import Glibc
internal import Synchronization

extension EmbeddedEngine {
    /// Writes a copy, as of a version published during the call, into a directory that does not exist yet or is empty. The copy
    /// is a data directory of its own: compact, without a log. Serving goes on; the tree's file may grow meanwhile, as pages that
    /// the copy still reads are not reused.
    ///
    /// - Throws: `full`, `failed`, `closed`, `inputOutput`. What was written is left there then; a copy is whole once it has its
    ///   FORMAT file, which comes last.
    package func backup(to directory: String) throws(StorageError) {
        if Directory.exists(directory), try !Directory.names(in: directory).isEmpty {
            throw StorageError(.inputOutput, "the directory for the backup is not empty", file: directory)
        }
        try Directory.create(directory)
        let lock = try DirectoryFormat.lock(directory)
        try checkpointNow()
        // A read transaction may begin in the middle of another checkpoint; wait for one that does not.
        var transaction = try TreeTransaction(core.tree)
        var state = try core.tree.state(transaction)
        while state.newest != state.checkpoint {
            try checkpointNow()
            transaction = try TreeTransaction(core.tree)
            state = try core.tree.state(transaction)
        }
        let copy = try Tree(path: directory + "/tree", .new, mapBytesMax: options.mapBytesMax, readersMax: 16)
        try core.tree.copyEntries(of: core.tree.main, transaction, to: copy, copy.main)
        try core.tree.copyEntries(of: core.tree.history, transaction, to: copy, copy.history)
        state.firstSegment = 0
        try TreeUpdate.begin(copy, horizon: state.horizon).commit(state, fault: FaultInjection(fault: nil))
        copy.close()
        try Directory.create(directory + "/log")
        try Directory.sync(directory + "/tree")
        try DirectoryFormat.create(directory)
        lock.unlock()
    }
}

extension Tree {
    /// Appends all entries of a database, as of a transaction, to an empty one of the same order in another tree.
    fileprivate func copyEntries(
        of source: MDB_dbi, _ transaction: TreeTransaction, to copy: Tree, _ target: MDB_dbi
    ) throws(StorageError) {
        var opened: OpaquePointer?
        unsafe try Tree.check(mdb_cursor_open(transaction.handle, source, &opened), "cannot open a cursor", path)
        let cursor = unsafe opened!
        defer { unsafe mdb_cursor_close(cursor) }
        var key = unsafe MDB_val()
        var data = unsafe MDB_val()
        var status = unsafe mdb_cursor_get(cursor, &key, &data, MDB_FIRST)
        while status == MDB_SUCCESS {
            var writing: OpaquePointer?
            unsafe try Tree.check(mdb_txn_begin(copy.environment, nil, 0, &writing), "cannot begin", copy.path)
            var bytes = 0
            while status == MDB_SUCCESS && bytes < 16 << 20 {
                let put = unsafe mdb_put(writing, target, &key, &data, UInt32(MDB_APPEND))
                if put != MDB_SUCCESS {
                    unsafe mdb_txn_abort(writing)
                    throw Tree.error(put, "cannot write the copy", copy.path)
                }
                unsafe bytes += key.mv_size + data.mv_size
                status = unsafe mdb_cursor_get(cursor, &key, &data, MDB_NEXT)
            }
            unsafe try copy.commit(writing!, dirtyBytes: 2 * bytes)
        }
        if status != MDB_NOTFOUND { throw Tree.error(status, "cannot read", path) }
    }
}
