internal import Basics
internal import FileSystem
internal import Glibc
internal import Storage
internal import Synchronization

/// The directory `runs`: its manifest, its files, and their space. Thread-safe.
///
///     runs/MANIFEST     which runs there are (``Manifest``)
///     runs/….run        files of entries, named by their numbers (``RunFormat``)
///     runs/….mdb        files of documents, each with one beside it, ….side (``DocumentFormat``)
///     runs/space        blocks for what the memtables hold (``RunSpace``)
final class RunStore: Sendable {
    private struct State {
        var open: [UInt64: RunFile]
        var set: RunSet
        /// Numbers that were taken since the manifest was written.
        var nextNumber: UInt64
    }

    let directory: String
    let space: RunSpace
    let fault: FaultInjection
    /// Bound of all files together, in bytes.
    private let byteCountMax: Int
    private let place: LockedPlace
    private let state: Monitor<State>
    /// Held while the manifest is changed, which may take long; `state` is held for moments.
    private let changing = Monitor(Changes())

    private struct Changes {
        /// The generation of the set of runs.
        var generation = 1
        /// Files of changes that failed when their manifest had been renamed, so that the disk may have it. They are
        /// removed once a later manifest is durable.
        var doubtful: [Manifest.Part] = []
    }

    /// Opens the runs that the manifest names, and removes the files that it does not name.
    /// - Throws: `corrupt` if the manifest or a file is missing or damaged, `inputOutput`.
    init(
        directory: String, byteCountMax: Int, memtableBytesMax: Int, reserveBytes: Int, isReadOnly: Bool = false,
        place: LockedPlace, fault: FaultInjection
    ) throws(StorageError) {
        self.directory = directory
        self.place = place
        self.fault = fault
        self.byteCountMax = byteCountMax
        let manifest = try Manifest.read(in: directory)
        let open = try Self.open(manifest, in: directory)
        if !isReadOnly {
            // The manifest may be of a process that was killed before it was durable, and other files are removed for
            // it.
            try Directory.sync(directory)
            try Self.removeOthers(in: directory, open)
        }
        let set = RunSet(manifest, generation: 1, open: open)
        state = Monitor(State(open: open, set: set, nextNumber: manifest.nextNumber))
        space = try RunSpace(
            "\(directory)/\(RunSpace.fileName)", memtableBytesMax: memtableBytesMax, reserveBytes: reserveBytes,
            isReadOnly: isReadOnly, fault: fault)
    }

    /// Opens the files of a manifest.
    static func open(_ manifest: Manifest, in directory: String) throws(StorageError) -> [UInt64: RunFile] {
        var open: [UInt64: RunFile] = [:]
        for part in manifest.runs.flatMap(\.parts) {
            open[part.file] = try Self.open(part, of: manifest, in: directory)
        }
        return open
    }

    /// Opens a file of a manifest.
    /// - Throws: `corrupt` if it is missing, damaged or another one; `inputOutput`.
    static func open(
        _ part: Manifest.Part, of manifest: Manifest, in directory: String
    ) throws(StorageError) -> RunFile {
        let file = try RunFile(directory: directory, number: part.file, kind: part.kind, identity: part.identity)
        guard file.byteCount == Int(part.byteCount) else {
            throw StorageError(.corrupt, "a file of a run has another size", file: file.path)
        }
        guard !file.footer.hasHashIndex || file.footer.hashSeed == manifest.hashSeed else {
            throw StorageError(.corrupt, "a file of a run has another seed", file: file.path)
        }
        return file
    }

    private static func removeOthers(in directory: String, _ open: [UInt64: RunFile]) throws(StorageError) {
        for name in try Directory.names(in: directory) {
            let file = RunFormat.file(named: name)
            guard file != nil || name.hasSuffix(".new") else { continue }
            if let file, open[file.number]?.kind == file.kind { continue }
            try Directory.removeFile(directory + "/" + name)
        }
    }

    /// Makes the directory of an empty store, in place of what a process left that ended while it did the same.
    static func create(_ directory: String) throws(StorageError) {
        try Directory.create(directory)
        for name in try Directory.names(in: directory) { try Directory.removeFile(directory + "/" + name) }
        try Manifest().write(in: directory, space: nil)
    }

    /// The runs as they are now.
    var current: RunSet { state.withLock { $0.set } }

    /// The open file with this number; nil if it has been merged.
    func file(_ number: UInt64) -> RunFile? { state.withLock { $0.open[number] } }

    /// The open files.
    var files: [RunFile] { state.withLock { Array($0.open.values) } }

    /// A number for a file or a run, which no other has or had.
    func takeNumber() -> UInt64 {
        state.withLock { state in
            defer { state.nextNumber += 1 }
            return state.nextNumber
        }
    }

    /// Changes the manifest, durably, and opens the files that it adds. When this throws nothing has changed, and the
    /// files that were to be added are removed.
    ///
    /// The files' names must be durable before: this syncs the directory first.
    /// - Parameters:
    ///   - operation: as tests see it.
    ///   - body: changes the manifest; must be quick.
    /// - Throws: `full`, `inputOutput`, `corrupt`.
    func change(
        _ operation: FileOperation, _ body: (inout Manifest) -> Void
    ) throws(StorageError) {
        try changing.withLock { changes throws(StorageError) in
            let (before, known, nextNumber) = state.withLock { ($0.set.manifest, $0.open, $0.nextNumber) }
            var manifest = before
            body(&manifest)
            if manifest == before { return }
            manifest.nextNumber = max(manifest.nextNumber, nextNumber)
            var isRenamed = false
            let open: [UInt64: RunFile]
            let added = manifest.runs.flatMap(\.parts).filter { known[$0.file] == nil }
            do throws(StorageError) {
                try place.check()
                try fault.check(operation, file: directory)
                open = try files(of: manifest, known)
                try manifest.write(in: directory, space: space, isRenamed: &isRenamed)
            } catch {
                if isRenamed { changes.doubtful += added } else { remove(added) }
                throw error
            }
            remove(changes.doubtful)
            changes.doubtful = []
            let obsolete = known.filter { open[$0.key] == nil }.values
            if !obsolete.isEmpty { try? fault.check(.removeRuns, file: directory) }
            for file in obsolete { file.markObsolete() }
            changes.generation += 1
            let set = RunSet(manifest, generation: changes.generation, open: open)
            state.withLock { state in
                state.open = open
                state.set = set
            }
        }
    }

    /// The open files of a manifest: those that are known, and others, which are opened.
    private func files(of manifest: Manifest, _ known: [UInt64: RunFile]) throws(StorageError) -> [UInt64: RunFile] {
        var open: [UInt64: RunFile] = [:]
        for run in manifest.runs {
            for part in run.parts {
                if let file = known[part.file] {
                    open[part.file] = file
                } else {
                    open[part.file] = try RunFile(
                        directory: directory, number: part.file, kind: part.kind, identity: part.identity)
                }
            }
        }
        return open
    }

    /// Removes files that no manifest names. One that cannot be removed stays until the next opening.
    func remove(_ parts: [Manifest.Part]) {
        for part in parts { remove(part.file, part.kind) }
    }

    /// The same for one that may not be complete.
    func remove(_ number: UInt64, _ kind: RunKind) {
        guard place.isIntact else { return }
        for name in RunFormat.fileNames(number, kind) { try? Directory.removeFile(directory + "/" + name) }
    }

    /// A number for a file that is about to be made, which no other has or had.
    /// - Throws: `inputOutput` if the directory is not in its place.
    func takeFileNumber() throws(StorageError) -> UInt64 {
        try place.check()
        return takeNumber()
    }

    /// - Throws: `full` if so many more bytes would exceed the bound of all files.
    func checkBound(adding bytes: Int) throws(StorageError) {
        if current.manifest.byteCount + bytes > byteCountMax {
            throw StorageError(.full, "the runs have reached their bound of \(byteCountMax) bytes", file: directory)
        }
    }
}
