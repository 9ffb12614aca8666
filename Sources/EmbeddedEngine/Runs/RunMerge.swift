internal import Basics
internal import Storage

/// Merges runs that follow each other in age into one sequence of entries, and leaves out what no version needs.
///
/// For one key, from the newest version to the oldest:
/// - a version that was superseded at or below the horizon goes, and all older ones;
/// - in a space without history only the newest stays;
/// - of tombstones that follow each other the oldest says as much as all;
/// - in the lowest run a tombstone goes if no version of the key is older.
@safe
struct RunMerge: ~Copyable {
    private let sources: UnsafeMutablePointer<MergeSource>
    private var tree: LoserTree
    private let horizon: UInt64
    private let isLowest: Bool
    private let latestOnly: LatestOnlySpaces

    /// The key of the entries that are being merged.
    private let key = HeapBuffer(capacity: RunKey.bufferBytes)
    private var keyBytes = 0
    /// Entries that were left out because they were superseded.
    private(set) var droppedCount = 0
    private(set) var readCount = 0

    /// - Parameters:
    ///   - runs: the newest first.
    ///   - isLowest: no run is older than these.
    init(
        _ runs: [RunSlices], horizon: UInt64, isLowest: Bool, latestOnly: LatestOnlySpaces
    ) throws(StorageError) {
        tree = LoserTree(count: max(runs.count, 1))
        self.horizon = horizon
        self.isLowest = isLowest
        self.latestOnly = latestOnly
        unsafe sources = .allocate(capacity: max(runs.count, 1))
        for index in runs.indices { unsafe (sources + index).initialize(to: MergeSource(runs[index])) }
        if runs.isEmpty { unsafe sources.initialize(to: MergeSource(RunSlices.none)) }
        for index in runs.indices { unsafe try sources[index].start() }
        let all = unsafe sources
        tree.build { unsafe MergeSource.isBefore(all, $0, $1) }
    }

    deinit {
        for index in 0..<tree.count { unsafe sources[index].release() }
        unsafe sources.deallocate()
    }

    var isAtEnd: Bool { unsafe !sources[tree.winner].isAtEntry }

    /// The next key; valid until the next call of `appendKey`.
    var nextKey: UnsafeRawBufferPointer { unsafe sources[tree.winner].key }

    @inline(__always)
    private mutating func advance() throws(StorageError) {
        readCount &+= 1
        unsafe try sources[tree.winner].next()
        let all = unsafe sources
        tree.replay { unsafe MergeSource.isBefore(all, $0, $1) }
    }

    /// Takes all entries of the next key and adds those that are needed to the writer.
    @inline(__always)
    mutating func appendKey(to writer: inout RunWriter) throws(StorageError) {
        let first = unsafe sources[tree.winner].key
        unsafe key.start.copyMemory(from: first.baseAddress!, byteCount: first.count)
        keyBytes = first.count
        let key = unsafe UnsafeRawBufferPointer(start: key.start, count: keyBytes)
        // Most keys have one entry.
        let version = unsafe sources[tree.winner].version
        let value = unsafe sources[tree.winner].value
        try advance()
        if unsafe isAtEnd || compareBytes(sources[tree.winner].key, key) != 0 {
            if unsafe value == nil && isLowest { return }
            return unsafe try writer.add(key, version: version, value, superseded: nil)
        }
        unsafe try appendVersions(of: key, version, value, to: &writer)
    }

    /// The same for a key with several entries, of which the first has been taken.
    private mutating func appendVersions(
        of key: UnsafeRawBufferPointer, _ version: UInt64, _ value: UnsafeRawBufferPointer?, to writer: inout RunWriter
    ) throws(StorageError) {
        var superseded: UInt64?
        /// A tombstone that is written if it turns out to be needed.
        var tombstone: UInt64?
        var isOver = unsafe latestOnly.contains(key)
        var last = version
        if unsafe value == nil {
            tombstone = version
        } else {
            unsafe try writer.add(key, version: version, value, superseded: nil)
            superseded = version
        }
        while unsafe !isAtEnd && compareBytes(sources[tree.winner].key, key) == 0 {
            let (older, value) = unsafe (sources[tree.winner].version, sources[tree.winner].value)
            if older < last && !isOver {
                if last <= horizon {
                    isOver = true
                    droppedCount += 1
                } else if unsafe value == nil {
                    tombstone = older
                } else {
                    if let deleted = tombstone {
                        unsafe try writer.add(key, version: deleted, nil, superseded: superseded)
                        superseded = deleted
                        tombstone = nil
                    }
                    unsafe try writer.add(key, version: older, value, superseded: superseded)
                    superseded = older
                }
                last = older
            } else if older < last {
                droppedCount += 1
            }
            try advance()
        }
        if let tombstone, !isLowest {
            unsafe try writer.add(key, version: tombstone, nil, superseded: superseded)
        }
    }
}

extension RunSlices {
    /// A run without files.
    static var none: RunSlices {
        unsafe RunSlices(start: UnsafePointer(bitPattern: 8)!, count: 0)
    }
}

/// One run of a merge, at one of its entries.
@safe
struct MergeSource {
    private var position: RunPosition
    private let buffer: UnsafeMutableRawPointer
    private var runKey: RunKey
    private(set) var version: UInt64 = 0
    private(set) var value: UnsafeRawBufferPointer?

    init(_ slices: RunSlices) {
        position = RunPosition(slices)
        unsafe buffer = .allocate(byteCount: RunKey.bufferBytes, alignment: 16)
        unsafe runKey = RunKey(buffer: buffer)
        unsafe value = nil
    }

    func release() { unsafe buffer.deallocate() }

    @inline(__always)
    var isAtEntry: Bool { position.isAtEntry }

    @inline(__always)
    var key: UnsafeRawBufferPointer { unsafe runKey.bytes }

    mutating func start() throws(StorageError) {
        try position.moveToStart()
        if isAtEntry { try take() }
    }

    @inline(__always)
    mutating func next() throws(StorageError) {
        try position.next()
        if isAtEntry { try take() }
    }

    @inline(__always)
    private mutating func take() throws(StorageError) {
        let entry = unsafe position.entry
        if unsafe runKey.take(entry, at: position) { position.readAhead() }
        version = unsafe position.version(entry)
        unsafe value = entry.value
        unsafe try position.confirm(value)
    }

    /// The order of entries: by key, then the newest first. Among equal ones the newer run is first.
    @inline(__always)
    static func isBefore(_ sources: UnsafeMutablePointer<MergeSource>, _ left: Int, _ right: Int) -> Bool {
        guard unsafe sources[left].isAtEntry else { return false }
        guard unsafe sources[right].isAtEntry else { return true }
        let order = unsafe compareBytes(sources[left].key, sources[right].key)
        if order != 0 { return order < 0 }
        let (leftVersion, rightVersion) = unsafe (sources[left].version, sources[right].version)
        return leftVersion != rightVersion ? leftVersion > rightVersion : left < right
    }
}
