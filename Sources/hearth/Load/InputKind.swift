// What an input of `hearth load` is, and how to convert what is not JSON lines.

import Glibc

/// Inputs that are recognised by their paths, or by their beginning.
enum InputKind {
    /// Whether an input can be read only once: standard input, or a pipe with a path, as of `<(COMMAND)` in a shell.
    static func isReadOnce(_ path: String) -> Bool {
        if path == "-" { return true }
        var status = stat()
        guard stat(path, &status) == 0 else { return false }
        return ![S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
    }

    /// The name of an input in messages.
    static func name(of path: String) -> String { path == "-" ? "standard input" : path }

    /// Formats of compressed files: their first bytes, and the command that decompresses them.
    private static let compressions: [(magic: [UInt8], name: String, command: String)] = [
        ([0x28, 0xB5, 0x2F, 0xFD], "zstd", "zstdcat"),
        ([0xFD, 0x37, 0x7A, 0x58, 0x5A], "xz", "xzcat"), ([0x42, 0x5A, 0x68], "bzip2", "bzcat"),
        ([0x50, 0x4B, 0x03, 0x04], "zip", "unzip -p"),
    ]

    /// The first bytes of a gzip file.
    static let gzip: [UInt8] = [0x1F, 0x8B]
    /// What texts in UTF-8 may begin with.
    static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The bytes of a text without its byte order mark.
    static func withoutMark(_ start: [UInt8]) -> ArraySlice<UInt8> {
        start.starts(with: byteOrderMark) ? start.dropFirst(byteOrderMark.count) : start[...]
    }

    /// Whether an input is a JSON array, by its first bytes.
    static func isArray(_ start: [UInt8]) -> Bool { firstByte(start) == UInt8(ascii: "[") }

    /// The first byte of a text that is neither its byte order mark nor white space of JSON.
    static func firstByte(_ start: [UInt8]) -> UInt8? {
        withoutMark(start).first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
    }

    /// What is wrong with an input as a whole, and the command that helps; nil if it may be JSON lines.
    ///
    /// - Parameters:
    ///   - start: its first bytes.
    ///   - path: its path; `-` is standard input.
    ///   - mayHaveBadLines: invalid lines are expected, so that a first line does not speak for the others.
    static func remedy(for start: [UInt8], path: String, mayHaveBadLines: Bool) -> String? {
        let (name, file) = (name(of: path), path == "-" ? "FILE" : path)
        if let found = compressions.first(where: { start.starts(with: $0.magic) }) {
            return "\(name) is compressed (\(found.name)): \(found.command) \(file) | hearth load --collection PATH -"
        }
        let spaces: [UInt8] = [0x20, 0x09, 0x0D]
        let line = withoutMark(start).drop { spaces.contains($0) || $0 == 0x0A }.prefix { $0 != 0x0A }
        if mayHaveBadLines { return nil }
        if line.filter({ !spaces.contains($0) }) == [UInt8(ascii: "{")] {
            return "\(name) has objects of several lines, and load reads one object per line: "
                + "jq -c . \(file) | hearth load --collection PATH -"
        }
        return nil
    }
}
