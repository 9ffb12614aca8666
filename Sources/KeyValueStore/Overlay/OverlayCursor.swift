// Walking an overlay at a version: one entry a key, the newest that the version sees, deletions included.

/// A place among the entries of an overlay that one version sees. Valid while the overlay is.
@safe
struct OverlayCursor {
    private let overlay: Overlay
    private let version: UInt64
    /// A cursor over nothing.
    private let isAbsent: Bool

    /// The entry at the cursor's position; 0 beyond either end.
    private(set) var entry: UInt32 = 0

    /// Versions of one key are walked one by one up to here, then searched.
    private static let stepsMax = 8

    init(_ overlay: Overlay, version: CommitVersion) {
        self.overlay = overlay
        self.version = version.microseconds
        isAbsent = false
    }

    /// A cursor that is at its end wherever it goes.
    private init(absentBeside overlay: Overlay) {
        self.overlay = overlay
        version = 0
        isAbsent = true
    }

    /// A cursor over an overlay that may be missing; `other` is any that is there.
    // Not an optional cursor: optional chaining of mutating calls on one goes wrong without optimisation (Swift 6.3.1).
    static func open(_ overlay: Overlay?, beside other: Overlay, version: CommitVersion) -> OverlayCursor {
        if let overlay { return OverlayCursor(overlay, version: version) }
        return OverlayCursor(absentBeside: other)
    }

    var isAtEntry: Bool { entry != 0 }
    var key: UnsafeRawBufferPointer { unsafe overlay.key(entry) }
    var entryVersion: UInt64 { overlay.version(entry) }
    /// Nil for a deletion.
    var value: UnsafeRawBufferPointer? { unsafe overlay.value(entry) }

    /// Goes to the first entry whose key is at or after `key`, or to the first of all.
    mutating func seekForward(_ key: UnsafeRawBufferPointer?) {
        if isAbsent { return }
        entry =
            if let key = unsafe key { unsafe overlay.firstEntry(atOrAfter: key, version: .max) } else {
                overlay.firstEntry
            }
        skipUnseen()
    }

    /// Goes to the last entry whose key is before `key` (or at it, if `inclusive`), or to the last of all.
    mutating func seekBackward(_ key: UnsafeRawBufferPointer?, inclusive: Bool) {
        if isAbsent { return }
        if inclusive, let key = unsafe key {
            entry = unsafe overlay.find(key, atMost: version)
            if entry != 0 { return }
        }
        entry = unsafe overlay.lastEntry(before: key)
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
        let current = unsafe overlay.key(entry)
        var steps = 0
        repeat {
            entry = overlay.next(entry)
            steps += 1
            if steps == Self.stepsMax {
                entry = unsafe overlay.firstEntry(atOrAfter: current, version: 0)
                // An entry of version 0 cannot exist: what was found has another key.
                break
            }
        } while unsafe entry != 0 && compareBytes(overlay.key(entry), current) == 0
        skipUnseen()
    }

    /// Goes to the entry with the next lower key.
    mutating func stepBackward() {
        entry = unsafe overlay.lastEntry(before: overlay.key(entry))
        skipUnseenBackward()
    }

    /// Moves forward from any entry to the first that the version sees and that is the newest such of its key.
    private mutating func skipUnseen() {
        var steps = 0
        while entry != 0 && overlay.version(entry) > version {
            steps += 1
            if steps % Self.stepsMax == 0 {
                entry = unsafe overlay.firstEntry(atOrAfter: overlay.key(entry), version: version)
            } else {
                entry = overlay.next(entry)
            }
        }
    }

    /// From the oldest entry of a key, goes to what the version sees of it, or of the keys before it.
    private mutating func skipUnseenBackward() {
        while entry != 0 {
            let key = unsafe overlay.key(entry)
            let seen = unsafe overlay.find(key, atMost: version)
            if seen != 0 {
                entry = seen
                return
            }
            entry = unsafe overlay.lastEntry(before: key)
        }
    }
}
