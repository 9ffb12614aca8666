internal import Basics
internal import FileSystem
internal import Glibc
package import Storage

/// The store that an archive is of, and the history of that store: the file ARCHIVE, and a part of every other file.
///
/// The file has two lines: the format; then the identity, the start of the time line in microseconds, and the XXH3-64
/// of what is before it on the line, in hexadecimal digits.
package struct ArchiveOwner: Equatable, Sendable {
    package let store: StoreIdentity
    package let timeline: CommitVersion

    package init(store: StoreIdentity, timeline: CommitVersion) {
        self.store = store
        self.timeline = timeline
    }

    var text: String { text(format: ArchiveFormat.line) }

    /// - Parameter format: the first line.
    func text(format: String) -> String {
        let words = "\(store) \(timeline)"
        return "\(format)\n\(words) \(Hexadecimal.text(ArchiveFiles.sum(Array(words.utf8))))\n"
    }

    private init?(_ text: String, format: String) {
        let lines = text.split(separator: "\n")
        let words = lines.count == 2 ? lines[1].split(separator: " ") : []
        guard words.count == 3, let store = StoreIdentity(String(words[0])), let timeline = UInt64(words[1]) else {
            return nil
        }
        self.init(store: store, timeline: CommitVersion(microseconds: timeline))
        if self.text(format: format) != text { return nil }
    }

    /// Reads the file of an archive; nil if there is none.
    /// - Throws: `corrupt`, `unsupportedFormat`, `inputOutput`.
    static func read(in directory: String) throws(StorageError) -> ArchiveOwner? {
        try read(
            "\(directory)/\(ArchiveFormat.ownerName)", format: ArchiveFormat.line,
            remedy: "take this file from a copy of the archive")
    }

    /// Reads a file that names a store; nil if there is none.
    ///
    /// - Parameters:
    ///   - format: the first line: words, a comma, and the number of the format.
    ///   - remedy: what to do about damage.
    /// - Throws: `corrupt`, `unsupportedFormat`, `inputOutput`.
    static func read(_ path: String, format: String, remedy: String) throws(StorageError) -> ArchiveOwner? {
        guard try Directory.isThere(path) else { return nil }
        let text = String(decoding: try ArchiveFiles.read(path, byteCountMax: 4096), as: UTF8.self)
        if let owner = ArchiveOwner(text, format: format) { return owner }
        let kind = format.prefix { $0 != "," }
        guard text.hasPrefix(kind), !text.hasPrefix("\(format)\n") else {
            throw StorageError(.corrupt, "the file does not name the store of the \(kind)", file: path, remedy: remedy)
        }
        throw StorageError(.unsupportedFormat, "the format of the \(kind) is unknown to this version", file: path)
    }
}
