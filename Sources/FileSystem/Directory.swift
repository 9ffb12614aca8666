// Directories: making, listing, syncing; names change durably only when their directory is synced.

internal import CLinux
internal import Glibc
package import Storage

package enum Directory {
    /// Makes `path` and what is missing above it; each new name is durable when this returns.
    package static func create(_ path: String) throws(StorageError) {
        if exists(path) { return }
        let parent = parent(of: path)
        try create(parent)
        let result = DiskWatch.of(path).make(.makeDirectory(path: path)) { unsafe Int(mkdir(path, 0o700)) }
        if result != 0 {
            let number = errno
            // Another process may have made it. A link that leads nowhere has the name too.
            if number != EEXIST || !exists(path) {
                throw .system(number, "cannot make the directory", file: path)
            }
        }
        try sync(parent)
    }

    /// Whether something is known to be at a path; false also if that cannot be looked at.
    package static func exists(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0
    }

    /// Whether something is at a path: for those who make again what is missing, or continue without it.
    ///
    /// - Throws: `inputOutput` if that cannot be looked at, for example since a mount does not answer.
    package static func isThere(_ path: String) throws(StorageError) -> Bool {
        if exists(path) { return true }
        if errno == ENOENT || errno == ENOTDIR { return false }
        throw .system(errno, "cannot look at", file: path)
    }

    /// Whether this user must not read what is at a path.
    package static func isForbidden(_ path: String) -> Bool {
        let mode = status(of: path).isDirectory ? R_OK | X_OK : R_OK
        return unsafe access(path, mode) != 0 && errno == EACCES
    }

    /// Whether names may be made in a directory: false on a file system that is only read.
    package static func isWritable(_ path: String) -> Bool {
        unsafe access(path, W_OK) == 0
    }

    /// The names in a directory, sorted, without `.` and `..`.
    /// - Throws: `inputOutput`, also if only some of them can be read.
    package static func names(in path: String) throws(StorageError) -> [String] {
        guard let stream = unsafe opendir(path) else { throw .system(errno, "cannot list", file: path) }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe nextEntry(of: stream) {
            // `d_name` is zero-terminated and lives until the next readdir.
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe String(cString: UnsafeRawPointer(pointer).assumingMemoryBound(to: CChar.self))
            }
            if name != "." && name != ".." { names.append(name) }
        }
        if errno != 0 { throw .system(errno, "cannot list", file: path) }
        return names.sorted()
    }

    /// The next entry of a directory. At the end, and after a failure, nil: then `errno` is 0, or says why.
    private static func nextEntry(of stream: OpaquePointer) -> UnsafeMutablePointer<dirent>? {
        errno = 0
        return unsafe readdir(stream)
    }

    /// Makes the names in a directory durable.
    package static func sync(_ path: String) throws(StorageError) {
        try File(path, flags: O_RDONLY | O_DIRECTORY).sync()
    }

    /// Makes the name of a directory durable, unless the directory above must not be read: then it belongs to others.
    package static func syncName(of path: String) throws(StorageError) {
        let parent = parent(of: path)
        if unsafe access(parent, R_OK) == 0 { try sync(parent) }
    }

    /// Gives a file or directory a new name, replacing a file or an empty directory that has it. Durable after `sync`
    /// of the directory above.
    package static func rename(_ path: String, to newPath: String) throws(StorageError) {
        let result = DiskWatch.of(path).make(.rename(path: path, newPath: newPath)) {
            unsafe Int(Glibc.rename(path, newPath))
        }
        guard result == 0 else {
            throw .system(errno, "cannot rename to \(newPath)", file: path)
        }
    }

    /// The same on file systems that may have no rename, such as mounts of object stores.
    ///
    /// - Returns: false if the file system cannot do it; nothing has changed then.
    package static func renameIfPossible(_ path: String, to newPath: String) throws(StorageError) -> Bool {
        let result = DiskWatch.of(path).make(.rename(path: path, newPath: newPath)) {
            unsafe Int(Glibc.rename(path, newPath))
        }
        if result == 0 { return true }
        if [EXDEV, EPERM, EOPNOTSUPP, ENOSYS].contains(errno) { return false }
        throw .system(errno, "cannot rename to \(newPath)", file: path)
    }

    /// Replaces a file of few bytes, or makes it, for its owner alone: afterwards it has the old text or the new one,
    /// also after a power cut.
    ///
    /// - Parameter workPath: where the new text is written first, in the same directory: `path` and `.new` as a rule.
    ///   One attempt at a time may use it; a file that is there is what an earlier one has left.
    /// - Throws: `full`, `inputOutput`. The file then has the old text, unless only the sync of its name has failed.
    package static func replaceFile(
        _ path: String, with text: String, workPath: String? = nil
    ) throws(StorageError) {
        let workPath = workPath ?? "\(path).new"
        try removeFile(workPath)
        do throws(StorageError) {
            let file = try File(workPath, flags: O_WRONLY | O_CREAT | O_EXCL)
            try file.write(string: text)
            try file.sync()
            try rename(workPath, to: path)
        } catch {
            try? removeFile(workPath)
            throw error
        }
        try sync(parent(of: path))
    }

    /// Exchanges the names of two files or directories of a file system, at once: at no moment is one of the names
    /// missing. Durable after `sync` of the directories above.
    ///
    /// - Returns: false if the file system cannot do it; nothing has changed then.
    package static func exchange(_ path: String, _ otherPath: String) throws(StorageError) -> Bool {
        let result = DiskWatch.of(path).make(.exchange(path: path, otherPath: otherPath)) {
            unsafe Int(renameat2(AT_FDCWD, path, AT_FDCWD, otherPath, UInt32(HEARTH_RENAME_EXCHANGE)))
        }
        if result == 0 { return true }
        if [EINVAL, EXDEV, EPERM, EOPNOTSUPP, ENOSYS].contains(errno) { return false }
        throw .system(errno, "cannot exchange names with \(otherPath)", file: path)
    }

    /// Gives a file another name, in a directory of the same file system. Durable after `sync` of that directory.
    ///
    /// - Returns: false if the file system has no links, the file has too many, or the directory is on another one.
    package static func link(_ path: String, to newPath: String) throws(StorageError) -> Bool {
        let result = DiskWatch.of(path).make(.link(path: path, newPath: newPath)) {
            unsafe Int(Glibc.link(path, newPath))
        }
        if result == 0 { return true }
        if [EXDEV, EPERM, EMLINK, EOPNOTSUPP, ENOSYS].contains(errno) { return false }
        throw .system(errno, "cannot link to \(newPath)", file: path)
    }

    /// Removes a file; a missing file is not an error.
    package static func removeFile(_ path: String) throws(StorageError) {
        let result = DiskWatch.of(path).make(.removeFile(path: path)) { unsafe Int(unlink(path)) }
        if result != 0, errno != ENOENT { throw .system(errno, "cannot remove", file: path) }
    }

    /// Removes an empty directory; a missing one is not an error.
    package static func remove(_ path: String) throws(StorageError) {
        let result = DiskWatch.of(path).make(.removeDirectory(path: path)) { unsafe Int(rmdir(path)) }
        if result != 0, errno != ENOENT { throw .system(errno, "cannot remove the directory", file: path) }
    }

    /// Removes a directory with all that is in it; symbolic links are removed, not followed. A missing one is not an
    /// error.
    package static func removeAll(_ path: String) throws(StorageError) {
        guard exists(path) else { return }
        try removeContents(of: path)
        try remove(path)
    }

    /// Removes all that is in a directory.
    package static func removeContents(of path: String) throws(StorageError) {
        for name in try names(in: path) {
            let entry = path + "/" + name
            if status(of: entry, followsLink: false).isDirectory { try removeAll(entry) } else { try removeFile(entry) }
        }
    }

    package static func parent(of path: String) -> String {
        var end = path.utf8.count
        let bytes = Array(path.utf8)
        while end > 1 && bytes[end - 1] == UInt8(ascii: "/") { end -= 1 }
        while end > 0 && bytes[end - 1] != UInt8(ascii: "/") { end -= 1 }
        while end > 1 && bytes[end - 1] == UInt8(ascii: "/") { end -= 1 }
        return end == 0 ? "." : String(decoding: bytes[..<end], as: UTF8.self)
    }
}
