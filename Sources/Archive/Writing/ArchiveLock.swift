internal import FileSystem
internal import Glibc
internal import Storage

/// The lock of those who write to an archive.
enum ArchiveLock {
    /// - Returns: nil if the file system has no locks, as some mounts of object stores.
    /// - Throws: `locked` if another process writes to the archive, `inputOutput`.
    static func take(_ directory: String) throws(StorageError) -> File? {
        let file = try File("\(directory)/\(ArchiveFormat.lockName)", flags: O_RDWR | O_CREAT)
        do throws(StorageError) {
            if try file.tryLock() { return file }
        } catch {
            return nil
        }
        throw StorageError(
            .locked, "another process writes to this archive, and removes by itself what is too old", file: directory)
    }
}
