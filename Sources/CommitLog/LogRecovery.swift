// Reading the log when a directory is opened: which commits are there, where it ends, and whether it is whole.

internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

/// What recovery found, and where writing continues.
struct RecoveredLog {
    /// The segments that may still be needed, in sequence; the later ones are unwritten.
    var segments: [UsedSegment] = []
    /// Where the log ends.
    var endSegmentIndex = 0
    var endOffset = LogFormat.framesStart
    /// Where the last good frame begins in that segment.
    var lastFrameStart = LogFormat.framesStart
    /// The bytes of the last page before `endOffset`.
    var tail: [UInt8] = []
    /// Segment files without records that are needed.
    var free: [SegmentPool.FreeFile] = []
    var highestSequence: UInt64 = 0
    /// Records up to here are not in the log.
    var base = CommitVersion.zero
    var lastVersion = CommitVersion.zero
    var frameCount = 0
    var recordCount = 0
}

/// Reads the frames of a log directory in order.
struct LogRecovery {
    let directory: String
    /// The first segment that is needed; 0 if that is not known.
    let firstSegment: UInt64
    /// Commits up to here are not visited: the runs have them.
    let checkpoint: CommitVersion
    /// The segments are not opened for writing.
    private let isReadOnly: Bool

    /// Called with each record of a commit after the checkpoint, in order.
    typealias Visit = (CommitVersion, UnsafeRawBufferPointer) throws -> Void

    private var log = RecoveredLog()
    /// Where the first frame that is not good was met.
    private var firstBad: (file: String, offset: Int)?
    private var previousFrameVersion: UInt64 = 0

    private init(directory: String, firstSegment: UInt64, checkpoint: CommitVersion, isReadOnly: Bool) {
        self.directory = directory
        self.isReadOnly = isReadOnly
        self.firstSegment = firstSegment
        self.checkpoint = checkpoint
        log.lastVersion = checkpoint
    }

    /// Reads everything; throws `corrupt` when something synced is missing, or what `visit` throws. Changes nothing on
    /// disk.
    static func read(
        directory: String, firstSegment: UInt64, checkpoint: CommitVersion, isReadOnly: Bool = false, _ visit: Visit
    ) throws -> RecoveredLog {
        var recovery = LogRecovery(
            directory: directory, firstSegment: firstSegment, checkpoint: checkpoint, isReadOnly: isReadOnly)
        let sequences = try recovery.findSegments()
        let buffer = HeapBuffer(capacity: 4096)
        for sequence in sequences { unsafe try recovery.readSegment(sequence, buffer, visit) }
        if recovery.log.frameCount == 0 { recovery.log.base = recovery.log.lastVersion }
        return recovery.log
    }

    /// The sequences to read, which must have no gap; files of earlier ones are free.
    private mutating func findSegments() throws(StorageError) -> [UInt64] {
        var needed: [UInt64] = []
        for name in try Directory.names(in: directory) {
            guard let sequence = LogFormat.sequence(fileName: name) else { continue }
            log.highestSequence = max(log.highestSequence, sequence)
            if sequence < firstSegment {
                let path = directory + "/" + name
                log.free.append(
                    SegmentPool.FreeFile(path: path, byteCount: try File(path, flags: O_RDONLY).byteCount()))
            } else {
                needed.append(sequence)
            }
        }
        let first = firstSegment > 0 ? firstSegment : needed.first
        guard let first else { return [] }
        for (index, sequence) in needed.enumerated() where sequence != first + UInt64(index) {
            throw missing(first + UInt64(index))
        }
        if needed.isEmpty { throw missing(first) }
        return needed
    }

    private func missing(_ sequence: UInt64) -> StorageError {
        let path = directory + "/" + LogFormat.fileName(sequence: sequence)
        return StorageError(.corrupt, "a segment of the log is missing", file: path)
    }

    private mutating func readSegment(_ sequence: UInt64, _ buffer: HeapBuffer, _ visit: Visit) throws {
        let path = directory + "/" + LogFormat.fileName(sequence: sequence)
        let file = try File(path, flags: isReadOnly ? O_RDONLY : O_RDWR)
        let header = try Self.readHeader(of: file, sequence: sequence)
        buffer.reserve(header.byteCount, keeping: 0)
        let whole = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.all[..<header.byteCount])
        let read = unsafe try file.read(into: whole, at: 0)
        guard read == header.byteCount else { throw Self.cut(path, at: read, of: header.byteCount) }
        let bytes = UnsafeRawBufferPointer(whole)
        log.segments.append(UsedSegment(segment: LogSegment(file: file, header: header)))
        var offset = LogFormat.framesStart
        while let frame = unsafe LogFrameHeader(segment: bytes, at: offset, nonce: header.nonce) {
            try accept(frame, path: path)
            unsafe try visitRecords(of: frame, bytes, path: path, visit)
            log.endSegmentIndex = log.segments.count - 1
            log.lastFrameStart = offset
            log.endOffset = offset + frame.frameBytes
            let tailStart = log.endOffset / LogFormat.pageBytes * LogFormat.pageBytes
            log.tail = unsafe Array(bytes[tailStart..<log.endOffset])
            offset += frame.frameBytes
        }
        unsafe try scanForFrames(behind: offset, in: bytes, header, path: path)
        if firstBad == nil { firstBad = (path, offset) }
    }

    /// The header of a segment file, which is at least as long as the header says.
    ///
    /// A segment has its full size, durably, before it gets its name. A shorter file has been cut, and with it commits
    /// may be gone that nothing else knows of.
    private static func readHeader(of file: File, sequence: UInt64) throws(StorageError) -> SegmentHeader {
        let buffer = HeapBuffer(capacity: LogFormat.segmentHeaderBytes)
        let read = unsafe try file.read(into: buffer.all, at: 0)
        guard read == LogFormat.segmentHeaderBytes else { throw cut(file.path, at: read, of: LogFormat.pageBytes) }
        let header = unsafe SegmentHeader(UnsafeRawBufferPointer(buffer.all))
        guard let header, header.sequence == sequence, header.byteCount >= LogFormat.framesStart else {
            throw StorageError(.corrupt, "the header of a log segment is damaged", file: file.path, offset: 0)
        }
        let size = try file.byteCount()
        guard size >= header.byteCount else { throw cut(file.path, at: size, of: header.byteCount) }
        return header
    }

    private static func cut(_ path: String, at size: Int, of byteCount: Int) -> StorageError {
        StorageError(
            .corrupt, "a log segment of \(byteCount) bytes has been cut short: it has \(size)", file: path, offset: size
        )
    }

    /// Checks a good frame's place in the chain.
    private mutating func accept(_ frame: LogFrameHeader, path: String) throws(StorageError) {
        // A gap among commits that the runs have is harmless: the first segment may begin with such, and a damaged
        // group of such may have been cut.
        let isContinuous =
            frame.previousVersion == previousFrameVersion && log.frameCount > 0
            || frame.previousVersion >= previousFrameVersion && frame.previousVersion <= checkpoint.microseconds
        guard isContinuous, frame.lastVersion > frame.previousVersion else {
            // The frames lost are those that should have stood where reading the segment before broke off.
            let place = firstBad ?? (path, frame.offset)
            throw StorageError(
                .corrupt,
                "commits are missing from the log: version \(previousFrameVersion) is followed by a group that expects "
                    + "\(frame.previousVersion) before it",
                file: place.file, offset: place.offset)
        }
        if log.frameCount == 0 { log.base = CommitVersion(microseconds: frame.previousVersion) }
        previousFrameVersion = frame.lastVersion
        log.frameCount += 1
    }

    private mutating func visitRecords(
        of frame: LogFrameHeader, _ segment: UnsafeRawBufferPointer, path: String, _ visit: Visit
    ) throws {
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: segment[frame.offset..<(frame.offset + frame.frameBytes)])
        var records = unsafe LogFrameRecords(frame, bytes, file: path)
        while let record = try records.next() {
            guard record.version > checkpoint else { continue }
            log.recordCount += 1
            unsafe try visit(record.version, record.bytes)
        }
        log.lastVersion = max(log.lastVersion, CommitVersion(microseconds: frame.lastVersion))
        log.segments[log.segments.count - 1].lastVersion = CommitVersion(microseconds: frame.lastVersion)
    }

    /// Throws when a frame of this life begins after the first bad one, whole or not: the bad one was synced before.
    private func scanForFrames(
        behind bad: Int, in bytes: UnsafeRawBufferPointer, _ header: SegmentHeader, path: String
    ) throws(StorageError) {
        var offset = bad + 8
        while offset <= bytes.count - LogFormat.frameHeaderBytes {
            if unsafe bytes.word(at: offset + 16) == header.nonce {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[offset...])
                let later = unsafe LogFrameHeader(
                    unverified: rest, at: offset, nonce: header.nonce, bytesLeft: rest.count)
                if later != nil {
                    throw StorageError(
                        .corrupt, "a group of the log is damaged, and a later one begins at byte \(offset)", file: path,
                        offset: bad)
                }
            }
            offset += 8
        }
    }
}

extension RecoveredLog {
    /// Prepares the end of the log for further groups: writes the last group again.
    ///
    /// Writing again matters: after a sync that failed the kernel may show bytes that are not on the disk. Only the
    /// last group can be in doubt, since each is synced before the next is written. The page it ends in also loses what
    /// a torn group left.
    func repairEnd() throws(StorageError) {
        guard !segments.isEmpty else { return }
        // A copy of the directory may have made holes of zeros, for which a full disk has no block. Without success all
        // is as before.
        for used in segments[endSegmentIndex...] {
            _ = try? used.segment.file.allocate(from: 0, to: used.segment.byteCount)
        }
        let last = segments[endSegmentIndex].segment
        let start = lastFrameStart / LogFormat.pageBytes * LogFormat.pageBytes
        let end = max(LogFormat.roundedToPage(endOffset), start + LogFormat.pageBytes)
        guard end <= last.byteCount else { return }
        let pages = HeapBuffer(capacity: end - start)
        let bytes = unsafe UnsafeMutableRawBufferPointer(rebasing: pages.all[..<(end - start)])
        _ = unsafe try last.file.read(into: bytes, at: start)
        unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[(endOffset - start)...])
            .initializeMemory(as: UInt8.self, repeating: 0)
        unsafe try last.file.write(UnsafeRawBufferPointer(bytes), at: start)
        try last.file.syncData()
    }
}
