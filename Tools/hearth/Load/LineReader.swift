// Lines of a file or of standard input, read in large pieces and lent one at a time.

import Glibc

/// Reads lines with bounded memory: one buffer, grown only for a line that does not fit, up to the longest line allowed.
final class LineReader {
    /// Longest line read, in bytes. A document of 1 MiB with every byte escaped as `\u00XX` is 6 MiB.
    static let lineBytesMax = 16 << 20

    /// The file's size in bytes; nil for what has no size (a pipe).
    let totalBytes: Int?
    /// Where the next line begins.
    private(set) var offset: Int
    /// Lines lent so far, those skipped on resuming included.
    private(set) var lineNumber: Int

    private let descriptor: Int32
    private var buffer: [UInt8]
    /// The part of `buffer` that holds bytes not lent yet.
    private var waiting = 0..<0
    private var isAtEnd = false

    /// Opens `path`; `-` is standard input.
    ///
    /// - Parameters:
    ///   - offset: where to begin, the start of a line; 0 unless a load is resumed.
    ///   - lineNumber: lines before that offset.
    init(path: String, offset: Int = 0, lineNumber: Int = 0) throws(CommandFailure) {
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
                throw CommandFailure("cannot go on at byte \(offset) of \(path): \(String(cString: strerror(errno)))")
            }
        }
        self.offset = offset
        self.lineNumber = lineNumber
        buffer = [UInt8](repeating: 0, count: 1 << 20)
    }

    deinit { if descriptor != 0 { close(descriptor) } }

    /// Lends the next line without its line feed, and its number from 1; false at the end.
    func next(_ body: (Span<UInt8>, Int) throws -> Void) throws -> Bool {
        while true {
            if let end = lineEnd() {
                let line = waiting.lowerBound..<end
                lineNumber += 1
                offset += end - waiting.lowerBound
                waiting = end..<waiting.upperBound
                if end < waiting.upperBound {
                    // Step over the line feed.
                    waiting = end + 1..<waiting.upperBound
                    offset += 1
                }
                // Shares the buffer's memory while the line is lent; nothing is copied.
                let lent = buffer
                try body(lent.span.extracting(line), lineNumber)
                return true
            }
            if isAtEnd { return false }
            try refill()
        }
    }

    /// End of the first waiting line; nil when more bytes are needed, or at the end of the file.
    private func lineEnd() -> Int? {
        if waiting.isEmpty { return nil }
        let found = buffer.withUnsafeBytes { bytes -> Int? in
            let start = bytes.baseAddress! + waiting.lowerBound
            guard let lineFeed = memchr(start, 0x0A, waiting.count) else { return nil }
            return waiting.lowerBound + (UnsafeRawPointer(lineFeed) - start)
        }
        return found ?? (isAtEnd ? waiting.upperBound : nil)
    }

    private func refill() throws(CommandFailure) {
        if waiting.lowerBound > 0 {
            // What waits moves to the front: the tail of the last piece, at most one line.
            buffer.withUnsafeMutableBytes { bytes in
                _ = memmove(bytes.baseAddress!, bytes.baseAddress! + waiting.lowerBound, waiting.count)
            }
            waiting = 0..<waiting.count
        }
        if waiting.count == buffer.count {
            if buffer.count >= Self.lineBytesMax {
                throw CommandFailure("line \(lineNumber + 1) is longer than \(Self.lineBytesMax >> 20) MiB")
            }
            buffer.append(contentsOf: repeatElement(0, count: buffer.count))
        }
        let end = waiting.upperBound
        let count = buffer.withUnsafeMutableBytes { bytes -> Int in
            while true {
                let count = read(descriptor, bytes.baseAddress! + end, bytes.count - end)
                if count >= 0 || errno != EINTR { return count }
            }
        }
        if count < 0 { throw CommandFailure("cannot read: \(String(cString: strerror(errno)))") }
        if count == 0 { isAtEnd = true }
        waiting = 0..<end + count
    }
}
