// Moving through a range of an engine in memory.

internal import Basics
package import Storage

/// A cursor over a sorted table that may change between two steps: each step searches for the key after the current
/// one.
package struct MemoryCursor: ~Copyable, ~Escapable, KeyValueCursor {
    /// Where the next step begins.
    private enum Start {
        case edge
        /// At the key or beyond it.
        case at([UInt8])
        /// Beyond the current entry.
        case current
    }

    private let volume: MemoryVolume
    private let atMost: UInt64
    private let lower: [UInt8]
    private let upper: [UInt8]?
    private let direction: ScanDirection
    /// Keys for which reads are pending.
    private let coldKeys: (any ColdKeys)?

    private var start = Start.edge
    private var isAtEnd = false
    /// Held so that key and value stay when the table drops them.
    private(set) var currentKey: MemoryBytes?
    private(set) var currentValue: MemoryBytes?
    private(set) var currentVersion: UInt64 = 0

    @_lifetime(immortal)
    private init(
        _ volume: MemoryVolume, version: UInt64, lower: [UInt8], upper: [UInt8]?, direction: ScanDirection,
        coldKeys: (any ColdKeys)?
    ) {
        self.volume = volume
        atMost = version
        self.lower = lower
        self.upper = upper
        self.direction = direction
        self.coldKeys = coldKeys
        isAtEnd = upper?.isEmpty ?? false
    }

    /// A cursor before its first entry. The caller ties it to the snapshot.
    @_lifetime(immortal)
    static func open(
        _ volume: MemoryVolume, version: UInt64, from lower: RawSpan?, to upper: RawSpan?, direction: ScanDirection,
        coldKeys: (any ColdKeys)? = nil
    ) throws(StorageError) -> MemoryCursor {
        MemoryCursor(
            volume, version: version, lower: try RangeBound.copy(lower) ?? [], upper: try RangeBound.copy(upper),
            direction: direction, coldKeys: coldKeys)
    }

    package var key: RawSpan {
        @_lifetime(borrow self)
        borrowing get { unsafe _overrideLifetime(RawSpan(_unsafeBytes: currentKey!.bytes), borrowing: self) }
    }

    package var value: RawSpan {
        @_lifetime(borrow self)
        borrowing get { unsafe _overrideLifetime(RawSpan(_unsafeBytes: currentValue!.bytes), borrowing: self) }
    }

    package var version: CommitVersion { CommitVersion(microseconds: currentVersion) }

    @_lifetime(self: copy self)
    package mutating func seek(to key: RawSpan) throws(StorageError) {
        guard let target = try RangeBound.copy(key) else { return }
        isAtEnd = upper?.isEmpty ?? false
        switch direction {
        case .forward:
            start = MemoryCursor.isBelow(target, lower) ? .edge : .at(target)
        case .backward:
            if target.isEmpty { isAtEnd = true }
            let isBeyond = upper.map { !MemoryCursor.isBelow(target, $0) } ?? false
            start = isBeyond ? .edge : .at(target)
        }
    }

    private static func isBelow(_ key: [UInt8], _ other: [UInt8]) -> Bool { key.lexicographicallyPrecedes(other) }

    @_lifetime(self: copy self)
    package mutating func next() throws(StorageError) -> Bool {
        var deletions = Int.max
        return try next(passing: &deletions)
    }

    /// The same, and false at a deleted entry when `deletions`, at least 1, has come to 0; `key` is that of the entry
    /// then.
    @_lifetime(self: copy self)
    package mutating func next(passing deletions: inout Int) throws(StorageError) -> Bool {
        if isAtEnd { return false }
        var left = deletions
        let found = volume.contents.withLock { contents in nextEntry(in: contents.table, passing: &left) }
        deletions = left
        start = .current
        guard let (entry, version) = found else {
            isAtEnd = true
            return false
        }
        guard let version else {
            currentKey = entry.key
            return false
        }
        if let coldKeys, Self.isPending(entry.key, coldKeys) { throw .pending }
        currentKey = entry.key
        currentValue = version.value
        currentVersion = version.version
        return true
    }

    /// Not inlined: Swift 6.3 in release mode takes the span's lifetime for an error there, and stops.
    @inline(never)
    private static func isPending(_ key: MemoryBytes, _ coldKeys: any ColdKeys) -> Bool {
        unsafe coldKeys.isPending(RawSpan(_unsafeBytes: key.bytes))
    }

    /// The next entry of the range that has a value at the version, or without one the last that may be passed.
    private borrowing func nextEntry(
        in table: MemoryTable, passing deletions: inout Int
    ) -> (MemoryEntry, MemoryVersion?)? {
        var position = direction == .forward ? firstForward(table) : firstBackward(table)
        while let at = position, let entry = table.entry(at: at), isInRange(entry.key) {
            if let version = entry.version(atMost: atMost), version.value != nil { return (entry, version) }
            deletions -= 1
            if deletions <= 0 { return (entry, nil) }
            position = direction == .forward ? table.position(after: at) : table.position(before: at)
        }
        return nil
    }

    private borrowing func firstForward(_ table: MemoryTable) -> MemoryTable.Position {
        switch start {
        case .edge: unsafe lower.withUnsafeBytes { unsafe table.position(of: $0, isInclusive: true) }
        case .at(let key): unsafe key.withUnsafeBytes { unsafe table.position(of: $0, isInclusive: true) }
        case .current: unsafe table.position(of: currentKey!.bytes, isInclusive: false)
        }
    }

    private borrowing func firstBackward(_ table: MemoryTable) -> MemoryTable.Position? {
        let beyond =
            switch start {
            case .edge:
                if let upper {
                    unsafe upper.withUnsafeBytes { unsafe table.position(of: $0, isInclusive: true) }
                } else {
                    table.end
                }
            case .at(let key): unsafe key.withUnsafeBytes { unsafe table.position(of: $0, isInclusive: false) }
            case .current: unsafe table.position(of: currentKey!.bytes, isInclusive: true)
            }
        return table.position(before: beyond)
    }

    private borrowing func isInRange(_ key: MemoryBytes) -> Bool {
        switch direction {
        case .forward:
            guard let upper else { return true }
            return unsafe upper.withUnsafeBytes { unsafe compareBytes(key.bytes, $0) < 0 }
        case .backward:
            return unsafe lower.withUnsafeBytes { unsafe compareBytes(key.bytes, $0) >= 0 }
        }
    }
}

extension MemoryCursor {
    /// Like `next(passing:)`, and puts the entry into `entry`, of a deleted one the key.
    @_lifetime(self: copy self)
    package mutating func next(
        passing deletions: inout Int, _ entry: inout CursorEntry
    ) throws(StorageError) -> Bool {
        let isFound = try next(passing: &deletions)
        if isFound {
            unsafe entry = unsafe CursorEntry(
                key: currentKey!.bytes, value: currentValue!.bytes, version: currentVersion)
        } else if deletions <= 0 {
            unsafe entry.key = unsafe currentKey!.bytes
        }
        return isFound
    }
}
