internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

/// A file of records in memory, whose sums are right. Immutable, so any thread may use it.
@safe
final class RecordFile: @unchecked Sendable {  // The buffer is written by `init` alone.
    let header: RecordHeader
    private let path: String
    private let buffer: HeapBuffer

    /// Reads a file and verifies its sums.
    ///
    /// - Parameter known: its header. The last file of an archive may have been replaced since by one that has more.
    /// - Throws: `corrupt`, `inputOutput`.
    init(_ known: RecordHeader, in directory: String) throws(StorageError) {
        let path = ArchiveFormat.recordFile(known.number, in: directory)
        let file = try File(path, flags: O_RDONLY)
        let byteCount = min(try file.byteCount(), RecordHeader.fileBytesMax + 1)
        let buffer = HeapBuffer(capacity: max(byteCount, 1))
        let count = unsafe try file.read(into: .init(rebasing: buffer.all[..<byteCount]), at: 0)
        let bytes = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer.all[..<count]))
        guard let found = RecordHeader(bytes), found == known || found.continues(known), count == found.fileBytes,
            ArchiveFiles.sum(bytes.extracting(droppingFirst: RecordHeader.byteCount)) == found.payloadSum
        else { throw Self.damage(path, 0) }
        header = found
        self.path = path
        self.buffer = buffer
    }

    /// Visits the records in order; the bytes are valid for the call.
    /// - Parameter body: returns whether to continue.
    /// - Throws: `corrupt` if the payload is not what the header says.
    func visit(_ body: (CommitVersion, RawSpan) -> Bool) throws(StorageError) {
        let span = unsafe RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer.all[..<header.fileBytes]))
        var offset = RecordHeader.byteCount
        var version = header.after
        for _ in 0..<header.recordCount {
            guard span.byteCount - offset >= RecordHeader.recordHeaderBytes else { throw Self.damage(path, offset) }
            let next = unsafe span.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
            let length = Int(
                UInt32(littleEndian: unsafe span.unsafeLoadUnaligned(fromByteOffset: offset + 8, as: UInt32.self)))
            offset += RecordHeader.recordHeaderBytes
            guard length <= span.byteCount - offset, UInt64(littleEndian: next) > version.microseconds else {
                throw Self.damage(path, offset)
            }
            version = CommitVersion(microseconds: UInt64(littleEndian: next))
            guard body(version, span.extracting(offset..<(offset + length))) else { return }
            offset += length
        }
        guard offset == span.byteCount, version == header.last else { throw Self.damage(path, offset) }
    }

    private static func damage(_ path: String, _ offset: Int) -> StorageError {
        StorageError(
            .corrupt, "a file of records is damaged", file: path, offset: offset,
            remedy: ArchiveFormat.remedy("this file"))
    }
}
