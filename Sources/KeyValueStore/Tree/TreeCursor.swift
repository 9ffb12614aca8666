// Walking the tree at a version, history included where the version needs it.

/// A place in the tree. Bytes it lends stay valid until the read transaction ends, also after the cursor has moved on.
///
/// Without history this is one walk over `main`. With it, `main` and `history` are merged by key, and each key is
/// judged as `TreeSnapshot.find` does.
@safe
struct TreeCursor: ~Copyable {
    private var main: PageCursor<ByteOrder>
    private var history: PageCursor<HistoryOrder>?
    private let version: UInt64
    private let latestOnly: LatestOnlySpaces

    /// The entry at the cursor, if `isAtEntry`.
    private(set) var isAtEntry = false
    private(set) var key = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var value = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var entryVersion: UInt64 = 0

    /// With history: the next keys not judged yet, in either database; nil at its end.
    private var mainKey: UnsafeRawBufferPointer?
    private var mainEntry = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private var historyKey: UnsafeRawBufferPointer?

    /// A cursor that stands nowhere yet.
    init(_ tree: TreeSnapshot, version: UInt64, needsHistory: Bool, latestOnly: LatestOnlySpaces) {
        main = PageCursor(tree, tree.main)
        history = needsHistory ? PageCursor(tree, tree.history) : nil
        self.version = version
        self.latestOnly = latestOnly
    }

    /// Goes to the first entry at or after `bound`, or to the first of all.
    mutating func seekForward(_ bound: UnsafeRawBufferPointer?) throws(StorageError) {
        if let bound = unsafe bound {
            _ = unsafe try main.seek(bound)
            if history != nil { unsafe try seekHistory(bound, .max) }
        } else {
            try main.moveToEnd(.forward)
            try history?.moveToEnd(.forward)
        }
        try takePlaces()
        try settle(.forward)
    }

    /// Goes to the last entry before `bound` (or at it, if `inclusive`), or to the last of all.
    mutating func seekBackward(_ bound: UnsafeRawBufferPointer?, inclusive: Bool) throws(StorageError) {
        if let bound = unsafe bound {
            _ = unsafe try main.seek(bound)
            if unsafe !(inclusive && main.isAtEntry && compareBytes(main.key, bound) == 0) { try main.stepBack() }
            if history != nil {
                unsafe try seekHistory(bound, .max)
                if unsafe !(inclusive && Self.equal(userKey, bound)) { try history?.stepBack() }
            }
        } else {
            try main.moveToEnd(.backward)
            try history?.moveToEnd(.backward)
        }
        try takePlaces()
        try settle(.backward)
    }

    /// Goes to the next entry.
    @inline(__always)
    mutating func step(_ direction: ScanDirection) throws(StorageError) {
        if history == nil {
            try main.step(direction)
            try takeMain()
        }
        try settle(direction)
    }

    /// Takes the next entry that the version sees from where the cursors below stand.
    @inline(__always)
    private mutating func settle(_ direction: ScanDirection) throws(StorageError) {
        if history != nil { return try settleWithHistory(direction) }
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

    private mutating func settleWithHistory(_ direction: ScanDirection) throws(StorageError) {
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
            } else if isInHistory, unsafe try takeHistoryEntry(candidate) {
                isAtEntry = true
            }
            if isInMain {
                try main.step(direction)
                try takeMain()
            }
            if isInHistory { unsafe try leaveHistoryKey(candidate, direction) }
            if isAtEntry { return }
        }
    }

    /// Takes what the version sees of a key in history, if anything.
    private mutating func takeHistoryEntry(_ key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
        guard var cursor = history, let found = unsafe try TreeSnapshot.findInHistory(key, version: version, &cursor)
        else {
            return false
        }
        entryVersion = unsafe found.version
        unsafe value = found.bytes
        return true
    }

    /// Moves the history cursor beyond all entries of a key.
    private mutating func leaveHistoryKey(
        _ key: UnsafeRawBufferPointer, _ direction: ScanDirection
    ) throws(StorageError) {
        if direction == .forward {
            unsafe try seekHistory(key, 0)
        } else {
            unsafe try seekHistory(key, .max)
            try history?.stepBack()
        }
        unsafe historyKey = userKey
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

// MARK: - The cursors below

extension TreeCursor {
    private mutating func takePlaces() throws(StorageError) {
        try takeMain()
        if history != nil { unsafe historyKey = userKey }
    }

    @inline(__always)
    private mutating func takeMain() throws(StorageError) {
        guard main.isAtEntry else { return unsafe mainKey = nil }
        unsafe mainKey = main.key
        unsafe mainEntry = try main.data()
    }

    /// The user key at which the history cursor stands.
    private var userKey: UnsafeRawBufferPointer? {
        guard let history, history.isAtEntry else { return nil }
        return unsafe HistoryEntry.userKey(history.key)
    }

    /// Moves the history cursor to the first entry of `bound` that is not newer than `version`, or after the entries of
    /// `bound`.
    private mutating func seekHistory(_ bound: UnsafeRawBufferPointer, _ version: UInt64) throws(StorageError) {
        unsafe try withUnsafeTemporaryAllocationOfHistoryKey { buffer throws(StorageError) in
            _ = unsafe try history?.seek(HistoryEntry.makeKey(bound, version: version, in: buffer))
        }
    }
}

extension PageCursor {
    /// Moves to the entry before; from the end, to the last one.
    fileprivate mutating func stepBack() throws(StorageError) {
        if isAtEntry { try step(.backward) } else { try moveToEnd(.backward) }
    }
}
