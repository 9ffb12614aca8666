internal import FileSystem
internal import Glibc
package import Storage
internal import Synchronization

/// The place of a fork that ends with its user. Thread-safe.
///
/// It lies beside the source or within it, where files can be shared, and is removed by ``remove()``. What a process
/// leaves that was killed is removed when the next such place is made.
package final class TemporaryFork: Sendable {
    /// Where the fork belongs; it does not exist yet.
    package var directory: String { "\(place)/data" }

    private let place: String
    private let lock: File

    private static let counter = Atomic<Int>(0)

    /// A place beside the source.
    /// - Throws: `inputOutput` if no directory can be made there.
    package convenience init(of source: String) throws(StorageError) {
        try self.init(prefix: Directory.resolved(source) + ".fork-")
    }

    /// A place within the source, which may be a mount point.
    /// - Throws: `inputOutput` if no directory can be made there.
    package convenience init(within source: String) throws(StorageError) {
        try self.init(prefix: Self.prefix(within: source))
    }

    private init(prefix: String) throws(StorageError) {
        try Self.removeAbandoned(prefix)
        place = "\(prefix)\(getpid())-\(Self.counter.add(1, ordering: .relaxed).newValue)"
        lock = try DirectoryFormat.lock(place)
    }

    private static func prefix(within source: String) -> String { Directory.resolved(source) + "/fork-" }

    /// Refuses a target that is the source or lies in it, except for a fork that ends with its user.
    ///
    /// - Parameter what: as for `Directory.checkApart`.
    /// - Throws: `inputOutput`.
    package static func checkApart(_ source: String, _ target: String, for what: String) throws(StorageError) {
        if Directory.resolved(target).hasPrefix(prefix(within: source)) { return }
        try Directory.checkApart(source, target, for: what)
    }

    /// Removes the fork. Nothing may use it any more.
    package func remove() {
        lock.unlock()
        try? Directory.removeAll(place)
    }

    /// Removes places that no process uses.
    private static func removeAbandoned(_ prefix: String) throws(StorageError) {
        let parent = Directory.parent(of: prefix)
        for name in try Directory.names(in: parent) {
            let path = parent == "/" ? "/\(name)" : "\(parent)/\(name)"
            guard path.hasPrefix(prefix) else { continue }
            // One that is in use, or another user's, stays.
            try? DirectoryCopy.removeUnfinished(path)
        }
    }
}
