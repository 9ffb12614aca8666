// Directories in which index entries are not made again.

import DocumentStore
import EmbeddedEngine

/// A directory that follows another server. A repair would make commits there that the other server does not have:
/// nothing could be followed after it.
enum EntriesOfOthers {
    /// What helps instead of a repair; nil for an independent directory.
    static func remedy(_ directory: String) throws -> String? {
        if let source = try ReplicaFile.source(in: directory) {
            return "\(directory) is a replica: remove it, and hearth serve --follow \(source) copies the source again"
        }
        guard let store = try ClusterFile.read(in: directory) else { return nil }
        return
            "\(directory) caches the store \(store) of a cluster: remove it, and hearth serve --cluster makes it again"
    }
}
