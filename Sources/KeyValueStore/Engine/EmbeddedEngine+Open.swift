// Opening a directory: lock it, know its format, open the tree, replay the log behind it.

internal import Glibc

extension EmbeddedEngine {
    /// Derives again, from a log record, the keys that its commit changed.
    ///
    /// Called once for each record after the last checkpoint, in order. `latest` shows the state just before the commit. The batch
    /// is empty at the call. What it throws ends the opening.
    package typealias Replay = (
        _ version: CommitVersion, _ record: RawSpan, _ mutations: inout MutationBatch, _ latest: LatestReader
    ) throws -> Void

    /// Opens a directory, creating it if need be, and recovers what its log holds.
    ///
    /// - Throws: `StorageError` (`locked`, `unsupportedFormat`, `corrupt`, `inputOutput`, `full`), or what `replay` throws.
    package static func open(
        directory: String, options: EngineOptions = EngineOptions(), replay: Replay
    ) throws -> EmbeddedEngine {
        let lock = try DirectoryFormat.lock(directory)
        try DirectoryFormat.openOrCreate(directory)
        let tree = try Tree(
            path: directory + "/tree", mapBytesMax: options.mapBytesMax, readersMax: options.readersMax)
        let state = try tree.state()
        let core = try EngineCore(directory: directory, options: options, tree: tree, state: state, lock: lock)
        let opening = Opening(core, state)
        let log = try opening.recoverLog(replay)
        return try EmbeddedEngine(core: core, log: log, background: Background(core, state: opening.state))
    }
}

/// An engine on its way to being open. Replay goes into overlays like commits do, with checkpoints in between when there is much.
private final class Opening {
    private let core: EngineCore
    private let latest: LatestReader
    private(set) var state: TreeState
    private var batch = MutationBatch()

    init(_ core: EngineCore, _ state: TreeState) {
        self.core = core
        self.state = state
        latest = LatestReader(core, version: .maximum)
    }

    /// Replays the log and makes it ready to be written behind its end.
    func recoverLog(_ replay: EmbeddedEngine.Replay) throws -> LogWriter {
        let directory = core.directory + "/log"
        try Directory.create(directory)
        try Self.removeUnfinished(in: directory)
        var log = unsafe try LogRecovery.read(directory: directory, state: state) { version, record in
            unsafe try self.replay(version, record, replay)
        }
        latest.finish()
        if log.segments.isEmpty {
            log.highestSequence += 1
            log.segments = [
                try LogSegment.prepare(
                    sequence: log.highestSequence, byteCount: LogFormat.roundedToPage(core.options.logSegmentBytes),
                    recycling: nil, in: directory, fault: core.fault)
            ]
        } else {
            try log.repairEnd()
        }
        let end = log.segments[log.endSegmentIndex]
        core.pool.adopt(log)
        core.progress.withLock { progress in
            progress.nextGroupSegment = end.sequence
            progress.lastSealNanoseconds = SystemClock.monotonicNanoseconds()
        }
        core.published.store(log.lastVersion.microseconds, ordering: .releasing)
        return unsafe log.tail.withUnsafeBytes { tail in
            unsafe LogWriter(pool: core.pool, segment: end, offset: log.endOffset, tail: tail, lastVersion: log.lastVersion)
        }
    }

    /// Segments that were being prepared when the process ended.
    private static func removeUnfinished(in directory: String) throws(StorageError) {
        for name in try Directory.names(in: directory) where name.hasSuffix(".prepare") {
            try Directory.removeFile(directory + "/" + name)
        }
    }

    private func replay(
        _ version: CommitVersion, _ record: UnsafeRawBufferPointer, _ replay: EmbeddedEngine.Replay
    ) throws {
        // After a crash in a checkpoint the tree holds newer values of some keys; history hides them.
        if state.newest > state.checkpoint { latest.version = CommitVersion(microseconds: version.microseconds - 1) }
        batch.removeAll()
        try replay(version, unsafe RawSpan(_unsafeBytes: record), &batch, latest)
        let overlay = core.registry.viewOfChanger.active
        let needed = Overlay.bytesNeeded(count: batch.count, bytes: batch.byteCount)
        guard needed <= EngineLimits.groupBytesMax else {
            throw StorageError(.valueTooLong, "replay of commit \(version) gives \(needed) bytes of mutations")
        }
        batch.insert(into: overlay, version: version)
        core.published.store(version.microseconds, ordering: .releasing)
        if overlay.byteCount >= core.options.overlayBytesMax { try checkpoint() }
    }

    /// Empties the overlay into the tree. The log stays as it is: it is still being read.
    private func checkpoint() throws(StorageError) {
        latest.finish()
        let full = try core.progress.withLock { progress throws(StorageError) -> FrozenOverlay? in
            progress.nextGroupSegment = state.firstSegment
            try core.freeze(&progress)
            return progress.frozen
        }
        guard let full else { return }
        var checkpoint = Checkpoint(core: core, frozen: full, state: state)
        try checkpoint.run()
        state = checkpoint.state
        core.checkpoint.store(state.checkpoint.microseconds, ordering: .releasing)
        core.progress.withLock { progress in
            progress.frozen = nil
            core.registry.show(active: core.registry.viewOfChanger.active, frozen: nil, retiring: full.overlay)
        }
        latest.version = .maximum
    }
}

/// The format file and the lock of a directory.
enum DirectoryFormat {
    /// Never change; a directory of another format gets another line.
    static let line = "hearth key-value store, format 1\n"

    /// Takes the directory's lock, making the directory if there is none.
    /// - Throws: `locked`.
    static func lock(_ directory: String) throws(StorageError) -> File {
        try Directory.create(directory)
        let file = try File(directory + "/LOCK", flags: O_RDWR | O_CREAT)
        guard try file.tryLock() else {
            throw StorageError(.locked, "another process has this data directory open", file: directory)
        }
        return file
    }

    /// Checks the format; gives a new directory its format file.
    /// - Throws: `unsupportedFormat`.
    static func openOrCreate(_ directory: String) throws(StorageError) {
        let path = directory + "/FORMAT"
        if Directory.exists(path) { return try check(path) }
        guard !Directory.exists(directory + "/tree"), !Directory.exists(directory + "/log") else {
            throw StorageError(.unsupportedFormat, "the data directory has no FORMAT file", file: directory)
        }
        try create(directory)
    }

    /// Gives a directory its format file, durably.
    static func create(_ directory: String) throws(StorageError) {
        let path = directory + "/FORMAT"
        let workPath = path + ".new"
        let file = try File(workPath, flags: O_RDWR | O_CREAT | O_TRUNC)
        try file.write(string: line)
        try file.sync()
        try Directory.rename(workPath, to: path)
        try Directory.sync(directory)
    }

    /// Checks the format of an existing directory.
    static func check(_ path: String) throws(StorageError) {
        let file = try File(path, flags: O_RDONLY)
        let buffer = ByteBuffer(capacity: 256)
        let count = unsafe try file.read(into: buffer.all, at: 0)
        let found = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: buffer.all[..<count]), as: UTF8.self)
        guard found == line else {
            throw StorageError(.unsupportedFormat, "this build does not know the format of the data directory", file: path)
        }
    }
}
