internal import FileSystem
internal import Glibc
internal import Storage

/// The lock of those who write to an archive.
enum ArchiveLock {
    /// - Parameter isShared: several servers of one store write to the archive, one at a time.
    /// - Returns: nil if the file system has no locks, as some mounts of object stores.
    /// - Throws: `locked` if another process writes to the archive; `unsupported` if it is shared and the file system
    ///   has no locks; `inputOutput`.
    static func take(_ directory: String, isShared: Bool = false) throws(StorageError) -> File? {
        let file = try File("\(directory)/\(ArchiveFormat.lockName)", flags: O_RDWR | O_CREAT)
        do throws(StorageError) {
            if try file.tryLock() { return file }
        } catch {
            guard isShared else { return nil }
            throw StorageError(
                .unsupported, "the file system has no locks, which keep two servers from writing at once",
                file: directory, remedy: "the archive of a cluster needs a file system with locks, such as NFS 4")
        }
        throw StorageError(
            .locked, "another process writes to this archive, and removes by itself what is too old", file: directory)
    }
}
