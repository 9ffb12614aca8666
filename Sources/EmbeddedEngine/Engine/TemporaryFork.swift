internal import FileSystem
internal import Glibc
package import Storage
internal import Synchronization

/// The place of a fork that ends with its user. Thread-safe.
///
/// It lies beside the source, where files can be shared, and is removed by ``remove()``. What a process leaves that was
/// killed is removed when the next place beside the same source is made.
package final class TemporaryFork: Sendable {
    /// Where the fork belongs; it does not exist yet.
    package var directory: String { "\(place)/data" }

    private let place: String
    private let lock: File

    private static let counter = Atomic<Int>(0)

    /// - Throws: `inputOutput` if no directory can be made beside the source.
    package init(of source: String) throws(StorageError) {
        let prefix = Directory.resolved(source) + ".fork-"
        try Self.removeAbandoned(prefix)
        place = "\(prefix)\(getpid())-\(Self.counter.add(1, ordering: .relaxed).newValue)"
        lock = try DirectoryFormat.lock(place)
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
