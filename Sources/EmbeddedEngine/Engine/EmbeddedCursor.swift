// Walking a range: the memtables and the runs merged by key.

internal import Basics
package import Storage

/// A place in an ordered range; `key`, `value` and `version` are those of the entry that `next()` went to, and
/// undefined before that and at the end.
@safe
package struct EmbeddedCursor: ~Copyable, ~Escapable, KeyValueCursor {
    private var active: MemtableCursor
    private var frozen: MemtableCursor
    private var runs: RunSetCursor
    /// The sources that are at the entry taken last; they move on with the next step, as keys are lent by them.
    private var isActiveTaken = false
    private var isFrozenTaken = false
    private var isRunTaken = false

    private let direction: ScanDirection
    private let lower: [UInt8]?
    private let upper: [UInt8]?
    /// The sources stand at their next entries.
    private var isPositioned = false
    private var isAtEnd = false

    private(set) var currentKey = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var currentValue = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var currentVersion: UInt64 = 0

    @_lifetime(immortal)
    private init(
        view: ReadView, lower: [UInt8]?, upper: [UInt8]?, direction: ScanDirection
    ) {
        let version = CommitVersion(microseconds: view.version)
        let end = direction == .forward ? upper : lower
        active = MemtableCursor(view.active, version: version, end: end)
        frozen = .open(view.frozen, beside: view.active, version: version, end: end)
        runs = RunSetCursor(view.runs, version: view.version, latestOnly: view.latestOnly, end: end)
        self.direction = direction
        self.lower = lower
        self.upper = upper
    }

    /// A cursor that stands before its first entry. The caller ties it to what keeps the view alive.
    @_lifetime(immortal)
    static func open(
        _ view: ReadView, lower: RawSpan?, upper: RawSpan?, direction: ScanDirection
    ) throws(StorageError) -> EmbeddedCursor {
        EmbeddedCursor(
            view: view, lower: try RangeBound.copy(lower), upper: try RangeBound.copy(upper), direction: direction)
    }

    package var key: RawSpan {
        @_lifetime(borrow self)
        borrowing get { unsafe _overrideLifetime(RawSpan(_unsafeBytes: currentKey), borrowing: self) }
    }

    package var value: RawSpan {
        @_lifetime(borrow self)
        borrowing get { unsafe _overrideLifetime(RawSpan(_unsafeBytes: currentValue), borrowing: self) }
    }

    package var version: CommitVersion { CommitVersion(microseconds: currentVersion) }
}

// MARK: - Moving

extension EmbeddedCursor {
    /// Goes to the next entry in the cursor's direction, at first to the first; false at the end.
    @_lifetime(self: copy self)
    package mutating func next() throws(StorageError) -> Bool {
        var deletions = Int.max
        return try next(passing: &deletions)
    }

    /// The same, and false at a deleted entry when `deletions`, at least 1, has come to 0; `key` is that of the entry
    /// then.
    @_lifetime(self: copy self)
    @inline(__always)
    package mutating func next(passing deletions: inout Int) throws(StorageError) -> Bool {
        if isAtEnd { return false }
        if !isPositioned { try positionAtStart() }
        while try takeNearest() {
            if unsafe isBeyondEnd(currentKey) { break }
            if unsafe currentValue.baseAddress != nil { return true }
            deletions -= 1
            if deletions <= 0 { return false }
        }
        isAtEnd = true
        return false
    }

    /// Makes the following `next()` go to the first entry at or beyond `key` in the cursor's direction, but never
    /// outside the range.
    @_lifetime(self: copy self)
    package mutating func seek(to key: RawSpan) throws(StorageError) {
        isAtEnd = false
        guard let target = try RangeBound.copy(key) else { return }
        switch direction {
        case .forward:
            let isBeforeRange = lower.map { Self.compare(target, $0) < 0 } ?? false
            if isBeforeRange || target.isEmpty { return try positionAtStart() }
            try position(target, inclusive: true)
        case .backward:
            if target.isEmpty {
                isAtEnd = true
                return
            }
            let isBehindRange = upper.map { Self.compare(target, $0) >= 0 } ?? false
            if isBehindRange { return try positionAtStart() }
            try position(target, inclusive: true)
        }
    }

    @_lifetime(self: copy self)
    private mutating func positionAtStart() throws(StorageError) {
        switch direction {
        case .forward: try position(lower, inclusive: true)
        case .backward:
            // Nothing is below an empty upper bound.
            if upper?.isEmpty == true { isAtEnd = true } else { try position(upper, inclusive: false) }
        }
    }

    /// Puts all sources at their first entries from `bound` on.
    @_lifetime(self: copy self)
    private mutating func position(_ bound: [UInt8]?, inclusive: Bool) throws(StorageError) {
        isPositioned = true
        isActiveTaken = false
        isFrozenTaken = false
        isRunTaken = false
        guard let bound, !bound.isEmpty else {
            return unsafe try position(UnsafeRawBufferPointer?.none, inclusive: inclusive)
        }
        // `Array.withUnsafeBytes` cannot capture a borrowed cursor; the copy of the pointer ends with this scope.
        let copy = HeapBuffer(capacity: bound.count)
        unsafe copy.all.copyBytes(from: bound)
        unsafe try position(UnsafeRawBufferPointer(rebasing: copy.all[..<bound.count]), inclusive: inclusive)
    }

    @_lifetime(self: copy self)
    private mutating func position(_ bound: UnsafeRawBufferPointer?, inclusive: Bool) throws(StorageError) {
        switch direction {
        case .forward:
            unsafe active.seekForward(bound)
            unsafe frozen.seekForward(bound)
            unsafe try runs.seekForward(bound)
        case .backward:
            unsafe active.seekBackward(bound, inclusive: inclusive)
            unsafe frozen.seekBackward(bound, inclusive: inclusive)
            unsafe try runs.seekBackward(bound, inclusive: inclusive)
        }
    }

    /// Takes the nearest entry of all sources, the newest layer first among equal keys, after every source has moved
    /// beyond the entry before. A deletion is taken with a value of no address (an empty value has one). False when all
    /// are at their end.
    @_lifetime(self: copy self)
    @inline(__always)
    private mutating func takeNearest() throws(StorageError) -> Bool {
        if isActiveTaken { active.step(direction) }
        if isFrozenTaken { frozen.step(direction) }
        if isRunTaken { try runs.step() }
        if !active.isAtEntry && !frozen.isAtEntry {
            isActiveTaken = false
            isFrozenTaken = false
            isRunTaken = runs.isAtEntry
            if isRunTaken { takeRunEntry() }
            return isRunTaken
        }
        takeNearestOfAll()
        return true
    }

    @_lifetime(self: copy self)
    @inline(__always)
    private mutating func takeRunEntry() {
        unsafe currentKey = runs.key
        unsafe currentValue = runs.value ?? UnsafeRawBufferPointer(start: nil, count: 0)
        currentVersion = runs.entryVersion
    }

    /// One of the memtables is at an entry.
    @_lifetime(self: copy self)
    private mutating func takeNearestOfAll() {
        var nearest = unsafe active.isAtEntry ? active.key : frozen.key
        if frozen.isAtEntry, unsafe isNearer(frozen.key, nearest) { unsafe nearest = frozen.key }
        if runs.isAtEntry, unsafe isNearer(runs.key, nearest) { unsafe nearest = runs.key }
        isActiveTaken = unsafe active.isAtEntry && compareBytes(active.key, nearest) == 0
        isFrozenTaken = unsafe frozen.isAtEntry && compareBytes(frozen.key, nearest) == 0
        isRunTaken = unsafe runs.isAtEntry && compareBytes(runs.key, nearest) == 0
        if isActiveTaken {
            take(active)
        } else if isFrozenTaken {
            take(frozen)
        } else {
            takeRunEntry()
        }
    }

    @_lifetime(self: copy self)
    private mutating func take(_ memtable: MemtableCursor) {
        unsafe currentKey = memtable.key
        currentVersion = memtable.entryVersion
        if let value = unsafe memtable.value {
            unsafe currentValue = value
        } else {
            unsafe currentValue = UnsafeRawBufferPointer(start: nil, count: 0)
        }
    }

    private func isNearer(_ key: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
        let order = unsafe compareBytes(key, other)
        return direction == .forward ? order < 0 : order > 0
    }

    @inline(__always)
    private func isBeyondEnd(_ key: UnsafeRawBufferPointer) -> Bool {
        unsafe key.isBeyond(direction == .forward ? upper : lower, direction)
    }

    private static func compare(_ left: [UInt8], _ right: [UInt8]) -> Int {
        unsafe left.withUnsafeBytes { left in unsafe right.withUnsafeBytes { unsafe compareBytes(left, $0) } }
    }
}

extension EmbeddedCursor {
    /// Like `next(passing:)`, and puts the entry into `entry`, also a deleted one.
    @_lifetime(self: copy self)
    package mutating func next(
        passing deletions: inout Int, _ entry: inout CursorEntry
    ) throws(StorageError) -> Bool {
        let isFound = try next(passing: &deletions)
        if isFound || deletions <= 0 {
            unsafe entry = unsafe CursorEntry(key: currentKey, value: currentValue, version: currentVersion)
        }
        return isFound
    }
}
