internal import FileSystem
package import Storage

/// Removes from an archive what restores within the retention do not need.
package enum ArchiveRetention {
    /// What was removed.
    package struct Outcome: Sendable, Equatable {
        package var bases = 0
        package var files = 0
    }

    /// Removes bases that are older than the newest base from before a time, and the records before that base, damaged
    /// ones too.
    ///
    /// The file BASE is removed before the other files of a base, and records are removed from the oldest on. So a
    /// process that ends meanwhile leaves a valid archive.
    /// - Parameter time: restores to it and later times stay possible, in microseconds since 1970.
    /// - Throws: `corrupt`, `inputOutput`.
    package static func prune(_ directory: String, before time: UInt64) throws(StorageError) -> Outcome {
        let catalogue = try ArchiveCatalogue(directory)
        var outcome = Outcome()
        // Where versions are ahead of the clock, a base has all that was committed until it was written.
        let first = catalogue.bases.last { $0.version.microseconds <= time || $0.written < time }
        guard let first = first ?? catalogue.bases.first else { return outcome }
        for number in catalogue.baseNumbers where number < first.number {
            let place = ArchiveFormat.baseDirectory(number, in: directory)
            try Directory.removeFile("\(place)/\(ArchiveFormat.baseName)")
            try Directory.sync(place)
            try Directory.removeAll(place)
            outcome.bases += 1
        }
        if outcome.bases > 0 { try Directory.sync("\(directory)/\(ArchiveFormat.basesName)") }
        let needed = firstNeeded(after: first.version, of: catalogue)
        for number in catalogue.recordNumbers where number < needed {
            try Directory.removeFile(ArchiveFormat.recordFile(number, in: directory))
            outcome.files += 1
        }
        if outcome.files > 0 { try Directory.sync("\(directory)/\(ArchiveFormat.recordsName)") }
        return outcome
    }

    /// The number of the first file of records that may have what comes after a version. A damaged one before it, whose
    /// records are not known, may have that too.
    private static func firstNeeded(after version: CommitVersion, of catalogue: ArchiveCatalogue) -> UInt64 {
        var needed: UInt64 = 0
        for file in catalogue.files {
            // The last file may be replaced by its writer.
            guard file.last <= version, file.number < catalogue.lastNumber else {
                return file.after <= version ? file.number : needed
            }
            needed = file.number + 1
        }
        return needed
    }

    /// The same as a command, for an archive that no server writes to.
    /// - Throws: also `locked`.
    package static func pruneUnused(_ directory: String, before time: UInt64) throws(StorageError) -> Outcome {
        guard try ArchiveOwner.read(in: directory) != nil else {
            throw StorageError(.unsupportedFormat, "not an archive: it has no ARCHIVE file", file: directory)
        }
        let lock = try ArchiveLock.take(directory)
        defer { lock?.unlock() }
        return try prune(directory, before: time)
    }
}
