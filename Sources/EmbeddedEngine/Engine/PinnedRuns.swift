// The files of runs as of a moment, for those who copy them: an archive.

internal import Basics
internal import CommitLog
package import Storage

/// What the runs of an engine are as of a checkpoint. The files stay as they are, and where they are, while this lives.
package final class PinnedRuns: Sendable {
    /// A file of the directory `runs`.
    package struct File: Sendable {
        package let name: String
        package let path: String
        package let byteCount: Int
    }

    /// The name of the manifest among these files.
    package static let manifestName = Manifest.name

    /// All commits up to here are in the files, and none after it.
    package let version: CommitVersion
    /// History superseded up to here is not in them.
    package let horizon: CommitVersion
    /// All files but the manifest, the oldest first.
    package let files: [File]
    /// The bytes of a manifest for a directory with these files and without a log.
    package let manifest: [UInt8]
    private let set: RunSet

    init(_ set: RunSet, in directory: String) {
        self.set = set
        version = set.manifest.checkpoint
        horizon = set.manifest.horizon
        var manifest = set.manifest
        manifest.logStart = LogPosition(segment: 0)
        self.manifest = manifest.encoded()
        files = set.files.joined().sorted { $0.number < $1.number }.flatMap { file in
            zip(RunFormat.fileNames(file.number, file.kind), file.byteCounts).map { name, byteCount in
                File(name: name, path: "\(directory)/\(name)", byteCount: byteCount)
            }
        }
    }
}

extension EmbeddedEngine {
    /// Writes a checkpoint, and pins the files of the runs. Serving continues; merges cannot give the space of pinned
    /// files back.
    /// - Throws: as ``checkpointNow()``.
    package func pinRuns() throws(StorageError) -> PinnedRuns {
        try checkpointNow()
        return PinnedRuns(core.runs.current, in: core.runs.directory)
    }
}
