internal import Glibc

/// The file TIMELINE of a data directory: the time from which the directory's history is its own, in microseconds.
///
/// A directory that was made from a backup has the commits up to the backup. The original directory may have made
/// further ones, at times that the copy can also be read at. A state of such a time that a client holds may come from
/// the original and is unknown to the copy.
///
/// The first opening of a directory creates the file. A backup has none, so the history of its copy begins when the
/// copy is opened.
enum TimelineFile {
    static let name = "TIMELINE"

    /// The time in the directory's file, which is created with `now` if there is none.
    ///
    /// - Parameter creates: false leaves a directory without the file as it is.
    /// - Throws: `corrupt` if the file does not contain a time, or `inputOutput`. On a full disk no file is created,
    ///   and the next opening tries again.
    static func start(in directory: String, now: UInt64, creates: Bool) throws(StorageError) -> CommitVersion {
        let path = directory + "/" + name
        if Directory.exists(path) { return try read(path) }
        guard creates else { return CommitVersion(microseconds: now) }
        do throws(StorageError) {
            try create(path, in: directory, now)
        } catch {
            if error.code != .full { throw error }
        }
        return CommitVersion(microseconds: now)
    }

    private static func create(_ path: String, in directory: String, _ now: UInt64) throws(StorageError) {
        let workPath = path + ".new"
        let file = try File(workPath, flags: O_RDWR | O_CREAT | O_TRUNC)
        try file.write(string: "\(now)\n")
        try file.sync()
        try Directory.rename(workPath, to: path)
        try Directory.sync(directory)
    }

    private static func read(_ path: String) throws(StorageError) -> CommitVersion {
        let file = try File(path, flags: O_RDONLY)
        let buffer = HeapBuffer(capacity: 64)
        let count = unsafe try file.read(into: buffer.all, at: 0)
        let text = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: buffer.all[..<count]), as: UTF8.self)
        guard text.hasSuffix("\n"), let time = UInt64(text.dropLast()) else {
            throw StorageError(.corrupt, "the file does not contain a time", file: path)
        }
        return CommitVersion(microseconds: time)
    }
}
