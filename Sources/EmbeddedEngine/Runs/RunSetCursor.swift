internal import Basics
internal import Storage

/// Walks what one version sees of all runs of a set: one entry a key, tombstones included. Valid while the set is.
///
/// Runs without an entry in the range are left out when the cursor is positioned. While one is left nothing is
/// compared.
@safe
struct RunSetCursor: ~Copyable {
    // Memory of the cursor comes first: the thread sanitizer's mark of an `inout` access to an element lands at the
    // address in the first word of this value (Swift 6.3), and must not be that of shared memory.
    private let sources: UnsafeMutablePointer<RunCursor>
    private let runs: RunSetView
    private let buffers: UnsafeMutableRawPointer?
    /// Places of the runs that are at an entry, the nearest key first, and for one key the newest run first.
    private let order: UnsafeMutablePointer<Int>
    private var orderCount = 0
    private var direction = ScanDirection.forward

    /// - Parameter end: see `RunCursor`.
    init(_ runs: RunSetView, version: UInt64, latestOnly: LatestOnlySpaces, end: [UInt8]?) {
        self.runs = runs
        let count = runs.count
        let sourceBytes = MemoryLayout<RunCursor>.stride
        let endOffset = count * (RunKey.bufferBytes + sourceBytes + MemoryLayout<Int>.stride)
        let bytes = endOffset + (end?.count ?? 0)
        guard count > 0 else {
            unsafe buffers = nil
            unsafe sources = UnsafeMutablePointer(bitPattern: 16)!
            unsafe order = UnsafeMutablePointer(bitPattern: 16)!
            return
        }
        // One block: the keys, the cursors, the order, the end.
        let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 16)
        unsafe buffers = memory
        let cursors = unsafe memory + count * RunKey.bufferBytes
        unsafe sources = cursors.bindMemory(to: RunCursor.self, capacity: count)
        unsafe order = (cursors + count * sourceBytes).bindMemory(to: Int.self, capacity: count)
        var ownEnd: UnsafeRawBufferPointer?
        if let end {
            let copy = unsafe UnsafeMutableRawBufferPointer(start: memory + endOffset, count: end.count)
            unsafe copy.copyBytes(from: end)
            unsafe ownEnd = UnsafeRawBufferPointer(copy)
        }
        for run in 0..<count {
            unsafe (sources + run).initialize(
                to: RunCursor(
                    runs.runs[run], version: version, latestOnly: latestOnly, runs.cold,
                    buffer: memory + run * RunKey.bufferBytes, end: ownEnd))
        }
    }

    deinit { unsafe buffers?.deallocate() }

    var isAtEntry: Bool { orderCount > 0 }

    private var nearest: Int { unsafe order[0] }

    /// The entry at the position; the key is valid until the next move.
    var key: UnsafeRawBufferPointer { unsafe sources[nearest].key }
    /// Nil for a tombstone.
    var value: UnsafeRawBufferPointer? { unsafe sources[nearest].value }
    var entryVersion: UInt64 { unsafe sources[nearest].entryVersion }

    /// Goes to the first key at or after `key`, or to the first of all.
    mutating func seekForward(_ key: UnsafeRawBufferPointer?) throws(StorageError) {
        direction = .forward
        orderCount = 0
        for run in 0..<runs.count {
            unsafe try sources[run].seekForward(key)
            if unsafe sources[run].isAtEntry { insert(run) }
        }
    }

    /// Goes to the last key before `key` (or at it, if `inclusive`), or to the last of all.
    mutating func seekBackward(_ key: UnsafeRawBufferPointer?, inclusive: Bool) throws(StorageError) {
        direction = .backward
        orderCount = 0
        for run in 0..<runs.count {
            unsafe try sources[run].seekBackward(key, inclusive: inclusive)
            if unsafe sources[run].isAtEntry { insert(run) }
        }
    }

    /// Goes to the next key in the direction of the last seek. The cursor must be at an entry.
    @inline(__always)
    mutating func step() throws(StorageError) {
        if orderCount == 1 {
            unsafe try sources[nearest].step(direction)
            if unsafe !sources[nearest].isAtEntry { orderCount = 0 }
            return
        }
        try stepAll()
    }

    /// Moves all runs beyond the nearest key.
    private mutating func stepAll() throws(StorageError) {
        let first = nearest
        // The others at the same key follow it in the order.
        var same = 1
        while same < orderCount, unsafe compareBytes(sources[order[same]].key, sources[first].key) == 0 { same += 1 }
        var moved = same
        while moved > 0 {
            moved -= 1
            let run = unsafe order[moved]
            remove(at: moved)
            unsafe try sources[run].step(direction)
            if unsafe sources[run].isAtEntry { insert(run, from: moved) }
        }
    }

    private mutating func remove(at place: Int) {
        orderCount -= 1
        for index in place..<orderCount { unsafe order[index] = order[index + 1] }
    }

    /// Enters a run into the order, not before a place: those before are nearer.
    private mutating func insert(_ run: Int, from first: Int = 0) {
        var place = first
        while place < orderCount, unsafe !isBefore(run, order[place]) { place += 1 }
        var index = orderCount
        while index > place {
            unsafe order[index] = order[index - 1]
            index -= 1
        }
        unsafe order[place] = run
        orderCount += 1
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        let order = unsafe compareBytes(sources[left].key, sources[right].key)
        if order != 0 { return (order < 0) == (direction == .forward) }
        return left < right
    }
}
