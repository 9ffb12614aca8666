// API declaration; the parts behind it follow.

/// Makes snapshots for one thread. Make one per event loop and keep it; a snapshot then costs about as much as a lock.
package final class EngineReader: KeyValueReader {
    /// The state as of `version`, or of the last published commit. A version above that one is lowered to it.
    /// - Throws: `versionTooOld`, `tooManyReaders`, `closed`.
    package func snapshot(at version: CommitVersion? = nil) throws(StorageError) -> EngineSnapshot {
        fatalError("not built yet")
    }
}

/// One consistent state. Keep it for a page of results, not for the time of a client: it holds memory and pages back.
package struct EngineSnapshot: ~Copyable, KeyValueSnapshot {
    package var version: CommitVersion { fatalError("not built yet") }

    @_lifetime(borrow self)
    package borrowing func value(forKey key: RawSpan) throws(StorageError) -> StoredValue? { fatalError("not built yet") }

    /// Calls `body` with the value (nil if there is none) and the version that wrote it (zero if there is none).
    package borrowing func withValue<Output>(
        forKey key: RawSpan, _ body: (RawSpan?, CommitVersion) throws -> Output
    ) throws -> Output { fatalError("not built yet") }

    @_lifetime(borrow self)
    package borrowing func cursor(
        from lower: RawSpan? = nil, to upper: RawSpan? = nil, direction: ScanDirection = .forward
    ) throws(StorageError) -> EngineCursor { fatalError("not built yet") }
}

/// A place in an ordered range of a snapshot; `key`, `value` and `version` are those of the entry that `next()` went to.
package struct EngineCursor: ~Copyable, ~Escapable, KeyValueCursor {
    @_lifetime(immortal)
    init() {}

    @_lifetime(self: copy self)
    package mutating func next() throws(StorageError) -> Bool { fatalError("not built yet") }

    @_lifetime(self: copy self)
    package mutating func seek(to key: RawSpan) throws(StorageError) { fatalError("not built yet") }

    package var key: RawSpan { @_lifetime(borrow self) borrowing get { fatalError("not built yet") } }
    package var value: RawSpan { @_lifetime(borrow self) borrowing get { fatalError("not built yet") } }
    package var version: CommitVersion { fatalError("not built yet") }
}
