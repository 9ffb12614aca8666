package import Storage
internal import Synchronization

/// Makes snapshots for one thread: the state as of a version, over the memtables and the runs.
///
/// Make one reader per event loop and keep it; a snapshot then costs two stores. A snapshot takes the version first,
/// and then the view of the memtables and runs. Everything up to the version is published, so it is in the view. What
/// is newer is skipped by its version.
///
/// Not thread-safe. A reader may move between threads while no snapshot is open.
@safe
package final class EmbeddedReader: KeyValueReader {
    let core: EngineCore
    private let slot: ReaderSlot
    /// Apart, because a class's own properties would be checked for overlapping access at each use, at a cost.
    private let state: UnsafeMutablePointer<State>
    /// What reads lacked that were pending.
    private let notes: UnsafeMutablePointer<ColdReads.Notes>

    @safe
    private struct State {
        var openSnapshots = 0
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
        unsafe state.initialize(to: State())
        unsafe notes = .allocate(capacity: 1)
        unsafe notes.initialize(to: ColdReads.Notes(meetsPagesCold: core.options.meetsPagesCold))
        core.readers.withLock {
            unsafe $0[ObjectIdentifier(self)] = RegisteredReader(reader: Unmanaged.passUnretained(self))
        }
    }

    deinit {
        core.readers.withLock { $0[ObjectIdentifier(self)] = nil }
        releaseSnapshots()
        core.registry.removeSlot(slot)
        unsafe state.pointee.spare?.deallocate()
        unsafe state.deallocate()
        unsafe notes.deinitialize(count: 1)
        unsafe notes.deallocate()
    }

    /// The state as of `version`, or of the last published commit. A version above that one is lowered to it.
    ///
    /// The caller that returns times to clients must ensure that no later commit gets a version at or below them.
    /// - Parameter cold: what reads do that meet bytes which are not in memory.
    /// - Throws: `versionTooOld`, `closed`.
    package func snapshot(
        at version: CommitVersion? = nil, _ cold: ColdRead = .waits
    ) throws(StorageError) -> EmbeddedSnapshot {
        let cold = unsafe cold == .waits ? ColdReads.wait : ColdReads(notes: notes)
        while true {
            let published = core.published.load(ordering: .acquiring)
            let chosen = min(version?.microseconds ?? published, published)
            let view =
                if let again = unsafe reopen(at: chosen, cold) {
                    unsafe again
                } else {
                    unsafe box(try open(at: chosen, cold))
                }
            // Looked at only now: the horizon is raised before a merge removes anything.
            if chosen < core.horizon.load(ordering: .acquiring) {
                unsafe close(view)
                // The last published version can be overtaken by the horizon only between two lines here: take a newer
                // one.
                if version == nil && core.published.load(ordering: .acquiring) > chosen { continue }
                throw StorageError(.versionTooOld, "the history of version \(chosen) has been removed")
            }
            return unsafe EmbeddedSnapshot(view: view, reader: self)
        }
    }

    /// Opens a view at any version, also of what is not published yet.
    func open(at version: UInt64, _ cold: ColdReads = .wait) throws(StorageError) -> ReadView {
        releaseSnapshots()
        let memtables =
            unsafe state.pointee.openSnapshots == 0 ? core.registry.enter(slot) : core.registry.viewForReading
        do throws(StorageError) {
            if core.isClosed.load(ordering: .sequentiallyConsistent) {
                throw StorageError(.closed, "the engine is closed")
            }
            unsafe state.pointee.openSnapshots += 1
            return ReadView(memtables, version: version, latestOnly: core.latestOnly, cold)
        } catch {
            if unsafe state.pointee.openSnapshots == 0 { core.registry.leave(slot) }
            throw error
        }
    }

    /// Ends a view made by `open`.
    func close(_ view: ReadView) {
        unsafe state.pointee.openSnapshots -= 1
        end()
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
        end()
        unsafe view.deinitialize(count: 1)
        if unsafe state.pointee.spare == nil { unsafe state.pointee.spare = view } else { unsafe view.deallocate() }
    }

    private func end() {
        if unsafe state.pointee.openSnapshots == 0 { core.registry.leave(slot) }
    }

    // MARK: Reads that may wait

    package var mayBePending: Bool { core.pages.mayBeCold }

    package func whenReady(_ completion: @escaping @Sendable (Result<Void, StorageError>) -> Void) {
        var pages: [ColdPage] = []
        unsafe swap(&pages, &notes.pointee.pages)
        core.pages.fetch(pages, completion)
    }

    // MARK: Consecutive snapshots

    /// Keeps the view of a closed snapshot for the next one, which then does not announce itself again. The caller must
    /// call ``releaseSnapshots()`` before it waits for anything.
    package func reuseSnapshots() {
        unsafe state.pointee.keepsView = true
        // Event loops do so, and must not wait for pages that the kernel has dropped.
        core.pages.watch()
    }

    /// Releases the view that was kept, and with it memory and files of earlier states.
    package func releaseSnapshots() {
        guard let view = unsafe state.pointee.kept else { return }
        unsafe state.pointee.kept = nil
        unsafe endBoxed(view)
    }

    /// The view that was kept, at another version; nil if there is none or the memtables or runs have changed since.
    ///
    /// As long as the memtables are the same, whatever was published since is in them.
    private func reopen(at version: UInt64, _ cold: ColdReads) -> UnsafeMutablePointer<ReadView>? {
        guard let kept = unsafe state.pointee.kept else { return nil }
        guard unsafe core.registry.generation == kept.pointee.generation,
            !core.isClosed.load(ordering: .sequentiallyConsistent)
        else {
            releaseSnapshots()
            return nil
        }
        unsafe state.pointee.kept = nil
        unsafe state.pointee.openSnapshots += 1
        unsafe kept.pointee.move(to: version, cold)
        return unsafe kept
    }

    /// Whether a snapshot is open. Any thread.
    var isInUse: Bool { core.registry.isInUse(slot) }
}

/// A reader that the engine does not keep alive; it leaves the engine's list before it goes.
@safe
struct RegisteredReader: @unchecked Sendable {  // Used under the lock of the list, at close, when the reader is idle.
    let reader: Unmanaged<EmbeddedReader>
}

/// One consistent state. Keep it for a page of results, not for the time of a client: it holds memory and files back.
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
        // The bytes are in a map or in a memtable; both are kept by the snapshot.
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
