internal import Basics
internal import EmbeddedEngine
internal import FileSystem
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

    /// Writes the base, durably. What is left when this throws is not a base, and is removed as far as possible.
    /// - Throws: `closed` if it was cancelled; `full`, `inputOutput`, `failed`, `corrupt`.
    func run() throws(StorageError) -> ArchiveBase {
        let place = ArchiveFormat.baseDirectory(number, in: directory)
        // The directories of a base are made. In the place of a disk that is not mounted any more they would be too.
        guard try ArchiveOwner.read(in: directory) == owner else {
            throw StorageError(
                .inputOutput, "the archive is not in this directory any more", file: directory, remedy: "mount it")
        }
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
            let sum = try BaseFile.copy(
                file.path, to: "\(place)/runs/\(file.name)", byteCount: file.byteCount, isCancelled: isCancelled)
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
