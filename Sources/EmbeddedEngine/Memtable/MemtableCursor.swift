// Walking a memtable at a version: one entry a key, the newest that the version sees, deletions included.

internal import Basics
internal import Storage

/// A place among the entries of a memtable that one version sees: in its list, or in its batches. Valid while the
/// memtable is.
@safe
struct MemtableCursor {
    private let memtable: Memtable
    private var list: ListCursor
    /// Nil if there are no batches.
    private let batches: BatchCursor?
    /// A cursor over nothing.
    private let isAbsent: Bool

    /// The entry at the cursor's position; 0 beyond either end.
    private(set) var entry: UInt32 = 0

    /// - Parameter end: forward the first key that is not wanted, backward the last that is. The cursor gives keys
    ///   beyond it too, but does not look for one among entries that the version does not see.
    init(_ memtable: Memtable, version: CommitVersion, end: [UInt8]? = nil) {
        self.memtable = memtable
        list = ListCursor(memtable, version: version.microseconds, end: end)
        batches = memtable.hasBatches ? BatchCursor(memtable, version: version.microseconds, end: end) : nil
        isAbsent = false
    }

    /// A cursor that is at its end wherever it goes.
    private init(absentBeside memtable: Memtable) {
        self.memtable = memtable
        list = ListCursor(memtable, version: 0, end: nil)
        batches = nil
        isAbsent = true
    }

    /// A cursor over a memtable that may be missing; `other` is any that is there.
    // Not an optional cursor: optional chaining of mutating calls on one goes wrong without optimisation (Swift 6.3.1).
    static func open(
        _ memtable: Memtable?, beside other: Memtable, version: CommitVersion, end: [UInt8]?
    ) -> MemtableCursor {
        if let memtable { return MemtableCursor(memtable, version: version, end: end) }
        return MemtableCursor(absentBeside: other)
    }

    var isAtEntry: Bool { entry != 0 }
    var key: UnsafeRawBufferPointer { unsafe memtable.key(entry) }
    var entryVersion: UInt64 { memtable.version(entry) }
    /// Nil for a deletion.
    var value: UnsafeRawBufferPointer? { unsafe memtable.value(entry) }

    /// Goes to the first entry whose key is at or after `key`, or to the first of all.
    mutating func seekForward(_ key: UnsafeRawBufferPointer?) {
        if isAbsent { return }
        unsafe list.seekForward(key)
        if let batches { unsafe batches.seekForward(key) }
        choose(.forward)
    }

    /// Goes to the last entry whose key is before `key` (or at it, if `inclusive`), or to the last of all.
    mutating func seekBackward(_ key: UnsafeRawBufferPointer?, inclusive: Bool) {
        if isAbsent { return }
        unsafe list.seekBackward(key, inclusive: inclusive)
        if let batches { unsafe batches.seekBackward(key, inclusive: inclusive) }
        choose(.backward)
    }

    /// Goes to the entry with the next key in a direction, which is that of the last seek.
    @inline(__always)
    mutating func step(_ direction: ScanDirection) {
        guard let batches else {
            list.step(direction)
            entry = list.entry
            return
        }
        let taken = unsafe memtable.key(entry)
        if list.entry != 0, unsafe compareBytes(memtable.key(list.entry), taken) == 0 { list.step(direction) }
        unsafe batches.step(beyond: taken)
        choose(direction)
    }

    /// Takes the nearer entry of list and batches, or the newer one if they have the same key.
    @inline(__always)
    private mutating func choose(_ direction: ScanDirection) {
        entry = list.entry
        guard let batches, batches.entry != 0 else { return }
        if entry == 0 { return entry = batches.entry }
        let order = unsafe compareBytes(memtable.key(batches.entry), memtable.key(entry))
        let isTaken =
            order == 0
            ? memtable.version(batches.entry) > memtable.version(entry) : (order < 0) == (direction == .forward)
        if isTaken { entry = batches.entry }
    }
}
