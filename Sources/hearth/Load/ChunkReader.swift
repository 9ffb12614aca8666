/// Consecutive lines of the input.
struct Chunk: Sendable {
    /// Whole lines; the last line of the input may lack its line feed.
    var bytes: [UInt8]
    /// The number of the first line, from 1.
    var firstLine: Int
    /// The offset of the chunk in the input, in bytes.
    var offset: Int
}

/// Reads a file or standard input in chunks of whole lines. Compressed files (gzip) are decompressed, and the elements
/// of a JSON array are lines.
///
/// A chunk has about a mebibyte. A longer line makes a longer chunk, up to the maximum length of a line.
final class ChunkReader {
    /// Maximum length of a line in bytes. A document of 1 MiB with every byte escaped as `\u00XX` is 6 MiB.
    static let lineBytesMax = 16 << 20
    private static let readBytes = 1 << 20

    /// The size of the file in bytes; nil if the input has no size, as a pipe, or its lines are not those of the file.
    let totalBytes: Int?

    private let path: String
    private let mayHaveBadLines: Bool
    private let source: any InputBytes
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
        self.offset = offset
        self.lineNumber = lineNumber
        let file = try DescriptorBytes(path)
        let converted = try Self.convert(file, path: path)
        if let converted {
            totalBytes = nil
            source = converted
            try skip(offset)
        } else {
            totalBytes = file.totalBytes
            source = file
            try file.seek(toLineAt: offset)
        }
    }

    /// Reads lines that are made of another format, from their start or from an offset on.
    init(_ source: any InputBytes, path: String, offset: Int, lineNumber: Int) throws(CommandFailure) {
        self.path = path
        self.source = source
        self.offset = offset
        self.lineNumber = lineNumber
        mayHaveBadLines = true
        totalBytes = nil
        try skip(offset)
    }

    /// The lines of a compressed file or of an array; nil if the file has lines itself.
    private static func convert(_ file: DescriptorBytes, path: String) throws(CommandFailure) -> (any InputBytes)? {
        var source = PeekableBytes(file)
        let isCompressed = try source.first(2).starts(with: InputKind.gzip)
        if isCompressed { source = PeekableBytes(try GunzipBytes(source, path: path)) }
        let name = path == "-" ? "standard input" : path
        var start = try source.first(1)
        if start.first == InputKind.byteOrderMark[0] { start = try source.first(InputKind.byteOrderMark.count + 1) }
        if InputKind.isArray(start) { return ArrayLines(source, path: name) }
        // What a pipe has lost by looking at it is in the source.
        return isCompressed || file.totalBytes == nil ? source : nil
    }

    /// Moves past the lines that are stored, to the start of a line or to the end.
    ///
    /// - Throws: also if no line begins there, because the input is not what it was.
    private func skip(_ count: Int) throws(CommandFailure) {
        var left = count
        var part: [UInt8] = []
        var before: UInt8 = 0x0A
        while left > 0 {
            part.removeAll(keepingCapacity: true)
            guard try source.read(into: &part, atMost: min(left, Self.readBytes)) else {
                throw CommandFailure("\(path) is shorter than before")
            }
            // An array may give more than it is asked for.
            if part.count > left { rest = Array(part[left...]) }
            before = part[min(part.count, left) - 1]
            left -= part.count
        }
        if before == 0x0A { return }
        if rest.isEmpty { try read(into: &rest) }
        if !rest.isEmpty { throw CommandFailure("\(path) is not as it was before: no line begins at byte \(count)") }
    }

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
        guard offset == 0, readFrom == 0, !(source is ArrayLines),
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
        if try !source.read(into: &bytes, atMost: Self.readBytes) { isAtEnd = true }
    }

    private static func lastLineFeed(in bytes: [UInt8], from start: Int) -> Int? {
        bytes[start...].lastIndex(of: 0x0A)
    }
}
