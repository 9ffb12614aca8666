package import FileSystem
package import Storage

/// Directories that a server keeps in a data directory, and that belong to every copy of it. The engine does not look
/// into them.
///
///     DIR/rules            of the server
///     DIR/STORES/NAME      the data directory of one of several stores, whose copies have DIR/rules
package enum CompanionFiles {
    private static let directories = [rules]
    /// The security rules. Those of a cluster belong to its servers and not to the state of a store.
    package static let rules = "rules"
    /// Where a server that runs is administered.
    package static let socket = "admin.sock"
    /// Where a server has several stores.
    package static let storesFolder = "STORES"
    /// What a server knows about callers, for example whose tokens are revoked. It belongs to the server and not to its
    /// state: no copy has it, and it stays when another state takes the place of this one.
    package static let serversOwn = "identity"
    /// Where the archive of the store is. It names the store, so it may stay when another state takes the place of this
    /// one; no copy has it.
    package static let archived = "ARCHIVED"
    /// What else a data directory has in itself.
    private static let entries: Set<String> = [
        "FORMAT", "NEW", "LOCK", "TIMELINE", "IDENTITY", "IMPORT", "CLUSTER", "PLACES", "REPLICA", "SUPERSEDED",
        "MIGRATING", "BASE", "RESTORE", archived, socket, "log", "runs", "removed", serversOwn,
    ]
    /// How the name of a file ends that is not complete.
    private static let unfinishedSuffix = ".new"

    /// Whether an entry of a data directory is Hearth's. Others are left alone: an operator may keep a file of
    /// principals there, and the system keeps `lost+found` at a mount point.
    package static func isOfDirectory(_ name: String) -> Bool {
        if entries.contains(name) || directories.contains(name) || name.hasPrefix("fork-") { return true }
        // A file that is not complete, or a state of a base or of an upgrade.
        let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
        guard parts.count == 2, entries.contains(parts[0]) else { return false }
        return ["new", "moving"].contains(parts[1]) || parts[1].hasPrefix("format-")
    }

    /// Copies the regular files of these directories, durably and with their times, in the order of their names.
    ///
    /// Files may be added and removed meanwhile. One that is removed before it is copied is left out. When this throws,
    /// no directory is left that lacks a file.
    /// - Parameter leavesOutUnreadable: whether a file that cannot be copied is left out, unless the disk is full.
    /// - Throws: `full`, `inputOutput`.
    package static func copy(
        from source: String, to target: String, leavesOutUnreadable: Bool = false
    ) throws(StorageError) {
        let source = owner(of: source)
        for directory in directories where Directory.exists("\(source)/\(directory)") {
            do throws(StorageError) {
                try copyFiles(
                    of: "\(source)/\(directory)", to: "\(target)/\(directory)",
                    leavesOutUnreadable: leavesOutUnreadable)
            } catch {
                try? Directory.removeAll("\(target)/\(directory)")
                throw error
            }
        }
    }

    /// The directory of the server that has a data directory.
    package static func owner(of directory: String) -> String {
        let folder = Directory.parent(of: Directory.resolved(directory))
        let name = folder.split(separator: "/").last
        return name.map(String.init) == storesFolder ? Directory.parent(of: folder) : directory
    }

    private static func copyFiles(
        of source: String, to target: String, leavesOutUnreadable: Bool = false
    ) throws(StorageError) {
        try Directory.create(target)
        for name in try Directory.names(in: source) where !name.hasSuffix(unfinishedSuffix) {
            let path = "\(source)/\(name)"
            guard Directory.status(of: path).isRegularFile else { continue }
            do throws(StorageError) {
                try DirectoryCopy.copyFile(path, to: "\(target)/\(name)", keepsTimes: true)
            } catch {
                if Directory.exists(path), !leavesOutUnreadable || error.code == .full { throw error }
                try Directory.removeFile("\(target)/\(name)")
            }
        }
        try Directory.sync(target)
    }
}

extension EmbeddedEngine {
    /// Refuses root for a directory of another user that is to get a state: a server of that user could not open it.
    ///
    /// - Throws: `inputOutput`.
    package static func checkOwner(ofNew directory: String) throws(StorageError) {
        try DirectoryFormat.checkOwner(of: directory, in: directory)
    }

    /// Does something to a data directory that no engine has open. None can open it meanwhile.
    ///
    /// - Parameters:
    ///   - directory: made if there is none.
    ///   - body: gets the space that is reserved for deletes, for a small file that must be written on a full disk. It
    ///     has none any more when `body` has returned.
    /// - Throws: `locked` if an engine has it open, `inputOutput`; what `body` throws.
    package static func whileUnused<Output>(
        _ directory: String, _ body: (SpareSpace) throws -> Output
    ) throws -> Output {
        let lock = try DirectoryLock(directory)
        defer { lock.unlock() }
        let spareSpace = SpareSpace()
        spareSpace.lend { RunSpace.release($0, of: "\(directory)/runs") }
        defer { spareSpace.lend { _ in false } }
        return try body(spareSpace)
    }
}

/// The lock of a data directory that no engine has open: none can open it before ``unlock()``, or the end of the lock.
/// Used by one thread.
package final class DirectoryLock {
    private let file: File

    /// - Parameter directory: made if there is none.
    /// - Throws: `locked` if an engine has it open, `inputOutput`.
    package init(_ directory: String) throws(StorageError) { file = try DirectoryFormat.lock(directory) }

    package func unlock() { file.unlock() }
}
