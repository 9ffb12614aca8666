// The tree: an LMDB environment in its safe mode, and the rules of LMDB that the rest of the engine relies on.
//
// - Opened once a process; `EmbeddedEngine` holds the directory's lock before it opens the tree. Never used across fork(2).
// - `MDB_NOTLS`: a read transaction belongs to its object, not to a thread. Each is used by one thread at a time.
// - One write transaction at a time, begun and ended on one thread: the background thread (or, before it runs, the opening one).
// - A read transaction keeps every page of its snapshot from being reused: keep it short, reset it when idle.
// - Pointers that LMDB lends live until the transaction ends; in a write transaction, until the next change.
// - No other file descriptor of the process may be opened and closed on `lock.mdb`: POSIX locks would be lost.

internal import CLMDB
internal import Glibc
internal import Synchronization

/// An open LMDB environment. Thread-safe as LMDB is.
@safe
final class Tree: @unchecked Sendable {  // MDB_env may be used by all threads.
    let environment: OpaquePointer
    let path: String
    let main: MDB_dbi
    let history: MDB_dbi
    let meta: MDB_dbi
    let pageBytes: Int
    /// Space on the disk; nil for a tree that is only read.
    let space: TreeSpace?

    private static let stateKey: StaticString = "state"

    /// What is expected in the directory of a tree.
    enum Opening {
        /// No tree: one is made.
        case new
        /// A tree that was made before. If it is missing or empty, its contents have been lost.
        case existing
        /// The same, and nothing may be changed.
        case readOnly
    }

    /// Opens the tree in `path`.
    /// - Parameter reserveBytes: space on the disk kept for commits that only delete.
    /// - Throws: `corrupt` if a tree is expected and there is none, `inputOutput`, `full`.
    init(
        path: String, _ opening: Opening, mapBytesMax: Int, readersMax: Int, reserveBytes: Int = 0,
        fault: FaultInjection = FaultInjection(fault: nil)
    ) throws(StorageError) {
        self.path = path
        let isReadOnly = opening == .readOnly
        if opening == .new { try Directory.create(path) } else { try Tree.checkPresence(path) }
        if !isReadOnly { try TreeSpace.allocateReaderTable(path + "/lock.mdb", readersMax: readersMax) }
        var created: OpaquePointer?
        unsafe try Tree.check(mdb_env_create(&created), "cannot create an environment", path)
        let environment = unsafe created!
        do throws(StorageError) {
            unsafe try Tree.check(mdb_env_set_maxdbs(environment, 8), "cannot set the number of databases", path)
            unsafe try Tree.check(mdb_env_set_maxreaders(environment, UInt32(readersMax)), "cannot set the number of readers", path)
            unsafe try Tree.check(mdb_env_set_mapsize(environment, mapBytesMax), "cannot set the map size", path)
            let flags = UInt32(MDB_NOTLS) | UInt32(MDB_NORDAHEAD) | (isReadOnly ? UInt32(MDB_RDONLY) : 0)
            unsafe try Tree.check(mdb_env_open(environment, path, flags, 0o600), "cannot open", path)
            (main, history, meta) = unsafe try Tree.openDatabases(environment, path, isNew: opening == .new)
            var statistics = MDB_stat()
            unsafe try Tree.check(mdb_env_stat(environment, &statistics), "cannot look at", path)
            pageBytes = Int(statistics.ms_psize)
            space = isReadOnly ? nil : try TreeSpace(path + "/data.mdb", reserveBytes: reserveBytes, fault: fault)
        } catch {
            unsafe mdb_env_close(environment)
            throw error
        }
        unsafe self.environment = environment
        // Slots of processes that died. There can be none while the directory's lock is held, unless someone ignores it.
        unsafe mdb_reader_check(environment, nil)
    }

    deinit {
        close()
    }

    /// Closes the environment. No transaction may be open, and none may be begun afterwards.
    func close() {
        if isClosed.exchange(true, ordering: .acquiringAndReleasing) { return }
        unsafe mdb_env_close(environment)
    }

    private let isClosed = Atomic<Bool>(false)

    /// What the tree says about itself now.
    func state() throws(StorageError) -> TreeState {
        try state(TreeTransaction(self))
    }

    /// LMDB takes an empty file for a new tree, and makes a missing one.
    private static func checkPresence(_ path: String) throws(StorageError) {
        let file = path + "/data.mdb"
        guard Directory.exists(file) else { throw StorageError(.corrupt, "the tree's file is missing", file: file) }
        guard try File(file, flags: O_RDONLY).byteCount() > 0 else {
            throw StorageError(.corrupt, "the tree's file is empty", file: file, offset: 0)
        }
    }

    /// Opens the three databases; makes them, durably, if this is a new tree.
    private static func openDatabases(
        _ environment: OpaquePointer, _ path: String, isNew: Bool
    ) throws(StorageError) -> (MDB_dbi, MDB_dbi, MDB_dbi) {
        var transaction: OpaquePointer?
        unsafe try check(
            mdb_txn_begin(environment, nil, isNew ? 0 : UInt32(MDB_RDONLY), &transaction), "cannot begin", path)
        do throws(StorageError) {
            var handles: [MDB_dbi] = []
            for name in ["main", "history", "meta"] {
                var handle = MDB_dbi()
                unsafe try check(
                    mdb_dbi_open(transaction, name, isNew ? UInt32(MDB_CREATE) : 0, &handle),
                    "cannot open the database \(name)", path)
                handles.append(handle)
            }
            unsafe try check(
                mdb_set_compare(transaction, handles[1]) { unsafe compareHistoryKeys($0, $1) }, "cannot order history", path)
            if isNew {
                unsafe try put(TreeState(), transaction!, handles[2], path)
            }
            let committing = unsafe transaction
            unsafe transaction = nil
            unsafe try check(mdb_txn_commit(committing), "cannot commit", path)
            return (handles[0], handles[1], handles[2])
        } catch {
            if let transaction = unsafe transaction { unsafe mdb_txn_abort(transaction) }
            throw error
        }
    }

    /// What the tree says about itself, as of a transaction.
    func state(_ transaction: TreeTransaction) throws(StorageError) -> TreeState {
        var value = unsafe MDB_val()
        var status: Int32 = 0
        Tree.stateKey.withUTF8Buffer { name in
            var key = unsafe MDB_val(UnsafeRawBufferPointer(name))
            status = unsafe mdb_get(transaction.handle, meta, &key, &value)
        }
        try Tree.check(status, "cannot read the state", path)
        guard let state = unsafe TreeState(UnsafeRawBufferPointer(value)) else {
            throw StorageError(.corrupt, "the tree's state has the wrong size", file: path)
        }
        return state
    }

    /// Writes the state as part of a write transaction.
    func put(_ state: TreeState, _ transaction: OpaquePointer) throws(StorageError) {
        unsafe try Tree.put(state, transaction, meta, path)
    }

    private static func put(
        _ state: TreeState, _ transaction: OpaquePointer, _ meta: MDB_dbi, _ path: String
    ) throws(StorageError) {
        let bytes = state.encoded()
        var status: Int32 = 0
        unsafe bytes.withUnsafeBytes { bytes in
            stateKey.withUTF8Buffer { name in
                var key = unsafe MDB_val(UnsafeRawBufferPointer(name))
                var value = unsafe MDB_val(bytes)
                status = unsafe mdb_put(transaction, meta, &key, &value, 0)
            }
        }
        try check(status, "cannot write the state", path)
    }

    /// Counts of a database as of a transaction.
    func statistics(_ transaction: TreeTransaction, _ database: MDB_dbi) throws(StorageError) -> MDB_stat {
        unsafe try statistics(transaction.handle, database)
    }

    func statistics(_ transaction: OpaquePointer, _ database: MDB_dbi) throws(StorageError) -> MDB_stat {
        var statistics = MDB_stat()
        unsafe try Tree.check(mdb_stat(transaction, database, &statistics), "cannot count", path)
        return statistics
    }

    /// Turns LMDB's status into an error: `full` when map or disk are full, `tooManyReaders`, `corrupt`, else `inputOutput`.
    static func check(_ status: Int32, _ what: String, _ path: String?) throws(StorageError) {
        if status == MDB_SUCCESS { return }
        throw error(status, what, path)
    }

    static func error(_ status: Int32, _ what: String, _ path: String?) -> StorageError {
        let code: StorageError.Code
        switch status {
        case MDB_MAP_FULL, ENOSPC, EDQUOT, EFBIG: code = .full
        case MDB_READERS_FULL: code = .tooManyReaders
        case MDB_CORRUPTED, MDB_PAGE_NOTFOUND, MDB_INVALID, MDB_NOTFOUND: code = .corrupt
        case MDB_VERSION_MISMATCH: code = .unsupportedFormat
        default: code = .inputOutput
        }
        return StorageError(code, unsafe "\(what): \(String(cString: mdb_strerror(status)))", file: path)
    }
}

// MARK: - Space

extension Tree {
    /// Ends a write transaction that changed about `dirtyBytes`, durably.
    /// - Throws: `full` also where LMDB reports a short write as EIO; `inputOutput`, `corrupt`. Nothing has changed then.
    func commit(_ transaction: OpaquePointer, dirtyBytes: Int) throws(StorageError) {
        let end = pagesEnd
        let status = unsafe mdb_txn_commit(transaction)
        if status == MDB_SUCCESS { return }
        let error = Tree.error(status, "cannot commit", path)
        throw status == EIO ? space?.explain(error, end: end, dirtyBytes: dirtyBytes) ?? error : error
    }

    /// Where the pages of the last committed tree end in the file, in bytes.
    private var pagesEnd: Int {
        var information = unsafe MDB_envinfo()
        unsafe mdb_env_info(environment, &information)
        return unsafe (information.me_last_pgno + 1) * pageBytes
    }

    /// Tells `space` how large the tree is and how many of its pages are free.
    /// - Throws: `tooManyReaders`, `corrupt`, `inputOutput`.
    func settleSpace() throws(StorageError) {
        let transaction = try TreeTransaction(self)
        var opened: OpaquePointer?
        // Database 0 is LMDB's list of free pages.
        unsafe try Tree.check(mdb_cursor_open(transaction.handle, 0, &opened), "cannot open a cursor", path)
        defer { unsafe mdb_cursor_close(opened) }
        var key = unsafe MDB_val()
        var list = unsafe MDB_val()
        var freePages = 0
        var status = unsafe mdb_cursor_get(opened, &key, &list, MDB_FIRST)
        while status == MDB_SUCCESS {
            // A list is its length and that many page numbers. Its size tells without reading it.
            unsafe freePages += max(list.mv_size / 8 - 1, 0)
            status = unsafe mdb_cursor_get(opened, &key, &list, MDB_NEXT)
        }
        if status != MDB_NOTFOUND { throw Tree.error(status, "cannot read", path) }
        space?.settle(end: pagesEnd, freeBytes: freePages * pageBytes)
    }
}
