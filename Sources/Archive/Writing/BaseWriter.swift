internal import Basics
internal import EmbeddedEngine
internal import FileSystem
internal import Glibc
internal import Storage

/// Writes a base: the files of runs as they are, which is one sequential copy without a merge.
struct BaseWriter {
    let engine: EmbeddedEngine
    let directory: String
    let owner: ArchiveOwner
    let number: UInt64
    let now: () -> UInt64
    /// Called between two pieces; returns whether to give up.
    let isCancelled: () -> Bool

    private static let pieceBytes = 1 << 20

    /// Writes the base, durably. What is left when this throws is not a base, and is removed as far as possible.
    /// - Throws: `closed` if it was cancelled; `full`, `inputOutput`, `failed`, `corrupt`.
    func run() throws(StorageError) -> ArchiveBase {
        let place = ArchiveFormat.baseDirectory(number, in: directory)
        do throws(StorageError) {
            return try write(to: place)
        } catch {
            try? Directory.removeAll(place)
            throw error
        }
    }

    private func write(to place: String) throws(StorageError) -> ArchiveBase {
        let runs = try engine.pinRuns()
        try Directory.create("\(place)/runs")
        var parts: [ArchiveBase.Part] = []
        for file in runs.files {
            let sum = try copy(file.path, to: "\(place)/runs/\(file.name)", byteCount: file.byteCount)
            parts.append(ArchiveBase.Part(path: "runs/\(file.name)", byteCount: file.byteCount, sum: sum))
        }
        let manifest = PinnedRuns.manifestName
        let contents = runs.manifest
        try ArchiveFiles.write(contents.byteSpan, to: "\(place)/runs/\(manifest)")
        parts.append(
            ArchiveBase.Part(
                path: "runs/\(manifest)", byteCount: contents.count, sum: ArchiveFiles.sum(contents)))
        try Directory.sync("\(place)/runs")
        try CompanionFiles.copy(from: engine.directory, to: place)
        parts += try companions(of: place)
        let base = ArchiveBase(
            number: number, owner: owner, version: runs.version, horizon: runs.horizon, written: now(), parts: parts)
        let description = base.encoded
        _ = try ArchiveFiles.write(
            description.byteSpan, to: "\(place)/\(ArchiveFormat.baseName)", in: place, unless: isCancelled)
        return base
    }

    /// - Returns: the sum of the bytes.
    private func copy(_ source: String, to target: String, byteCount: Int) throws(StorageError) -> UInt64 {
        let input = try File(source, flags: O_RDONLY)
        let output = try File(target, flags: O_RDWR | O_CREAT | O_TRUNC)
        let buffer = HeapBuffer(capacity: Self.pieceBytes)
        let sum = RunningSum()
        var offset = 0
        while offset < byteCount {
            if isCancelled() { throw StorageError(.closed, "the archive is being closed") }
            let wanted = min(byteCount - offset, Self.pieceBytes)
            let count = unsafe try input.read(into: .init(rebasing: buffer.all[..<wanted]), at: offset)
            guard count == wanted else {
                throw StorageError(.corrupt, "the file has become shorter", file: source, offset: offset + count)
            }
            let bytes = unsafe UnsafeRawBufferPointer(rebasing: buffer.all[..<count])
            unsafe sum.add(bytes)
            unsafe try output.write(bytes, at: offset)
            offset += count
        }
        try output.sync()
        return sum.value
    }

    /// The files that do not belong to the engine, which are small.
    private func companions(of place: String) throws(StorageError) -> [ArchiveBase.Part] {
        var parts: [ArchiveBase.Part] = []
        guard Directory.exists("\(place)/rules") else { return [] }
        for name in try Directory.names(in: "\(place)/rules") {
            let bytes = try ArchiveFiles.read("\(place)/rules/\(name)", byteCountMax: 1 << 30)
            parts.append(
                ArchiveBase.Part(path: "rules/\(name)", byteCount: bytes.count, sum: ArchiveFiles.sum(bytes)))
        }
        return parts
    }
}
