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
        guard creates else { return CommitVersion(microseconds: now) }
        do throws(StorageError) {
            try SummedLine.create("\(directory)/\(name)", "\(now)")
        } catch {
            if error.code != .full { throw error }
        }
        return CommitVersion(microseconds: now)
    }

    /// The time in the directory's file; nil if there is none.
    /// - Throws: `corrupt`, `inputOutput`.
    static func read(in directory: String) throws(StorageError) -> CommitVersion? {
        let (path, contents) = ("\(directory)/\(name)", "a time")
        let remedy = "delete this file; no data are in it, and clients that listen get their results from the start"
        guard let word = try SummedLine.read(path, contents: contents, remedy: remedy) else { return nil }
        if let time = UInt64(word) { return CommitVersion(microseconds: time) }
        throw StorageError(.corrupt, "the file does not contain \(contents)", file: path, remedy: remedy)
    }
}
