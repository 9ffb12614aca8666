// Bases in a directory that the servers of a cluster share: those of an archive, without records.
//
//     DIR/BASES                            which store they are of; a directory without it is not mounted
//     DIR/EPOCH-SUFFIX/BASE                what a base consists of; written last (``ArchiveBase``)
//     DIR/EPOCH-SUFFIX/runs/…, rules/…     its files
//
// Which bases count is said elsewhere, by the database of the cluster: a folder is a base when it is registered there.
// So neither the order of writes in the directory nor its locks decide anything, and file systems without rename or
// locks will do. A folder has the epoch of the leader that made it in its name. A leader removes only folders of its
// own epoch or earlier ones, and a base is registered only in the epoch that is the last one. So a leader that was
// replaced, and does not know it, removes nothing that another one needs, and registers nothing that was removed.

internal import Basics
internal import FileSystem
internal import Glibc
package import Storage

/// The bases of one store. A plain value: each call looks at the directory.
package struct SharedBases: Sendable {
    /// A file for a base.
    package struct Source {
        /// In a data directory, for example `runs/MANIFEST`.
        package let path: String
        /// Where it lies.
        package let place: String
        package let byteCount: Int

        package init(path: String, place: String, byteCount: Int) {
            self.path = path
            self.place = place
            self.byteCount = byteCount
        }
    }

    /// What a base is, beside its files.
    package struct Description: Sendable {
        package let number: UInt64
        /// Where the history of the store begins.
        package let timeline: CommitVersion
        /// All commits up to here are in the base, and none after it.
        package let version: CommitVersion
        /// History superseded up to here is not in it.
        package let horizon: CommitVersion

        package init(number: UInt64, timeline: CommitVersion, version: CommitVersion, horizon: CommitVersion) {
            self.number = number
            self.timeline = timeline
            self.version = version
            self.horizon = horizon
        }
    }

    package let directory: String
    package let store: StoreIdentity

    private static let markName = "BASES"
    private static let format = "hearth bases, format 1"
    private static let remedy = "the server that leads makes another base"

    package init(_ directory: String, of store: StoreIdentity) {
        self.directory = directory
        self.store = store
    }

    private func place(_ folder: String) -> String { "\(directory)/\(folder)" }

    // MARK: The mark

    private func markedStore() throws(StorageError) -> StoreIdentity? {
        try ArchiveOwner.read(
            place(Self.markName), format: Self.format, remedy: "take this file from a copy of the directory")?.store
    }

    /// Looks whether the directory is that of the store, and not the empty place of one that is not mounted.
    /// - Throws: `refused`, `corrupt`, `unsupportedFormat`, `inputOutput`.
    package func checkMark() throws(StorageError) {
        guard let found = try markedStore() else {
            throw StorageError(
                .refused, "the directory has no bases of this store: it has no file \(Self.markName)",
                file: directory, remedy: "mount the directory that the other servers have")
        }
        guard found == store else {
            throw StorageError(
                .refused, "the directory has the bases of another store (\(found))", file: directory,
                remedy: "name another directory")
        }
    }

    /// Makes the directory that of the store, unless it is. The directory above must exist.
    /// - Throws: as ``checkMark()``; `full`.
    package func claim() throws(StorageError) {
        if try markedStore() != nil { return try checkMark() }
        let above = Directory.parent(of: directory)
        guard Directory.status(of: above).isDirectory else {
            throw StorageError(
                .refused, "the directory for bases does not exist", file: above, remedy: "mount it or make it")
        }
        try Directory.create(directory)
        let text = Array(ArchiveOwner(store: store, timeline: .zero).text(format: Self.format).utf8)
        _ = try ArchiveFiles.write(text.byteSpan, to: place(Self.markName), in: directory)
    }

    // MARK: Making a base

    /// A name that nobody has used.
    package static func folder(epoch: UInt64) -> String {
        "\(Hexadecimal.text(epoch))-\(Hexadecimal.text(UInt64.random(in: 0...UInt64.max)))"
    }

    /// The epoch in a name; nil for other names.
    private static func epoch(of folder: String) -> UInt64? {
        let parts = folder.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, ArchiveFormat.number(String(parts[1])) != nil else { return nil }
        return ArchiveFormat.number(String(parts[0]))
    }

    /// Writes a base, durably, and reads it back. What is left when this throws is removed as far as possible.
    ///
    /// - Parameters:
    ///   - files: those in other folders than a base has are left out.
    ///   - isCancelled: asked between two pieces.
    /// - Throws: `closed` if it was cancelled; `full`, `corrupt`, `inputOutput`.
    package func write(
        _ files: [Source], _ description: Description, to folder: String, isCancelled: () -> Bool
    ) throws(StorageError) -> ArchiveBase {
        let files = files.filter { ArchiveBase.isInside($0.path) }
        try checkSpace(for: files.reduce(0) { $0 + $1.byteCount })
        do throws(StorageError) {
            let base = try copy(files, description, to: folder, isCancelled: isCancelled)
            try verify(base, in: folder, isCancelled: isCancelled)
            return base
        } catch {
            try? Directory.removeAll(place(folder))
            throw error
        }
    }

    /// A write that fails half-way takes the last of a disk that others use too; this asks first.
    private func checkSpace(for byteCount: Int) throws(StorageError) {
        let free = try File(directory, flags: O_RDONLY | O_DIRECTORY).freeBytes()
        // Some mounts do not say what they have.
        if free == 0 || free >= byteCount { return }
        throw StorageError(
            .full, "the base needs \(byteCount) bytes, and the file system has \(free) left", file: directory)
    }

    private func copy(
        _ files: [Source], _ description: Description, to folder: String, isCancelled: () -> Bool
    ) throws(StorageError) -> ArchiveBase {
        var parts: [ArchiveBase.Part] = []
        for file in files {
            let target = "\(place(folder))/\(file.path)"
            try Directory.create(Directory.parent(of: target))
            let sum = try BaseFile.copy(file.place, to: target, byteCount: file.byteCount, isCancelled: isCancelled)
            parts.append(ArchiveBase.Part(path: file.path, byteCount: file.byteCount, sum: sum))
        }
        for place in Set(files.map { Directory.parent(of: "\(place(folder))/\($0.path)") }) {
            try Directory.sync(place)
        }
        let base = ArchiveBase(
            number: description.number, owner: ArchiveOwner(store: store, timeline: description.timeline),
            version: description.version, horizon: description.horizon, written: SystemClock.microseconds(),
            parts: parts)
        let bytes = base.encoded
        _ = try ArchiveFiles.write(
            bytes.byteSpan, to: "\(place(folder))/\(ArchiveFormat.baseName)", in: place(folder), unless: isCancelled)
        return base
    }

    /// Compares what the directory has with what was written.
    private func verify(
        _ base: ArchiveBase, in folder: String, isCancelled: () -> Bool
    ) throws(StorageError) {
        guard try read(folder) == base else {
            throw StorageError(.corrupt, "the base is not what was written", file: place(folder))
        }
        for part in base.parts {
            unsafe try BasePart.read(part, in: place(folder), remedy: Self.remedy, directly: true) {
                _ throws(StorageError) in
                if isCancelled() { throw StorageError(.closed, "the base was given up") }
            }
        }
    }

    // MARK: Using a base

    private func read(_ folder: String) throws(StorageError) -> ArchiveBase {
        try checkMark()
        guard let base = try ArchiveBase.read(in: place(folder), remedy: Self.remedy) else {
            throw StorageError(
                .corrupt, "the description of a base is missing", file: "\(place(folder))/\(ArchiveFormat.baseName)",
                remedy: Self.remedy)
        }
        guard base.owner.store == store else {
            throw StorageError(.corrupt, "the base is of another store", file: place(folder), remedy: Self.remedy)
        }
        return base
    }

    /// Looks whether all files of a base are there, by their sizes.
    /// - Throws: `corrupt` if one is missing or damaged; `refused` without a mark; `inputOutput`.
    package func check(_ folder: String) throws(StorageError) {
        for part in try read(folder).parts {
            let path = "\(place(folder))/\(part.path)"
            guard Directory.status(of: path).byteCount == part.byteCount, Directory.exists(path) else {
                throw StorageError(
                    .corrupt, "a file of a base is missing or too short", file: path, remedy: Self.remedy)
            }
        }
    }

    /// Copies all files of a base, durably, and verifies them.
    ///
    /// - Parameters:
    ///   - version: of the group with which the base ends.
    ///   - note: gets the bytes that were copied since the last call, on this thread.
    /// - Throws: `corrupt` if a file is missing or damaged, or the base is another one; `refused` without a mark;
    ///   `full`, `inputOutput`.
    package func copy(
        _ folder: String, version: CommitVersion, to target: String, _ note: (Int) -> Void
    ) throws(StorageError) {
        let base = try read(folder)
        guard base.version <= version else {
            throw StorageError(.corrupt, "the base is of another version", file: place(folder), remedy: Self.remedy)
        }
        try BaseCopy(base, from: place(folder), to: target, remedy: Self.remedy).run(note)
    }

    // MARK: Removing bases

    /// Removes folders of bases that nobody needs, and what interrupted makers have left.
    ///
    /// - Parameters:
    ///   - kept: folders that stay.
    ///   - epoch: of the leader; folders of later ones stay.
    ///   - isCancelled: asked before each one. A folder that is made after it has returned true is not removed.
    /// - Returns: what was removed.
    /// - Throws: `closed` if it was cancelled, `refused` without a mark, `inputOutput`.
    package func remove(
        except kept: Set<String>, throughEpoch epoch: UInt64, isCancelled: () -> Bool = { false }
    ) throws(StorageError) -> [String] {
        try checkMark()
        var removed: [String] = []
        for folder in try Directory.names(in: directory) {
            if isCancelled() { throw StorageError(.closed, "the removal was given up") }
            guard let made = Self.epoch(of: folder), made <= epoch, !kept.contains(folder) else { continue }
            try remove(folder)
            removed.append(folder)
        }
        return removed
    }

    /// Removes the folder of a base, its description first.
    package func remove(_ folder: String) throws(StorageError) {
        let path = place(folder)
        guard Directory.exists(path) else { return }
        try Directory.removeFile("\(path)/\(ArchiveFormat.baseName)")
        try Directory.sync(path)
        try Directory.removeAll(path)
    }
}
