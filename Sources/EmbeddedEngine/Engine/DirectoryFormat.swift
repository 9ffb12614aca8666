internal import FileSystem
internal import Glibc
package import Storage

/// The format file and the lock of a data directory, and the creation of a directory.
///
/// A new directory is created in these steps, each durable before the next:
///
///     1. NEW       an empty file: the directory is incomplete
///     2. runs/     with a manifest without runs
///     3. log/      without segments
///     4. FORMAT    the directory is complete: a missing manifest is now damage
///     5. NEW is removed
///
/// A process that ends between 1 and 4 leaves a directory with NEW and without FORMAT. The next process starts over.
package enum DirectoryFormat {
    /// The format that this version writes. Older ones are upgraded (``DirectoryUpgrade``).
    package static let current = 1

    /// Folders with a state, or a part of one, that is to get into a data directory without FORMAT; and what continues.
    private static let unfinished = [
        "BASE": "start the server as before: as a replica, or in its cluster",
        "BASE.moving": "start the server as before: as a replica, or in its cluster",
        "RESTORE.new": "give the command again: hearth restore, or hearth migrate",
    ]

    static func path(in directory: String) -> String { directory + "/FORMAT" }

    /// The name of the file with the lock of a directory.
    package static let lockName = "LOCK"

    /// Takes the directory's lock, making the directory if there is none.
    /// - Throws: `locked`; `inputOutput`, also if this process is root's and the files are another user's.
    /// - Parameter isReadOnly: nothing is created. A directory without the file is locked itself: no server uses it.
    static func lock(_ directory: String, isReadOnly: Bool = false) throws(StorageError) -> File {
        let path = "\(directory)/\(lockName)"
        if isReadOnly {
            let isThere = Directory.exists(path)
            let file = try File(isThere ? path : directory, flags: O_RDONLY | (isThere ? 0 : O_DIRECTORY))
            guard try file.tryLock() else { throw inUse(directory) }
            return file
        }
        try checkOwner(of: Self.path(in: directory), in: directory)
        while true {
            try Directory.create(directory)
            let file: File
            do throws(StorageError) { file = try File(path, flags: O_RDWR | O_CREAT) } catch {
                // Another engine was removing the directory.
                if !Directory.exists(directory) { continue }
                throw error
            }
            guard try file.tryLock() else { throw inUse(directory) }
            // The process that had the lock may have removed the file before it gave the lock back. Then others would
            // make a new file, and not see this lock.
            if try file.isNamed(path) { return file }
        }
    }

    /// Takes the lock of a directory that is only read, and changes nothing in it.
    /// - Returns: nil if the directory has no lock file: every engine creates one.
    /// - Throws: `locked`.
    static func lockExisting(_ directory: String) throws(StorageError) -> File? {
        let path = "\(directory)/\(lockName)"
        guard Directory.exists(path) else { return nil }
        let file = try File(path, flags: O_RDONLY)
        guard try file.tryLock() else { throw inUse(directory) }
        return file
    }

    /// Refuses root where another user keeps data: a server of that user could not open the files that root makes.
    ///
    /// - Parameter path: of a file or directory whose owner is asked for; nothing is refused if it does not exist.
    /// - Throws: `inputOutput`.
    static func checkOwner(of path: String, in directory: String) throws(StorageError) {
        guard geteuid() == 0, let owner = Directory.status(of: path).owner, owner != 0 else { return }
        let name = Directory.nameOfUser(owner)
        throw StorageError(
            .inputOutput, "this is the data directory of the user \(name), who could not open files that root makes",
            file: directory, remedy: "run the command as this user: sudo -u '\(name)'")
    }

    private static func inUse(_ directory: String) -> StorageError {
        StorageError(.locked, "another process uses this data directory", file: directory)
    }

    /// Checks the format; creates a new directory, without any run.
    /// - Throws: `unsupportedFormat`, `full`, `inputOutput`.
    static func openOrCreate(_ directory: String, format: Int) throws(StorageError) {
        let path = path(in: directory)
        let marker = directory + "/NEW"
        // A process that was killed may have left names that are not durable, and what follows builds on them.
        try Directory.sync(directory)
        if try Directory.isThere(path) {
            try check(directory, format: format)
            return try Directory.removeFile(marker)
        }
        try Directory.syncName(of: directory)
        if let name = unfinished.keys.sorted().first(where: { Directory.exists("\(directory)/\($0)") }) {
            throw StorageError(
                .refused, "the data directory has \(name): what puts a state there has not come to its end",
                file: directory, remedy: unfinished[name])
        }
        if !Directory.exists(marker) {
            guard !["runs", "log"].contains(where: { Directory.exists(directory + "/" + $0) }) else {
                throw StorageError(.unsupportedFormat, "the data directory has no FORMAT file", file: directory)
            }
            try File(marker, flags: O_RDWR | O_CREAT).sync()
            try Directory.sync(directory)
        }
        try RunStore.create(directory + "/runs")
        try Directory.create(directory + "/log")
        try create(directory, format: format)
        try Directory.removeFile(marker)
    }

    /// Gives a directory its format file, durably.
    static func create(_ directory: String, format: Int) throws(StorageError) {
        try FormatState.format(format).write(in: directory)
    }

    /// Checks the format of an existing directory.
    /// - Throws: `unsupportedFormat`; `inputOutput` if the format file cannot be read.
    package static func check(_ directory: String, format: Int = current) throws(StorageError) {
        if let refusal = try FormatState(of: directory).refusal(of: directory, by: format) { throw refusal }
    }
}
