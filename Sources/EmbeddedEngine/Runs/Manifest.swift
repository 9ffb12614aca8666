internal import Basics
internal import CXXHash
internal import CommitLog
internal import FileSystem
internal import Glibc
internal import Storage

/// What a directory's runs are: the file `runs/MANIFEST`.
///
/// Each change writes a new file, makes it durable and renames it over the old one. So after a crash there is the state
/// before a change or the one after it. Files that it does not name are not needed and are removed.
///
///     magic, checkpoint, first segment, horizon, next file number, number of runs,
///     hash seed, 1 if the index entries were dropped                                  8 bytes each
///     per run, newest first: number, level, output, files, length of the lower bound  8 bytes each; the bound
///       per file: number, identity, bytes, kind                                       8 bytes each
///     XXH3-64 of everything before
struct Manifest: Equatable {
    /// A file of a run.
    struct Part: Equatable {
        var file: UInt64
        /// What the file says about itself.
        var identity: UInt64
        /// Of documents, of both files.
        var byteCount: UInt64
        var kind = RunKind.entries
    }

    struct Run: Equatable {
        /// Unique in the directory's life.
        var number: UInt64
        /// 0 for what a checkpoint wrote; a merge makes a higher one.
        var level: UInt64
        /// The run that a merge under way moves this one to, or 0. That one follows those that are moved to it.
        var output: UInt64 = 0
        /// Keys below this have been moved; of the first file.
        var lowerBound: [UInt8] = []
        /// By their keys.
        var parts: [Part]

        var byteCount: Int { parts.reduce(0) { $0 + Int($1.byteCount) } }
    }

    /// Every commit up to here is in the runs, and none after it.
    var checkpoint = CommitVersion.zero
    /// Where the log continues the runs: it has all commits after `checkpoint` from here on.
    var logStart = LogPosition(segment: 0)
    /// History superseded up to here may be gone.
    var horizon = CommitVersion.zero
    /// The next number of a file or a run.
    var nextNumber: UInt64 = 1
    /// The seed of the hash indexes and of the filters in memory. Clients, who choose the keys, must not know it.
    var hashSeed = UInt64.random(in: .min ... .max)
    /// The files of index entries were dropped because one was damaged (``EntryRepair``), and nothing durable says yet
    /// that the entries are to be made again.
    var areEntriesDropped = false
    /// The newest first.
    var runs: [Run] = []

    static let name = "MANIFEST"
    private static let magic: UInt64 = 0x344E_414D_4854_5248  // "HRTHMAN4"
    private static let byteCountMax = 1 << 30

    mutating func takeNumber() -> UInt64 {
        defer { nextNumber += 1 }
        return nextNumber
    }

    var byteCount: Int { runs.reduce(0) { $0 + $1.byteCount } }

    /// The numbers of all files.
    var files: [UInt64] { runs.flatMap { $0.parts.map(\.file) } }
}

extension Manifest {
    /// Drops all files of index entries. History up to the checkpoint cannot be read without them.
    mutating func dropEntries() {
        for index in runs.indices { runs[index].parts.removeAll { $0.kind == .entries } }
        runs.removeAll { $0.parts.isEmpty }
        horizon = max(horizon, checkpoint)
        areEntriesDropped = true
    }
}

// MARK: - Bytes

extension Manifest {
    func encoded() -> [UInt8] {
        var bytes = ByteBuffer()
        let fields = [
            Self.magic, checkpoint.microseconds, logStart.segment, horizon.microseconds, nextNumber, UInt64(runs.count),
            hashSeed, areEntriesDropped ? 1 : 0,
        ]
        for field in fields { bytes.append(littleEndian: field) }
        for run in runs {
            for field in [run.number, run.level, run.output, UInt64(run.parts.count), UInt64(run.lowerBound.count)] {
                bytes.append(littleEndian: field)
            }
            bytes.append(run.lowerBound)
            for part in run.parts {
                for field in [part.file, part.identity, part.byteCount, part.kind.rawValue] {
                    bytes.append(littleEndian: field)
                }
            }
        }
        let sum = unsafe bytes.bytes.withUnsafeBytes { unsafe XXH3_64bits($0.baseAddress, $0.count) }
        bytes.append(littleEndian: sum)
        return bytes.copyBytes()
    }

    /// Nil if the bytes are not those of a manifest.
    init?(_ bytes: [UInt8]) {
        var offset = 0
        func word() -> UInt64? {
            guard bytes.count - offset >= 8 else { return nil }
            defer { offset += 8 }
            return UInt64(
                littleEndian: unsafe bytes.span.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        guard bytes.count >= 8 else { return nil }
        let sum = unsafe bytes.withUnsafeBytes { unsafe XXH3_64bits($0.baseAddress, $0.count - 8) }
        offset = bytes.count - 8
        guard word() == sum else { return nil }
        offset = 0
        guard let magic = word(), magic == Self.magic, let checkpoint = word(),
            let firstSegment = word(), let horizon = word(),
            let nextNumber = word(), let runCount = word(), let hashSeed = word(),
            let dropped = word(), dropped <= 1
        else { return nil }
        self.checkpoint = CommitVersion(microseconds: checkpoint)
        logStart = LogPosition(segment: firstSegment)
        self.horizon = CommitVersion(microseconds: horizon)
        self.nextNumber = nextNumber
        self.hashSeed = hashSeed
        areEntriesDropped = dropped == 1
        for _ in 0..<runCount {
            guard let number = word(), let level = word(), let output = word(), let partCount = word(),
                let boundBytes = word(), boundBytes <= bytes.count - offset
            else { return nil }
            var run = Run(number: number, level: level, output: output, parts: [])
            run.lowerBound = Array(bytes[offset..<(offset + Int(boundBytes))])
            offset += Int(boundBytes)
            for _ in 0..<partCount {
                guard let file = word(), let identity = word(), let byteCount = word(),
                    let kind = word().flatMap(RunKind.init)
                else { return nil }
                run.parts.append(Part(file: file, identity: identity, byteCount: byteCount, kind: kind))
            }
            runs.append(run)
        }
        guard offset + 8 == bytes.count else { return nil }
    }

    /// Reads the manifest of a directory of runs.
    /// - Throws: `corrupt` if there is none or it is damaged.
    static func read(in directory: String) throws(StorageError) -> Manifest {
        let path = directory + "/" + name
        guard try Directory.isThere(path) else { throw StorageError(.corrupt, "the manifest is missing", file: path) }
        let file = try File(path, flags: O_RDONLY)
        let count = try file.byteCount()
        guard count <= byteCountMax else { throw StorageError(.corrupt, "the manifest is too long", file: path) }
        let buffer = HeapBuffer(capacity: max(count, 1))
        let read = unsafe try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.all[..<count]), at: 0)
        guard let manifest = unsafe Manifest(Array(buffer.all[..<read])) else {
            throw StorageError(.corrupt, "the manifest is damaged", file: path)
        }
        return manifest
    }

    /// Makes this the manifest of a directory of runs, durably.
    /// - Throws: `full`, `inputOutput`; then the one before is still there.
    func write(in directory: String, space: RunSpace?) throws(StorageError) {
        var isRenamed = false
        try write(in: directory, space: space, isRenamed: &isRenamed)
    }

    /// The same.
    /// - Parameter isRenamed: set when this manifest may be the one that a crash leaves, also if this throws.
    func write(in directory: String, space: RunSpace?, isRenamed: inout Bool) throws(StorageError) {
        let path = directory + "/" + Self.name
        let workPath = path + ".new"
        let bytes = encoded()
        do throws(StorageError) {
            try Self.write(bytes, to: workPath, space)
            // The names of the files before the manifest that has them.
            try Directory.sync(directory)
        } catch {
            try? Directory.removeFile(workPath)
            throw error
        }
        isRenamed = true
        try Directory.rename(workPath, to: path)
        try Directory.sync(directory)
    }

    private static func write(_ bytes: [UInt8], to path: String, _ space: RunSpace?) throws(StorageError) {
        // Another process may take the room that is made, so there are several attempts.
        for _ in 0..<16 {
            do throws(StorageError) {
                return try write(bytes, to: path)
            } catch {
                guard error.code == .full, let space else { throw error }
                space.makeRoom(bytes.count + 8192)
            }
        }
        try write(bytes, to: path)
    }

    private static func write(_ bytes: [UInt8], to path: String) throws(StorageError) {
        let file = try File(path, flags: O_RDWR | O_CREAT | O_TRUNC)
        let buffer = HeapBuffer(capacity: bytes.count)
        unsafe buffer.all.copyBytes(from: bytes)
        unsafe try file.write(UnsafeRawBufferPointer(rebasing: buffer.all[..<bytes.count]), at: 0)
        try file.sync()
    }
}
