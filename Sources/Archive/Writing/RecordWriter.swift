internal import Basics
internal import CommitLog
internal import FileSystem
internal import Storage

/// Copies records of a log to files of an archive. Used by one thread.
///
/// While the last file is small, it is replaced by one that has more records, so that an archive of a store with few
/// commits does not consist of very many files.
final class RecordWriter {
    private let directory: String
    private let owner: ArchiveOwner
    private let log: WriteAheadLog
    private let mayWrite: (@Sendable () -> Bool)?
    private var records: LogRecords
    /// The number of the file that is being made, and what the one before it says.
    private var number: UInt64
    private var previousSum: UInt64
    /// Where the file begins, and what is in it.
    private var after: CommitVersion
    private var last: CommitVersion
    private var recordCount = 0
    private var file = RecordWriter.emptyFile
    /// How much of it is durable.
    private var written = (bytes: RecordHeader.byteCount, records: 0)
    /// Every record up to here is durable in the archive.
    private(set) var end: CommitVersion
    /// Whether files can be replaced.
    private var canReplace = true

    /// Size at which a file is written although more records are there.
    private static let fileBytesMax = 8 << 20
    /// Size up to which the last file is replaced.
    private static let replacedBytesMax = 512 << 10
    /// More memory than this is given back after a large record.
    private static let bytesKeptMax = 16 << 20

    /// Room for the header alone.
    private static var emptyFile: ByteBuffer {
        var file = ByteBuffer(capacity: 64 << 10)
        for _ in 0..<RecordHeader.byteCount { file.append(byte: 0) }
        return file
    }

    /// - Parameters:
    ///   - number: of the next file.
    ///   - previousSum: of the header of the file before; 0 begins a chain.
    ///   - after: the version of the last record that the archive has, or after which the chain begins.
    ///   - mayWrite: see ``ArchiveSettings/mayWrite``.
    init(
        _ directory: String, _ owner: ArchiveOwner, _ log: WriteAheadLog, number: UInt64, previousSum: UInt64,
        after: CommitVersion, mayWrite: (@Sendable () -> Bool)? = nil
    ) {
        self.directory = directory
        self.owner = owner
        self.log = log
        self.mayWrite = mayWrite
        self.number = number
        self.previousSum = previousSum
        self.after = after
        last = after
        end = after
        records = log.records(after: after)
    }

    /// Copies what is durable in the log.
    ///
    /// - Returns: the bytes that were written.
    /// - Throws: `versionTooOld` if the log has lost what comes next; `corrupt` if it is damaged; `closed` if another
    ///   server writes to the archive now; `full`, `inputOutput`. Another call begins where the archive ends.
    func run() throws(StorageError) -> Int {
        var bytes = 0
        do throws(StorageError) {
            while try records.nextGroup() {
                let group = records.group
                if recordCount > 0, file.count + group.byteCount > Self.fileBytesMax { bytes += try write() }
                // Records lie in groups of the log as they do in files of the archive.
                file.append(group)
                recordCount += records.groupCount
                last = records.version
            }
            bytes += try write()
        } catch {
            takeBack()
            throw error
        }
        return bytes
    }

    /// Forgets what is not durable.
    private func takeBack() {
        file.truncate(to: written.bytes)
        recordCount = written.records
        last = end
        records = log.records(after: end)
    }

    /// Writes the file, unless it is durable as it is.
    /// - Returns: its bytes.
    private func write() throws(StorageError) -> Int {
        if file.count == written.bytes { return 0 }
        let header = RecordHeader(
            number: number, owner: owner, previousSum: previousSum, after: after, last: last,
            recordCount: recordCount, file: file.bytes)
        canReplace = try write(header)
        end = last
        log.hold(.archive, after: end)
        written = (file.count, recordCount)
        if !canReplace || header.payloadBytes > Self.replacedBytesMax { beginFile(after: header) }
        return header.fileBytes
    }

    /// Writes the file with its header.
    /// - Returns: whether it can be replaced later.
    private func write(_ header: RecordHeader) throws(StorageError) -> Bool {
        var whole = ByteBuffer(capacity: 0)
        swap(&whole, &file)
        defer { swap(&whole, &file) }
        header.write(to: &whole)
        let path = ArchiveFormat.recordFile(number, in: directory)
        return try ArchiveFiles.write(
            whole.bytes, to: path, in: "\(directory)/\(ArchiveFormat.recordsName)",
            unless: { self.mayWrite?() == false })
    }

    private func beginFile(after header: RecordHeader) {
        number += 1
        previousSum = header.sum
        after = header.last
        if file.capacity > Self.bytesKeptMax { file = Self.emptyFile }
        file.truncate(to: RecordHeader.byteCount)
        recordCount = 0
        written = (RecordHeader.byteCount, 0)
    }
}
