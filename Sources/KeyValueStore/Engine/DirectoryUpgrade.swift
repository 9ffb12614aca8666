// The upgrade from format 1 to format 2: the tree is copied, and each entry gets checksums.
//
//   1. `upgrade/` is created with a complete copy of the tree
//   2. one rename replaces the old file by the copy
//   3. FORMAT is set to 2
//   4. `upgrade/` is removed
//
// A process that ends before 2 leaves the old tree, and the next process starts over. After 2 the state of the tree has
// a checksum, which shows the next process that only 3 and 4 remain. The log is the same in both formats.

internal import CLMDB
internal import Glibc

extension DirectoryFormat {
    /// Gives a directory of format 1 the current format. The disk must have room for a second tree.
    /// - Throws: `corrupt`, `full`, `inputOutput`; the directory can be opened again then.
    static func upgrade(_ directory: String, mapBytesMax: Int) throws(StorageError) {
        let tree = directory + "/tree"
        let work = directory + "/upgrade"
        if try !isUpgraded(tree, mapBytesMax: mapBytesMax) {
            try remove(work)
            try copy(tree, to: work, mapBytesMax: mapBytesMax)
            try Directory.rename(work + "/data.mdb", to: tree + "/data.mdb")
            try Directory.sync(tree)
        }
        try create(directory)
        try remove(work)
    }

    /// Whether the tree has been replaced already.
    private static func isUpgraded(_ tree: String, mapBytesMax: Int) throws(StorageError) -> Bool {
        let file = try TreeFile(directory: tree, mapBytesMax: mapBytesMax, isReadOnly: true, isSummed: false)
        return unsafe try file.stateBytes(try file.newest()).count == TreeState.byteCount
    }

    private static func copy(_ tree: String, to work: String, mapBytesMax: Int) throws(StorageError) {
        let old = try TreeFile(directory: tree, mapBytesMax: mapBytesMax, isReadOnly: true, isSummed: false)
        let contents = try old.newest()
        let state = try old.state(contents)
        let new = try Tree(path: work, .new, mapBytesMax: mapBytesMax, readersMax: 1)
        try new.appendMain(of: contents.snapshot)
        try new.appendHistory(of: contents.snapshot)
        try TreeUpdate.begin(new, horizon: state.horizon).commit(state, fault: FaultInjection(fault: nil))
        new.close()
        try Directory.sync(work)
    }

    private static func remove(_ work: String) throws(StorageError) {
        guard Directory.exists(work) else { return }
        for name in try Directory.names(in: work) { try Directory.removeFile(work + "/" + name) }
        guard unsafe rmdir(work) == 0 else { throw .system(errno, "cannot remove", file: work) }
    }
}

extension Tree {
    /// Appends the entries of a `main` without sums: version, value.
    fileprivate func appendMain(of old: TreeSnapshot) throws(StorageError) {
        unsafe try append(PageCursor<ByteOrder>(old, old.main), to: main) { key, entry, buffer in
            let value = unsafe UnsafeRawBufferPointer(rebasing: entry[8...])
            let count = MainEntry.byteCount(valueBytes: value.count)
            buffer.reserve(count, keeping: 0)
            unsafe MainEntry.write(
                buffer.start, keyHash: EntrySum.hash(key: key), version: entry.word(at: 0), value)
            return count
        }
    }

    /// Appends the entries of a `history` without sums: superseded, version, value.
    fileprivate func appendHistory(of old: TreeSnapshot) throws(StorageError) {
        unsafe try append(PageCursor<HistoryOrder>(old, old.history), to: history) { key, entry, buffer in
            let value = unsafe UnsafeRawBufferPointer(rebasing: entry[16...])
            let count = HistoryEntry.byteCount(valueBytes: value.count)
            buffer.reserve(count, keeping: 0)
            unsafe HistoryEntry.write(
                buffer.start, keyHash: EntrySum.hash(key: key), version: entry.word(at: 8),
                superseded: entry.word(at: 0), value)
            return count
        }
    }
}
