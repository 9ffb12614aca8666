// Read transactions; and what a version sees in the tree.

internal import CLMDB

/// A read transaction with an owner. One thread at a time.
@safe
final class TreeTransaction {
    let tree: Tree
    let handle: OpaquePointer
    let contents: TreeContents

    var snapshot: TreeSnapshot { contents.snapshot }

    init(_ tree: Tree) throws(StorageError) {
        self.tree = tree
        unsafe handle = try Self.begin(tree)
        do throws(StorageError) {
            contents = unsafe try Self.contents(tree, handle)
        } catch {
            unsafe mdb_txn_abort(handle)
            throw error
        }
    }

    /// What the tree says about itself in this state.
    func state() throws(StorageError) -> TreeState { try tree.file.state(contents) }

    /// The state that a read transaction shows, which is restarted if it is too old to tell.
    static func contents(_ tree: Tree, _ transaction: OpaquePointer) throws(StorageError) -> TreeContents {
        while true {
            if let contents = unsafe try tree.contents(transaction) { return contents }
            unsafe mdb_txn_reset(transaction)
            unsafe try Tree.check(mdb_txn_renew(transaction), "cannot renew a read transaction", tree.path)
        }
    }

    /// Begins a read transaction, which the caller ends.
    /// - Throws: `tooManyReaders`.
    static func begin(_ tree: Tree) throws(StorageError) -> OpaquePointer {
        var begun: OpaquePointer?
        var status = unsafe mdb_txn_begin(tree.environment, nil, UInt32(MDB_RDONLY), &begun)
        if status == MDB_READERS_FULL {
            unsafe mdb_reader_check(tree.environment, nil)
            status = unsafe mdb_txn_begin(tree.environment, nil, UInt32(MDB_RDONLY), &begun)
        }
        try Tree.check(status, "cannot begin a read transaction", tree.path)
        return unsafe begun!
    }

    deinit {
        unsafe mdb_txn_abort(handle)
    }
}

/// A value found in the tree; points into the map.
@unsafe
struct TreeValue {
    let bytes: UnsafeRawBufferPointer
    let version: UInt64
}

extension TreeSnapshot {
    /// The value that `version` sees of a key, or nil. History is looked at only if `needsHistory`, that is, if the
    /// tree may hold commits after `version`.
    func find(
        _ key: UnsafeRawBufferPointer, hash: UInt64, version: UInt64, needsHistory: Bool, latestOnly: LatestOnlySpaces,
        _ cache: EntryCache?
    ) throws(StorageError) -> TreeValue? {
        if let entry = unsafe try findInMain(key, hash, cache) {
            let entryVersion = unsafe MainEntry.version(entry)
            if unsafe !needsHistory || entryVersion <= version || latestOnly.contains(key) {
                return unsafe TreeValue(bytes: MainEntry.value(entry), version: entryVersion)
            }
        }
        guard needsHistory else { return nil }
        var cursor = PageCursor<HistoryOrder>(self, history)
        return unsafe try Self.findInHistory(key, version: version, &cursor)
    }

    /// The entry of a key in `main`, or nil.
    private func findInMain(
        _ key: UnsafeRawBufferPointer, _ hash: UInt64, _ cache: EntryCache?
    ) throws(StorageError) -> UnsafeRawBufferPointer? {
        if let entry = unsafe cache?.find(key, hash: hash) { return unsafe entry }
        guard let entry = unsafe try find(key, in: main, ByteOrder.self) else { return nil }
        unsafe cache?.keep(entry, of: key, hash: hash)
        return unsafe entry
    }

    /// The value that `version` sees of a key according to history alone, where `main` has nothing or something newer.
    /// Leaves the cursor at the first entry of the key that is not newer than `version`, or after its entries.
    static func findInHistory(
        _ key: UnsafeRawBufferPointer, version: UInt64, _ cursor: inout PageCursor<HistoryOrder>
    ) throws(StorageError) -> TreeValue? {
        unsafe try withUnsafeTemporaryAllocationOfHistoryKey { buffer throws(StorageError) in
            _ = unsafe try cursor.seek(HistoryEntry.makeKey(key, version: version, in: buffer))
        }
        guard cursor.isAtEntry, unsafe compareBytes(HistoryEntry.userKey(cursor.key), key) == 0 else { return nil }
        let entry = unsafe try cursor.data()
        guard unsafe HistoryEntry.superseded(entry) > version else { return nil }
        return unsafe TreeValue(bytes: HistoryEntry.value(entry), version: HistoryEntry.version(entry))
    }
}

/// Lends memory for one history key.
func withUnsafeTemporaryAllocationOfHistoryKey<Output>(
    _ body: (UnsafeMutableRawPointer) throws(StorageError) -> Output
) throws(StorageError) -> Output {
    var result: Result<Output, StorageError>?
    unsafe withUnsafeTemporaryAllocation(byteCount: 512, alignment: 8) { buffer in
        do throws(StorageError) { unsafe result = .success(try body(buffer.baseAddress!)) } catch {
            result = .failure(error)
        }
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
