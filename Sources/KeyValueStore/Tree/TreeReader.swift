// Read transactions, kept and renewed; and what a version sees in the tree.

internal import CLMDB

/// A read transaction that is renewed for each use. One thread at a time.
@safe
final class TreeTransaction {
    let tree: Tree
    let handle: OpaquePointer

    /// Begins a transaction.
    /// - Throws: `tooManyReaders`.
    init(_ tree: Tree) throws(StorageError) {
        self.tree = tree
        var begun: OpaquePointer?
        var status = unsafe mdb_txn_begin(tree.environment, nil, UInt32(MDB_RDONLY), &begun)
        if status == MDB_READERS_FULL {
            unsafe mdb_reader_check(tree.environment, nil)
            status = unsafe mdb_txn_begin(tree.environment, nil, UInt32(MDB_RDONLY), &begun)
        }
        try Tree.check(status, "cannot begin a read transaction", tree.path)
        unsafe handle = begun!
    }

    deinit {
        unsafe mdb_txn_abort(handle)
    }

    /// Begins again after `reset`, on the tree as it is now.
    func renew() throws(StorageError) {
        unsafe try Tree.check(mdb_txn_renew(handle), "cannot renew a read transaction", tree.path)
    }

    /// Lets go of the tree's pages, but keeps the reader slot.
    func reset() {
        unsafe mdb_txn_reset(handle)
    }
}

/// A value found in the tree; points into the map.
@unsafe
struct TreeValue {
    let bytes: UnsafeRawBufferPointer
    let version: UInt64
}

extension Tree {
    /// The value that `version` sees of a key, or nil. History is looked at only if `needsHistory`, that is, if the tree may
    /// hold commits after `version`.
    func find(
        _ key: UnsafeRawBufferPointer, version: UInt64, needsHistory: Bool, latestOnly: LatestOnlySpaces,
        _ transaction: OpaquePointer
    ) throws(StorageError) -> TreeValue? {
        var treeKey = unsafe MDB_val(key)
        var data = unsafe MDB_val()
        let status = unsafe mdb_get(transaction, main, &treeKey, &data)
        if status == MDB_SUCCESS {
            let entry = unsafe UnsafeRawBufferPointer(data)
            guard entry.count >= MainEntry.headerBytes else { throw Self.shortEntry(path) }
            let entryVersion = unsafe MainEntry.version(entry)
            if unsafe !needsHistory || entryVersion <= version || latestOnly.contains(key) {
                return unsafe TreeValue(bytes: MainEntry.value(entry), version: entryVersion)
            }
        } else if status != MDB_NOTFOUND {
            throw Tree.error(status, "cannot read", path)
        }
        guard needsHistory else { return nil }
        return unsafe try findInHistory(key, version: version, transaction)
    }

    private func findInHistory(
        _ key: UnsafeRawBufferPointer, version: UInt64, _ transaction: OpaquePointer
    ) throws(StorageError) -> TreeValue? {
        var opened: OpaquePointer?
        unsafe try Tree.check(mdb_cursor_open(transaction, history, &opened), "cannot open a cursor", path)
        defer { unsafe mdb_cursor_close(opened) }
        return unsafe try Tree.findInHistory(key, version: version, cursor: opened!, path: path)
    }

    /// The value that `version` sees of a key according to history alone, where `main` has nothing or something newer.
    /// Leaves the cursor at the first entry of the key that is not newer than `version`, or behind.
    static func findInHistory(
        _ key: UnsafeRawBufferPointer, version: UInt64, cursor: OpaquePointer, path: String
    ) throws(StorageError) -> TreeValue? {
        unsafe try withUnsafeTemporaryAllocationOfHistoryKey { buffer throws(StorageError) in
            var historyKey = unsafe MDB_val(HistoryEntry.makeKey(key, version: version, in: buffer))
            var data = unsafe MDB_val()
            let status = unsafe mdb_cursor_get(cursor, &historyKey, &data, MDB_SET_RANGE)
            if status == MDB_NOTFOUND { return nil }
            try check(status, "cannot read history", path)
            let found = unsafe UnsafeRawBufferPointer(historyKey)
            let entry = unsafe UnsafeRawBufferPointer(data)
            guard found.count > HistoryEntry.keySuffixBytes, entry.count >= HistoryEntry.headerBytes else {
                throw shortEntry(path)
            }
            guard unsafe compareBytes(HistoryEntry.userKey(found), key) == 0, unsafe HistoryEntry.superseded(entry) > version
            else { return nil }
            return unsafe TreeValue(bytes: HistoryEntry.value(entry), version: HistoryEntry.version(entry))
        }
    }

    static func shortEntry(_ path: String) -> StorageError {
        StorageError(.corrupt, "an entry of the tree is shorter than its header", file: path)
    }
}

/// Lends memory for one history key.
func withUnsafeTemporaryAllocationOfHistoryKey<Output>(
    _ body: (UnsafeMutableRawPointer) throws(StorageError) -> Output
) throws(StorageError) -> Output {
    var result: Result<Output, StorageError>?
    unsafe withUnsafeTemporaryAllocation(byteCount: 512, alignment: 8) { buffer in
        do throws(StorageError) { unsafe result = .success(try body(buffer.baseAddress!)) } catch { result = .failure(error) }
    }
    return try result!.get()
}

/// The first key bytes whose keys keep no history, as a set that is quick to ask.
struct LatestOnlySpaces: Sendable {
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    init(_ spaces: Set<UInt8>) {
        for space in spaces {
            let bit = UInt64(1) << (space & 63)
            switch space >> 6 {
            case 0: words.0 |= bit
            case 1: words.1 |= bit
            case 2: words.2 |= bit
            default: words.3 |= bit
            }
        }
    }

    /// Whether keys with this key's first byte keep no history.
    func contains(_ key: UnsafeRawBufferPointer) -> Bool {
        guard let space = unsafe key.first else { return false }
        let word =
            switch space >> 6 {
            case 0: words.0
            case 1: words.1
            case 2: words.2
            default: words.3
            }
        return word >> (space & 63) & 1 == 1
    }
}
