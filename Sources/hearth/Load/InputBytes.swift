// The bytes of an input, from the file to JSON lines.
//
//     file, pipe -> DescriptorBytes -> GunzipBytes -> ArrayLines -> ChunkReader
//                                      if gzip        if a JSON array

import Basics
import Glibc

/// Bytes in order.
protocol InputBytes: AnyObject {
    /// Appends at least one byte and at most `count`, unless the input is at its end.
    ///
    /// - Returns: false at the end.
    func read(into bytes: inout [UInt8], atMost count: Int) throws(CommandFailure) -> Bool
}

/// The bytes of a file or of standard input.
final class DescriptorBytes: InputBytes {
    /// The size of the file in bytes; nil if the input has no size, as a pipe.
    let totalBytes: Int?
    private let path: String
    private let descriptor: Int32

    /// Opens `path`; `-` is standard input.
    init(_ path: String) throws(CommandFailure) {
        self.path = path
        if path == "-" {
            descriptor = 0
            totalBytes = nil
            return
        }
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 { throw CommandFailure("cannot open \(path): \(String(cString: strerror(errno)))") }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            throw CommandFailure("\(path) is a directory")
        }
        totalBytes = status.st_mode & S_IFMT == S_IFREG ? Int(status.st_size) : nil
    }

    deinit { if descriptor != 0 { close(descriptor) } }

    /// Moves to the start of a line of a file, or to its end.
    /// - Throws: also if no line begins there, because the file is not what it was.
    func seek(toLineAt offset: Int) throws(CommandFailure) {
        let size = totalBytes ?? 0
        if offset > size { throw CommandFailure("\(path) is shorter than before") }
        var before: UInt8 = 0x0A
        if offset > 0, offset < size, pread(descriptor, &before, 1, off_t(offset - 1)) == 1, before != 0x0A {
            throw CommandFailure("\(path) is not as it was before: no line begins at byte \(offset)")
        }
        guard lseek(descriptor, off_t(offset), SEEK_SET) != off_t(offset) else { return }
        throw CommandFailure("cannot continue at byte \(offset) of \(path): \(String(cString: strerror(errno)))")
    }

    func read(into bytes: inout [UInt8], atMost count: Int) throws(CommandFailure) -> Bool {
        let start = bytes.count
        bytes.append(zeros: count)
        let received = bytes.withUnsafeMutableBytes { bytes -> Int in
            while true {
                let received = Glibc.read(descriptor, bytes.baseAddress! + start, count)
                if received >= 0 || errno != EINTR { return received }
            }
        }
        bytes.removeLast(count - max(received, 0))
        if received < 0 { throw CommandFailure("cannot read: \(String(cString: strerror(errno)))") }
        return received > 0
    }
}

/// A source whose first bytes can be looked at before they are read.
final class PeekableBytes: InputBytes {
    private let source: any InputBytes
    private var peeked: [UInt8] = []

    init(_ source: any InputBytes) { self.source = source }

    private static let partBytes = 64 << 10

    /// The first bytes of the input: at least as many as asked for, unless the input has fewer.
    func first(_ count: Int) throws(CommandFailure) -> [UInt8] {
        while peeked.count < count {
            guard try source.read(into: &peeked, atMost: Self.partBytes) else { break }
        }
        return peeked
    }

    func read(into bytes: inout [UInt8], atMost count: Int) throws(CommandFailure) -> Bool {
        if peeked.isEmpty { return try source.read(into: &bytes, atMost: count) }
        let part = peeked.prefix(count)
        bytes += part
        peeked.removeFirst(part.count)
        return true
    }
}
