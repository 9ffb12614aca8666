// Snapshots: the state as of a version, over the overlays and the tree.
//
// A snapshot takes three things, in this order, and the order is what makes it right:
//
//   1. the version: everything up to it is published, so it is in an overlay or in the tree;
//   2. the view of the overlays: what leaves an overlay later is in the tree by then;
//   3. the tree's read transaction.
//
// What the tree got between 2 and 3 is in the overlays of the view too, with the same values, or is newer than the version. The
// overlays are asked first, so only keys they know nothing of at this version are looked up in the tree, and there
// history hides what is newer.

internal import Synchronization

/// Makes snapshots for one thread. Make one per event loop and keep it; a snapshot then costs two stores and a renewed transaction.
///
/// Not thread-safe; may move between threads when no snapshot is open.
package final class EngineReader: KeyValueReader {
    let core: EngineCore
    private let slot: ReaderSlot
    private var openSnapshots = 0
    /// Read transactions not in use, reset.
    private var idle: [TreeTransaction] = []

    init(_ core: EngineCore) {
        self.core = core
        slot = core.registry.makeSlot()
        core.readers.withLock { $0[ObjectIdentifier(self)] = WeakReader(self) }
    }

    deinit {
        core.readers.withLock { $0[ObjectIdentifier(self)] = nil }
        core.registry.removeSlot(slot)
    }

    /// The state as of `version`, or of the last published commit. A version above that one is lowered to it.
    ///
    /// Whoever hands out times must see to it that no commit comes in later at or below them.
    /// - Throws: `versionTooOld`, `tooManyReaders`, `closed`, `inputOutput`.
    package func snapshot(at version: CommitVersion? = nil) throws(StorageError) -> EngineSnapshot {
        while true {
            let published = core.published.load(ordering: .acquiring)
            let chosen = min(version?.microseconds ?? published, published)
            let view = try open(at: chosen)
            // Looked at only now: the sweep raises the horizon before it removes anything.
            if view.needsHistory && chosen < core.horizon.load(ordering: .acquiring) {
                close(view)
                // The last published version can be overtaken by the horizon only between two lines here: take a newer one.
                if version == nil && core.published.load(ordering: .acquiring) > chosen { continue }
                throw StorageError(.versionTooOld, "the history of version \(chosen) has been removed")
            }
            return EngineSnapshot(view: view, reader: self)
        }
    }

    /// Opens a view at any version, also of what is not published yet.
    func open(at version: UInt64) throws(StorageError) -> ReadView {
        let overlays: OverlayView
        if openSnapshots == 0 {
            overlays = core.registry.enter(slot)
            if core.isClosed.load(ordering: .sequentiallyConsistent) {
                core.registry.leave(slot)
                throw StorageError(.closed, "the engine is closed")
            }
        } else {
            overlays = core.registry.viewOfReader
        }
        do throws(StorageError) {
            let transaction: TreeTransaction
            if let reused = idle.popLast() {
                try reused.renew()
                transaction = reused
            } else {
                transaction = try TreeTransaction(core.tree)
            }
            openSnapshots += 1
            let needsHistory = version < core.treeNewest.load(ordering: .acquiring)
            return ReadView(
                active: overlays.active, frozen: overlays.frozen, generation: overlays.generation, transaction: transaction,
                version: version, needsHistory: needsHistory, latestOnly: core.latestOnly)
        } catch {
            if openSnapshots == 0 { core.registry.leave(slot) }
            throw error
        }
    }

    /// Ends a view made by `open`.
    func close(_ view: ReadView) {
        view.transaction.reset()
        if idle.count < 4 { idle.append(view.transaction) }
        openSnapshots -= 1
        if openSnapshots == 0 { core.registry.leave(slot) }
    }

    /// Whether a snapshot is open. Any thread.
    var isInUse: Bool { core.registry.isInUse(slot) }

    /// Ends the idle tree transactions: the engine is closed and no snapshot is open.
    func endTransactions() {
        idle.removeAll()
    }
}

/// A reader that the engine does not keep alive.
struct WeakReader: @unchecked Sendable {  // Used at close, when the reader is idle.
    weak var reader: EngineReader?

    init(_ reader: EngineReader) {
        self.reader = reader
    }
}

/// One consistent state. Keep it for a page of results, not for the time of a client: it holds memory and pages back.
package struct EngineSnapshot: ~Copyable, KeyValueSnapshot {
    private let view: ReadView
    private let reader: EngineReader

    init(view: ReadView, reader: EngineReader) {
        self.view = view
        self.reader = reader
    }

    deinit {
        reader.close(view)
    }

    package var version: CommitVersion { CommitVersion(microseconds: view.version) }

    /// The value of a key, or nil if it has none at this version.
    @_lifetime(borrow self)
    package borrowing func value(forKey key: RawSpan) throws(StorageError) -> StoredValue? {
        let found = unsafe try key.withUnsafeBytes { key throws(StorageError) in unsafe try view.find(key) }
        guard let bytes = unsafe found.bytes else { return nil }
        // The bytes are in the map or in an overlay; both are kept by the snapshot.
        let span = unsafe RawSpan(_unsafeBytes: bytes)
        let value = unsafe StoredValue(bytes: span, version: CommitVersion(microseconds: found.version))
        return unsafe _overrideLifetime(value, borrowing: self)
    }

    /// Calls `body` with the value (nil if there is none) and the version that wrote it. Without a value the version is that
    /// of the deletion if it is still known, else zero.
    package borrowing func withValue<Output>(
        forKey key: RawSpan, _ body: (RawSpan?, CommitVersion) throws -> Output
    ) throws -> Output {
        let found = unsafe try key.withUnsafeBytes { key throws(StorageError) in unsafe try view.find(key) }
        return unsafe try found.lend(to: body)
    }

    /// Walks the keys of the half-open range `lower..<upper`; nil leaves an end open.
    @_lifetime(borrow self)
    package borrowing func cursor(
        from lower: RawSpan? = nil, to upper: RawSpan? = nil, direction: ScanDirection = .forward
    ) throws(StorageError) -> EngineCursor {
        let cursor = try EngineCursor.open(view, lower: lower, upper: upper, direction: direction)
        return unsafe _overrideLifetime(cursor, borrowing: self)
    }
}
