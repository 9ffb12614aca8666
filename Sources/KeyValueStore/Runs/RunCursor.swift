internal import Glibc

/// Walks what one version sees of a run: one entry a key, the newest that is not above the version, tombstones
/// included. Valid while its set of runs is.
@safe
struct RunCursor {
    private var position: RunPosition
    private let version: UInt64
    private let latestOnly: LatestOnlySpaces
    /// The key of the entry, which is put together here.
    private let buffer: UnsafeMutableRawPointer
    private var keyBytes = 0
    /// The block of the key in the buffer, and how many of its first bytes are those of the block's first key.
    private var keyBlock: UnsafeRawPointer?
    private var keyShared = 0

    private(set) var isAtEntry = false
    private(set) var entryVersion: UInt64 = 0
    /// Nil for a tombstone.
    private(set) var value: UnsafeRawBufferPointer?

    /// Bytes of memory that a cursor needs for a key, and for the key after it.
    static let bufferBytes = 512
    /// Versions of one key are walked one by one up to here, then searched.
    private static let stepsMax = 8

    /// - Parameter buffer: `bufferBytes` of memory, which outlive the cursor.
    init(_ slices: RunSlices, version: UInt64, latestOnly: LatestOnlySpaces, buffer: UnsafeMutableRawPointer) {
        position = RunPosition(slices)
        self.version = version
        self.latestOnly = latestOnly
        unsafe self.buffer = unsafe buffer
        unsafe keyBlock = nil
        unsafe value = nil
    }

    @inline(__always)
    var key: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: buffer, count: keyBytes) }

    /// Takes the entry at the position: its key goes into the buffer.
    @inline(__always)
    private mutating func take(_ entry: Block.Entry) {
        let block = unsafe position.blockStart
        let shared = unsafe entry.shared
        let known = unsafe block == keyBlock ? keyShared : 0
        if shared > known {
            unsafe (buffer + known).copyMemory(from: position.firstKey.baseAddress! + known, byteCount: shared - known)
        }
        let suffix = unsafe entry.suffix
        if let bytes = suffix.baseAddress { unsafe (buffer + shared).copyMemory(from: bytes, byteCount: suffix.count) }
        keyBytes = shared + suffix.count
        // The first entry of a block shares nothing by definition, and everything in fact.
        keyShared = shared
        unsafe keyBlock = block
        entryVersion = unsafe position.version(entry)
        unsafe value = entry.value
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

    /// Moves the position beyond the versions of the key in the buffer.
    private mutating func skipVersions() throws(StorageError) {
        var steps = 0
        while position.isAtEntry, unsafe position.hasKey(key) {
            steps += 1
            if steps == Self.stepsMax {
                let after = unsafe keyAndZero()
                return unsafe try position.seek(after, version: .max)
            }
            try position.next()
        }
    }

    /// The key after that in the buffer: no other key is between them.
    private func keyAndZero() -> UnsafeRawBufferPointer {
        unsafe buffer.storeBytes(of: 0, toByteOffset: keyBytes, as: UInt8.self)
        return unsafe UnsafeRawBufferPointer(start: buffer, count: keyBytes + 1)
    }

    /// From the newest entry of a key that could be seen, goes to the first that is seen.
    @inline(__always)
    private mutating func settleForward() throws(StorageError) {
        while position.isAtEntry {
            let entry = unsafe position.entry
            unsafe take(entry)
            if unsafe entryVersion <= versionMax(key) {
                isAtEntry = true
                return
            }
            try skipNewer()
        }
        isAtEntry = false
    }

    /// Moves the position beyond the versions of the key in the buffer that are too new.
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
            if key.count > 0 { unsafe buffer.copyMemory(from: key.baseAddress!, byteCount: key.count) }
            keyBytes = key.count
            unsafe keyBlock = nil
            unsafe try position.seekBefore(keyAndZero())
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
            unsafe take(position.entry)
            let versionMax = unsafe versionMax(key)
            if entryVersion <= versionMax {
                isAtEntry = true
                return try takeNewest(atMost: versionMax)
            }
            // All of its versions are too new.
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
                unsafe take(position.entry)
                return try position.previous()
            }
            entryVersion = version
            unsafe value = entry.value
            try position.previous()
        }
    }

    @inline(__always)
    mutating func step(_ direction: ScanDirection) throws(StorageError) {
        if direction == .forward { try stepForward() } else { try stepBackward() }
    }
}
