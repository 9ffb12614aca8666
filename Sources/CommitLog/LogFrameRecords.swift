internal import Storage

/// A record of a frame.
@safe
struct LogRecord {
    let version: CommitVersion
    /// Lent by the frame.
    let bytes: UnsafeRawBufferPointer
}

/// Records that follow each other in a frame.
@safe
struct LogRecordGroup {
    /// Version (8 bytes, little-endian), length (4 bytes), bytes, for each. Lent by the frame.
    let bytes: UnsafeRawBufferPointer
    let count: Int
    let lastVersion: CommitVersion
}

/// The records of a whole frame, in order. Valid while its bytes are.
@safe
struct LogFrameRecords {
    private let frame: LogFrameHeader
    private let bytes: UnsafeRawBufferPointer
    private let file: String
    /// Where the next record begins in the frame.
    private var offset = LogFormat.frameHeaderBytes
    private var version: UInt64
    private var left: Int

    /// - Parameters:
    ///   - bytes: the frame, whose sum has been verified.
    ///   - file: its segment, for errors.
    init(_ frame: LogFrameHeader, _ bytes: UnsafeRawBufferPointer, file: String) {
        self.frame = frame
        unsafe self.bytes = unsafe bytes
        self.file = file
        version = frame.previousVersion
        left = frame.recordCount
    }

    private var end: Int { LogFormat.frameHeaderBytes + frame.payloadBytes }

    /// The next record; nil after the last.
    /// - Throws: `corrupt` if the contents are not what the header says.
    mutating func next() throws(StorageError) -> LogRecord? {
        if left == 0 {
            guard offset == end, version == frame.lastVersion else { throw damage }
            return nil
        }
        left -= 1
        guard end - offset >= LogFormat.recordHeaderBytes else { throw damage }
        let recordVersion = unsafe bytes.word(at: offset)
        let length = unsafe Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self)))
        offset += LogFormat.recordHeaderBytes
        guard length <= end - offset, recordVersion > version, recordVersion <= frame.lastVersion else { throw damage }
        version = recordVersion
        defer { offset += length }
        return unsafe LogRecord(
            version: CommitVersion(microseconds: recordVersion),
            bytes: UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + length)]))
    }

    /// The records that are left, at once. None is left afterwards.
    /// - Parameter first: records up to this version are left out.
    /// - Returns: nil if there are no others.
    /// - Throws: as ``next()``.
    mutating func rest(after first: CommitVersion) throws(StorageError) -> LogRecordGroup? {
        var (start, count) = (offset, 0)
        while let record = try next() {
            if record.version <= first { start = offset } else { count += 1 }
        }
        if count == 0 { return nil }
        return unsafe LogRecordGroup(
            bytes: UnsafeRawBufferPointer(rebasing: bytes[start..<end]), count: count,
            lastVersion: CommitVersion(microseconds: version))
    }

    private var damage: StorageError {
        StorageError(
            .corrupt, "a group of the log with a right checksum has wrong contents", file: file,
            offset: frame.offset + offset)
    }
}
