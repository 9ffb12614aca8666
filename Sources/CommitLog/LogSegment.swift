// One segment file, open for writing.

internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

/// A segment that is ready to take frames, or has taken some.
final class LogSegment: Sendable {
    let file: File
    let sequence: UInt64
    let nonce: UInt64
    let byteCount: Int

    init(file: File, header: SegmentHeader) {
        self.file = file
        sequence = header.sequence
        nonce = header.nonce
        byteCount = header.byteCount
    }

    /// How the name of a file ends that is becoming a segment.
    static let unfinishedSuffix = ".prepare"

    /// Makes a segment of a new file or of an old one that is no longer needed. When this returns the segment is
    /// durable, header, name and space; when it throws there is no segment of this sequence.
    ///
    /// The work happens under a name that recovery ignores.
    /// - Parameter byteCount: rounded up to whole pages.
    static func prepare(
        sequence: UInt64, byteCount: Int, recycling old: String?, in directory: String, fault: FaultInjection
    ) throws(StorageError) -> LogSegment {
        let byteCount = LogFormat.roundedToPage(byteCount)
        let workPath = directory + "/" + String(sequence, radix: 16) + unfinishedSuffix
        let path = directory + "/" + LogFormat.fileName(sequence: sequence)
        do throws(StorageError) {
            if let old { try Directory.rename(old, to: workPath) }
            var generator = SystemRandomNumberGenerator()
            let header = SegmentHeader(sequence: sequence, nonce: generator.next(), byteCount: byteCount)
            let file = try File(workPath, flags: O_RDWR | O_CREAT)
            if old == nil {
                try fault.check(.allocateSegment, file: workPath)
                try file.checkSizeLimit(byteCount)
                try file.checkFreeBytes(for: byteCount)
                try fill(file, from: 0, to: byteCount)
            }
            try writeHeader(header, to: file)
            try file.sync()
            try Directory.rename(workPath, to: path)
            try Directory.sync(directory)
            // Reopened, so that errors name the final path.
            return LogSegment(file: try File(path, flags: O_RDWR), header: header)
        } catch {
            try? Directory.removeFile(workPath)
            throw error
        }
    }

    /// Writes zeros to a half-open range of a file, in pieces: the file then needs no new blocks when frames are
    /// written.
    static func fill(_ file: File, from start: Int, to end: Int) throws(StorageError) {
        let zeros = HeapBuffer(capacity: 256 << 10)
        unsafe zeros.all.initializeMemory(as: UInt8.self, repeating: 0)
        var offset = start
        while offset < end {
            let length = min(zeros.capacity, end - offset)
            unsafe try file.write(UnsafeRawBufferPointer(rebasing: zeros.all[..<length]), at: offset)
            offset += length
        }
    }

    /// Gives an empty or shorter file the blocks of a segment and its size.
    static func allocate(_ file: File, byteCount: Int, fault: FaultInjection) throws(StorageError) {
        try fault.check(.allocateSegment, file: file.path)
        try file.checkFreeBytes(for: byteCount)
        if try file.allocate(from: 0, to: byteCount) {
            try file.resize(to: byteCount)
        } else {
            try fill(file, from: 0, to: byteCount)
        }
    }

    /// The size of a file that can become a segment of this size without new space; nil for one that has holes, as a
    /// copy may have, or is too small for a frame.
    static func wholeBytes(of file: File) throws(StorageError) -> Int? {
        let (size, allocated) = (try file.byteCount(), try file.allocatedBytes())
        let isWhole = size > LogFormat.framesStart && size % LogFormat.pageBytes == 0 && allocated >= size
        return isWhole ? size : nil
    }

    private static func writeHeader(_ header: SegmentHeader, to file: File) throws(StorageError) {
        let page = HeapBuffer(capacity: LogFormat.pageBytes)
        unsafe page.all.initializeMemory(as: UInt8.self, repeating: 0)
        unsafe header.encode(into: page.all)
        unsafe try file.write(UnsafeRawBufferPointer(page.all), at: 0)
    }
}
