// Walking the tree at a version, history included where the version needs it.

internal import CLMDB

/// A place in the tree. Bytes it lends stay valid until the read transaction ends, also after the cursor has moved on.
///
/// Without history this is one LMDB cursor over `main`. With it, `main` and `history` are merged by key, and each key is judged as
/// `Tree.find` does.
@safe
struct TreeCursor: ~Copyable {
    private let main: OpaquePointer
    private let history: OpaquePointer?
    private let version: UInt64
    private let latestOnly: LatestOnlySpaces

    /// The entry the cursor stands at, if `isAtEntry`.
    private(set) var isAtEntry = false
    private(set) var key = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var value = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var entryVersion: UInt64 = 0

    /// With history: the next keys not judged yet, in either database; nil at its end.
    private var mainKey: UnsafeRawBufferPointer?
    private var mainEntry = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private var historyKey: UnsafeRawBufferPointer?

    private init(
        main: OpaquePointer, history: OpaquePointer?, version: UInt64, latestOnly: LatestOnlySpaces
    ) {
        unsafe self.main = main
        unsafe self.history = history
        self.version = version
        self.latestOnly = latestOnly
    }

    /// A cursor that stands nowhere yet.
    static func open(
        _ databases: TreeDatabases, transaction: OpaquePointer, version: UInt64, needsHistory: Bool, latestOnly: LatestOnlySpaces
    ) throws(StorageError) -> TreeCursor {
        let main = unsafe try open(transaction, databases.main)
        var history: OpaquePointer?
        if needsHistory {
            do throws(StorageError) {
                unsafe history = try open(transaction, databases.history)
            } catch {
                unsafe mdb_cursor_close(main)
                throw error
            }
        }
        return unsafe TreeCursor(main: main, history: history, version: version, latestOnly: latestOnly)
    }

    deinit {
        unsafe mdb_cursor_close(main)
        if let history = unsafe history { unsafe mdb_cursor_close(history) }
    }

    private static func open(
        _ transaction: OpaquePointer, _ database: MDB_dbi
    ) throws(StorageError) -> OpaquePointer {
        var cursor: OpaquePointer?
        unsafe try Tree.check(mdb_cursor_open(transaction, database, &cursor), "cannot open a cursor", nil)
        return unsafe cursor!
    }

    /// Goes to the first entry at or after `bound`, or to the first of all.
    mutating func seekForward(_ bound: UnsafeRawBufferPointer?) throws(StorageError) {
        if let bound = unsafe bound {
            unsafe try moveMain(MDB_SET_RANGE, from: bound)
            if let history = unsafe history { unsafe try moveHistory(history, to: bound, .max) }
        } else {
            unsafe try moveMain(MDB_FIRST)
            if let history = unsafe history { unsafe try moveHistory(history, MDB_FIRST) }
        }
        try settle(.forward)
    }

    /// Goes to the last entry before `bound` (or at it, if `inclusive`), or to the last of all.
    mutating func seekBackward(_ bound: UnsafeRawBufferPointer?, inclusive: Bool) throws(StorageError) {
        guard let bound = unsafe bound else {
            unsafe try moveMain(MDB_LAST)
            if let history = unsafe history { unsafe try moveHistory(history, MDB_LAST) }
            return try settle(.backward)
        }
        unsafe try moveMain(MDB_SET_RANGE, from: bound)
        if unsafe !(inclusive && Self.equal(mainKey, bound)) {
            unsafe try moveMain(unsafe mainKey == nil ? MDB_LAST : MDB_PREV)
        }
        if let history = unsafe history {
            unsafe try moveHistory(history, to: bound, .max)
            if unsafe !(inclusive && Self.equal(historyKey, bound)) {
                unsafe try moveHistory(history, historyKey == nil ? MDB_LAST : MDB_PREV)
            }
        }
        try settle(.backward)
    }

    /// Goes to the next entry.
    mutating func step(_ direction: ScanDirection) throws(StorageError) {
        if unsafe history == nil { unsafe try moveMain(direction == .forward ? MDB_NEXT : MDB_PREV) }
        try settle(direction)
    }

    /// Takes the next entry that the version sees from what the LMDB cursors stand at.
    @inline(__always)
    private mutating func settle(_ direction: ScanDirection) throws(StorageError) {
        if let history = unsafe history { return unsafe try settleWithHistory(history, direction) }
        guard let found = unsafe mainKey else {
            isAtEntry = false
            return
        }
        isAtEntry = true
        unsafe key = found
        takeMainEntry()
    }

    private mutating func takeMainEntry() {
        unsafe entryVersion = MainEntry.version(mainEntry)
        unsafe value = MainEntry.value(mainEntry)
    }

    private mutating func settleWithHistory(
        _ history: OpaquePointer, _ direction: ScanDirection
    ) throws(StorageError) {
        while true {
            guard let candidate = unsafe nearer(mainKey, historyKey, direction) else {
                isAtEntry = false
                return
            }
            unsafe key = candidate
            isAtEntry = false
            let isInMain = unsafe Self.equal(mainKey, candidate)
            let isInHistory = unsafe Self.equal(historyKey, candidate)
            if isInMain, unsafe MainEntry.version(mainEntry) <= version || latestOnly.contains(candidate) {
                isAtEntry = true
                takeMainEntry()
            } else if isInHistory,
                let found = unsafe try Tree.findInHistory(candidate, version: version, cursor: history)
            {
                isAtEntry = true
                entryVersion = unsafe found.version
                unsafe value = found.bytes
            }
            if isInMain { unsafe try moveMain(direction == .forward ? MDB_NEXT : MDB_PREV) }
            if isInHistory { unsafe try leaveHistoryKey(candidate, history, direction) }
            if isAtEntry { return }
        }
    }

    /// Moves the history cursor beyond all entries of a key.
    private mutating func leaveHistoryKey(
        _ key: UnsafeRawBufferPointer, _ history: OpaquePointer, _ direction: ScanDirection
    ) throws(StorageError) {
        if direction == .forward {
            unsafe try moveHistory(history, to: key, 0)
        } else {
            unsafe try moveHistory(history, to: key, .max)
            unsafe try moveHistory(history, historyKey == nil ? MDB_LAST : MDB_PREV)
        }
    }

    private func nearer(
        _ left: UnsafeRawBufferPointer?, _ right: UnsafeRawBufferPointer?, _ direction: ScanDirection
    ) -> UnsafeRawBufferPointer? {
        guard let left = unsafe left else { return unsafe right }
        guard let right = unsafe right else { return unsafe left }
        let isLeftLower = unsafe compareBytes(left, right) <= 0
        return unsafe isLeftLower == (direction == .forward) ? left : right
    }

    private static func equal(_ key: UnsafeRawBufferPointer?, _ other: UnsafeRawBufferPointer) -> Bool {
        guard let key = unsafe key else { return false }
        return unsafe compareBytes(key, other) == 0
    }
}

// MARK: - The LMDB cursors

extension TreeCursor {
    @inline(__always)
    private mutating func moveMain(
        _ operation: MDB_cursor_op, from bound: UnsafeRawBufferPointer? = nil
    ) throws(StorageError) {
        var treeKey = unsafe bound.map { unsafe MDB_val($0) } ?? MDB_val()
        var data = unsafe MDB_val()
        let status = unsafe mdb_cursor_get(main, &treeKey, &data, operation)
        if status == MDB_SUCCESS {
            unsafe mainKey = UnsafeRawBufferPointer(treeKey)
            unsafe mainEntry = UnsafeRawBufferPointer(data)
            guard unsafe mainEntry.count >= MainEntry.headerBytes else { throw Tree.shortEntry() }
        } else if status == MDB_NOTFOUND {
            unsafe mainKey = nil
        } else {
            throw Tree.error(status, "cannot read", nil)
        }
    }

    /// Moves the history cursor to the first entry of `bound` not newer than `version`, or behind.
    private mutating func moveHistory(
        _ cursor: OpaquePointer, to bound: UnsafeRawBufferPointer, _ version: UInt64
    ) throws(StorageError) {
        let found = unsafe try withUnsafeTemporaryAllocationOfHistoryKey { buffer throws(StorageError) in
            let bytes = unsafe HistoryEntry.makeKey(bound, version: version, in: buffer)
            return unsafe try Self.get(cursor, MDB_SET_RANGE, bytes)
        }
        unsafe historyKey = found
    }

    private mutating func moveHistory(_ cursor: OpaquePointer, _ operation: MDB_cursor_op) throws(StorageError) {
        unsafe historyKey = try Self.get(cursor, operation, nil)
    }

    /// The user key that the operation leads to, or nil at an end.
    private static func get(
        _ cursor: OpaquePointer, _ operation: MDB_cursor_op, _ bound: UnsafeRawBufferPointer?
    ) throws(StorageError) -> UnsafeRawBufferPointer? {
        var treeKey = unsafe bound.map { unsafe MDB_val($0) } ?? MDB_val()
        var data = unsafe MDB_val()
        let status = unsafe mdb_cursor_get(cursor, &treeKey, &data, operation)
        if status == MDB_NOTFOUND { return nil }
        try Tree.check(status, "cannot read history", nil)
        let found = unsafe UnsafeRawBufferPointer(treeKey)
        guard found.count > HistoryEntry.keySuffixBytes else { throw Tree.shortEntry() }
        return unsafe HistoryEntry.userKey(found)
    }
}
