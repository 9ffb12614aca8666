// The seam of the log: what an engine uses of it. All other types of the module serve these.
//
//      WriteAheadLog     open and recover, trim, read, statistics, close       any thread
//      LogAppender       append records, seal and sync groups                  the commit thread
//      LogRecords        the records after a version                           a follower's thread, or an archive's

package import Basics
package import FileSystem
internal import Glibc
package import Storage
internal import Synchronization

/// Where reading the log may begin: all records from there on, in segments that exist.
package struct LogPosition: Equatable, Sendable {
    /// The sequence of a segment; 0 if the position is not known, and then the first segment that exists counts.
    package let segment: UInt64

    package init(segment: UInt64) { self.segment = segment }
}

/// What a log holds.
package struct LogContents: Equatable, Sendable {
    /// Commit groups.
    package let groups: Int
    /// Commits in these groups, without those up to the version from which it was read.
    package let records: Int
    /// The version of the last commit, or that from which it was read.
    package let lastVersion: CommitVersion
}

/// A reading of a log's counters.
package struct LogStatistics: Sendable {
    /// Segments that recovery may need, and those that are ready or free.
    package var segmentsInUse = 0
    package var segmentsSpare = 0
    /// Bytes that are kept for commits that only delete.
    package var reserveBytes = 0
    /// The times of writing and syncing a group.
    package var syncNanoseconds = HistogramReading()
}

/// The log of a data directory: commit groups, durable in their order, until they are trimmed. Thread-safe.
///
///     let appender = try log.recover(from: position, after: checkpoint, …) { version, record in … }
///     try log.startThreads()
///     …                                   // appender.append, seal, synchronize
///     let position = log.position(after: checkpoint)
///     …                                   // the position is made durable
///     log.trim(before: position)
///     log.close()
package final class WriteAheadLog: Sendable {
    private let directory: String
    private let options: EngineOptions
    private let fault: FaultInjection
    let pool: SegmentPool
    /// Where the groups are if not in segments.
    var shared: (any SharedLog)? { options.sharedLog }
    private let synchronizer: LogSynchronizer
    private let threads = Monitor<[SystemThread]>([])
    /// Those that have not taken all records.
    private let holds = LogHolds()

    /// Called with each record, in order; the bytes are valid for the call.
    package typealias Visit = (CommitVersion, RawSpan) throws -> Void

    /// Touches no file.
    /// - Parameters:
    ///   - directory: of the log; nothing else is in it.
    ///   - place: of the directory that the log belongs to.
    package init(directory: String, options: EngineOptions, place: LockedPlace = LockedPlace(nil)) {
        self.directory = directory
        self.options = options
        fault = FaultInjection(fault: options.fault)
        pool = SegmentPool(directory: directory, options: options, place: place)
        synchronizer = LogSynchronizer(fault: fault, shared: options.sharedLog)
        if options.logHeldBytesMax > 0 {
            holds.hold(.archive, after: CommitVersion(microseconds: 0), bytesMax: options.logHeldBytesMax)
        }
    }

    /// Starts the threads that prepare segments and sync groups. `close` ends them.
    /// - Throws: `inputOutput` if the system has no thread left.
    package func startThreads() throws(StorageError) {
        // A shared log has its threads.
        if options.sharedLog != nil { return }
        let (pool, synchronizer) = (pool, synchronizer)
        let preparing = try SystemThread.start("segments") { pool.run() }
        threads.withLock { $0.append(preparing) }
        let syncing = try SystemThread.start("log") { synchronizer.run() }
        threads.withLock { $0.append(syncing) }
    }

    /// Waits until no group is on its way to the disk, and all completions have been called.
    package func waitUntilIdle() { synchronizer.waitUntilIdle() }

    /// Ends the threads and removes files without records that are needed. A group that is on its way is waited for;
    /// further ones are refused.
    package func close() {
        if options.sharedLog != nil { synchronizer.waitUntilIdle() }
        synchronizer.stop()
        pool.stop()
        let ending = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in ending { thread.join() }
        if !options.isReadOnly { pool.removeFree() }
    }
}

// MARK: - Recovery

extension WriteAheadLog {
    /// Reads what the directory holds, creating it if need be, and prepares the end for writing. Comes first, once.
    ///
    /// On a full disk there may be no segment to write to: then the directory can be read, and the first group waits
    /// for space.
    /// - Parameters:
    ///   - start: what was last made durable of `position(after:)`.
    ///   - checkpoint: records up to here are not visited.
    ///   - finished: gets the outcome of each group.
    ///   - visit: gets the records of the log, and then those of `EngineOptions.restoredRecords`.
    /// - Throws: `corrupt` if something synced is missing, `inputOutput`, or what `visit` throws.
    package func recover(
        from start: LogPosition, after checkpoint: CommitVersion, finished: @escaping LogAppender.Outcome,
        _ visit: Visit
    ) throws -> LogAppender {
        let unfinished = options.isReadOnly ? [] : try prepareDirectory()
        var log = unsafe try LogRecovery.read(
            directory: directory, firstSegment: start.segment, checkpoint: checkpoint, isReadOnly: options.isReadOnly
        ) { version, record in
            try visit(version, unsafe RawSpan(_unsafeBytes: record))
        }
        try options.restoredRecords? { version, record in
            guard version > log.lastVersion else { return }
            try visit(version, record)
            // The log begins after them.
            log.lastVersion = version
            log.base = version
        }
        if options.writesLog { try prepareEnd(of: &log, unfinished) }
        pool.adopt(log)
        synchronizer.durable.store(log.lastVersion.microseconds, ordering: .releasing)
        let end = log.segments.isEmpty ? nil : log.segments[log.endSegmentIndex].segment
        let writer = unsafe log.tail.withUnsafeBytes { tail in
            unsafe LogWriter(
                pool: pool, segment: end, offset: log.endOffset, tail: tail, lastVersion: log.lastVersion,
                isDiscarding: !options.writesLog)
        }
        return LogAppender(writer, synchronizer, finished: finished)
    }

    /// Reads the log of a directory that is not open. Changes nothing.
    /// - Parameters:
    ///   - start: as for `recover`.
    ///   - checkpoint: records up to here are not visited.
    /// - Throws: `corrupt` if something synced is missing, `inputOutput`, or what `visit` throws.
    package static func read(
        _ directory: String, from start: LogPosition, after checkpoint: CommitVersion, _ visit: Visit = { _, _ in }
    ) throws -> LogContents {
        let log = unsafe try LogRecovery.read(
            directory: directory, firstSegment: start.segment, checkpoint: checkpoint, isReadOnly: true
        ) { version, record in
            try visit(version, unsafe RawSpan(_unsafeBytes: record))
        }
        return LogContents(groups: log.frameCount, records: log.recordCount, lastVersion: log.lastVersion)
    }

    /// Reads every whole group of a damaged log, in order, past gaps. Changes nothing.
    ///
    /// - Parameters:
    ///   - start: as for `recover`.
    ///   - checkpoint: records up to here are not visited.
    ///   - note: gets a sentence for each gap, with the versions that are missing, and for what cannot be read.
    /// - Throws: what `visit` throws.
    package static func salvage(
        _ directory: String, from start: LogPosition, after checkpoint: CommitVersion,
        note: @escaping (String) -> Void, _ visit: Visit
    ) throws {
        unsafe try LogSalvage.read(
            directory: directory, firstSegment: start.segment, checkpoint: checkpoint, note: note
        ) { version, record in
            try visit(version, unsafe RawSpan(_unsafeBytes: record))
        }
    }

    /// - Returns: files that can become segments without new space.
    private func prepareDirectory() throws(StorageError) -> [String] {
        try Directory.create(directory)
        // The last segment may be of a process that was killed before its name was durable.
        try Directory.sync(directory)
        // Segments that were being prepared when the process ended.
        var unfinished: [String] = []
        for name in try Directory.names(in: directory) where name.hasSuffix(LogSegment.unfinishedSuffix) {
            if let path = try pool.keepUnfinished(directory + "/" + name) { unfinished.append(path) }
        }
        return unfinished
    }

    /// Prepares the end of the log for writing. A new directory or a backup gets its first segment; on a full disk that
    /// is left for later.
    /// - Parameter unfinished: files that become segments.
    private func prepareEnd(of log: inout RecoveredLog, _ unfinished: [String]) throws(StorageError) {
        if !log.segments.isEmpty { try log.repairEnd() }
        for path in unfinished { try append(to: &log, recycling: path) }
        if log.segments.isEmpty { try append(to: &log, recycling: nil) }
    }

    /// Adds a segment, unless the disk is full.
    private func append(to log: inout RecoveredLog, recycling old: String?) throws(StorageError) {
        do throws(StorageError) {
            let segment = try LogSegment.prepare(
                sequence: log.highestSequence + 1, byteCount: options.logSegmentBytes, recycling: old, in: directory,
                fault: fault)
            log.highestSequence += 1
            log.segments.append(UsedSegment(segment: segment))
        } catch {
            if error.code != .full { throw error }
        }
    }
}

// MARK: - Positions

extension WriteAheadLog {
    /// The position of the first segment that may be needed; nil if there is no segment.
    package var start: LogPosition? { pool.firstInUse.map { LogPosition(segment: $0) } }

    /// The position after all records; nil if there is no segment. A directory that needs no record of the log reads
    /// almost nothing from there.
    package var end: LogPosition? { pool.hasSegments ? LogPosition(segment: pool.firstUnwritten) : nil }

    /// A position from which all records after `version` can be read, those of groups that are not sealed yet too.
    package func position(after version: CommitVersion) -> LogPosition {
        LogPosition(segment: pool.firstSegment(after: version))
    }

    /// The position to `trim` before when all records up to `version` are durable elsewhere: that after it, or an
    /// earlier one while an archive or a follower has not taken the records (``hold(_:after:)``). What followers that
    /// come later may need (`EngineOptions.logKeptBytes`) is after it too, unless the disk is full.
    package func trimPosition(after version: CommitVersion) -> LogPosition {
        // A directory without a log gets no position: there is no segment to miss.
        if !options.writesLog { return LogPosition(segment: 0) }
        let kept = holds.all(nowMilliseconds: SystemClock.monotonicMilliseconds()).map {
            pool.firstKept(after: version, held: $0.version, bytesMax: $0.bytesMax)
        }
        let later = pool.firstSegment(before: pool.firstSegment(after: version), keeping: options.logKeptBytes)
        return LogPosition(segment: kept.reduce(later, min))
    }

    /// Keeps the records after `version` from being trimmed, up to `EngineOptions.logHeldBytesMax` for an archive, and
    /// `logFollowedBytesMax` for a follower. A log with a bound for an archive begins with all records held. Only ever
    /// moves forward, except with a new stream.
    ///
    /// - Parameter stream: of a follower; a later one of the same follower has a higher number. An earlier one changes
    ///   nothing any more.
    package func hold(_ holder: LogHolder, stream: UInt64 = 0, after version: CommitVersion) {
        switch holder {
        case .archive: holds.move(.archive, to: version)
        case .follower where options.logFollowedBytesMax > 0 && shared == nil:
            holds.hold(holder, stream: stream, after: version, bytesMax: options.logFollowedBytesMax)
        case .follower: break
        }
    }

    /// A stream of a follower has ended. Unless there is a later one, what the follower has not taken is kept for ten
    /// more minutes.
    package func leave(_ holder: LogHolder, stream: UInt64) {
        holds.leave(holder, stream: stream, nowMilliseconds: SystemClock.monotonicMilliseconds())
    }

    /// Whether an archive or a follower has not taken all durable records.
    package var isHeld: Bool {
        holds.all(nowMilliseconds: SystemClock.monotonicMilliseconds()).contains { $0.version < durableVersion }
    }

    /// Records up to here may be gone.
    /// - Throws: `inputOutput` if that is not known because a shared log cannot be reached.
    package func base() throws(StorageError) -> CommitVersion { try shared?.recordsStart() ?? pool.base }

    /// What the archive of the store lacks is after this version; nil without an archive. With it: bytes that are kept
    /// for it at most.
    package var archiveHold: (version: CommitVersion, bytesMax: Int)? { holds.hold(of: .archive) }

    /// Gives up the records before a position, whose segments are used again. The segment being written stays.
    /// - Parameter position: is durable: the next recovery reads from there on.
    package func trim(before position: LogPosition) { pool.release(before: position.segment) }

    /// Gives most of the space that is free back to the disk, until the next `trim`: nobody is writing.
    package func releaseSpace() { pool.trim() }

    /// The last version that is durable.
    package var durableVersion: CommitVersion {
        CommitVersion(microseconds: synchronizer.durable.load(ordering: .acquiring))
    }

    /// The durable records after `version`, as they are now and as they will be. Keeps nothing from being trimmed.
    package func records(after version: CommitVersion) -> LogRecords { LogRecords(self, after: version) }
}

// MARK: - Statistics

extension WriteAheadLog {
    /// A reading of the counters; costs a few locks.
    package var statistics: LogStatistics {
        var statistics = LogStatistics()
        (statistics.segmentsInUse, statistics.segmentsSpare) = pool.counts
        statistics.reserveBytes = pool.bytesReserved
        statistics.syncNanoseconds = synchronizer.syncNanoseconds.reading
        return statistics
    }

    /// Why no further segment can be prepared, as of the last attempt: the log lasts for what is left of the segments
    /// there are.
    package var error: StorageError? { pool.error }

    /// Why commits are refused, or will be with the end of the segment being written.
    package var shortage: StorageError? { pool.shortage }
}
