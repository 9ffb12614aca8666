import Basics

/// Consecutive lines of the input.
struct Chunk: Sendable {
    /// Whole lines; the last line of the input may lack its line feed.
    var bytes: [UInt8]
    /// The number of the first line, from 1.
    var firstLine: Int
    /// The offset of the chunk in the input, in bytes.
    var offset: Int
    /// The length of a line that is too long, with its line feed; 0 without one. The chunk is this line, and has no
    /// bytes of it.
    var longLineBytes = 0

    /// Bytes of the input.
    var byteCount: Int { bytes.count + longLineBytes }
}

/// Reads a file or standard input in chunks of whole lines. Compressed files (gzip) are decompressed, and the elements
/// of a JSON array are lines.
///
/// A chunk has up to a mebibyte. A longer line makes a longer chunk, up to the maximum length of a line. One that is
/// longer than that is a chunk without bytes. Where chunks end follows from the offset of the first one, so that a
/// resumed load has the same chunks; those of a pipe end with what has come.
final class ChunkReader {
    /// Maximum length of a line in bytes. A document of 1 MiB with every byte escaped as `\u00XX` is 6 MiB.
    static let lineBytesMax = 16 << 20
    private static let readBytes = 1 << 20

    /// The size of the file in bytes; nil if the input has no size, as a pipe, or its lines are not those of the file.
    let totalBytes: Int?

    private let path: String
    private let mayHaveBadLines: Bool
    /// The input is not to be waited for.
    private let isPipe: Bool
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
        isPipe = file.totalBytes == nil
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
        isPipe = InputKind.isReadOnce(path)
        totalBytes = nil
        try skip(offset)
    }

    /// The lines of a compressed file or of an array; nil if the file has lines itself.
    private static func convert(_ file: DescriptorBytes, path: String) throws(CommandFailure) -> (any InputBytes)? {
        var source = PeekableBytes(file)
        let isCompressed = try source.first(2).starts(with: InputKind.gzip)
        if isCompressed { source = PeekableBytes(try GunzipBytes(source, path: path)) }
        let name = InputKind.name(of: path)
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
        if rest.isEmpty { try read(into: &rest, atMost: Self.readBytes) }
        if !rest.isEmpty { throw CommandFailure("\(path) is not as it was before: no line begins at byte \(count)") }
    }

    /// The next lines; nil at the end. Waits for no more of a pipe than one read that brings the end of a line.
    func next() throws(CommandFailure) -> Chunk? {
        var bytes = rest
        rest = []
        var searched = 0
        var limit = isPipe ? Int.max : Self.readBytes
        while true {
            try fill(&bytes, to: limit)
            if searched == 0 { try checkStart(bytes) }
            // What follows may be there already, since some sources give more than they are asked for.
            let end = min(limit, bytes.count)
            if let lineFeed = bytes.byteSpan.extracting(0..<end).lastOffset(of: 0x0A, from: searched) {
                rest = Array(bytes[(lineFeed + 1)...])
                bytes.removeSubrange((lineFeed + 1)...)
                return makeChunk(bytes)
            }
            if isAtEnd, end == bytes.count { return bytes.isEmpty ? nil : makeChunk(bytes) }
            if end > Self.lineBytesMax { return try longLine(bytes, read: end) }
            searched = end
            if !isPipe { limit += Self.readBytes }
        }
    }

    /// The chunk of a line that is too long, of which some bytes were read. The rest of the line is read only if the
    /// load continues after it.
    private func longLine(_ bytes: [UInt8], read count: Int) throws(CommandFailure) -> Chunk {
        var chunk = Chunk(bytes: [], firstLine: lineNumber + 1, offset: offset, longLineBytes: count)
        if !mayHaveBadLines {
            isAtEnd = true
            return chunk
        }
        rest = Array(bytes[count...])
        while true {
            let lineFeed = rest.byteSpan.firstOffset(of: 0x0A)
            let end = lineFeed.map { $0 + 1 } ?? rest.count
            chunk.longLineBytes += end
            rest.removeFirst(end)
            if lineFeed != nil || isAtEnd { break }
            try read(into: &rest, atMost: Self.readBytes)
        }
        offset += chunk.longLineBytes
        lineNumber += 1
        return chunk
    }

    /// Reads up to a number of bytes; of a pipe what one read brings.
    private func fill(_ bytes: inout [UInt8], to limit: Int) throws(CommandFailure) {
        while !isAtEnd, bytes.count < limit {
            try read(into: &bytes, atMost: min(limit - bytes.count, Self.readBytes))
            if isPipe { return }
        }
    }

    /// Refuses an input that is not JSON lines, by its first bytes.
    private func checkStart(_ bytes: [UInt8]) throws(CommandFailure) {
        guard offset == 0, !(source is ArrayLines),
            let remedy = InputKind.remedy(for: bytes, path: path, mayHaveBadLines: mayHaveBadLines)
        else { return }
        throw CommandFailure(remedy)
    }

    private func makeChunk(_ bytes: [UInt8]) -> Chunk {
        let chunk = Chunk(bytes: bytes, firstLine: lineNumber + 1, offset: offset)
        offset += bytes.count
        lineNumber += bytes.byteSpan.count(of: 0x0A)
        return chunk
    }

    private func read(into bytes: inout [UInt8], atMost count: Int) throws(CommandFailure) {
        if try !source.read(into: &bytes, atMost: count) { isAtEnd = true }
    }
}
