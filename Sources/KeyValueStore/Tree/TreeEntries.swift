/// All entries of a tree as a run has them: by key, for one key the newest version first, with tombstones where history
/// says that a key had no value.
///
/// Entries after the checkpoint are left out: the log has them, and recovery applies them again. There are some after a
/// crash in the middle of a checkpoint.
@safe
struct TreeEntries {
    private var main: PageCursor<ByteOrder>
    private var history: PageCursor<HistoryOrder>
    private let isSummed: Bool
    private let checkpoint: UInt64
    /// The key of the entry before, and the version at which what is older ended; 0 if the key is new.
    private var key: [UInt8] = []
    private var endVersion: UInt64 = 0
    private let buffer = HeapBuffer(capacity: 512)
    /// A tombstone has been returned, and the value that it superseded follows.
    private var isValueDue = false

    /// An entry; the pointers are valid until the next one.
    @unsafe
    struct Entry {
        let key: UnsafeRawBufferPointer
        let version: UInt64
        /// Nil for a tombstone.
        let value: UnsafeRawBufferPointer?
    }

    init(_ tree: TreeSnapshot, upTo checkpoint: UInt64) throws(StorageError) {
        main = PageCursor(tree, tree.main)
        history = PageCursor(tree, tree.history)
        isSummed = tree.main.kind == .main
        self.checkpoint = checkpoint
        try main.moveToEnd(.forward)
        try history.moveToEnd(.forward)
    }

    /// The next entry, or nil at the end.
    mutating func next() throws(StorageError) -> Entry? {
        while main.isAtEntry || history.isAtEntry {
            let isMain =
                unsafe main.isAtEntry
                && (!history.isAtEntry || compareBytes(main.key, HistoryEntry.userKey(history.key)) <= 0)
            if let entry = unsafe isMain ? try takeMain() : try takeHistory() { return unsafe entry }
        }
        return nil
    }

    /// Makes a copy of the key, which `main` or `history` may leave.
    private func lend(_ key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        if key.count > 0 { unsafe buffer.start.copyMemory(from: key.baseAddress!, byteCount: key.count) }
        return unsafe UnsafeRawBufferPointer(start: buffer.start, count: key.count)
    }

    private mutating func takeMain() throws(StorageError) -> Entry? {
        let key = unsafe lend(main.key)
        let data = unsafe try main.data()
        let version = unsafe isSummed ? MainEntry.version(data) : data.word(at: 0)
        let value = unsafe isSummed ? MainEntry.value(data) : UnsafeRawBufferPointer(rebasing: data[8...])
        try main.step(.forward)
        unsafe self.key = Array(key)
        endVersion = version
        return unsafe version <= checkpoint ? Entry(key: key, version: version, value: value) : nil
    }

    private mutating func takeHistory() throws(StorageError) -> Entry? {
        let key = unsafe lend(HistoryEntry.userKey(history.key))
        let data = unsafe try history.data()
        let superseded = unsafe isSummed ? HistoryEntry.superseded(data) : data.word(at: 0)
        let version = unsafe isSummed ? HistoryEntry.version(data) : data.word(at: 8)
        let value = unsafe isSummed ? HistoryEntry.value(data) : UnsafeRawBufferPointer(rebasing: data[16...])
        let isNewKey = unsafe self.key.withUnsafeBytes { unsafe compareBytes($0, key) } != 0
        if isNewKey {
            unsafe self.key = Array(key)
            endVersion = 0
        }
        if superseded != endVersion && !isValueDue && superseded <= checkpoint {
            isValueDue = true
            return unsafe Entry(key: key, version: superseded, value: nil)
        }
        isValueDue = false
        endVersion = version
        try history.step(.forward)
        return unsafe version <= checkpoint ? Entry(key: key, version: version, value: value) : nil
    }
}
