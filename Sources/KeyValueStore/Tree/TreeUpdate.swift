// A write transaction of a checkpoint: the entries of an overlay go into `main`, and what they supersede into `history`.

internal import CLMDB

/// One write transaction with its cursors. Ends with `commit`, or is aborted when it goes. Begun and ended on one
/// thread.
///
/// What is there already is read from the state before, which stays as it is until the transaction ends: each key is
/// written once. Reading it checks the form of all pages that LMDB will touch, and the sums of the entries that are
/// replaced.
@safe
struct TreeUpdate: ~Copyable {
    private let tree: Tree
    private var transaction: OpaquePointer?
    private let main: OpaquePointer
    private let history: OpaquePointer

    /// History superseded up to here is not needed.
    private let horizon: UInt64

    /// Places in the state before.
    private var mainBefore: PageCursor<ByteOrder>
    private var historyBefore: PageCursor<HistoryOrder>
    /// The highest key of `main` before; keys above it are appended.
    private let lastKey: UnsafeRawBufferPointer?
    private var isAppending = false
    /// Keys still come in order.
    private var mayAppend = true
    /// The leaf whose surroundings were checked last.
    private var checkedLeaf: UInt64 = 0

    /// Roughly the memory that changed pages take.
    private(set) var dirtyBytes = 0
    private var lastMainPage: UInt = 0
    private var lastHistoryPage: UInt = 0

    private init(
        tree: Tree, transaction: OpaquePointer, base: TreeSnapshot, main: OpaquePointer, history: OpaquePointer,
        horizon: UInt64
    ) throws(StorageError) {
        self.tree = tree
        unsafe self.transaction = transaction
        unsafe self.main = main
        unsafe self.history = history
        self.horizon = horizon
        mainBefore = PageCursor(base.forWriting(), base.main)
        historyBefore = PageCursor(base.forWriting(), base.history)
        var last = mainBefore
        try last.moveToEnd(.backward)
        unsafe lastKey = last.isAtEntry ? last.key : nil
    }

    /// Begins a write transaction.
    static func begin(_ tree: Tree, horizon: CommitVersion) throws(StorageError) -> TreeUpdate {
        let (transaction, base) = unsafe try tree.beginWriting()
        do throws(StorageError) {
            let main = unsafe try open(transaction, tree.main, tree.path)
            let history = unsafe try open(transaction, tree.history, tree.path)
            return unsafe try TreeUpdate(
                tree: tree, transaction: transaction, base: base, main: main, history: history,
                horizon: horizon.microseconds)
        } catch {
            unsafe mdb_txn_abort(transaction)
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
        let existing = unsafe try entryBefore(key)
        if let existing = unsafe existing, unsafe MainEntry.version(existing) >= newest { return }
        if keepsHistory { unsafe try supersede(key, entries, of: overlay, existing: existing) }
        if let value = unsafe overlay.value(entries[0]) {
            unsafe try put(key, newest, value, isNew: existing == nil)
        } else if unsafe existing != nil {
            unsafe try delete(key)
        }
    }

    /// The keys that follow may lie below those before.
    mutating func endOrder() {
        mayAppend = false
        isAppending = false
    }

    /// Writes to history all values of a key but the newest: those in the overlay, and the one in `main`.
    private mutating func supersede(
        _ key: UnsafeRawBufferPointer, _ entries: [UInt32], of overlay: Overlay, existing: UnsafeRawBufferPointer?
    ) throws(StorageError) {
        var superseded = overlay.version(entries[0])
        let existingVersion = unsafe existing.map { unsafe MainEntry.version($0) }
        for entry in entries.dropFirst() {
            let version = overlay.version(entry)
            if let existingVersion, version <= existingVersion { break }
            if let value = unsafe overlay.value(entry) {
                unsafe try putHistory(key, version, superseded: superseded, value)
            }
            superseded = version
        }
        if let existing = unsafe existing, let existingVersion {
            unsafe try putHistory(key, existingVersion, superseded: superseded, MainEntry.value(existing))
        }
    }
}

// MARK: - Single steps

extension TreeUpdate {
    /// The entry of a key in `main` before the transaction. Checks the pages on which the key is or will be.
    private mutating func entryBefore(_ key: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeRawBufferPointer? {
        if mayAppend && !isAppending {
            isAppending = unsafe lastKey.map { unsafe compareBytes(key, $0) > 0 } ?? true
        }
        if isAppending { return nil }
        return unsafe try mainBefore.seekOnward(key) ? mainBefore.checkedData() : nil
    }

    private mutating func put(
        _ key: UnsafeRawBufferPointer, _ version: UInt64, _ value: UnsafeRawBufferPointer, isNew: Bool
    ) throws(StorageError) {
        let flags = isAppending ? MDB_APPEND : isNew ? MDB_NOOVERWRITE : 0
        var treeKey = unsafe MDB_val(key)
        var data = unsafe MDB_val(mv_size: MainEntry.byteCount(valueBytes: value.count), mv_data: nil)
        let status = unsafe mdb_cursor_put(main, &treeKey, &data, UInt32(flags | MDB_RESERVE))
        if status == MDB_KEYEXIST {
            throw StorageError(.corrupt, "a key is in the tree and cannot be found there", file: tree.path)
        }
        try Tree.check(status, "cannot write", tree.path)
        let place = unsafe data.mv_data!
        unsafe MainEntry.write(place, keyHash: EntrySum.hash(key: key), version: version, value)
        unsafe lastMainPage = count(UInt(bitPattern: place) >> 12, data.mv_size, after: lastMainPage)
    }

    /// Deletes the key that was looked up last.
    private mutating func delete(_ key: UnsafeRawBufferPointer) throws(StorageError) {
        if checkedLeaf != mainBefore.leafNumber {
            try mainBefore.checkSurroundings()
            checkedLeaf = mainBefore.leafNumber
        }
        var treeKey = unsafe MDB_val(key)
        unsafe try Tree.check(mdb_del(transaction, tree.main, &treeKey, nil), "cannot delete", tree.path)
        lastMainPage = count(UInt(mainBefore.leafNumber), 0, after: lastMainPage)
    }

    private mutating func putHistory(
        _ key: UnsafeRawBufferPointer, _ version: UInt64, superseded: UInt64, _ value: UnsafeRawBufferPointer
    ) throws(StorageError) {
        if superseded <= horizon { return }
        var data = unsafe MDB_val(mv_size: HistoryEntry.byteCount(valueBytes: value.count), mv_data: nil)
        let hash = unsafe try withUnsafeTemporaryAllocationOfHistoryKey { buffer throws(StorageError) in
            let bytes = unsafe HistoryEntry.makeKey(key, version: version, in: buffer)
            // Reads the large entry as well that may be replaced after a crash.
            if unsafe try historyBefore.seekOnward(bytes) { unsafe _ = try historyBefore.data() }
            var historyKey = unsafe MDB_val(bytes)
            unsafe try Tree.check(
                mdb_cursor_put(history, &historyKey, &data, UInt32(MDB_RESERVE)), "cannot write history", tree.path)
            return unsafe EntrySum.hash(key: bytes)
        }
        let place = unsafe data.mv_data!
        unsafe HistoryEntry.write(place, keyHash: hash, version: version, superseded: superseded, value)
        unsafe lastHistoryPage = count(UInt(bitPattern: place) >> 12, data.mv_size, after: lastHistoryPage)
    }

    /// Estimates what a change dirties: the pages of a large value, or the leaf page if it is not the one of the change
    /// before. Answers the page.
    private mutating func count(_ page: UInt, _ bytes: Int, after lastPage: UInt) -> UInt {
        // A page, and something for the branches above.
        if page != lastPage { dirtyBytes += 4096 + 256 }
        if bytes > 2000 { dirtyBytes += (bytes + 4095) & ~4095 }
        return page
    }
}
