internal import Storage

/// A record of a frame.
@safe
struct FramedRecord {
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

/// The records of a whole frame, or of groups of a shared log, in order. Valid while the bytes are.
@safe
struct LogFrameRecords {
    private let bytes: UnsafeRawBufferPointer
    private let file: String?
    /// Where the frame begins in its file.
    private let start: Int
    private let end: Int
    /// Of the last record.
    let lastVersion: UInt64
    /// Where the next record begins in the bytes.
    private var offset: Int
    private var version: UInt64
    private var left: Int

    /// - Parameters:
    ///   - bytes: the frame, whose sum has been verified.
    ///   - file: its segment, for errors.
    init(_ frame: LogFrameHeader, _ bytes: UnsafeRawBufferPointer, file: String) {
        unsafe self.bytes = unsafe bytes
        self.file = file
        start = frame.offset
        end = LogFormat.frameHeaderBytes + frame.payloadBytes
        lastVersion = frame.lastVersion
        offset = LogFormat.frameHeaderBytes
        version = frame.previousVersion
        left = frame.recordCount
    }

    /// Records without a frame.
    /// - Throws: `corrupt` if the bytes are not whole records.
    init(records bytes: UnsafeRawBufferPointer) throws(StorageError) {
        unsafe self.bytes = unsafe bytes
        file = nil
        start = 0
        end = bytes.count
        offset = 0
        version = 0
        (left, lastVersion) = unsafe try Self.shape(of: bytes)
    }

    /// The number of records without a frame, and the version of the last one.
    private static func shape(
        of bytes: UnsafeRawBufferPointer
    ) throws(StorageError) -> (count: Int, lastVersion: UInt64) {
        var (offset, count, version) = (0, 0, UInt64(0))
        while bytes.count - offset >= LogFormat.recordHeaderBytes {
            version = unsafe bytes.word(at: offset)
            let length = unsafe bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self)
            offset += LogFormat.recordHeaderBytes + Int(UInt32(littleEndian: length))
            count += 1
        }
        guard offset == bytes.count else {
            throw StorageError(.corrupt, "a group of the shared log does not have whole records")
        }
        return (count, version)
    }

    /// The next record; nil after the last.
    /// - Throws: `corrupt` if the contents are not what the header says.
    mutating func next() throws(StorageError) -> FramedRecord? {
        if left == 0 {
            guard offset == end, version == lastVersion else { throw damage }
            return nil
        }
        left -= 1
        guard end - offset >= LogFormat.recordHeaderBytes else { throw damage }
        let recordVersion = unsafe bytes.word(at: offset)
        let length = unsafe Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt32.self)))
        offset += LogFormat.recordHeaderBytes
        guard length <= end - offset, recordVersion > version, recordVersion <= lastVersion else { throw damage }
        version = recordVersion
        defer { offset += length }
        return unsafe FramedRecord(
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
            offset: file == nil ? nil : start + offset)
    }
}
