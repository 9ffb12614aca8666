// The directory of a server in a cluster: a cache of a store whose log is elsewhere.

internal import FileSystem
package import Storage

/// The file CLUSTER of a data directory: which store of a database the directory caches. A directory with it has no
/// log, and takes only what comes from the cluster.
package enum ClusterFile {
    private static let name = "CLUSTER"

    /// The name of the store; nil if the directory is not of a cluster.
    /// - Throws: `corrupt`, `inputOutput`.
    package static func read(in directory: String) throws(StorageError) -> String? {
        try SummedLine.read(
            "\(directory)/\(name)", contents: "the name of a store",
            remedy: "remove the directory; the server makes it again from the cluster")
    }

    /// Makes a directory, which may be missing, the cache of a store, durably. Nobody may have it open.
    ///
    /// - Parameters:
    ///   - store: its name in the database.
    ///   - identity: its identity, which becomes that of the directory.
    ///   - timeline: where its history begins, in microseconds.
    package static func write(
        _ store: String, _ identity: StoreIdentity, timeline: UInt64, in directory: String
    ) throws(StorageError) {
        try Directory.create(directory)
        try SummedLine.create("\(directory)/\(name)", store)
        try writeHistory(identity, timeline: timeline, in: directory)
    }

    /// Gives a directory the history of a store, durably: its identity, and where it begins. Nobody may have it open.
    package static func writeHistory(
        _ identity: StoreIdentity, timeline: UInt64, in directory: String
    ) throws(StorageError) {
        try Directory.create(directory)
        try SummedLine.create("\(directory)/\(IdentityFile.name)", identity.description)
        try SummedLine.create("\(directory)/\(TimelineFile.name)", "\(timeline)")
    }

    /// The identity of the store that a directory has; nil if it has none.
    package static func identity(in directory: String) throws(StorageError) -> StoreIdentity? {
        try IdentityFile.read(in: directory)
    }

    /// Where the history of a directory begins, in microseconds; nil if it does not say so.
    package static func timeline(in directory: String) throws(StorageError) -> UInt64? {
        try TimelineFile.read(in: directory)?.microseconds
    }

    /// The version up to which the runs of a directory have all commits; nil for a directory without runs.
    /// - Throws: `corrupt`, `inputOutput`.
    package static func checkpoint(of directory: String) throws(StorageError) -> CommitVersion? {
        try manifest(of: directory)?.checkpoint
    }

    /// The version up to which the runs of a directory lack history that was superseded; nil for a directory without
    /// runs.
    /// - Throws: `corrupt`, `inputOutput`.
    package static func horizon(of directory: String) throws(StorageError) -> CommitVersion? {
        try manifest(of: directory)?.horizon
    }

    private static func manifest(of directory: String) throws(StorageError) -> Manifest? {
        guard Directory.exists(directory + "/FORMAT") else { return nil }
        return try Manifest.read(in: directory + "/runs")
    }
}
