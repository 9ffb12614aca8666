// The file of a tree, which formats 1 and 2 had instead of runs: an LMDB environment, read without LMDB, which trusts
// what it reads. It is never written.

internal import Glibc

/// The databases of one committed state.
struct TreeContents {
    let snapshot: TreeSnapshot
    let freeList: DatabaseRecord
    let directory: DatabaseRecord
    let main: DatabaseRecord
    let history: DatabaseRecord
    let meta: DatabaseRecord
    /// The sum that the seal of the state must have.
    let sealSum: UInt64
}

/// The file of a tree. Thread-safe.
final class TreeFile: Sendable {
    let map: PageMap
    /// Whether entries have sums: since format 2.
    private let isSummed: Bool

    /// The map is larger than the file: pages that were never written may be missing at its end.
    private static let mapBytesMin = 1 << 36

    /// Opens the file in a tree's directory and checks what everything else depends on: size, meta pages and
    /// their seal.
    /// - Throws: `corrupt` when the file is missing, cut short or damaged; `inputOutput`.
    init(directory: String, isSummed: Bool) throws(StorageError) {
        self.isSummed = isSummed
        let path = directory + "/data.mdb"
        guard Directory.exists(path) else { throw StorageError(.corrupt, "the tree's file is missing", file: path) }
        let file = try File(path, flags: O_RDONLY)
        guard try file.byteCount() > 0 else {
            throw StorageError(.corrupt, "the tree's file is empty", file: path, offset: 0)
        }
        let newest = try MetaPages(file).newest
        map = try PageMap(file, pageBytes: newest.pageBytes, mapBytesMax: Self.mapBytesMin)
        guard newest.pageCount <= UInt64(map.mapBytes / map.pageBytes) else {
            throw StorageError(.corrupt, "the tree's file has been cut short", file: path, offset: try file.byteCount())
        }
        let contents = try contents(newest)
        if let seal = newest.seal, seal.transaction == newest.transaction, seal.sum != contents.sealSum {
            throw StorageError(.corrupt, "the seal of the tree's newest state is wrong", file: path, offset: 0)
        }
        try noteFreePages(contents)
        try checkLength(contents)
    }

    /// The newest committed state.
    func newest() throws(StorageError) -> TreeContents { try contents(try MetaPages(map.file).newest) }

    private func contents(_ meta: MetaPage) throws(StorageError) -> TreeContents {
        let bare = TreeSnapshot(map.pages, meta)
        var sum = unsafe MetaPage.sum(map.pages[meta.transaction & 1].start)
        func record(_ name: StaticString) throws(StorageError) -> DatabaseRecord {
            let key = unsafe UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
            guard let data = unsafe try bare.find(key, in: bare.main, ByteOrder.self) else {
                throw map.pages.damaged(bare.main.page, "lacks the database \(name)")
            }
            let record = unsafe DatabaseRecord(data.baseAddress!)
            guard record.flags == 0, record.isPossible(pageCount: bare.pageCount) else {
                throw map.pages.damaged(bare.main.page, "has a damaged record of the database \(name)")
            }
            sum = unsafe MetaPage.sum(sum, of: data)
            return record
        }
        let (main, history, own) = (try record("main"), try record("history"), try record("meta"))
        let snapshot = TreeSnapshot(
            bare, main: DatabaseRoot(main, isSummed ? .main : .unsummedMain),
            history: DatabaseRoot(history, isSummed ? .history : .unsummedHistory))
        return TreeContents(
            snapshot: snapshot, freeList: meta.freeList, directory: meta.directory, main: main, history: history,
            meta: own,
            sealSum: sum)
    }

    /// What the tree says about itself in a state.
    func state(_ contents: TreeContents) throws(StorageError) -> TreeState {
        let bytes = unsafe try stateBytes(contents)
        guard let state = unsafe isSummed ? TreeState(bytes) : TreeState(unsummed: bytes) else {
            throw map.pages.damaged(contents.meta.root, "has a damaged state of the tree")
        }
        return state
    }

    /// The state as it is stored.
    func stateBytes(_ contents: TreeContents) throws(StorageError) -> UnsafeRawBufferPointer {
        let root = DatabaseRoot(contents.meta, isSummed ? .meta : .unsummedMeta)
        let name: StaticString = "state"
        let key = unsafe UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        guard let bytes = unsafe try contents.snapshot.find(key, in: root, ByteOrder.self) else {
            throw map.pages.damaged(root.page, "lacks the state of the tree")
        }
        return unsafe bytes
    }

    /// Marks the free pages, which no other page may refer to. Checks the free list on the way.
    private func noteFreePages(_ contents: TreeContents) throws(StorageError) {
        let snapshot = contents.snapshot
        try snapshot.forEachFreePage(contents.freeList) { number throws(StorageError) in
            snapshot.pages.noteFree(number, in: snapshot.transaction)
        }
    }

    /// Walks all pages of a state and notes what is wrong with them.
    func walk(_ contents: TreeContents, note: @escaping (String) -> Void) {
        var walk = PageWalk(contents.snapshot, note: note)
        walk.walk(contents.freeList, .freeList, name: "free list", NumberOrder.self)
        walk.walk(contents.directory, .directory, name: "directory", ByteOrder.self)
        walk.walk(contents.main, contents.snapshot.main.kind, name: "main", ByteOrder.self)
        walk.walk(contents.history, contents.snapshot.history.kind, name: "history", HistoryOrder.self)
        walk.walk(contents.meta, isSummed ? .meta : .unsummedMeta, name: "meta", ByteOrder.self)
        walk.meetFreePages(contents.freeList)
        walk.finish()
    }

    /// Refuses a file that lacks pages in use. The last pages may be missing when they were free before they were ever
    /// written.
    private func checkLength(_ contents: TreeContents) throws(StorageError) {
        let size = try map.file.byteCount()
        guard UInt64(size) < contents.snapshot.pageCount * UInt64(map.pageBytes) else { return }
        var problem: String?
        walk(contents) { if problem == nil { problem = $0 } }
        if let problem {
            throw StorageError(
                .corrupt, "the tree's file has been cut short: \(problem)", file: map.file.path, offset: size)
        }
    }
}
