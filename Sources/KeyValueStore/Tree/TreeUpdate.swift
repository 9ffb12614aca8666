// A write transaction of a checkpoint: the entries of an overlay go into `main`, and what they supersede into `history`.

internal import CLMDB

/// One write transaction with its cursors. Ends with `commit`, or is aborted when it goes. Begun and ended on one thread.
@safe
struct TreeUpdate: ~Copyable {
    private let tree: Tree
    private var transaction: OpaquePointer?
    private let main: OpaquePointer
    private let history: OpaquePointer

    /// History superseded up to here is not needed.
    private let horizon: UInt64

    /// The highest key of `main` when the transaction began; keys above it are appended.
    private let lastKey: [UInt8]?
    private var isAppending = false
    /// Keys still come in order.
    private var mayAppend = true

    /// A copy of the value that is being superseded: LMDB's bytes do not survive the next change.
    private let scratch = ByteBuffer(capacity: 4096)
    private var scratchBytes = 0

    /// Roughly the memory that changed pages take.
    private(set) var dirtyBytes = 0
    private var lastMainPage: UInt = 0
    private var lastHistoryPage: UInt = 0

    private init(
        tree: Tree, transaction: OpaquePointer, main: OpaquePointer, history: OpaquePointer, horizon: UInt64, lastKey: [UInt8]?
    ) {
        self.tree = tree
        unsafe self.transaction = transaction
        unsafe self.main = main
        unsafe self.history = history
        self.horizon = horizon
        self.lastKey = lastKey
    }

    /// Begins a write transaction.
    static func begin(_ tree: Tree, horizon: CommitVersion) throws(StorageError) -> TreeUpdate {
        var begun: OpaquePointer?
        unsafe try Tree.check(mdb_txn_begin(tree.environment, nil, 0, &begun), "cannot begin a write transaction", tree.path)
        do throws(StorageError) {
            let main = unsafe try open(begun!, tree.main, tree.path)
            let history = unsafe try open(begun!, tree.history, tree.path)
            return unsafe TreeUpdate(
                tree: tree, transaction: begun!, main: main, history: history, horizon: horizon.microseconds,
                lastKey: try lastKey(main, tree.path))
        } catch {
            unsafe mdb_txn_abort(begun)
            throw error
        }
    }

    deinit {
        // Cursors of a write transaction go with it.
        if let transaction = unsafe transaction { unsafe mdb_txn_abort(transaction) }
    }

    private static func open(
        _ transaction: OpaquePointer, _ database: MDB_dbi, _ path: String
    ) throws(StorageError) -> OpaquePointer {
        var cursor: OpaquePointer?
        unsafe try Tree.check(mdb_cursor_open(transaction, database, &cursor), "cannot open a cursor", path)
        return unsafe cursor!
    }

    private static func lastKey(_ cursor: OpaquePointer, _ path: String) throws(StorageError) -> [UInt8]? {
        var key = unsafe MDB_val()
        var data = unsafe MDB_val()
        let status = unsafe mdb_cursor_get(cursor, &key, &data, MDB_LAST)
        if status == MDB_NOTFOUND { return nil }
        try Tree.check(status, "cannot read", path)
        return unsafe Array(UnsafeRawBufferPointer(key))
    }

    /// Makes everything done in the transaction durable, with `state`.
    consuming func commit(_ state: TreeState, fault: FaultInjection) throws(StorageError) {
        unsafe try tree.put(state, transaction!)
        try fault.check(.commitTree, file: tree.path)
        let committing = unsafe transaction!
        unsafe transaction = nil
        unsafe try tree.commit(committing, dirtyBytes: dirtyBytes)
    }
}

// MARK: - Applying an overlay

extension TreeUpdate {
    /// Brings one key up to date with its versions in an overlay, `entries`, newest first.
    ///
    /// Applying the same again changes nothing: after a crash between two transactions of a checkpoint, recovery does.
    mutating func apply(_ entries: [UInt32], of overlay: Overlay, keepsHistory: Bool) throws(StorageError) {
        let key = unsafe overlay.key(entries[0])
        let newest = overlay.version(entries[0])
        let value = unsafe overlay.value(entries[0])
        var existing: UInt64?
        if let value = unsafe value {
            if unsafe try insert(key, newest, value) {
                existing = nil
            } else {
                existing = unsafe MainEntry.version(UnsafeRawBufferPointer(scratch.all))
            }
        } else {
            existing = unsafe try lookUp(key)
        }
        if let existing, existing >= newest { return }
        if keepsHistory { unsafe try supersede(key, entries, of: overlay, existing: existing) }
        if let value = unsafe value {
            if existing != nil { unsafe try put(key, newest, value, flags: 0) }
        } else if existing != nil {
            unsafe try delete(key)
        }
    }

    /// The keys that follow may lie below those before.
    mutating func endOrder() {
        mayAppend = false
        isAppending = false
    }

    /// Writes to history all values of a key but the newest: those in the overlay, and the one in `main` (in `scratch`).
    private mutating func supersede(
        _ key: UnsafeRawBufferPointer, _ entries: [UInt32], of overlay: Overlay, existing: UInt64?
    ) throws(StorageError) {
        var superseded = overlay.version(entries[0])
        for entry in entries.dropFirst() {
            let version = overlay.version(entry)
            if let existing, version <= existing { break }
            if let value = unsafe overlay.value(entry) {
                unsafe try putHistory(key, version, superseded: superseded, value)
            }
            superseded = version
        }
        if let existing {
            let entry = unsafe UnsafeRawBufferPointer(rebasing: scratch.all[..<scratchBytes])
            unsafe try putHistory(key, existing, superseded: superseded, MainEntry.value(entry))
        }
    }
}

// MARK: - Single steps

extension TreeUpdate {
    /// Adds a key that is not there; if it is, copies its entry to `scratch` and answers false.
    private mutating func insert(
        _ key: UnsafeRawBufferPointer, _ version: UInt64, _ value: UnsafeRawBufferPointer
    ) throws(StorageError) -> Bool {
        if mayAppend && !isAppending {
            isAppending = lastKey.map { last in unsafe last.withUnsafeBytes { unsafe compareBytes(key, $0) > 0 } } ?? true
        }
        if isAppending {
            unsafe try put(key, version, value, flags: UInt32(MDB_APPEND))
            return true
        }
        var treeKey = unsafe MDB_val(key)
        var data = unsafe MDB_val(mv_size: MainEntry.headerBytes + value.count, mv_data: nil)
        let status = unsafe mdb_cursor_put(main, &treeKey, &data, UInt32(MDB_NOOVERWRITE | MDB_RESERVE))
        if status == MDB_KEYEXIST {
            unsafe try keep(data)
            return false
        }
        try Tree.check(status, "cannot write", tree.path)
        unsafe fill(data, version, value)
        return true
    }

    private mutating func put(
        _ key: UnsafeRawBufferPointer, _ version: UInt64, _ value: UnsafeRawBufferPointer, flags: UInt32
    ) throws(StorageError) {
        var treeKey = unsafe MDB_val(key)
        var data = unsafe MDB_val(mv_size: MainEntry.headerBytes + value.count, mv_data: nil)
        unsafe try Tree.check(
            mdb_cursor_put(main, &treeKey, &data, flags | UInt32(MDB_RESERVE)), "cannot write", tree.path)
        unsafe fill(data, version, value)
    }

    /// Fills the place that LMDB reserved for an entry of `main`.
    private mutating func fill(_ data: MDB_val, _ version: UInt64, _ value: UnsafeRawBufferPointer) {
        let place = unsafe data.mv_data!
        unsafe place.storeBytes(of: version.littleEndian, as: UInt64.self)
        if let bytes = value.baseAddress {
            unsafe (place + MainEntry.headerBytes).copyMemory(from: bytes, byteCount: value.count)
        }
        unsafe lastMainPage = count(place, data.mv_size, after: lastMainPage)
    }

    /// The version of a key's entry in `main`, which is copied to `scratch`.
    private mutating func lookUp(_ key: UnsafeRawBufferPointer) throws(StorageError) -> UInt64? {
        var treeKey = unsafe MDB_val(key)
        var data = unsafe MDB_val()
        let status = unsafe mdb_cursor_get(main, &treeKey, &data, MDB_SET)
        if status == MDB_NOTFOUND { return nil }
        try Tree.check(status, "cannot read", tree.path)
        unsafe try keep(data)
        return unsafe MainEntry.version(UnsafeRawBufferPointer(scratch.all))
    }

    private mutating func keep(_ data: MDB_val) throws(StorageError) {
        let entry = unsafe UnsafeRawBufferPointer(data)
        guard entry.count >= MainEntry.headerBytes else { throw Tree.shortEntry() }
        scratch.reserve(entry.count, keeping: 0)
        unsafe scratch.all.copyMemory(from: entry)
        scratchBytes = entry.count
    }

    private mutating func delete(_ key: UnsafeRawBufferPointer) throws(StorageError) {
        var treeKey = unsafe MDB_val(key)
        var data = unsafe MDB_val()
        unsafe try Tree.check(mdb_cursor_get(main, &treeKey, &data, MDB_SET), "cannot read", tree.path)
        unsafe lastMainPage = count(data.mv_data!, 0, after: lastMainPage)
        unsafe try Tree.check(mdb_cursor_del(main, 0), "cannot delete", tree.path)
    }

    private mutating func putHistory(
        _ key: UnsafeRawBufferPointer, _ version: UInt64, superseded: UInt64, _ value: UnsafeRawBufferPointer
    ) throws(StorageError) {
        if superseded <= horizon { return }
        var data = unsafe MDB_val(mv_size: HistoryEntry.headerBytes + value.count, mv_data: nil)
        let status = unsafe withUnsafeTemporaryAllocation(byteCount: 512, alignment: 8) { buffer in
            var historyKey = unsafe MDB_val(HistoryEntry.makeKey(key, version: version, in: buffer.baseAddress!))
            return unsafe mdb_cursor_put(history, &historyKey, &data, UInt32(MDB_RESERVE))
        }
        try Tree.check(status, "cannot write history", tree.path)
        let place = unsafe data.mv_data!
        unsafe place.storeBytes(of: superseded.littleEndian, as: UInt64.self)
        unsafe place.storeBytes(of: version.littleEndian, toByteOffset: 8, as: UInt64.self)
        if let bytes = value.baseAddress {
            unsafe (place + HistoryEntry.headerBytes).copyMemory(from: bytes, byteCount: value.count)
        }
        unsafe lastHistoryPage = count(place, data.mv_size, after: lastHistoryPage)
    }

    /// Estimates what a change dirties: the pages of a large value, or the leaf page if it is not the one of the change before.
    /// Answers the page.
    private mutating func count(_ place: UnsafeMutableRawPointer, _ bytes: Int, after lastPage: UInt) -> UInt {
        let page = UInt(bitPattern: place) >> 12
        // A page, and something for the branches above.
        if page != lastPage { dirtyBytes += 4096 + 256 }
        if bytes > 2000 { dirtyBytes += (bytes + 4095) & ~4095 }
        return page
    }
}
