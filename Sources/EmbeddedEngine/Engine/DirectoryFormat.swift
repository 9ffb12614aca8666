internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage

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
enum DirectoryFormat {
    /// What FORMAT says. Never change; a directory of another format gets another line.
    static let line = "hearth store, format 1\n"
    /// Builds before the first release wrote these.
    private static let formerLines = (1...5).map { "hearth key-value store, format \($0)\n" }

    /// Takes the directory's lock, making the directory if there is none.
    /// - Throws: `locked`.
    /// - Parameter isReadOnly: nothing is created. A directory without the file is locked itself: no server uses it.
    static func lock(_ directory: String, isReadOnly: Bool = false) throws(StorageError) -> File {
        let path = directory + "/LOCK"
        let file: File
        if isReadOnly {
            let isThere = Directory.exists(path)
            file = try File(isThere ? path : directory, flags: O_RDONLY | (isThere ? 0 : O_DIRECTORY))
        } else {
            try Directory.create(directory)
            file = try File(path, flags: O_RDWR | O_CREAT)
        }
        guard try file.tryLock() else { throw inUse(directory) }
        return file
    }

    /// Takes the lock of a directory that is only read, and changes nothing in it.
    /// - Returns: nil if the directory has no lock file: every engine creates one.
    /// - Throws: `locked`.
    static func lockExisting(_ directory: String) throws(StorageError) -> File? {
        let path = directory + "/LOCK"
        guard Directory.exists(path) else { return nil }
        let file = try File(path, flags: O_RDONLY)
        guard try file.tryLock() else { throw inUse(directory) }
        return file
    }

    private static func inUse(_ directory: String) -> StorageError {
        StorageError(.locked, "another process uses this data directory", file: directory)
    }

    /// Checks the format; creates a new directory, without any run.
    /// - Throws: `unsupportedFormat`, `full`, `inputOutput`.
    static func openOrCreate(_ directory: String) throws(StorageError) {
        let path = directory + "/FORMAT"
        let marker = directory + "/NEW"
        // A process that was killed may have left names that are not durable, and what follows builds on them.
        try Directory.sync(directory)
        if Directory.exists(path) {
            try check(directory)
            return try Directory.removeFile(marker)
        }
        try Directory.syncName(of: directory)
        if !Directory.exists(marker) {
            guard !["runs", "log"].contains(where: { Directory.exists(directory + "/" + $0) }) else {
                throw StorageError(.unsupportedFormat, "the data directory has no FORMAT file", file: directory)
            }
            try File(marker, flags: O_RDWR | O_CREAT).sync()
            try Directory.sync(directory)
        }
        try RunStore.create(directory + "/runs")
        try Directory.create(directory + "/log")
        try create(directory)
        try Directory.removeFile(marker)
    }

    /// Gives a directory its format file, durably.
    static func create(_ directory: String) throws(StorageError) {
        let path = directory + "/FORMAT"
        let workPath = path + ".new"
        let file = try File(workPath, flags: O_RDWR | O_CREAT | O_TRUNC)
        try file.write(string: line)
        try file.sync()
        try Directory.rename(workPath, to: path)
        try Directory.sync(directory)
    }

    /// Checks the format of an existing directory.
    /// - Throws: `unsupportedFormat`; `inputOutput` if the format file cannot be read.
    static func check(_ directory: String) throws(StorageError) {
        let path = directory + "/FORMAT"
        let file = try File(path, flags: O_RDONLY)
        let buffer = HeapBuffer(capacity: 256)
        let count = unsafe try file.read(into: buffer.all, at: 0)
        let found = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: buffer.all[..<count]), as: UTF8.self)
        if found == line { return }
        guard let former = formerLines.firstIndex(of: found) else {
            throw StorageError(
                .unsupportedFormat, "the format of the data directory is unknown to this version", file: path)
        }
        throw StorageError(
            .unsupportedFormat,
            "the data directory has the former format \(former + 1), which this version does not read: export the "
                + "documents with the version that wrote it, and load them into a new directory", file: path)
    }
}
