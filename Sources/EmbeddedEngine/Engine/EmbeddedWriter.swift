internal import Basics
internal import CommitLog
internal import Glibc
package import Storage
internal import Synchronization

/// The one writer: stage into the log group and the memtable, seal, publish. It belongs to the commit thread.
///
///     commit thread                        log thread                     readers
///     ─────────────                        ──────────                     ───────
///     stage 1  ┐ log group, memtable
///     stage 2  ┘ (invisible: not published)
///     commitGroup ────────────────────────► write, fdatasync
///     stage 3  ┐                            …                             see nothing of 1, 2
///     stage 4  ┘                            published = 2 ──────────────► see 1 and 2
///                                           completion(2)
///     seal (waits for the group before) ──► …
///
/// How to use it:
///
///     for request in queue {
///         // validate against `writer.latest`, which sees what was staged a moment ago
///         try writer.stage(version: version, record: record, mutations: batch)
///         if writer.isGroupFull { break }
///     }
///     try writer.commitGroup { result in … reply … }      // waits for the group before, then returns
///
/// No snapshot sees any part of a group before it is published. All of a group becomes visible at once, after it is
/// durable.
package final class EmbeddedWriter: KeyValueWriter {
    private let core: EngineCore
    private let log: LogAppender

    private let hot = Confined(Hot())
    /// Entries of the open group that are not in order yet.
    private let collected: CollectedEntries
    /// Bytes of the last sealed group.
    private var lastGroupBytes = 0

    /// What every commit uses.
    private struct Hot {
        /// The active memtable, while a group is open.
        var memtable: Memtable?
        /// Bytes that runs may take for the frozen memtable when the group was opened.
        var frozenBytes = 0
        var mutationBytes = 0
        var entries = 0
    }

    /// Keys put and deleted by what is staged and not sealed yet.
    package var stagedEntries: Int { hot.state.entries }

    /// The state with everything staged so far, durable or not.
    package let latest: EmbeddedLatest

    init(_ core: EngineCore, log: LogAppender) {
        self.core = core
        self.log = log
        collected = CollectedEntries(batchEntriesMin: core.options.batchEntriesMin)
        latest = EmbeddedLatest(core, version: .maximum, collected: collected)
    }

    /// The version of the last staged commit, or the last one of the directory.
    package var lastVersion: CommitVersion { log.lastVersion }

    /// Bytes of records and mutations staged and not sealed yet.
    package var stagedBytes: Int { log.stagedBytes + hot.state.mutationBytes }

    package var hasStaged: Bool { !log.isEmpty }

    /// The group has reached `EngineOptions.groupBytesMax`.
    package var isGroupFull: Bool { stagedBytes >= core.options.groupBytesMax }

    /// Staging a small commit and sealing it waits for nothing but the disk: no checkpoint has to end first.
    package var canCommitAtOnce: Bool {
        // Under the lock: the checkpoint thread changes the view too.
        !log.isBusy && core.options.sharedLog == nil
            && core.paceNanoseconds(bytes: 1 << 20) == 0
            && core.progress.withLock { _ in core.registry.viewForUpdate.active.byteCount }
                < core.options.memtableBytesMax
    }

    /// Waits until no sealed group is on its way. Its completion has been called then.
    package func waitForGroup() { log.waitUntilIdle() }

    /// Adds a commit to the group being built: all of it or, when this throws, nothing.
    ///
    /// May wait for a checkpoint to end when the memtable is full and the group is empty (back-pressure).
    /// - Parameters:
    ///   - version: Above every version staged before.
    ///   - record: What `Replay` needs to derive the mutations again; opaque here.
    ///   - mayUseReserve: The commit only deletes, or maintains the store's own counts: it may use the space that is
    ///     kept for that.
    /// - Throws: `full`, `refused`, `closed`, `versionNotIncreasing`, `valueTooLong`.
    package func stage(
        version: CommitVersion, record: RawSpan, mutations: borrowing MutationBatch, mayUseReserve: Bool = false
    ) throws(StorageError) {
        guard version > log.lastVersion else {
            throw StorageError(.versionNotIncreasing, "commit \(version) comes after \(log.lastVersion)")
        }
        let needed = Memtable.bytesNeeded(count: mutations.count, bytes: mutations.byteCount)
        guard record.byteCount <= EngineLimits.recordBytesMax,
            stagedBytes + record.byteCount + needed <= EngineLimits.groupBytesMax
        else {
            throw StorageError(
                .valueTooLong, "a commit of \(record.byteCount + needed) bytes does not fit into a group")
        }
        let memtable: Memtable
        do throws(StorageError) {
            let runBytes = Memtable.runBytesMax(byteCount: needed, documentBytes: mutations.documentBytes)
            memtable = try room(recordBytes: record.byteCount, needed: runBytes, mayUseReserve: mayUseReserve)
        } catch {
            throw error.asRefusal
        }
        // From here on nothing can fail.
        log.append(record, version: version)
        mutations.insert(into: memtable, version: version, collecting: collected)
        hot.state.mutationBytes += mutations.byteCount
        hot.state.entries += mutations.count
    }

    /// Hands the staged group to the log thread, which writes and syncs it, publishes its last version and then calls
    /// `completion`, once, on the log thread. Waits first for the group before, if that is still being synced.
    /// With nothing staged it completes at once with the published version, on this thread.
    ///
    /// A failed write or sync is final: `completion` gets `failed`. Later calls throw `refused`: their groups are not
    /// written.
    package func commitGroup(
        completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void
    ) throws(StorageError) {
        guard hasStaged else {
            completion(.success(try publishedVersion()))
            return
        }
        if core.options.isReadOnly { return completion(.success(publishUnwritten())) }
        log.synchronize(try sealGroup(), completion: completion)
    }

    /// Like `commitGroup(completion:)`, but writes and syncs on the calling thread: saves two thread switches when
    /// nobody else is waiting.
    /// - Returns: the published version.
    @discardableResult
    package func commitGroup() throws(StorageError) -> CommitVersion {
        guard hasStaged else { return try publishedVersion() }
        if core.options.isReadOnly { return publishUnwritten() }
        return try log.synchronize(try sealGroup())
    }

    /// Lets go of the view that `latest` reads through. Call it before sleeping, so that memory and files can be
    /// released; sealing does it too.
    package func finishReading() { latest.finish() }
}

extension EmbeddedWriter {
    /// The memtable to stage into, with space for one more commit. If space is missing, a checkpoint may make it.
    private func room(recordBytes: Int, needed: Int, mayUseReserve: Bool) throws(StorageError) -> Memtable {
        do throws(StorageError) {
            return try openGroup(recordBytes: recordBytes, needed: needed, mayUseReserve: mayUseReserve)
        } catch {
            guard error.code == .full, log.isEmpty, checkpointForSpace() else { throw error }
            return try openGroup(recordBytes: recordBytes, needed: needed, mayUseReserve: mayUseReserve)
        }
    }

    /// The same without a checkpoint. When this throws, an empty group is closed.
    private func openGroup(recordBytes: Int, needed: Int, mayUseReserve: Bool) throws(StorageError) -> Memtable {
        let memtable = try openGroup(mayUseReserve: mayUseReserve)
        do throws(StorageError) {
            try reserveSpace(
                recordBytes: recordBytes, memtableBytes: memtable.runBytesMax + collected.bytesNeeded + needed,
                mayUseReserve: mayUseReserve)
        } catch {
            if log.isEmpty { closeGroup() }
            throw error
        }
        return memtable
    }

    /// Has a checkpoint written because there is no space, which gives segments of the log back. The checkpoint thread
    /// may have begun one, or ended it, since the space was looked for. No group is open.
    /// - Returns: false if it did not succeed.
    private func checkpointForSpace() -> Bool {
        let isPossible = core.progress.update { progress in
            guard progress.failure == nil, progress.writeFailure == nil else { return false }
            guard (try? core.freeze(&progress)) != nil else { return false }
            hot.state.frozenBytes = progress.frozen?.runBytesMax ?? 0
            return true
        }
        return isPossible && (hot.state.frozenBytes == 0 || waitForCheckpoint())
    }

    /// The memtable to stage into. When the group is empty, makes room first: freezes a full memtable; or if the one
    /// before is not in a run yet and this one has grown to its limit, waits until it is.
    private func openGroup(mayUseReserve: Bool) throws(StorageError) -> Memtable {
        if let memtable = hot.state.memtable { return memtable }
        latest.finish()
        throttle()
        var hasWaited = false
        let isPressed = core.isSpacePressed
        let opened = try core.progress.wait { progress throws(StorageError) -> (memtable: Memtable, hasFrozen: Bool)? in
            hot.state.frozenBytes = progress.frozen?.runBytesMax ?? 0
            if progress.isClosed { throw StorageError(.closed, "the engine is closed") }
            if let failure = progress.failure { throw failure.asFinalRefusal }
            let active = core.registry.viewForUpdate.active
            if core.options.isReadOnly {
                if active.byteCount >= core.memtableGrowthBytesMax { try core.checkWritable() }
                progress.isGroupOpen = true
                return (active, false)
            }
            if let writeFailure = progress.writeFailure {
                // Log and memtables take commits while checkpoints are tried again, on a full disk only deletes.
                let isAccepted = mayUseReserve || writeFailure.code != .full
                if !isAccepted || active.byteCount >= core.memtableGrowthBytesMax { throw writeFailure }
                progress.isGroupOpen = true
                return (active, false)
            }
            let isDue = isPressed && progress.frozen == nil && active.byteCount > core.options.memtableBytesMax / 16
            if active.byteCount < core.options.memtableBytesMax && !isDue {
                progress.isGroupOpen = true
                return (active, false)
            }
            if progress.frozen == nil {
                try core.freeze(&progress)
                hot.state.frozenBytes = active.runBytesMax
                progress.isGroupOpen = true
                return (core.registry.viewForUpdate.active, true)
            }
            // During a long checkpoint it may grow: the next one writes each page once for more entries.
            if active.byteCount < core.memtableGrowthBytesMax {
                progress.isGroupOpen = true
                return (active, false)
            }
            if !hasWaited { core.counters.writerStalls.add(1, ordering: .relaxed) }
            hasWaited = true
            return nil
        }
        if opened.hasFrozen { core.progress.wake() }
        hot.state.memtable = opened.memtable
        return opened.memtable
    }

    /// Delays the group if there are many runs, so that merges catch up before commits must stop.
    private func throttle() {
        let nanoseconds = core.paceNanoseconds(bytes: lastGroupBytes)
        guard nanoseconds > 0 else { return }
        core.counters.paceNanoseconds.add(nanoseconds, ordering: .relaxed)
        SystemThread.sleep(microseconds: UInt32(nanoseconds / 1000))
    }

    /// Makes sure that log and runs have space for one more commit. If they do not while a checkpoint is under way,
    /// waits for its end: it gives segments back, and then it is known what its entries take.
    private func reserveSpace(recordBytes: Int, memtableBytes: Int, mayUseReserve: Bool) throws(StorageError) {
        do throws(StorageError) {
            try core.runs.space.admit(
                heldBytes: hot.state.frozenBytes + memtableBytes, mayUseReserve: mayUseReserve,
                isFinal: hot.state.frozenBytes == 0)
            try log.reserve(recordBytes: recordBytes, mayUseReserve: mayUseReserve)
        } catch {
            guard error.code == .full, waitForCheckpoint() else { throw error }
            try core.runs.space.admit(heldBytes: memtableBytes, mayUseReserve: mayUseReserve, isFinal: true)
            try log.reserve(recordBytes: recordBytes, mayUseReserve: mayUseReserve)
        }
    }

    /// Waits for the end of the checkpoint that was under way when the group was opened; false if there was none or it
    /// did not succeed.
    private func waitForCheckpoint() -> Bool {
        guard hot.state.frozenBytes > 0 else { return false }
        // With a view open, the memtable that goes would keep its memory.
        latest.finish()
        core.counters.writerStalls.add(1, ordering: .relaxed)
        let isDone = core.progress.wait { progress in
            if progress.failure != nil || progress.writeFailure != nil || progress.isCheckpointThreadEnded {
                return false
            }
            return progress.frozen == nil ? true : nil
        }
        if isDone { hot.state.frozenBytes = 0 }
        return isDone
    }

    private func closeGroup() {
        hot.state.memtable = nil
        hot.state.mutationBytes = 0
        hot.state.entries = 0
        let isAwaited = core.progress.withLock { progress in
            progress.isGroupOpen = false
            progress.lastSealNanoseconds = SystemClock.monotonicNanoseconds()
            return progress.requested > progress.satisfied
        }
        if isAwaited { core.progress.wake() }
    }

    /// Makes the group visible in an engine that only reads, until it is closed.
    private func publishUnwritten() -> CommitVersion {
        if let memtable = hot.state.memtable { collected.settle(into: memtable) }
        latest.finish()
        log.discard()
        closeGroup()
        core.groupFinished(lastVersion, nil)
        return lastVersion
    }

    private func publishedVersion() throws(StorageError) -> CommitVersion {
        try checkFailure()
        return CommitVersion(microseconds: core.published.load(ordering: .acquiring))
    }

    /// - Throws: `refused` if a group before could not be written.
    private func checkFailure() throws(StorageError) {
        guard core.hasFailed.load(ordering: .acquiring) else { return }
        let failure = core.progress.withLock { $0.failure }
        throw (failure ?? StorageError(.failed, "the engine has failed")).asFinalRefusal
    }

    /// Ends the group, after the one before it is durable.
    private func sealGroup() throws(StorageError) -> LogGroup {
        if let memtable = hot.state.memtable { collected.settle(into: memtable) }
        log.waitUntilIdle()
        latest.finish()
        try checkFailure()
        lastGroupBytes = stagedBytes
        let group = log.seal()
        core.counters.logBytesWritten.add(UInt64(group.byteCount), ordering: .relaxed)
        closeGroup()
        return group
    }
}

extension MutationBatch {
    /// Inserts all entries into a memtable that has room for them; those of scanned spaces are collected.
    ///
    borrowing func insert(into memtable: Memtable, version: CommitVersion, collecting collected: CollectedEntries) {
        let version = version.microseconds
        var offset = 0
        let none = unsafe Entry(key: UnsafeRawBufferPointer(start: nil, count: 0), value: nil)
        var listed = unsafe InlineArray<8, Entry>(repeating: none)
        while offset < byteCount {
            var count = 0
            offset = unsafe forEachEntry(from: offset, atMost: Memtable.insertionsMax) { entry in
                if unsafe memtable.isScanned(entry.key) {
                    unsafe collected.append(memtable.makeEntry(entry.key, version, entry.value))
                } else {
                    unsafe listed[count] = unsafe entry
                    count += 1
                }
            }
            unsafe memtable.insert(count) {
                unsafe (listed[$0].key, version)
            } insert: {
                unsafe memtable.insert(listed[$0].key, version: version, value: listed[$0].value, near: $1)
            }
        }
        if collected.isFull { collected.settle(into: memtable) }
    }
}

/// Reads the newest state, staged commits included. Belongs to the writer's thread.
///
/// It keeps a view until `finish()`, which the writer calls when it opens and seals a group. Meanwhile checkpoints and
/// merges may replace memtables and runs. The view keeps those that it has, because cursors and values are lent from
/// them. It misses nothing: only the writer adds entries, and a group goes into the memtable that is active when the
/// group is opened.
package final class EmbeddedLatest: KeyValueState {
    private let reader: EmbeddedReader
    private let collected: CollectedEntries
    private let view = Confined<ReadView?>(nil)

    /// What is read: everything, or during recovery what is before the record being replayed.
    var version: CommitVersion {
        didSet { finish() }
    }

    /// - Parameter collected: what is staged and not in order yet.
    init(_ core: EngineCore, version: CommitVersion, collected: CollectedEntries) {
        reader = EmbeddedReader(core)
        self.collected = collected
        self.version = version
    }

    deinit {
        finish()
    }

    func finish() {
        guard let open = view.state else { return }
        view.state = nil
        reader.close(open)
    }

    private func current() throws(StorageError) -> ReadView {
        if let view = view.state { return view }
        let opened = try reader.open(at: version.microseconds)
        view.state = opened
        return opened
    }

    /// The newest value of a key; valid until the next stage or seal.
    @_lifetime(borrow self)
    package func value(forKey key: RawSpan) throws(StorageError) -> StoredValue? {
        let view = try current()
        if !collected.isEmpty, unsafe key.withUnsafeBytes({ unsafe view.active.isScanned($0) }) {
            collected.settle(into: view.active)
        }
        let found = unsafe try key.withUnsafeBytes { key throws(StorageError) in unsafe try view.find(key) }
        guard let bytes = unsafe found.bytes else { return nil }
        let span = unsafe RawSpan(_unsafeBytes: bytes)
        let value = StoredValue(bytes: span, version: unsafe CommitVersion(microseconds: found.version))
        return unsafe _overrideLifetime(value, borrowing: self)
    }

    /// Walks the newest values of `lower..<upper`. Nothing may be staged or sealed while the cursor lives.
    @_lifetime(borrow self)
    package func cursor(
        from lower: RawSpan? = nil, to upper: RawSpan? = nil, direction: ScanDirection = .forward
    ) throws(StorageError) -> EmbeddedCursor {
        let view = try current()
        if !collected.isEmpty, view.active.mayScan(from: lower, to: upper) { collected.settle(into: view.active) }
        let cursor = try EmbeddedCursor.open(view, lower: lower, upper: upper, direction: direction)
        return unsafe _overrideLifetime(cursor, borrowing: self)
    }
}
