package import Storage

/// The work that makes files of one format out of those of the format before.
///
/// The engine has one format yet, so it has no step (``DirectoryUpgrade/steps``). A step is added together with the
/// format that it leads to, and stays for as long as directories of the older format may be upgraded.
package protocol FormatStep: Sendable {
    /// The format that the step begins with; it leads to the next one.
    var from: Int { get }

    /// Bytes that the step will write at most, given the files of the older format.
    func bytesNeeded(for files: FormatFiles) throws(StorageError) -> Int

    /// Reads the files of the older format, and writes those of the next one into directories that are empty. Each file
    /// must be durable when this returns; the names in the two directories need not be.
    ///
    /// Files of runs that stay as they are may be hard links, since such files never change. Segments of the log are
    /// written again when they are recycled, so they are copied.
    ///
    /// - Parameter report: gets the number of bytes written so far.
    func convert(
        _ source: FormatFiles, to target: FormatFiles, report: (Int) -> Void
    ) throws(StorageError)
}

/// The directories with the files of a format.
package struct FormatFiles: Sendable {
    /// Files of sorted runs with their manifest.
    package let runs: String
    /// Segments of the log.
    package let log: String
}
