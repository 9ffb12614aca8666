// What a read does that meets bytes which are not in memory.

/// Whether a read may wait for a disk.
///
///     event loop                                any thread
///     ──────────                                ──────────
///     reader.snapshot(at: version, .pends)
///     snapshot.value(forKey:)  ──▶ throws `pending`
///     (the snapshot is closed)
///     reader.whenReady { ready in … }  ─ ─ ─ ─▶ completion, when what was met is in memory
///     reader.snapshot(at: version, .pends)      the same read again, from its beginning
///
/// A read that has to wait keeps a version and a position, never a snapshot: memtables and merged files must be able to
/// go meanwhile. `pending` is thrown, so that each layer between the engine and the one that repeats the read passes it
/// on as it passes on every error, and a read that need not wait costs as much as before
/// (docs/decisions/0037-reads-that-may-wait.md).
package enum ColdRead: Hashable, Sendable {
    /// The calling thread waits until the bytes are in memory.
    case waits
    /// The read throws `pending`, and the engine notes what it lacked.
    case pends
}

/// Reads that wait for memory, as tests see them: which keys count as not in memory. Thread-safe.
package protocol ColdKeys: AnyObject, Sendable {
    /// Whether a read of this key is pending now.
    func isPending(_ key: RawSpan) -> Bool

    /// Has the keys that were pending so far be in memory, and then calls `completion`, on any thread.
    func makeReady(_ completion: @escaping @Sendable (Result<Void, StorageError>) -> Void)
}
