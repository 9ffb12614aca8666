internal import Basics
internal import CXXHash
internal import FileSystem
internal import Glibc
internal import Storage

/// The file TIMELINE of a data directory: the time from which the directory's history is its own, in microseconds.
///
/// A directory that was made from a backup has the commits up to the backup. The original directory may have made
/// further ones, at times that the copy can also be read at. A state of such a time that a client holds may come from
/// the original and is unknown to the copy.
///
/// The first opening of a directory creates the file. A backup has none, so the history of its copy begins when the
/// copy is opened.
///
/// The file is one line: the time in decimal digits, a space, and the XXH3-64 of the digits in 16 hexadecimal digits.
enum TimelineFile {
    static let name = "TIMELINE"

    /// The time in the directory's file, which is created with `now` if there is none.
    ///
    /// - Parameter creates: false leaves a directory without the file as it is.
    /// - Throws: `corrupt` if the file is damaged, or `inputOutput`. On a full disk no file is created,
    ///   and the next opening tries again.
    static func start(in directory: String, now: UInt64, creates: Bool) throws(StorageError) -> CommitVersion {
        if let time = try read(in: directory) { return time }
        let path = directory + "/" + name
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
        try file.write(string: line(now))
        try file.sync()
        try Directory.rename(workPath, to: path)
        try Directory.sync(directory)
    }

    private static func line(_ time: UInt64) -> String {
        var digits = "\(time)"
        let sum = digits.withUTF8 { unsafe XXH3_64bits($0.baseAddress, $0.count) }
        let hexadecimal = String(sum, radix: 16)
        return digits + " " + String(repeating: "0", count: 16 - hexadecimal.count) + hexadecimal + "\n"
    }

    /// The time in the directory's file; nil if there is none.
    /// - Throws: `corrupt`, `inputOutput`.
    static func read(in directory: String) throws(StorageError) -> CommitVersion? {
        let path = directory + "/" + name
        guard Directory.exists(path) else { return nil }
        let file = try File(path, flags: O_RDONLY)
        let buffer = HeapBuffer(capacity: 64)
        let count = unsafe try file.read(into: buffer.all, at: 0)
        let text = unsafe String(decoding: UnsafeRawBufferPointer(rebasing: buffer.all[..<count]), as: UTF8.self)
        if let time = UInt64(text.prefix { $0 != " " && $0 != "\n" }) {
            if text == line(time) { return CommitVersion(microseconds: time) }
        }
        throw StorageError(
            .corrupt, "the file does not contain a time with its checksum", file: path,
            remedy: "delete this file; no data are in it, and clients that listen get their results from the start")
    }
}
