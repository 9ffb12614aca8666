internal import Basics
internal import CXXHash
internal import FileSystem
internal import Glibc
internal import Storage

/// A file of one line: a word, a space, and the XXH3-64 of the word in 16 hexadecimal digits.
enum SummedLine {
    /// The word of a file; nil if there is no file.
    /// - Parameters:
    ///   - contents: what the word is, for the error.
    ///   - remedy: what to do about damage.
    /// - Throws: `corrupt`, `inputOutput`.
    static func read(_ path: String, contents: String, remedy: String) throws(StorageError) -> String? {
        guard try Directory.isThere(path) else { return nil }
        let file = try File(path, flags: O_RDONLY)
        let buffer = HeapBuffer(capacity: 128)
        let count = unsafe try file.read(into: buffer.all, at: 0)
        let text = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: buffer.all[..<count]), as: UTF8.self)
        let word = String(text.prefix { $0 != " " && $0 != "\n" })
        if text == line(word) { return word }
        throw StorageError(
            .corrupt, "the file does not contain \(contents) with its checksum", file: path, remedy: remedy)
    }

    /// Creates a file, durably.
    /// - Throws: `full`, `inputOutput`.
    static func create(_ path: String, _ word: String) throws(StorageError) {
        try Directory.replaceFile(path, with: line(word))
    }

    private static func line(_ word: String) -> String {
        var word = word
        let sum = word.withUTF8 { unsafe XXH3_64bits($0.baseAddress, $0.count) }
        return "\(word) \(Hexadecimal.text(sum))\n"
    }
}
