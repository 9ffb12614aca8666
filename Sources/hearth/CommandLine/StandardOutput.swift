// Standard output of the commands: what cannot be written is an error, and a closed pipe is the end.

import Basics
import FirestoreService
import Glibc
import Synchronization

/// Standard output, buffered unless it is a terminal. Thread-safe.
enum StandardOutput {
    /// The reader of the output has closed it: the command has nothing left to do, and nothing to say.
    struct Closed: Error {}

    private static let buffer = Mutex<[UInt8]>([])
    private static let bufferBytesMax = 64 << 10
    private static let isTerminal = isatty(STDOUT_FILENO) == 1

    /// Writes a text and a line feed.
    /// - Throws: ``Closed``, or a `CommandFailure` that says why the output cannot be written.
    static func print(_ text: String) throws { try write(Array((text + "\n").utf8)) }

    /// Writes a text, which may have ids of clients, as one line: control characters become `\u000a`.
    /// - Throws: as ``print(_:)``.
    static func print(line text: String) throws {
        try write(printable(Array(text.utf8), keepsLines: false) + [0x0A])
    }

    /// Writes bytes.
    /// - Throws: as ``print(_:)``.
    static func write(_ bytes: [UInt8]) throws {
        try buffer.withLock { buffer in
            buffer += isTerminal ? printable(bytes) : bytes
            if isTerminal || buffer.count >= bufferBytesMax { try flush(&buffer) }
        }
    }

    /// The bytes of a text without characters that a terminal would obey: ids and messages may have any. A tab and the
    /// ends of lines stay, the others become `\u001b`.
    ///
    /// - Parameter keepsLines: false if tabs and the ends of lines are escaped too.
    static func printable(_ bytes: [UInt8], keepsLines: Bool = true) -> [UInt8] {
        Array(PlainText.escaped(String(decoding: bytes, as: UTF8.self), keepsLines: keepsLines).utf8)
    }

    /// Hands over what is buffered.
    /// - Throws: as ``print(_:)``.
    static func flush() throws {
        try buffer.withLock { try flush(&$0) }
    }

    /// Writes the buffer and empties it, also when that fails.
    private static func flush(_ buffer: inout [UInt8]) throws {
        defer { buffer = [] }
        var written = 0
        while written < buffer.count {
            let result = buffer.withUnsafeBytes {
                Glibc.write(STDOUT_FILENO, $0.baseAddress! + written, $0.count - written)
            }
            if result >= 0 {
                written += result
            } else {
                try waitAfterFailure(errno)
            }
        }
    }

    private static func waitAfterFailure(_ errorNumber: Int32) throws {
        switch errorNumber {
        case EINTR: return
        case EAGAIN:
            var output = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
            poll(&output, 1, -1)
        case EPIPE: throw Closed()
        default:
            throw CommandFailure("cannot write to standard output: \(String(cString: strerror(errorNumber)))")
        }
    }

    // MARK: The reader

    /// Ends the process as a closed pipe ends others that write to it: by SIGPIPE.
    static func endOfPipe() -> Never { Shutdown.end(by: SIGPIPE) }

    /// From now on the process ends as soon as the reader of the output closes it, also while nothing is written. Only
    /// a pipe or a socket has such a reader.
    static func endWithReader() {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0, [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT) else { return }
        let watcher = try? SystemThread(name: "output") {
            // Nothing is asked for: an end is reported all the same.
            var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
            while poll(&output, 1, -1) < 0 && errno == EINTR {}
            endOfPipe()
        }
        watcher?.detach()
    }
}
