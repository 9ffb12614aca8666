internal import Basics
internal import CLMDB
internal import FileSystem
internal import Glibc
internal import Storage

/// An LMDB file that liblmdb writes, in the order of keys. Not thread-safe.
///
/// Nothing is synced, and no lock file is made: the caller syncs the file when it is complete.
@safe
final class LMDBAppender {
    private let path: String
    private var environment: OpaquePointer?
    private var transaction: OpaquePointer?
    private var database: MDB_dbi = 0
    /// liblmdb reads pages that it has written through its map.
    private let faults: LibraryFaults

    /// Begins a file; there must be none at the path, or an empty one.
    /// - Throws: `full`, `inputOutput`.
    init(_ path: String) throws(StorageError) {
        self.path = path
        faults = LibraryFaults(file: path)
        unsafe environment = nil
        unsafe transaction = nil
        try call { unsafe mdb_env_create(&environment) }
        try call { unsafe mdb_env_set_mapsize(environment, DocumentFormat.fileBytesMax) }
        let flags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC | MDB_NORDAHEAD
        try call { unsafe mdb_env_open(environment, path, UInt32(flags), 0o600) }
        try begin()
        try call { unsafe mdb_dbi_open(transaction, nil, 0, &database) }
    }

    deinit { close() }

    private func begin() throws(StorageError) {
        try call { unsafe mdb_txn_begin(environment, nil, 0, &transaction) }
    }

    /// Adds a pair; its key is above all before.
    /// - Parameter fill: writes the value, whose memory is not initialized.
    /// - Throws: `full`, `inputOutput`; a page that cannot be read again is one too.
    func append(
        _ key: UnsafeRawBufferPointer, byteCount: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void
    ) throws(StorageError) {
        var name = unsafe MDB_val(mv_size: key.count, mv_data: UnsafeMutableRawPointer(mutating: key.baseAddress))
        var value = unsafe MDB_val(mv_size: byteCount, mv_data: nil)
        try call { unsafe mdb_put(transaction, database, &name, &value, UInt32(MDB_APPEND | MDB_RESERVE)) }
        unsafe fill(UnsafeMutableRawBufferPointer(start: value.mv_data, count: byteCount))
    }

    /// Pages that the file has with what was added. LMDB's list of free pages may take some more.
    func pageCount() throws(StorageError) -> (count: Int, bytes: Int) {
        var statistics = MDB_stat()
        try call { unsafe mdb_stat(transaction, database, &statistics) }
        let pages = statistics.ms_branch_pages + statistics.ms_leaf_pages + statistics.ms_overflow_pages
        return (Int(pages), Int(statistics.ms_psize))
    }

    /// Writes what was added to the file.
    func commit() throws(StorageError) {
        let committed = unsafe transaction
        unsafe transaction = nil
        try call { unsafe mdb_txn_commit(committed) }
        try begin()
    }

    /// Ends writing; what was not committed is not in the file.
    func close() {
        faults.reading {
            if let open = unsafe transaction { unsafe mdb_txn_abort(open) }
            if let open = unsafe environment { unsafe mdb_env_close(open) }
        }
        unsafe transaction = nil
        unsafe environment = nil
    }

    @inline(__always)
    private func call(_ function: () -> Int32) throws(StorageError) {
        let result = faults.reading(function)
        try faults.check()
        if let error = lmdbError(result, path) { throw error }
    }
}

/// Reads a whole LMDB file with liblmdb, which trusts its pages, and that its map can be read: the file is one in
/// memory, whose pages have been verified (``VerifiedCopy``).
enum LMDBReader {
    /// Calls `body` with each pair, in the order of keys, until it returns false.
    /// - Parameter name: of the file, for errors; the path if nil.
    /// - Throws: `corrupt`, `inputOutput`.
    static func forEach(
        _ path: String, name: String? = nil,
        _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
    ) throws(StorageError) {
        func check(_ result: Int32) throws(StorageError) {
            if let error = lmdbError(result, name ?? path) { throw error }
        }
        var environment: OpaquePointer?
        unsafe try check(mdb_env_create(&environment))
        defer { unsafe mdb_env_close(environment) }
        let flags = MDB_RDONLY | MDB_NOSUBDIR | MDB_NOLOCK
        unsafe try check(mdb_env_open(environment, path, UInt32(flags), 0o600))
        var transaction: OpaquePointer?
        unsafe try check(mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &transaction))
        defer { unsafe mdb_txn_abort(transaction) }
        var database: MDB_dbi = 0
        unsafe try check(mdb_dbi_open(transaction, nil, 0, &database))
        var cursor: OpaquePointer?
        unsafe try check(mdb_cursor_open(transaction, database, &cursor))
        defer { unsafe mdb_cursor_close(cursor) }
        var (key, value) = unsafe (MDB_val(), MDB_val())
        while true {
            let result = unsafe mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
            if result == MDB_NOTFOUND { return }
            try check(result)
            let name = unsafe UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size)
            guard unsafe body(name, UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size)) else { return }
        }
    }
}

/// The error for a result of liblmdb; nil for success.
private func lmdbError(_ result: Int32, _ path: String) -> StorageError? {
    switch result {
    case 0: return nil
    case 1...: return .system(result, "cannot write", file: path)
    case MDB_MAP_FULL: return StorageError(.full, "a file of documents has reached its bound", file: path)
    default:
        let isDamage = result == MDB_CORRUPTED || result == MDB_PAGE_NOTFOUND || result == MDB_INVALID
        let reason = unsafe String(cString: mdb_strerror(result))
        return StorageError(isDamage ? .corrupt : .inputOutput, "LMDB: \(reason)", file: path)
    }
}
