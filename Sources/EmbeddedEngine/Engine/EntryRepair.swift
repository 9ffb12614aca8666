// Index entries follow from the documents. If a file of them is damaged or missing, all of them are dropped, and the
// store makes them again:
//
//     1  EntryRepair.run      the manifest without files of entries, and with the mark `areEntriesDropped`
//     2  opening              the log is replayed as always
//     3  DocumentStore.open   a durable commit: all indexes are to be built from the first document on
//     4  entriesAreBeingMade  the manifest without the mark
//
// A process that ends in between leaves the mark or the commit, so an index is never taken as complete. History before
// the checkpoint cannot be read any more: the entries of its versions are gone.

internal import FileSystem
package import Storage

/// Drops damaged index entries of a directory that no engine has open.
package enum EntryRepair {
    /// Verifies all blocks of all files of index entries, and drops all of these files if one is damaged or missing.
    /// - Parameters:
    ///   - isForced: they are dropped whether or not one is damaged.
    ///   - progress: gets the number of bytes verified so far, on this thread.
    /// - Returns: what is damaged, a sentence for each file. If that is nothing, nothing has changed.
    /// - Throws: `locked`, `unsupportedFormat`, `corrupt` if the manifest is damaged, `inputOutput`, `full`.
    package static func run(
        directory: String, isForced: Bool = false, progress: @escaping WorkProgress.Handler = { _ in }
    ) throws(StorageError) -> [String] {
        guard Directory.exists(directory + "/FORMAT") else {
            throw StorageError(.unsupportedFormat, "not a data directory: it has no FORMAT file", file: directory)
        }
        let lock = try DirectoryFormat.lock(directory)
        defer { lock.unlock() }
        try DirectoryFormat.check(directory)
        let runs = directory + "/runs"
        var manifest = try Manifest.read(in: runs)
        let damage = try damage(of: manifest, in: runs, progress)
        if damage.isEmpty && !isForced { return [] }
        manifest.dropEntries()
        // The next opening removes the files.
        try manifest.write(in: runs, space: nil)
        return damage
    }

    private static func damage(
        of manifest: Manifest, in directory: String, _ progress: @escaping WorkProgress.Handler
    ) throws(StorageError) -> [String] {
        let parts = manifest.runs.flatMap(\.parts).filter { $0.kind == .entries }
        let total = parts.reduce(0) { $0 + Int(clamping: $1.byteCount) }
        var done = 0
        var damage: [String] = []
        for part in parts {
            progress(WorkProgress("verifying the index entries", done: done, total: total, .bytes))
            do throws(StorageError) {
                let file = try RunStore.open(part, of: manifest, in: directory)
                // The part is valid while the file is.
                defer { withExtendedLifetime(file) {} }
                try file.part.verifyBlocks()
            } catch {
                // A failure to read may be one of the moment, or of the directory.
                guard error.code == .corrupt else { throw error }
                damage.append(error.description)
            }
            done += Int(clamping: part.byteCount)
        }
        return damage
    }
}

extension EmbeddedEngine {
    /// Whether index entries were dropped by ``EntryRepair``, so that no index is complete.
    package var areEntriesDropped: Bool { core.runs.current.manifest.areEntriesDropped }

    /// Notes, durably, that commits which are durable have all indexes made again.
    /// - Throws: `full`, `inputOutput`.
    package func entriesAreBeingMade() throws(StorageError) {
        try core.runs.change(.openRuns) { $0.areEntriesDropped = false }
        core.progress.update { core.showRuns(&$0) }
    }
}
