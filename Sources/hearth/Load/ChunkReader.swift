import Glibc

/// Consecutive lines of the input.
struct Chunk: Sendable {
    /// Whole lines; the last line of the input may lack its line feed.
    var bytes: [UInt8]
    /// The number of the first line, from 1.
    var firstLine: Int
    /// The offset of the chunk in the input, in bytes.
    var offset: Int
}

/// Reads a file or standard input in chunks of whole lines.
///
/// A chunk has about a mebibyte. A longer line makes a longer chunk, up to the maximum length of a line.
final class ChunkReader {
    /// Maximum length of a line in bytes. A document of 1 MiB with every byte escaped as `\u00XX` is 6 MiB.
    static let lineBytesMax = 16 << 20
    private static let readBytes = 1 << 20

    /// The size of the file in bytes; nil if the input has no size, as a pipe.
    let totalBytes: Int?

    private let path: String
    private let mayHaveBadLines: Bool
    private let descriptor: Int32
    private var offset: Int
    private var lineNumber: Int
    /// The beginning of a line whose end has not been read.
    private var rest: [UInt8] = []
    private var isAtEnd = false

    /// Opens `path`; `-` is standard input.
    ///
    /// - Parameters:
    ///   - offset: where to begin, the start of a line; 0 unless a load is resumed.
    ///   - lineNumber: lines before that offset.
    ///   - mayHaveBadLines: invalid lines are expected, the first one too.
    init(
        path: String, offset: Int = 0, lineNumber: Int = 0, mayHaveBadLines: Bool = false
    ) throws(CommandFailure) {
        self.path = path
        self.mayHaveBadLines = mayHaveBadLines
        if path == "-" {
            descriptor = 0
            totalBytes = nil
        } else {
            descriptor = open(path, O_RDONLY | O_CLOEXEC)
            if descriptor < 0 { throw CommandFailure("cannot open \(path): \(String(cString: strerror(errno)))") }
            var status = stat()
            guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
                throw CommandFailure("\(path) is a directory")
            }
            totalBytes = status.st_mode & S_IFMT == S_IFREG ? Int(status.st_size) : nil
            if offset > 0, lseek(descriptor, off_t(offset), SEEK_SET) != off_t(offset) {
                throw CommandFailure(
                    "cannot continue at byte \(offset) of \(path): \(String(cString: strerror(errno)))")
            }
        }
        self.offset = offset
        self.lineNumber = lineNumber
    }

    deinit { if descriptor != 0 { close(descriptor) } }

    /// The next lines; nil at the end. Waits for no more than one read to bring the end of a line.
    func next() throws(CommandFailure) -> Chunk? {
        var bytes = rest
        rest = []
        var searched = 0
        while !isAtEnd {
            let start = bytes.count
            try read(into: &bytes)
            try checkStart(bytes, start)
            searched = max(searched, start)
            if let end = Self.lastLineFeed(in: bytes, from: searched) {
                rest = Array(bytes[(end + 1)...])
                bytes.removeSubrange((end + 1)...)
                return makeChunk(bytes)
            }
            searched = bytes.count
            if bytes.count > Self.lineBytesMax {
                throw CommandFailure("line \(lineNumber + 1) is longer than \(Self.lineBytesMax >> 20) MiB")
            }
        }
        return bytes.isEmpty ? nil : makeChunk(bytes)
    }

    /// Refuses an input that is not JSON lines, by its first bytes.
    private func checkStart(_ bytes: [UInt8], _ readFrom: Int) throws(CommandFailure) {
        guard offset == 0, readFrom == 0,
            let remedy = InputKind.remedy(for: bytes, path: path, mayHaveBadLines: mayHaveBadLines)
        else { return }
        throw CommandFailure(remedy)
    }

    private func makeChunk(_ bytes: [UInt8]) -> Chunk {
        let chunk = Chunk(bytes: bytes, firstLine: lineNumber + 1, offset: offset)
        offset += bytes.count
        lineNumber += bytes.count { $0 == 0x0A }
        return chunk
    }

    private func read(into bytes: inout [UInt8]) throws(CommandFailure) {
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: Self.readBytes))
        let count = bytes.withUnsafeMutableBytes { bytes -> Int in
            while true {
                let count = Glibc.read(descriptor, bytes.baseAddress! + start, Self.readBytes)
                if count >= 0 || errno != EINTR { return count }
            }
        }
        if count < 0 { throw CommandFailure("cannot read: \(String(cString: strerror(errno)))") }
        bytes.removeLast(Self.readBytes - count)
        if count == 0 { isAtEnd = true }
    }

    private static func lastLineFeed(in bytes: [UInt8], from start: Int) -> Int? {
        bytes[start...].lastIndex(of: 0x0A)
    }
}
