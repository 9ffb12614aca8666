// Where `--skip-bad` writes invalid lines.

import Foundation

/// Appends bad lines to a file, each below a comment that says why; the file can be mended and loaded.
final class BadLines {
    private let file: FileHandle
    private let input: String

    init(path: String, input: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            throw CommandFailure("cannot write \(path): \(String(cString: strerror(errno)))")
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        self.file = file
        self.input = input
    }

    func append(_ line: [UInt8], number: Int, reason: String) throws {
        var text = Array("# \(input):\(number): \(reason)\n".utf8)
        text.append(contentsOf: line)
        text.append(0x0A)
        try file.write(contentsOf: text)
    }

    /// Notes a line that the server refused; its text is not at hand any more.
    func note(_ line: Int, reason: String) throws {
        try file.write(contentsOf: Data("# \(input):\(line): \(reason) (the line is not repeated here)\n".utf8))
    }
}
