// Walking the list of a memtable at a version: one entry a key, the newest that the version sees, deletions included.

internal import Basics
internal import Storage

/// A place among the entries of a memtable's list that one version sees. Valid while the memtable is.
@safe
struct ListCursor {
    private let memtable: Memtable
    private let version: UInt64
    private let end: [UInt8]?

    /// The entry at the cursor's position; 0 beyond either end.
    private(set) var entry: UInt32 = 0

    /// Versions of one key are walked one by one up to here, then searched.
    private static let stepsMax = 8

    /// - Parameter end: see `MemtableCursor`.
    init(_ memtable: Memtable, version: UInt64, end: [UInt8]?) {
        self.memtable = memtable
        self.version = version
        self.end = end
    }

    /// Goes to the first entry whose key is at or after `key`, or to the first of all.
    mutating func seekForward(_ key: UnsafeRawBufferPointer?) {
        entry =
            if let key = unsafe key { unsafe memtable.firstEntry(atOrAfter: key, version: .max) } else {
                memtable.firstEntry
            }
        skipUnseen()
    }

    /// Goes to the last entry whose key is before `key` (or at it, if `inclusive`), or to the last of all.
    mutating func seekBackward(_ key: UnsafeRawBufferPointer?, inclusive: Bool) {
        if inclusive, let key = unsafe key {
            entry = unsafe memtable.find(key, atMost: version)
            if entry != 0 { return }
        }
        entry = unsafe memtable.lastEntry(before: key)
        skipUnseenBackward()
    }

    mutating func step(_ direction: ScanDirection) {
        switch direction {
        case .forward: stepForward()
        case .backward: stepBackward()
        }
    }

    /// Goes to the entry with the next higher key.
    mutating func stepForward() {
        let current = unsafe memtable.key(entry)
        var steps = 0
        repeat {
            entry = memtable.next(entry)
            steps += 1
            if steps == Self.stepsMax {
                entry = unsafe memtable.firstEntry(atOrAfter: current, version: 0)
                // An entry of version 0 cannot exist: what was found has another key.
                break
            }
        } while unsafe entry != 0 && compareBytes(memtable.key(entry), current) == 0
        skipUnseen()
    }

    /// Goes to the entry with the next lower key.
    mutating func stepBackward() {
        entry = unsafe memtable.lastEntry(before: memtable.key(entry))
        skipUnseenBackward()
    }

    /// Moves forward from any entry to the first that the version sees and that is the newest such of its key.
    private mutating func skipUnseen() {
        var steps = 0
        while entry != 0 && memtable.version(entry) > version {
            if unsafe memtable.key(entry).isBeyond(end, .forward) { return entry = 0 }
            steps += 1
            if steps % Self.stepsMax == 0 {
                entry = unsafe memtable.firstEntry(atOrAfter: memtable.key(entry), version: version)
            } else {
                entry = memtable.next(entry)
            }
        }
    }

    /// From the oldest entry of a key, goes to what the version sees of it, or of the keys before it.
    private mutating func skipUnseenBackward() {
        while entry != 0 {
            let key = unsafe memtable.key(entry)
            let seen = unsafe memtable.find(key, atMost: version)
            if seen != 0 {
                entry = seen
                return
            }
            if unsafe key.isBeyond(end, .backward) { return entry = 0 }
            entry = unsafe memtable.lastEntry(before: key)
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether a key lies outside the range of a scan, beyond its end.
    ///
    /// - Parameter end: forward the first key that is not wanted, backward the last that is; nil for none.
    @inline(__always)
    func isBeyond(_ end: [UInt8]?, _ direction: ScanDirection) -> Bool {
        guard let end else { return false }
        let order = unsafe end.withUnsafeBytes { unsafe compareBytes(self, $0) }
        return direction == .forward ? order >= 0 : order < 0
    }
}
