internal import EmbeddedEngine
internal import FileSystem
internal import Storage

/// The file ARCHIVED of a data directory: where the archive of its store is. A directory without that archive is then
/// the empty place of a disk that is not mounted, and gets no other archive.
///
/// The file is one line: the store, the start of its time line, and the path of the archive. A line of another store,
/// or of another path, does not count.
struct ArchiveMark {
    private let path: String
    private let line: String

    private static let byteCountMax = 16 << 10

    /// - Parameters:
    ///   - directory: the data directory.
    ///   - archive: the directory of the archive.
    init(of directory: String, _ owner: ArchiveOwner, archive: String) {
        path = "\(directory)/\(CompanionFiles.archived)"
        line = "\(owner.store) \(owner.timeline) \(Directory.resolved(archive))\n"
    }

    /// Whether the store had its archive there.
    /// - Throws: `inputOutput`.
    private func isSet() throws(StorageError) -> Bool {
        let status = Directory.status(of: path)
        guard status.isRegularFile, status.byteCount <= Self.byteCountMax else { return false }
        return try ArchiveFiles.read(path, byteCountMax: Self.byteCountMax) == Array(line.utf8)
    }

    /// The store has its archive there. On a full disk of the data the next opening notes it.
    /// - Throws: `inputOutput`.
    func set() throws(StorageError) {
        if try isSet() { return }
        do throws(StorageError) {
            try Directory.replaceFile(path, with: line)
        } catch {
            if error.code != .full { throw error }
        }
    }

    /// Refuses to make an archive where the store had one before.
    /// - Throws: `inputOutput`, so that it is tried again: the disk may be mounted later.
    func checkNew(_ archive: String) throws(StorageError) {
        guard try isSet() else { return }
        throw StorageError(
            .inputOutput, "the archive of this store was in this directory, and is not there now", file: archive,
            remedy: "mount it; to begin another archive name another directory, or remove \(path)")
    }
}
