internal import Basics
internal import Glibc
internal import Storage

/// Walks what one version sees of a run: one entry a key, the newest that is not above the version, tombstones
/// included. Valid while its set of runs is.
@safe
struct RunCursor {
    private var position: RunPosition
    private let version: UInt64
    private let latestOnly: LatestOnlySpaces
    private var runKey: RunKey
    private let end: UnsafeRawBufferPointer?

    private(set) var isAtEntry = false
    private(set) var entryVersion: UInt64 = 0
    /// Nil for a tombstone.
    private(set) var value: UnsafeRawBufferPointer?

    /// Versions of one key are walked one by one up to here, then searched.
    private static let stepsMax = 8

    /// - Parameters:
    ///   - buffer: `RunKey.bufferBytes` of memory, which outlive the cursor.
    ///   - end: forward the first key that is not wanted, backward the last that is; outlives the cursor. The cursor
    ///     gives keys beyond it too, but does not look for one among entries that the version does not see.
    init(
        _ slices: RunSlices, version: UInt64, latestOnly: LatestOnlySpaces, _ cold: ColdReads = .wait,
        buffer: UnsafeMutableRawPointer, end: UnsafeRawBufferPointer? = nil
    ) {
        unsafe self.end = end
        position = RunPosition(slices, cold)
        self.version = version
        self.latestOnly = latestOnly
        unsafe runKey = RunKey(buffer: buffer)
        unsafe value = nil
    }

    @inline(__always)
    var key: UnsafeRawBufferPointer { unsafe runKey.bytes }

    /// Takes the entry at the position.
    @inline(__always)
    private mutating func take(_ entry: Block.Entry) throws(StorageError) {
        _ = unsafe runKey.take(entry, at: position)
        entryVersion = unsafe position.version(entry)
        unsafe value = entry.value
        unsafe try position.confirm(value)
    }

    /// What may be seen of a key.
    @inline(__always)
    private func versionMax(_ key: UnsafeRawBufferPointer) -> UInt64 {
        unsafe latestOnly.contains(key) ? .max : version
    }
}

// MARK: - Forward

extension RunCursor {
    /// Goes to the first entry whose key is at or after `key`, or to the first of all.
    mutating func seekForward(_ key: UnsafeRawBufferPointer?) throws(StorageError) {
        if let key = unsafe key {
            unsafe try position.seek(key, version: versionMax(key))
        } else {
            try position.moveToStart()
        }
        try settleForward()
    }

    /// Goes to the entry with the next higher key. The cursor must be at an entry.
    @inline(__always)
    mutating func stepForward() throws(StorageError) {
        try position.next()
        if position.isAtEntry, unsafe position.hasKey(key) { try skipVersions() }
        try settleForward()
    }

    /// Moves the position beyond the versions of the key.
    private mutating func skipVersions() throws(StorageError) {
        var steps = 0
        while position.isAtEntry, unsafe position.hasKey(key) {
            steps += 1
            if steps == Self.stepsMax {
                return unsafe try position.seek(runKey.successor, version: .max)
            }
            try position.next()
        }
    }

    /// From the newest entry of a key that could be seen, goes to the first that is seen.
    @inline(__always)
    private mutating func settleForward() throws(StorageError) {
        while position.isAtEntry {
            let entry = unsafe position.entry
            unsafe try take(entry)
            if unsafe entryVersion <= versionMax(key) {
                isAtEntry = true
                return
            }
            if let end = unsafe end, unsafe compareBytes(key, end) >= 0 { break }
            try skipNewer()
        }
        isAtEntry = false
    }

    /// Moves the position beyond the versions of the key that are too new.
    private mutating func skipNewer() throws(StorageError) {
        var steps = 0
        repeat {
            steps += 1
            if steps == Self.stepsMax { return unsafe try position.seek(key, version: version) }
            try position.next()
        } while unsafe position.isAtEntry && position.hasKey(key) && position.version(position.entry) > version
    }
}

// MARK: - Backward

extension RunCursor {
    /// Goes to the last entry whose key is before `key` (or at it, if `inclusive`), or to the last of all.
    mutating func seekBackward(_ key: UnsafeRawBufferPointer?, inclusive: Bool) throws(StorageError) {
        if inclusive, let key = unsafe key {
            unsafe runKey.set(key)
            unsafe try position.seekBefore(runKey.successor)
        } else {
            unsafe try position.seekBefore(key)
        }
        try settleBackward()
    }

    /// Goes to the entry with the next lower key. The cursor must be at an entry.
    @inline(__always)
    mutating func stepBackward() throws(StorageError) {
        // Versions of the key that are too new.
        var steps = 0
        while position.isAtEntry, unsafe position.hasKey(key) {
            steps += 1
            if steps == Self.stepsMax {
                unsafe try position.seekBefore(key)
                break
            }
            try position.previous()
        }
        try settleBackward()
    }

    /// From the oldest entry of a key goes to what the version sees of it, or of the keys before it. The position is
    /// left before the entry taken.
    @inline(__always)
    private mutating func settleBackward() throws(StorageError) {
        while position.isAtEntry {
            unsafe try take(position.entry)
            let versionMax = unsafe versionMax(key)
            if entryVersion <= versionMax {
                isAtEntry = true
                return try takeNewest(atMost: versionMax)
            }
            // All of its versions are too new.
            if let end = unsafe end, unsafe compareBytes(key, end) < 0 { break }
            unsafe try position.seekBefore(key)
        }
        isAtEntry = false
    }

    /// From an entry that is seen, goes to the newest of its key that is.
    private mutating func takeNewest(atMost versionMax: UInt64) throws(StorageError) {
        var steps = 0
        try position.previous()
        while position.isAtEntry, unsafe position.hasKey(key) {
            let entry = unsafe position.entry
            let version = unsafe position.version(entry)
            if version > versionMax { return }
            steps += 1
            if steps == Self.stepsMax {
                unsafe try position.seek(key, version: versionMax)
                if !position.isAtEntry { return }
                unsafe try take(position.entry)
                return try position.previous()
            }
            entryVersion = version
            unsafe value = entry.value
            unsafe try position.confirm(value)
            try position.previous()
        }
    }

    @inline(__always)
    mutating func step(_ direction: ScanDirection) throws(StorageError) {
        if direction == .forward { try stepForward() } else { try stepBackward() }
    }
}
