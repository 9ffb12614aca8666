internal import CLMDB
internal import Synchronization

/// Makes snapshots for one thread: the state as of a version, over the memtables and the tree.
///
/// Make one reader per event loop and keep it; a snapshot then costs two stores and a renewed transaction. A snapshot
/// takes three things, and their order makes it correct:
///
/// 1. The version. Everything up to it is published, so it is in a memtable or in the tree.
/// 2. The view of the memtables. What leaves a memtable later is in the tree by then.
/// 3. The read transaction of the tree.
///
/// What the tree gets between 2 and 3 is either in the memtables of the view with the same values, or newer than the
/// version. Readers search the memtables first; only keys without an entry there are searched in the tree, where
/// history hides newer values.
///
/// Not thread-safe. A reader may move between threads while no snapshot is open.
@safe
package final class EmbeddedReader: KeyValueReader {
    let core: EngineCore
    private let slot: ReaderSlot
    /// Apart, because a class's own properties would be checked for overlapping access at each use, at a cost.
    private let state: UnsafeMutablePointer<State>

    @safe
    private struct State {
        var openSnapshots = 0
        /// Read transactions not in use, reset; the first `idleCount` are there.
        var idle: (OpaquePointer?, OpaquePointer?, OpaquePointer?, OpaquePointer?) = (nil, nil, nil, nil)
        var idleCount = 0
        let cache: EntryCache
        /// The state of the tree that was looked at last.
        var known: TreeSnapshot?
        var keepsView = false
        /// The view of the snapshot closed last, for the next one; the slot is entered while there is one.
        var kept: UnsafeMutablePointer<ReadView>?
        /// Memory for the view of the next snapshot.
        var spare: UnsafeMutablePointer<ReadView>?
    }

    init(_ core: EngineCore) {
        self.core = core
        slot = core.registry.makeSlot()
        unsafe state = .allocate(capacity: 1)
        unsafe state.initialize(
            to: State(cache: EntryCache(bytesMax: core.options.entryCacheBytesMax, pageBytes: core.tree.pageBytes)))
        core.readers.withLock {
            unsafe $0[ObjectIdentifier(self)] = RegisteredReader(reader: Unmanaged.passUnretained(self))
        }
    }

    deinit {
        core.readers.withLock { $0[ObjectIdentifier(self)] = nil }
        releaseSnapshots()
        endTransactions()
        core.registry.removeSlot(slot)
        unsafe state.pointee.spare?.deallocate()
        unsafe state.pointee.cache.release()
        unsafe state.deallocate()
    }

    /// The state as of `version`, or of the last published commit. A version above that one is lowered to it.
    ///
    /// The caller that returns times to clients must ensure that no later commit gets a version at or below them.
    /// - Throws: `versionTooOld`, `tooManyReaders`, `closed`, `inputOutput`.
    package func snapshot(at version: CommitVersion? = nil) throws(StorageError) -> EmbeddedSnapshot {
        while true {
            let published = core.published.load(ordering: .acquiring)
            let chosen = min(version?.microseconds ?? published, published)
            let view =
                if let again = unsafe reopen(at: chosen) { unsafe again } else { unsafe box(try open(at: chosen)) }
            // Looked at only now: the sweep raises the horizon before it removes anything.
            if unsafe view.pointee.needsHistory && chosen < core.horizon.load(ordering: .acquiring) {
                unsafe close(view)
                // The last published version can be overtaken by the horizon only between two lines here: take a newer one.
                if version == nil && core.published.load(ordering: .acquiring) > chosen { continue }
                throw StorageError(.versionTooOld, "the history of version \(chosen) has been removed")
            }
            return unsafe EmbeddedSnapshot(view: view, reader: self)
        }
    }

    /// Opens a view at any version, also of what is not published yet.
    func open(at version: UInt64) throws(StorageError) -> ReadView {
        releaseSnapshots()
        let overlays =
            unsafe state.pointee.openSnapshots == 0 ? core.registry.enter(slot) : core.registry.viewForReading
        do throws(StorageError) {
            if core.isClosed.load(ordering: .sequentiallyConsistent) {
                throw StorageError(.closed, "the engine is closed")
            }
            let (transaction, tree) = unsafe try takeTransaction()
            unsafe state.pointee.openSnapshots += 1
            let needsHistory = version < core.treeNewest.load(ordering: .acquiring)
            let cache = unsafe state.pointee.cache
            return unsafe ReadView(
                active: overlays.active, frozen: overlays.frozen, generation: overlays.generation,
                transaction: transaction,
                tree: tree, version: version, needsHistory: needsHistory, latestOnly: core.latestOnly,
                cache: cache.admits(tree: Int(tree.transaction)) ? cache : nil)
        } catch {
            if unsafe state.pointee.openSnapshots == 0 { core.registry.leave(slot) }
            throw error
        }
    }

    /// Ends a view made by `open`.
    func close(_ view: ReadView) {
        unsafe state.pointee.openSnapshots -= 1
        end(view)
    }

    /// Ends the view of a snapshot, or keeps it for the next one.
    func close(_ view: UnsafeMutablePointer<ReadView>) {
        unsafe state.pointee.openSnapshots -= 1
        if unsafe state.pointee.keepsView && state.pointee.openSnapshots == 0 {
            return unsafe state.pointee.kept = view
        }
        unsafe endBoxed(view)
    }

    /// Puts a view into memory that snapshots can point to.
    private func box(_ view: ReadView) -> UnsafeMutablePointer<ReadView> {
        let box = unsafe state.pointee.spare ?? .allocate(capacity: 1)
        unsafe state.pointee.spare = nil
        unsafe box.initialize(to: view)
        return unsafe box
    }

    private func endBoxed(_ view: UnsafeMutablePointer<ReadView>) {
        unsafe end(view.pointee)
        unsafe view.deinitialize(count: 1)
        if unsafe state.pointee.spare == nil { unsafe state.pointee.spare = view } else { unsafe view.deallocate() }
    }

    private func end(_ view: ReadView) {
        unsafe mdb_txn_reset(view.transaction)
        unsafe keepTransaction(view.transaction)
        if unsafe state.pointee.openSnapshots == 0 { core.registry.leave(slot) }
    }

    // MARK: Many snapshots in a row

    /// Keeps the view of a closed snapshot for the next one, which then does not renew a transaction. The caller must
    /// call ``releaseSnapshots()`` before it waits for anything.
    package func reuseSnapshots() { unsafe state.pointee.keepsView = true }

    /// Releases the view that was kept, and with it pages and memory of earlier states.
    package func releaseSnapshots() {
        guard let view = unsafe state.pointee.kept else { return }
        unsafe state.pointee.kept = nil
        unsafe endBoxed(view)
    }

    /// The view that was kept, at another version; nil if there is none or another overlay has come since.
    ///
    /// As long as the overlays are the same, whatever was published since is in them: it is visible through the old
    /// transaction, and nothing that it lacks has left them.
    private func reopen(at version: UInt64) -> UnsafeMutablePointer<ReadView>? {
        guard let kept = unsafe state.pointee.kept else { return nil }
        guard unsafe core.registry.generation == kept.pointee.generation,
            !core.isClosed.load(ordering: .sequentiallyConsistent)
        else {
            releaseSnapshots()
            return nil
        }
        unsafe state.pointee.kept = nil
        unsafe state.pointee.openSnapshots += 1
        unsafe kept.pointee.move(to: version, needsHistory: version < core.treeNewest.load(ordering: .acquiring))
        return unsafe kept
    }

    /// Whether a snapshot is open. Any thread.
    var isInUse: Bool { core.registry.isInUse(slot) }
}

// MARK: - Transactions

extension EmbeddedReader {
    /// A read transaction on the tree as it is now.
    private func takeTransaction() throws(StorageError) -> (OpaquePointer, TreeSnapshot) {
        let transaction =
            if let idle = unsafe try renewIdle() { unsafe idle } else { unsafe try TreeTransaction.begin(core.tree) }
        do throws(StorageError) {
            return unsafe (transaction, try snapshot(transaction))
        } catch {
            unsafe mdb_txn_abort(transaction)
            throw error
        }
    }

    /// The state that a transaction shows; that of the last one is remembered.
    private func snapshot(_ transaction: OpaquePointer) throws(StorageError) -> TreeSnapshot {
        if let known = unsafe state.pointee.known, unsafe known.transaction == mdb_txn_id(transaction) { return known }
        let snapshot = unsafe try TreeTransaction.contents(core.tree, transaction).snapshot
        unsafe state.pointee.known = snapshot
        return snapshot
    }

    private func renewIdle() throws(StorageError) -> OpaquePointer? {
        guard let transaction = unsafe popIdle() else { return nil }
        let status = unsafe mdb_txn_renew(transaction)
        if status == MDB_SUCCESS { return unsafe transaction }
        unsafe mdb_txn_abort(transaction)
        throw Tree.error(status, "cannot renew a read transaction", core.tree.path)
    }

    /// Keeps a reset transaction, and with it its reader slot, for the next snapshot.
    private func keepTransaction(_ transaction: OpaquePointer) {
        switch unsafe state.pointee.idleCount {
        case 0: unsafe state.pointee.idle.0 = transaction
        case 1: unsafe state.pointee.idle.1 = transaction
        case 2: unsafe state.pointee.idle.2 = transaction
        case 3: unsafe state.pointee.idle.3 = transaction
        default:
            unsafe mdb_txn_abort(transaction)
            return
        }
        unsafe state.pointee.idleCount += 1
    }

    private func popIdle() -> OpaquePointer? {
        guard unsafe state.pointee.idleCount > 0 else { return nil }
        unsafe state.pointee.idleCount -= 1
        return switch unsafe state.pointee.idleCount {
        case 0: unsafe state.pointee.idle.0
        case 1: unsafe state.pointee.idle.1
        case 2: unsafe state.pointee.idle.2
        default: unsafe state.pointee.idle.3
        }
    }

    /// Ends the idle transactions. No snapshot is open.
    func endTransactions() {
        while let transaction = unsafe popIdle() { unsafe mdb_txn_abort(transaction) }
    }
}

/// A reader that the engine does not keep alive; it leaves the engine's list before it goes.
@safe
struct RegisteredReader: @unchecked Sendable {  // Used under the lock of the list, at close, when the reader is idle.
    let reader: Unmanaged<EmbeddedReader>
}

/// One consistent state. Keep it for a page of results, not for the time of a client: it holds memory and pages back.
@safe
package struct EmbeddedSnapshot: ~Copyable, KeyValueSnapshot {
    /// In memory of the reader: a snapshot is moved several times on its way to its user, and a view is large.
    private let view: UnsafeMutablePointer<ReadView>
    private let reader: EmbeddedReader

    init(view: UnsafeMutablePointer<ReadView>, reader: EmbeddedReader) {
        unsafe self.view = unsafe view
        self.reader = reader
    }

    deinit {
        unsafe reader.close(view)
    }

    package var version: CommitVersion { unsafe CommitVersion(microseconds: view.pointee.version) }

    /// The value of a key, or nil if it has none at this version.
    @_lifetime(borrow self)
    package borrowing func value(forKey key: RawSpan) throws(StorageError) -> StoredValue? {
        let found = unsafe try key.withUnsafeBytes { key throws(StorageError) in unsafe try view.pointee.find(key) }
        guard let bytes = unsafe found.bytes else { return nil }
        // The bytes are in the map or in an overlay; both are kept by the snapshot.
        let span = unsafe RawSpan(_unsafeBytes: bytes)
        let value = unsafe StoredValue(bytes: span, version: CommitVersion(microseconds: found.version))
        return unsafe _overrideLifetime(value, borrowing: self)
    }

    /// Walks the keys of the half-open range `lower..<upper`; nil leaves an end open.
    @_lifetime(borrow self)
    package borrowing func cursor(
        from lower: RawSpan? = nil, to upper: RawSpan? = nil, direction: ScanDirection = .forward
    ) throws(StorageError) -> EmbeddedCursor {
        let cursor = unsafe try EmbeddedCursor.open(view.pointee, lower: lower, upper: upper, direction: direction)
        return unsafe _overrideLifetime(cursor, borrowing: self)
    }
}
