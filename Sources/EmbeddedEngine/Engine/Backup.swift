// A consistent copy of a directory while it is being served.

internal import CommitLog
internal import FileSystem
internal import Glibc
package import Storage
internal import Synchronization

extension EmbeddedEngine {
    /// Writes a copy, as of a version published during the call, into a directory that does not exist yet or is empty.
    /// The copy is a separate data directory without a log, with all entries merged into one run. Serving continues;
    /// the files that the copy is made of stay until it is complete.
    ///
    /// - Throws: `full`, `failed`, `closed`, `corrupt`, `cancelled`, `inputOutput`; the last also for one in or above
    ///   that of this engine. What was written is removed then. A process that ends meanwhile leaves what it wrote; a
    ///   copy is complete once it has its FORMAT file, which is written last.
    package func backup(to directory: String, _ control: CopyControl = CopyControl()) throws(StorageError) {
        try makeCopy(in: directory, "backup") { set, runs throws(StorageError) in
            var manifest = set.manifest
            manifest.hashSeed = .random(in: .min ... .max)
            manifest.runs = []
            let parts = try copy(set, to: runs, hashSeed: manifest.hashSeed, control)
            manifest.nextNumber = UInt64(parts.count + 2)
            if !parts.isEmpty {
                manifest.runs = [Manifest.Run(number: UInt64(parts.count + 1), level: 1, parts: parts)]
            }
            return manifest
        }
    }

    /// Makes a data directory without a log that has all that is published.
    ///
    /// - Parameters:
    ///   - noun: what the directory is.
    ///   - writeRuns: writes the files of runs of a set into a directory, and returns their manifest.
    func makeCopy(
        in directory: String, _ noun: String, writeRuns: (RunSet, String) throws(StorageError) -> Manifest
    ) throws(StorageError) {
        try TemporaryFork.checkApart(core.directory, directory, for: "a \(noun)")
        let isNew = !Directory.exists(directory)
        if !isNew { try checkEmpty(directory, noun) }
        try Directory.create(directory)
        let lock = try DirectoryFormat.lock(directory)
        defer { lock.unlock() }
        do throws(StorageError) {
            try writeCopy(to: directory, writeRuns)
        } catch {
            try? Directory.removeContents(of: directory)
            if isNew { try? Directory.remove(directory) }
            throw error
        }
    }

    /// - Throws: `locked` if a process makes a copy in the directory at present, `inputOutput` if it is not empty.
    private func checkEmpty(_ directory: String, _ noun: String) throws(StorageError) {
        let names = try Directory.names(in: directory)
        if names.isEmpty { return }
        var remedy: String?
        if !names.contains("FORMAT"), names.allSatisfy(CompanionFiles.isOfDirectory) {
            try DirectoryFormat.lockExisting(directory)?.unlock()
            remedy = "if it is what a killed process has left of a \(noun), remove it and give the command again"
        }
        throw StorageError(.inputOutput, "the \(noun) directory is not empty", file: directory, remedy: remedy)
    }

    private func writeCopy(
        to directory: String, _ writeRuns: (RunSet, String) throws(StorageError) -> Manifest
    ) throws(StorageError) {
        try checkpointNow()
        let runs = directory + "/runs"
        try RunStore.create(runs)
        var manifest = try writeRuns(core.runs.current, runs)
        manifest.logStart = LogPosition(segment: 0)
        try manifest.write(in: runs, space: nil)
        try Directory.create(directory + "/log")
        try CompanionFiles.copy(from: core.directory, to: directory)
        try DirectoryFormat.create(
            directory, format: core.options.formatPlanted ?? DirectoryFormat.current)
        // A directory that was there already may be a moment old.
        try Directory.syncName(of: directory)
    }

    /// Merges all runs of a set into files in a directory.
    private func copy(
        _ set: RunSet, to directory: String, hashSeed: UInt64, _ control: CopyControl
    ) throws(StorageError) -> [Manifest.Part] {
        let footers = set.files.joined().map(\.footer)
        let lowest = footers.map(\.versionMin).min() ?? 0
        let highest = footers.map(\.versionMax).max() ?? 0
        var merge = try RunMerge(
            set.slices(0..<set.view.count), horizon: set.manifest.horizon.microseconds, isLowest: true,
            latestOnly: core.latestOnly)
        var parts: [Manifest.Part] = []
        var progress = CopyProgress(control: control, total: set.files.joined().reduce(0) { $0 + $1.byteCount })
        while !merge.isAtEnd {
            let number = UInt64(parts.count + 1)
            let kind = unsafe RunKind(of: merge.nextKey)
            let writer = try RunWriter(
                directory: directory, number: number, kind: kind, versions: lowest...highest,
                latestOnly: core.latestOnly, scannedSpaces: core.options.scannedSpaces, hashSeed: hashSeed)
            if let part = try Self.copy(&merge, writer, (number, kind), core.options.runFileBytesMax, &progress) {
                parts.append(part)
            } else {
                for name in RunFormat.fileNames(number, kind) { try Directory.removeFile(directory + "/" + name) }
            }
        }
        return parts
    }

    /// - Throws: `corrupt` if a page of the source may have become zeros while it was copied.
    private static func copy(
        _ merge: inout RunMerge, _ writer: consuming RunWriter, _ file: (number: UInt64, kind: RunKind),
        _ byteCountMax: Int, _ progress: inout CopyProgress
    ) throws(StorageError) -> Manifest.Part? {
        let faults = MapFaults.settledCount
        while unsafe !merge.isAtEnd && writer.byteCount < byteCountMax && writer.takes(merge.nextKey) {
            try merge.appendKey(to: &writer)
            try progress.entry(writer.byteCount)
        }
        guard MapFaults.count == faults else {
            throw StorageError(.corrupt, "a page of a run could not be read during the backup")
        }
        guard writer.entryCount > 0 else { return nil }
        let (footer, byteCount) = try writer.finish()
        progress.finished(byteCount)
        return Manifest.Part(
            file: file.number, identity: footer.identity, byteCount: UInt64(byteCount), kind: file.kind)
    }
}

/// Reports the bytes of a copy that are written to its control.
private struct CopyProgress {
    let control: CopyControl
    /// Bytes of what is copied.
    let total: Int
    /// Bytes of the files that are complete.
    private var complete = 0
    private var entries = 0

    /// Entries between two looks at the control.
    private static let entriesEach = 1_024

    init(control: CopyControl, total: Int) {
        self.control = control
        self.total = total
    }

    /// An entry was written.
    /// - Parameter byteCount: of the present file.
    mutating func entry(_ byteCount: Int) throws(StorageError) {
        if entries.isMultiple(of: Self.entriesEach) { try control.note(done: complete + byteCount, of: total) }
        entries += 1
    }

    /// A file is complete.
    mutating func finished(_ byteCount: Int) { complete += byteCount }
}
