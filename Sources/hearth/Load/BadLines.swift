// Where `--skip-bad` writes invalid lines.

import Glibc

/// Appends bad lines to a file, each below a comment that says why; the file can be corrected and loaded.
final class BadLines {
    private let file: OutputFile
    /// Names a line by its number.
    private let place: @Sendable (Int) -> String

    init(path: String, place: @escaping @Sendable (Int) -> String) throws {
        file = try OutputFile(path, flags: O_APPEND)
        self.place = place
    }

    func append(_ line: [UInt8], number: Int, reason: String) throws {
        var text = Array("# \(place(number)): \(reason)\n".utf8)
        text.append(contentsOf: line)
        text.append(0x0A)
        try file.write(text)
    }

    /// Notes a line that the server refused; its text is not available any more.
    func note(_ line: Int, reason: String) throws {
        try file.write(Array("# \(place(line)): \(reason) (the line is not repeated here)\n".utf8))
    }
}
