// Removing a data directory.

internal import FileSystem
internal import Glibc
package import Storage

extension EmbeddedEngine {
    /// Removes a data directory with everything in it. A directory that does not exist is not an error.
    ///
    /// - Throws: `locked` if an engine has it open, `inputOutput` if a file cannot be removed.
    package static func remove(directory: String) throws(StorageError) {
        guard Directory.exists(directory) else { return }
        let lock = try DirectoryFormat.lock(directory)
        try removeContents(of: directory, except: DirectoryFormat.lockName)
        // The last file: where it is missing, another engine makes its own, and uses the directory.
        try Directory.removeFile("\(directory)/\(DirectoryFormat.lockName)")
        withExtendedLifetime(lock) {}
        guard unsafe rmdir(directory) == 0 || [ENOENT, ENOTEMPTY, EEXIST].contains(errno) else {
            throw .system(errno, "cannot remove the directory", file: directory)
        }
    }

    private static func removeContents(of directory: String, except kept: String? = nil) throws(StorageError) {
        for name in try Directory.names(in: directory) where name != kept {
            let path = "\(directory)/\(name)"
            if unsafe unlink(path) == 0 || errno == ENOENT { continue }
            guard errno == EISDIR || errno == EPERM else { throw .system(errno, "cannot remove", file: path) }
            try removeContents(of: path)
            guard unsafe rmdir(path) == 0 else { throw .system(errno, "cannot remove the directory", file: path) }
        }
    }
}
