// The engine that keeps everything in memory: the rules of the storage seam in their simplest form.

internal import Basics
package import Storage

/// A key-value engine in memory, for tests, tools and stores that need not survive their process.
///
/// It keeps the rules of ``KeyValueEngine`` with one lock and one sorted table. The tests of the document store run
/// over it and over the embedded engine. What is "durable" survives ``close()`` in the engine's ``MemoryVolume``, not
/// the end of the process.
package final class MemoryEngine: KeyValueEngine, KeyValueDisk {
    let volume: MemoryVolume
    let options: EngineOptions
    private let isClosed = Monitor(false)

    private init(_ volume: MemoryVolume, options: EngineOptions) {
        self.volume = volume
        self.options = options
    }

    deinit {
        try? close()
    }

    /// Opens a volume and replays the records after its checkpoint.
    /// - Throws: `locked` when another engine has it open, or what `replay` throws.
    package static func open(
        _ volume: MemoryVolume, options: EngineOptions, replay: EngineReplay<MemoryLatest>
    ) throws -> MemoryEngine {
        let records = try volume.contents.withLock { contents throws(StorageError) in
            if contents.isOpen { throw StorageError(.locked, "another engine has the volume open") }
            contents = contents.rolledBack(to: contents.checkpoint)
            contents.isOpen = true
            if contents.timelineStart == nil { contents.timelineStart = options.clock() }
            contents.published = contents.checkpoint
            return contents.records
        }
        let engine = MemoryEngine(volume, options: options)
        var batch = MutationBatch()
        for record in records {
            batch.removeAll()
            let version = CommitVersion(microseconds: record.version)
            try replay(version, record.bytes.byteSpan, &batch, MemoryLatest(volume))
            volume.contents.withLock { contents in
                contents.insert(batch, version: record.version)
                contents.published = record.version
            }
        }
        return engine
    }

    package func makeWriter() throws(StorageError) -> MemoryWriter {
        try check()
        return MemoryWriter(self)
    }

    package func makeReader() throws(StorageError) -> MemoryReader {
        try check()
        return MemoryReader(engine: self)
    }

    func check() throws(StorageError) {
        if isClosed.withLock({ $0 }) { throw StorageError(.closed, "the engine is closed") }
    }

    package var publishedVersion: CommitVersion {
        CommitVersion(microseconds: volume.contents.withLock { $0.published })
    }

    package var oldestReadableVersion: CommitVersion {
        CommitVersion(
            microseconds: volume.contents.withLock { contents in
                contents.raiseHorizon(to: oldestKept)
                return contents.horizon
            })
    }

    package var timelineStart: CommitVersion {
        CommitVersion(microseconds: volume.contents.withLock { $0.timelineStart ?? 0 })
    }

    /// Superseded values stay readable from this version on.
    var oldestKept: UInt64 {
        let (now, retention) = (options.clock(), options.retentionMicroseconds)
        return now < retention ? 0 : now - retention
    }

    package var statistics: EngineStatistics {
        volume.contents.withLock { contents in
            var statistics = EngineStatistics()
            statistics.publishedVersion = CommitVersion(microseconds: contents.published)
            statistics.checkpointVersion = CommitVersion(microseconds: contents.checkpoint)
            statistics.groupsSynced = contents.groups
            statistics.runEntries = contents.table.count
            statistics.historyEntries = contents.superseded.count - contents.supersededStart
            return statistics
        }
    }

    /// Counts the entries.
    package func estimate(from lower: RawSpan, to upper: RawSpan) throws(StorageError) -> KeyRangeEstimate {
        unsafe lower.withUnsafeBytes { lower in
            unsafe upper.withUnsafeBytes { upper in
                volume.contents.withLock { unsafe $0.table.size(from: lower, to: upper) }
            }
        }
    }

    /// The engine sets no bound for its memory, so this is always nil.
    package var shortage: StorageError? { nil }
    package var recentShortage: StorageError? { nil }
    package var recentWriteFailure: StorageError? { nil }

    package func checkpointNow() throws(StorageError) {
        try check()
        volume.contents.withLock { $0.setCheckpoint() }
    }

    package func sweepHistoryNow() throws(StorageError) {
        try check()
        volume.contents.withLock { $0.raiseHorizon(to: oldestKept) }
    }

    /// - Throws: `unsupported`: there are no files to copy.
    package func backup(to directory: String, _ control: CopyControl = CopyControl()) throws(StorageError) {
        throw StorageError(.unsupported, "an engine in memory has no files to copy")
    }

    /// - Throws: `unsupported`: there are no files to share.
    package func fork(to directory: String) throws(StorageError) -> Int {
        throw StorageError(.unsupported, "an engine in memory has no files to share")
    }

    package func close() throws(StorageError) {
        let wasClosed = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return isClosed
        }
        if wasClosed { return }
        volume.contents.withLock { contents in
            contents.setCheckpoint()
            contents.isOpen = false
        }
    }
}

/// The writer of a ``MemoryEngine``. A group is published by the call that commits it, or by a thread
/// (`MemoryVolume.syncsInBackground`).
package final class MemoryWriter: KeyValueWriter {
    private let engine: MemoryEngine
    private var volume: MemoryVolume { engine.volume }
    private let publication: MemoryPublication
    private var records: [(version: UInt64, bytes: [UInt8])] = []

    package let latest: MemoryLatest
    package private(set) var lastVersion: CommitVersion
    package private(set) var hasStaged = false
    package private(set) var stagedBytes = 0
    package private(set) var stagedEntries = 0

    init(_ engine: MemoryEngine) {
        self.engine = engine
        publication = MemoryPublication(engine)
        latest = MemoryLatest(engine.volume)
        lastVersion = engine.publishedVersion
    }

    package var isGroupFull: Bool { stagedBytes >= engine.options.groupBytesMax }

    package var canCommitAtOnce: Bool { !publication.isBusy }

    package func stage(
        version: CommitVersion, record: RawSpan, mutations: borrowing MutationBatch, mayUseReserve: Bool
    ) throws(StorageError) {
        try publication.check()
        guard version > lastVersion else {
            throw StorageError(.versionNotIncreasing, "commit \(version) comes after \(lastVersion)")
        }
        let byteCount = record.byteCount + mutations.byteCount
        guard record.byteCount <= EngineLimits.recordBytesMax,
            stagedBytes + byteCount <= EngineLimits.groupBytesMax
        else {
            throw StorageError(.valueTooLong, "a commit of \(byteCount) bytes does not fit into a group")
        }
        if volume.replaysRecords {
            records.append((version.microseconds, unsafe record.withUnsafeBytes { unsafe Array($0) }))
        }
        volume.contents.withLock { $0.insert(mutations, version: version.microseconds) }
        lastVersion = version
        hasStaged = true
        stagedBytes += byteCount
        stagedEntries += mutations.count
    }

    /// Ends the group, after the one before it is durable.
    private func takeGroup() throws(StorageError) -> MemoryGroup {
        publication.waitUntilIdle()
        try publication.check()
        defer {
            records.removeAll()
            hasStaged = false
            stagedBytes = 0
            stagedEntries = 0
        }
        return MemoryGroup(lastVersion: lastVersion, records: records)
    }

    @discardableResult
    package func commitGroup() throws(StorageError) -> CommitVersion {
        guard hasStaged else {
            try publication.check()
            return engine.publishedVersion
        }
        return try publication.publish(try takeGroup())
    }

    package func commitGroup(
        completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void
    ) throws(StorageError) {
        guard hasStaged, volume.syncsInBackground else { return completion(.success(try commitGroup())) }
        publication.begin(try takeGroup(), completion: completion)
    }

    package func waitForGroup() { publication.waitUntilIdle() }

    package func finishReading() {}
}

/// What a group needs to be published.
private struct MemoryGroup: Sendable {
    let lastVersion: CommitVersion
    let records: [(version: UInt64, bytes: [UInt8])]
}

/// Publishes the groups of a ``MemoryEngine``, one at a time. Thread-safe.
private final class MemoryPublication: Sendable {
    private struct State {
        /// A group is on its way.
        var isBusy = false
        /// A test made a group fail (`EngineOptions.fault`): nothing is taken after it.
        var failure: StorageError?
    }

    private let engine: MemoryEngine
    private let state = Monitor(State())

    init(_ engine: MemoryEngine) { self.engine = engine }

    var isBusy: Bool { state.withLock { $0.isBusy } }

    func waitUntilIdle() { state.wait { $0.isBusy ? nil : () } }

    func check() throws(StorageError) {
        try engine.check()
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Publishes a group on a thread, and then calls `completion`. None may be on its way.
    func begin(_ group: MemoryGroup, completion: @escaping @Sendable (Result<CommitVersion, StorageError>) -> Void) {
        state.withLock { $0.isBusy = true }
        SystemThread.runDetached(name: "log") { [self] in
            completion(Result { () throws(StorageError) in try publish(group) })
            state.update { $0.isBusy = false }
        }
    }

    func publish(_ group: MemoryGroup) throws(StorageError) -> CommitVersion {
        try sync()
        engine.volume.contents.withLock { contents in
            contents.published = group.lastVersion.microseconds
            contents.records += group.records
            contents.groups += 1
            if !engine.volume.replaysRecords { contents.setCheckpoint() }
            contents.raiseHorizon(to: engine.oldestKept)
        }
        return group.lastVersion
    }

    /// What stands for the sync, for tests that stop it or make it fail.
    private func sync() throws(StorageError) {
        do throws(StorageError) {
            try FaultInjection(fault: engine.options.fault).check(.syncLog, file: "memory")
        } catch {
            let failure = StorageError(.failed, error.message)
            state.withLock { $0.failure = failure }
            throw failure
        }
    }
}

/// The newest state of a ``MemoryEngine``, staged commits included.
package struct MemoryLatest: KeyValueState {
    private let volume: MemoryVolume

    init(_ volume: MemoryVolume) {
        self.volume = volume
    }

    @_lifetime(borrow self)
    package borrowing func value(forKey key: RawSpan) throws(StorageError) -> StoredValue? {
        // The newest value stays in the table until the next stage.
        unsafe _overrideLifetime(volume.value(forKey: key, atMost: .max), borrowing: self)
    }

    @_lifetime(borrow self)
    package borrowing func cursor(
        from lower: RawSpan?, to upper: RawSpan?, direction: ScanDirection
    ) throws(StorageError) -> MemoryCursor {
        let cursor = try MemoryCursor.open(volume, version: .max, from: lower, to: upper, direction: direction)
        return unsafe _overrideLifetime(cursor, borrowing: self)
    }
}

/// Makes snapshots of a ``MemoryEngine``.
package struct MemoryReader: KeyValueReader {
    private let engine: MemoryEngine

    init(engine: MemoryEngine) {
        self.engine = engine
    }

    package var mayBePending: Bool { engine.options.coldKeys != nil }

    package func whenReady(_ completion: @escaping @Sendable (Result<Void, StorageError>) -> Void) {
        guard let coldKeys = engine.options.coldKeys else { return completion(.success(())) }
        coldKeys.makeReady(completion)
    }

    package func snapshot(
        at version: CommitVersion?, _ cold: ColdRead = .waits
    ) throws(StorageError) -> MemorySnapshot {
        try engine.check()
        let chosen = try engine.volume.contents.withLock { contents throws(StorageError) in
            let chosen = min(version?.microseconds ?? contents.published, contents.published)
            if chosen < contents.horizon {
                throw StorageError(.versionTooOld, "the history of version \(chosen) has been removed")
            }
            contents.snapshots[chosen, default: 0] += 1
            return chosen
        }
        return MemorySnapshot(
            engine: engine, version: CommitVersion(microseconds: chosen),
            coldKeys: cold == .pends ? engine.options.coldKeys : nil)
    }

    package func reuseSnapshots() {}

    package func releaseSnapshots() {}
}

/// A snapshot of a ``MemoryEngine``. While it is open, what it shows is not removed.
package struct MemorySnapshot: ~Copyable, KeyValueSnapshot {
    private let engine: MemoryEngine
    package let version: CommitVersion
    /// Keys for which reads are pending.
    private let coldKeys: (any ColdKeys)?

    init(engine: MemoryEngine, version: CommitVersion, coldKeys: (any ColdKeys)?) {
        self.engine = engine
        self.version = version
        self.coldKeys = coldKeys
    }

    deinit {
        engine.volume.contents.withLock { contents in
            let left = (contents.snapshots[version.microseconds] ?? 1) - 1
            contents.snapshots[version.microseconds] = left == 0 ? nil : left
        }
    }

    @_lifetime(borrow self)
    package borrowing func value(forKey key: RawSpan) throws(StorageError) -> StoredValue? {
        if let coldKeys, coldKeys.isPending(key) { throw .pending }
        return unsafe _overrideLifetime(
            engine.volume.value(forKey: key, atMost: version.microseconds), borrowing: self)
    }

    @_lifetime(borrow self)
    package borrowing func cursor(
        from lower: RawSpan?, to upper: RawSpan?, direction: ScanDirection
    ) throws(StorageError) -> MemoryCursor {
        let cursor = try MemoryCursor.open(
            engine.volume, version: version.microseconds, from: lower, to: upper, direction: direction,
            coldKeys: coldKeys)
        return unsafe _overrideLifetime(cursor, borrowing: self)
    }
}

extension MemoryVolume {
    /// The value of a key at a version. Valid while the table keeps it: the caller ties it to what prevents its
    /// removal.
    @_lifetime(immortal)
    fileprivate func value(forKey key: RawSpan, atMost version: UInt64) -> StoredValue? {
        let found = unsafe key.withUnsafeBytes { key in
            contents.withLock { unsafe $0.table.entry(of: key)?.version(atMost: version) }
        }
        guard let found, let bytes = unsafe found.value?.bytes else { return nil }
        let span = unsafe RawSpan(_unsafeBytes: bytes)
        let value = StoredValue(bytes: span, version: CommitVersion(microseconds: found.version))
        return unsafe _overrideLifetime(value, copying: ())
    }
}
