internal import Basics
internal import CommitLog
internal import EmbeddedEngine
internal import FileSystem
internal import Storage

/// What the archive's thread has: where the archive ends, and which bases there are. Used by one thread at a time.
struct ArchiveWorker {
    private let engine: EmbeddedEngine
    private let settings: ArchiveSettings
    private var lock: File?
    private var owner: ArchiveOwner?
    private var writer: RecordWriter?
    /// Where the chain begins that is written to.
    private var chainStart = CommitVersion.zero
    private(set) var problems: [StorageError] = []
    private(set) var newestBase: ArchiveBase?
    private var nextBaseNumber: UInt64 = 1
    /// What the archive lacks before the chain that is written to, until that chain has records.
    private var gap: Gap?
    /// Bytes of records since the newest base.
    private var recordBytes = 0
    /// When another base may be tried, and how long to wait after the next failure.
    private var nextBaseNanoseconds: UInt64 = 0
    private var basePauseNanoseconds: UInt64 = 1_000_000_000

    private static let basePauseMax: UInt64 = 600_000_000_000

    init(_ engine: EmbeddedEngine, _ settings: ArchiveSettings) {
        self.engine = engine
        self.settings = settings
    }

    var isOpen: Bool { writer != nil }

    /// The archive has every commit up to here.
    var end: CommitVersion { writer?.end ?? .zero }

    /// Ends work on the archive, so that another process may write to it.
    mutating func close() {
        lock?.unlock()
        (lock, writer) = (nil, nil)
    }
}

// MARK: - Opening

extension ArchiveWorker {
    /// Opens or creates the archive, and finds where it ends.
    /// - Throws: as ``Archiver/init(_:_:)``. The archive is not locked then: another disk may be mounted in its place.
    mutating func open() throws(StorageError) {
        do throws(StorageError) {
            try openLocked()
        } catch {
            close()
            throw error
        }
    }

    private mutating func openLocked() throws(StorageError) {
        let directory = settings.directory
        // The mark of the archive is written to the data directory.
        try engine.checkPlace()
        guard let identity = engine.identity else {
            throw StorageError(.full, "the data directory has no identity yet", file: engine.directory)
        }
        let owner = ArchiveOwner(store: identity, timeline: engine.timelineStart)
        try Directory.create(directory)
        lock = try ArchiveLock.take(directory, isShared: settings.mayWrite != nil)
        try Self.claim(directory, for: owner, ArchiveMark(of: engine.directory, owner, archive: directory))
        for place in [ArchiveFormat.recordsName, ArchiveFormat.basesName] {
            try Directory.create("\(directory)/\(place)")
            // A process that was killed may have left names that are not durable.
            try Directory.sync("\(directory)/\(place)")
        }
        let catalogue = try ArchiveCatalogue(directory)
        try removeUnfinished(catalogue)
        problems = catalogue.problems
        newestBase = catalogue.bases.last
        nextBaseNumber = (catalogue.baseNumbers.last ?? 0) + 1
        self.owner = owner
        try openChain(catalogue, owner)
        recordBytes = catalogue.files.filter { $0.last > newestBase?.version ?? .zero }.reduce(0) {
            $0 + $1.payloadBytes
        }
    }

    /// Makes a directory an archive of a store.
    /// - Throws: `corrupt` if it is one of another store; `inputOutput` if the archive of the store was there.
    private static func claim(
        _ directory: String, for owner: ArchiveOwner, _ mark: ArchiveMark
    ) throws(StorageError) {
        guard let found = try ArchiveOwner.read(in: directory) else {
            let path = "\(directory)/\(ArchiveFormat.ownerName)"
            let others = try Directory.names(in: directory).filter {
                $0 != ArchiveFormat.lockName && !$0.hasSuffix(ArchiveFormat.unfinishedSuffix) && $0 != "lost+found"
            }
            guard others.isEmpty else {
                throw StorageError(
                    .unsupportedFormat, "the directory is not an archive and not empty: it has \(others[0])",
                    file: directory)
            }
            try mark.checkNew(directory)
            let text = Array(owner.text.utf8)
            _ = try ArchiveFiles.write(text.byteSpan, to: path, in: directory)
            return try mark.set()
        }
        guard found == owner else {
            throw StorageError(
                .corrupt, "the archive is of another store (\(found.store)), or of another history of this one",
                file: directory, remedy: "a restored or forked directory needs another archive: name a new one")
        }
        try mark.set()
    }

    /// Removes what processes left that ended while they wrote.
    private func removeUnfinished(_ catalogue: ArchiveCatalogue) throws(StorageError) {
        let directory = settings.directory
        for number in catalogue.unfinishedBases {
            try Directory.removeAll(ArchiveFormat.baseDirectory(number, in: directory))
        }
        if let number = catalogue.unfinishedRecords {
            try Directory.removeFile(ArchiveFormat.recordFile(number, in: directory))
        }
        let records = "\(directory)/\(ArchiveFormat.recordsName)"
        for name in try Directory.names(in: records) where name.hasSuffix(ArchiveFormat.unfinishedSuffix) {
            try Directory.removeFile("\(records)/\(name)")
        }
    }

    /// Continues the last chain, or begins one.
    private mutating func openChain(_ catalogue: ArchiveCatalogue, _ owner: ArchiveOwner) throws(StorageError) {
        let next = catalogue.unfinishedRecords ?? catalogue.lastNumber + 1
        if let chain = catalogue.chains.last, let file = chain.files.last, file.number == next - 1,
            try continues(file)
        {
            chainStart = chain.after
            writer = recordWriter(owner, number: next, previousSum: file.sum, after: file.last)
        } else {
            try beginChain(next, owner)
            if let last = catalogue.chains.last?.last, last < chainStart { gap = (last, chainStart) }
        }
        engine.log.hold(.archive, after: end)
    }

    private mutating func beginChain(_ number: UInt64, _ owner: ArchiveOwner) throws(StorageError) {
        chainStart = try engine.log.base()
        writer = recordWriter(owner, number: number, previousSum: 0, after: chainStart)
    }

    private func recordWriter(
        _ owner: ArchiveOwner, number: UInt64, previousSum: UInt64, after version: CommitVersion
    ) -> RecordWriter {
        RecordWriter(
            settings.directory, owner, engine.log, number: number, previousSum: previousSum, after: version,
            mayWrite: settings.mayWrite)
    }

    /// Whether the log has what comes after the last record of the archive.
    /// - Throws: `corrupt` if the store does not have that record: its history is another one.
    private func continues(_ file: RecordHeader) throws(StorageError) -> Bool {
        let log = engine.log
        if log.durableVersion < file.last {
            throw otherHistory("ends with version \(log.durableVersion), and the archive with \(file.last)")
        }
        let records = log.records(after: CommitVersion(microseconds: file.last.microseconds - 1))
        do throws(StorageError) {
            guard try records.next(), records.version == file.last else {
                throw otherHistory("has no commit \(file.last), with which the archive ends")
            }
        } catch {
            // The log begins later. Nothing is missing if it begins right there.
            guard error.code == .versionTooOld else { throw error }
            return try log.base() == file.last || log.durableVersion == file.last
        }
        let archived = try lastRecord(of: file)
        guard archived.byteSpan.equalsBytes(records.record) else {
            throw otherHistory("has another commit \(file.last) than the archive")
        }
        return true
    }

    private func lastRecord(of file: RecordHeader) throws(StorageError) -> [UInt8] {
        var last: [UInt8] = []
        try RecordFile(file, in: settings.directory).visit { _, record in
            last = [UInt8](copying: record)
            return true
        }
        return last
    }

    private func otherHistory(_ reason: String) -> StorageError {
        StorageError(
            .corrupt, "the data directory \(reason): it is an older copy, or lost commits", file: engine.directory,
            remedy: "restore it from the archive, or name a new archive")
    }
}

// MARK: - Work

extension ArchiveWorker {
    /// Versions between which the archive has no commits.
    typealias Gap = (after: CommitVersion, until: CommitVersion)

    /// Copies new records. If the log has lost some, begins a new chain with what it has.
    /// - Returns: the bytes written, and which commits the archive lacks.
    mutating func copyRecords() throws(StorageError) -> (bytes: Int, gap: Gap?) {
        guard let writer, let owner else { return (0, nil) }
        var bytes = 0
        do throws(StorageError) {
            bytes = try writer.run()
        } catch {
            guard error.code == .versionTooOld else { throw error }
            let end = gap?.after ?? writer.end
            try beginChain(try ArchiveCatalogue(settings.directory).lastNumber + 1, owner)
            // Kept until it is reported: the disk that has failed so long may fail now too.
            gap = (end, chainStart)
            engine.log.hold(.archive, after: chainStart)
            bytes = try self.writer?.run() ?? 0
        }
        recordBytes += bytes
        defer { gap = nil }
        return (bytes, gap)
    }

    /// Whether no base leads to what is written.
    var lacksBase: Bool { newestBase.map { $0.version < chainStart } ?? true }

    /// Whether it is time for a base.
    func isBaseDue(now: UInt64) -> Bool {
        guard SystemClock.monotonicNanoseconds() >= nextBaseNanoseconds else { return false }
        guard let base = newestBase, !lacksBase else { return true }
        // Without commits a new base would be what the last one is.
        guard end > base.version else { return false }
        let interval = settings.baseMilliseconds * 1_000
        // Written while the clock was ahead, one says nothing about its age.
        return now >= base.written + interval || base.written > now + interval
            || recordBytes >= max(base.byteCount, settings.baseRecordBytesMin)
    }

    /// What makes the next base.
    func baseWriter(isCancelled: @escaping () -> Bool) -> BaseWriter {
        guard let owner else { preconditionFailure("a base is made when the archive is open") }
        return BaseWriter(
            engine: engine, directory: settings.directory, owner: owner, number: nextBaseNumber, now: settings.clock,
            isCancelled: isCancelled)
    }

    mutating func noteBase(_ outcome: Result<ArchiveBase, StorageError>) {
        switch outcome {
        case .success(let base):
            newestBase = base
            recordBytes = 0
            basePauseNanoseconds = 1_000_000_000
        case .failure:
            nextBaseNanoseconds = SystemClock.monotonicNanoseconds() + basePauseNanoseconds
            basePauseNanoseconds = min(2 * basePauseNanoseconds, Self.basePauseMax)
        }
        nextBaseNumber += 1
    }
}
