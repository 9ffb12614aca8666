// The tree: an LMDB environment in its safe mode, and the rules of LMDB that the rest of the engine relies on.
//
// - Opened once a process; `EmbeddedEngine` holds the directory's lock before it opens the tree. Never used across fork(2).
// - `MDB_NOTLS`: a read transaction belongs to its object, not to a thread. Each is used by one thread at a time.
// - One write transaction at a time, begun and ended on one thread: the background thread (or, before it runs, the opening one).
// - A read transaction keeps every page of its snapshot from being reused: keep it short, reset it when idle.
// - What LMDB touches has been checked before (`Pages`): it trusts its pages, and a damaged one would end the process. LMDB opens,
//   begins, writes and commits; all reading is ours.
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
    private let meta: MDB_dbi
    let file: TreeFile
    /// Space on the disk for what the overlays hold.
    let space: TreeSpace

    var pageBytes: Int { file.map.pageBytes }

    /// Where LMDB has mapped the file.
    private let map: UnsafeRawPointer
    /// The transaction that is being committed, or was last.
    private let committing: Atomic<UInt64>
    /// The transaction after which the free pages were marked. Background thread.
    private let markedFree = Atomic<UInt64>(0)

    private static let stateKey: StaticString = "state"

    /// What is expected in the directory of a tree.
    enum Opening {
        /// No tree: one is made.
        case new
        /// A tree that was made before. If it is missing or empty, its contents have been lost.
        case existing
    }

    /// Opens the tree in `path`.
    /// - Parameter reserveBytes: space on the disk kept for commits that only delete.
    /// - Throws: `corrupt` if a tree is expected and there is none, or it is damaged; `inputOutput`, `full`.
    init(
        path: String, _ opening: Opening, mapBytesMax: Int, readersMax: Int, reserveBytes: Int = 0,
        fault: FaultInjection = FaultInjection(fault: nil)
    ) throws(StorageError) {
        self.path = path
        var existing: TreeFile?
        if opening == .new {
            try Directory.create(path)
        } else {
            existing = try TreeFile(directory: path, mapBytesMax: mapBytesMax, isReadOnly: false, isSummed: true)
        }
        try TreeSpace.allocateReaderTable(path + "/lock.mdb", readersMax: readersMax)
        var created: OpaquePointer?
        unsafe try Tree.check(mdb_env_create(&created), "cannot create an environment", path)
        let environment = unsafe created!
        do throws(StorageError) {
            unsafe try Tree.check(mdb_env_set_maxdbs(environment, 8), "cannot set the number of databases", path)
            unsafe try Tree.check(
                mdb_env_set_maxreaders(environment, UInt32(readersMax)), "cannot set the number of readers", path)
            unsafe try Tree.check(mdb_env_set_mapsize(environment, mapBytesMax), "cannot set the map size", path)
            let flags = UInt32(MDB_NOTLS) | UInt32(MDB_NORDAHEAD)
            unsafe try Tree.check(mdb_env_open(environment, path, flags, 0o600), "cannot open", path)
            (main, history, meta) = unsafe try Tree.openDatabases(environment, path, isNew: existing == nil)
            if let existing {
                file = existing
            } else {
                file = try TreeFile(directory: path, mapBytesMax: mapBytesMax, isReadOnly: false, isSummed: true)
            }
            let newest = try file.newest()
            committing = Atomic(newest.snapshot.transaction)
            try file.seal(newest)
            let state = unsafe try file.stateBytes(newest)
            unsafe map = try Tree.findMap(environment, meta, state, file.map, path)
            space = try TreeSpace(path + "/data.mdb", reserveBytes: reserveBytes, fault: fault)
        } catch {
            unsafe mdb_env_close(environment)
            throw error
        }
        unsafe self.environment = environment
        unsafe MapFaults.add(map, byteCount: max(mapBytesMax, pageBytes), file: file.map.file.path)
        // Slots of processes that died. There can be none while the directory's lock is held, unless someone ignores it.
        unsafe mdb_reader_check(environment, nil)
    }

    deinit {
        close()
    }

    /// Closes the environment. No transaction may be open, and none may be begun afterwards.
    func close() {
        if isClosed.exchange(true, ordering: .acquiringAndReleasing) { return }
        unsafe MapFaults.remove(map)
        unsafe mdb_env_close(environment)
    }

    private let isClosed = Atomic<Bool>(false)

    /// What the tree says about itself now.
    func state() throws(StorageError) -> TreeState {
        try TreeTransaction(self).state()
    }

    /// Where LMDB has mapped the file, which it does not tell: the state of the tree lies at the same place in both
    /// maps.
    private static func findMap(
        _ environment: OpaquePointer, _ meta: MDB_dbi, _ state: UnsafeRawBufferPointer, _ own: PageMap, _ path: String
    ) throws(StorageError) -> UnsafeRawPointer {
        var transaction: OpaquePointer?
        unsafe try check(mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &transaction), "cannot begin", path)
        defer { unsafe mdb_txn_abort(transaction) }
        var value = unsafe MDB_val()
        var status: Int32 = 0
        stateKey.withUTF8Buffer { name in
            var key = unsafe MDB_val(UnsafeRawBufferPointer(name))
            status = unsafe mdb_get(transaction, meta, &key, &value)
        }
        try check(status, "cannot read the state", path)
        return unsafe UnsafeRawPointer(value.mv_data! - (state.baseAddress! - own.base))
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
                mdb_set_compare(transaction, handles[1]) { unsafe compareHistoryKeys($0, $1) }, "cannot order history",
                path)
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

    /// The state that a read transaction shows; nil if that was so long ago that its meta page is being written again.
    func contents(_ transaction: OpaquePointer) throws(StorageError) -> TreeContents? {
        let number = unsafe UInt64(mdb_txn_id(transaction))
        do throws(StorageError) {
            let contents = try file.contents(ofTransaction: number)
            atomicMemoryFence(ordering: .sequentiallyConsistent)
            return committing.load(ordering: .sequentiallyConsistent) < number + 2 ? contents : nil
        } catch {
            if committing.load(ordering: .sequentiallyConsistent) >= number + 2 { return nil }
            throw error
        }
    }

    /// Begins a write transaction, and answers it with the state that it changes. What the transaction may write is
    /// marked as unchecked, and the free list as LMDB will read it is checked.
    func beginWriting() throws(StorageError) -> (transaction: OpaquePointer, base: TreeSnapshot) {
        let base = try file.newest()
        if markedFree.load(ordering: .relaxed) != base.snapshot.transaction { try noteFreePages(base) }
        var begun: OpaquePointer?
        unsafe try Tree.check(mdb_txn_begin(environment, nil, 0, &begun), "cannot begin a write transaction", path)
        return unsafe (begun!, base.snapshot)
    }

    /// Ends a write transaction that changed about `dirtyBytes`, durably. The transaction is over in any case.
    /// - Throws: `full` also where LMDB reports a short write as EIO; `inputOutput`, `corrupt`. Nothing has changed
    ///   then.
    func commit(_ transaction: OpaquePointer, dirtyBytes: Int) throws(StorageError) {
        let end = pagesEnd
        unsafe committing.store(UInt64(mdb_txn_id(transaction)), ordering: .sequentiallyConsistent)
        let status = unsafe mdb_txn_commit(transaction)
        if status != MDB_SUCCESS {
            let error = Tree.error(status, "cannot commit", path)
            throw status == EIO ? space.explain(error, end: end, dirtyBytes: dirtyBytes) : error
        }
        // It is durable. Without a seal it is only less well guarded; if pages are damaged, the next use of them reports it.
        guard let committed = try? file.newest() else { return }
        try? file.seal(committed)
        try? noteFreePages(committed)
    }

    private func noteFreePages(_ contents: TreeContents) throws(StorageError) {
        try file.noteFreePages(contents)
        markedFree.store(contents.snapshot.transaction, ordering: .relaxed)
    }

    /// Turns LMDB's status into an error: `full` when map or disk are full, `tooManyReaders`, `corrupt`, else
    /// `inputOutput`.
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
    /// Where the pages of the last committed tree end in the file, in bytes.
    private var pagesEnd: Int {
        var information = unsafe MDB_envinfo()
        unsafe mdb_env_info(environment, &information)
        return unsafe (information.me_last_pgno + 1) * pageBytes
    }

    /// Tells `space` how large the tree is and how many of its pages are free. For the thread that commits.
    /// - Throws: `corrupt`, `inputOutput`.
    func settleSpace() throws(StorageError) {
        let contents = try file.newest()
        var freePages = 0
        try contents.snapshot.forEachFreePage(contents.freeList) { _ throws(StorageError) in freePages += 1 }
        space.settle(end: pagesEnd, freeBytes: freePages * pageBytes)
    }
}
